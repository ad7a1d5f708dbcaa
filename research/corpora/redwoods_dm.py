"""redwoods-dm: DM graphs and trees of the Redwoods treebank, what the English Resource Grammar makes of open text.

    pip install pydelphin
    git clone https://github.com/delph-in/erg
    python -m research.corpora.redwoods_dm --erg erg --out DATA

Meaning representations (MRS) become elementary dependency structures, and these graphs over words; derivations become
dependency trees of the same sentences. Takes about two and a half minutes.

Sentences of a single word, without an arc, without a tree, or longer than 120 words are left out. So are those of the
parts to judge by that occur in `wiki.train`, and those of `other.train` that occur in a part to judge by. Tags are
those that the treebank stores, from a tagger, and lemmas come from a dictionary: neither tells the analysis.
"""

import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace as changed
from functools import cache
from pathlib import Path

import simplemma
from delphin import derivation, eds
from delphin.codecs import simplemrs

from research.corpora.build import Target, arguments, require, run
from research.corpora.eds import bilexical
from research.corpora.redwoods import PUNCTUATION, Reading, Token, dependencies, plain, read_heads, read_profile, tokens
from spigot_nlp.data import Sentence

PARTS = {
    "wiki.train": tuple(f"ws{number}" for number in range(201, 211)),
    "wiki.dev": ("ws211", "ws212"),
    "wiki.test": ("ws213", "ws214"),
    "brown.test": ("bcs",),
    "other.train": (
        *("tg", "tgk", "ps", "psk", "rondane", "hike", "jhk", "jhu"),
        *("rtc000", "rtc001", "cb", "sh-spec"),
    ),
}
"""Which profiles make which part: pages of Wikipedia, the Brown corpus, and tourism, a manual, essays and stories."""
_JUDGED = ("wiki.dev", "wiki.test", "brown.test")
_PROFILES, _HEADS = "tsdb/gold", "etc/rules.hds"
_LONGEST = 120  # words of a sentence
_PREDICATE = re.compile(r"_(?P<lemma>.+?)_(?P<kind>[a-z])(?:_(?P<sense>.*))?")
_FRAMES = frozenset(("named", "card", "ord", "yofc", "season", "mofy", "dofw", "dofm", "pron"))
_CLITICS = {"n't": "not", "'m": "be", "'re": "be", "'ll": "will", "'ve": "have", "ca": "can", "wo": "will"}


def build(erg: Path, out: Path, *, replace: bool = False) -> Counter[str]:
    """Build the corpus; what was left out, and why, in numbers."""
    profiles = [f"{_PROFILES}/{profile}/relations" for names in PARTS.values() for profile in names]
    require(erg, "git clone https://github.com/delph-in/erg", _HEADS, *profiles)
    heads = read_heads(erg / _HEADS)
    counts: Counter[str] = Counter()
    parts: dict[str, list[Sentence]] = {}
    for part, names in PARTS.items():
        print(f"converting {part}", file=sys.stderr)
        parts[part] = [s for name in names for s in _converted(read_profile(erg / _PROFILES / name), heads, counts)]
    _divide(parts, counts)
    with Target(out, "redwoods-dm", replace=replace, sources=[erg]) as target:
        for part, sentences in parts.items():
            polished = list(map(_polished, sentences))
            target.write(f"{part}.sdp", (changed(s, heads=None, relations=None) for s in polished))
            target.write(f"{part}.dt.conllu", (changed(s, graph=None) for s in polished))
        target.copy(erg / "LICENSE")
    return counts


def _converted(readings: Iterator[Reading], heads: Mapping[str, int], counts: Counter[str]) -> Iterator[Sentence]:
    """The readings that come to a graph and a tree."""
    for reading in readings:
        counts["readings"] += 1
        found = _sentence(reading, heads)
        if isinstance(found, Sentence):
            yield found
        else:
            counts[found] += 1


def _sentence(reading: Reading, heads: Mapping[str, int]) -> Sentence | str:
    """A reading as a sentence, or why it is none."""
    words = tokens(reading.tokens)
    if len(words) < 2:
        return "of one word"
    structure = _eds(reading.mrs)
    if structure is None:
        return "without a meaning that can be read"
    # Punctuation covers nothing, so that no predicate stands on it.
    spans = [(start, start if tag in PUNCTUATION else end) for start, end, _, tag in words]
    graph = bilexical(structure, spans)
    if not graph.arcs:
        return "without an arc"
    if len(words) > _LONGEST:
        return f"of more than {_LONGEST} words"
    tree = _tree(reading.derivation, words, heads)
    if tree is None:
        return "without a tree"
    return Sentence(
        tuple(token.form for token in words),
        tags=tuple(token.tag for token in words),
        heads=tree[0],
        relations=tree[1],
        graph=changed(graph, frames=_frames(structure, words)),
        id=reading.name,
    )


def _eds(mrs: str) -> eds.EDS | None:
    """The elementary dependency structure of a meaning; `None` if it cannot be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about structures in several pieces, which are as good as others here
            return eds.from_mrs(simplemrs.decode(mrs), predicate_modifiers=True)
    except Exception:  # whatever of many things is wrong with it, it is one of thousands
        return None


def _tree(text: str, words: list[Token], heads: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[str, ...]] | None:
    try:
        found = derivation.from_string(text)
    except Exception:  # as above
        return None
    return dependencies(found, [(token.start, token.end) for token in words], heads)


def _frames(structure: eds.EDS, words: list[Token]) -> tuple[str, ...]:
    """What kind of predicate each word is, `_` where it is none or shares one."""
    frames = ["_"] * len(words)
    for node in structure.nodes:
        covered = [k for k, (start, end, _, _) in enumerate(words) if start < node.cto and end > node.cfrom]
        if len(covered) != 1:
            continue
        if match := _PREDICATE.fullmatch(node.predicate):
            # A word that the lexicon does not have says so with a slash, and has no sense.
            known = match["sense"] and "/" not in node.predicate
            frames[covered[0]] = f"{match['kind']}_{match['sense']}" if known else match["kind"]
        elif node.predicate in _FRAMES:
            frames[covered[0]] = node.predicate
    return tuple(frames)


def _divide(parts: dict[str, list[Sentence]], counts: Counter[str]) -> None:
    """Take out what occurs on both sides of a division."""

    def keep(part: str, others: set[tuple[str, ...]], what: str) -> None:
        kept = [sentence for sentence in parts[part] if sentence.forms not in others]
        counts[what] += len(parts[part]) - len(kept)
        parts[part] = kept

    trained = {sentence.forms for sentence in parts["wiki.train"]}
    for part in _JUDGED:
        keep(part, trained, "to judge by, and in wiki.train")
    judged = {sentence.forms for part in _JUDGED for sentence in parts[part]}
    keep("other.train", judged, "in other.train, and to judge by")


def _polished(sentence: Sentence) -> Sentence:
    """A sentence with words free of mark-up, and their lemmas."""
    forms = tuple(map(plain, sentence.forms))
    return changed(sentence, forms=forms, lemmas=tuple(map(_lemma, forms)))


@cache
def _lemma(form: str) -> str:
    if not any(character.isalpha() for character in form):
        return form
    clitic = _CLITICS.get(form.lower().replace("’", "'"))
    return clitic or simplemma.lemmatize(form, lang="en").lower().replace(" ", "_")


def main() -> None:
    """Run the script."""
    options = arguments("redwoods_dm", __doc__ or "")
    options.add_argument("--erg", type=Path, required=True, help="a clone of the English Resource Grammar")
    for what, number in build(**vars(options.parse_args())).items():
        print(f"{what}: {number:,}")


if __name__ == "__main__":
    run(main)
