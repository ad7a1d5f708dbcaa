"""DM graphs and trees of the Redwoods treebank: what the English Resource Grammar makes of open text.

Meaning representations (MRS) become elementary dependency structures, and these graphs over words; derivations become
dependency trees of the same sentences.
"""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace as changed
from functools import cache
from pathlib import Path

from spigot_nlp.corpora.builders.bilexical import Eds, Node, bilexical
from spigot_nlp.corpora.builders.derivations import dependencies, read_heads
from spigot_nlp.corpora.builders.profiles import PUNCTUATION, Reading, Token, delphin, plain, read_profile, tokens
from spigot_nlp.corpora.builders.sources import Material, Watch, unwatched
from spigot_nlp.corpora.builders.target import Built, Target
from spigot_nlp.data.sentence import Sentence

GRAMMAR = Material.repository("https://github.com/delph-in/erg", "MIT")
_LICENCE = "MIT for the annotation; of the texts Wikipedia has CC BY-SA, and Brown is for non-commercial use"
_PROFILES = "tsdb/gold"
_HEADS = "etc/rules.hds"
_PARTS = {
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
_LONGEST = 120  # words of a sentence
_PREDICATE = re.compile(r"_(?P<lemma>.+?)_(?P<kind>[a-z])(?:_(?P<sense>.*))?")
_FRAMES = frozenset(("named", "card", "ord", "yofc", "season", "mofy", "dofw", "dofm", "pron"))
_CLITICS = {"n't": "not", "'m": "be", "'re": "be", "'ll": "will", "'ve": "have", "ca": "can", "wo": "will"}


def redwoods_dm(erg: str | Path, out: str | Path, *, replace: bool = False, watch: Watch = unwatched) -> Built:
    """Build `redwoods-dm`: for each part an SDP file of graphs, and a CoNLL-U file of trees of the same sentences.

    Sentences of a single word, without an arc, without a tree, or longer than 120 words are left out. So are those of
    the parts to judge by that occur in `wiki.train`, and those of `other.train` that occur in a part to judge by. Tags
    are those that the treebank stores, from a tagger, and lemmas come from a dictionary: neither tells the analysis.

    Args:
        erg: A clone of the English Resource Grammar.
        out: The folder that holds the corpora.
        replace: Whether other files in the place of these may go.
        watch: Shows how far it is.

    Raises:
        ImportError: If PyDelphin is not installed.
        FileNotFoundError: If something is missing in the clone.
        FileExistsError: If other files are in the place, and may not go.

    Example:
        >>> redwoods_dm("erg", "data")
        Traceback (most recent call last):
        FileNotFoundError: there is no folder erg; it should hold erg: git clone https://github.com/delph-in/erg
    """
    profiles = [f"{_PROFILES}/{profile}" for names in _PARTS.values() for profile in names]
    erg = GRAMMAR.require(erg, _HEADS, *(f"{profile}/relations" for profile in profiles))
    delphin()
    heads = read_heads(erg / _HEADS)
    counts: Counter[str] = Counter()
    parts: dict[str, list[Sentence]] = {}
    for part, names in _PARTS.items():
        readings = (reading for name in names for reading in read_profile(erg / _PROFILES / name))
        parts[part] = list(_converted(watch(readings, f"converting {part}"), heads, counts))
    _part(parts, counts)
    with Target(out, "redwoods-dm", replace=replace) as target:
        for part, sentences in parts.items():
            target.write(f"{part}.sdp", (changed(s, heads=None, relations=None) for s in map(_polished, sentences)))
            target.write(f"{part}.dt.conllu", (changed(s, graph=None) for s in map(_polished, sentences)))
        target.copy(erg / "LICENSE", "LICENSE")
        return target.finish([GRAMMAR.origin(erg, _HEADS, *profiles)], _LICENCE, counts=counts)


def _converted(readings: Iterable[Reading], heads: Mapping[str, int], counts: Counter[str]) -> Iterator[Sentence]:
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
    eds = _eds(reading.mrs)
    if eds is None:
        return "without a meaning that can be read"
    # Punctuation covers nothing, so that no predicate stands on it.
    spans = [(start, start if tag in PUNCTUATION else end) for start, end, _, tag in words]
    graph = bilexical(eds, spans)
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
        graph=changed(graph, frames=_frames(eds, words)),
        id=reading.name,
    )


def _eds(mrs: str) -> Eds | None:
    """The elementary dependency structure of a meaning; `None` if it cannot be read."""
    codecs, eds = delphin().codecs, delphin().eds
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about structures in several pieces, which are as good as others here
            found = eds.from_mrs(codecs.simplemrs.decode(mrs), predicate_modifiers=True)
    except Exception:  # whatever of many things is wrong with it, it is one of thousands
        return None
    arguments: dict[str, dict[str, str]] = {}
    for source, role, target in found.edges:
        arguments.setdefault(source, {})[role] = target
    return Eds({n.id: Node(n.predicate, n.cfrom, n.cto) for n in found.nodes}, arguments, found.top)


def _tree(
    derivation: str, words: list[Token], heads: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[str, ...]] | None:
    try:
        found = delphin().derivation.from_string(derivation)
    except Exception:  # as above
        return None
    return dependencies(found, [(token.start, token.end) for token in words], heads)


def _frames(eds: Eds, words: list[Token]) -> tuple[str, ...]:
    """What kind of predicate each word is, `_` where it is none or shares one."""
    frames = ["_"] * len(words)
    for predicate, first, last in eds.nodes.values():
        covered = [k for k, (start, end, _, _) in enumerate(words) if start < last and end > first]
        if len(covered) != 1:
            continue
        if match := _PREDICATE.fullmatch(predicate):
            # A word that the lexicon does not have says so with a slash, and has no sense.
            known = match["sense"] and "/" not in predicate
            frames[covered[0]] = f"{match['kind']}_{match['sense']}" if known else match["kind"]
        elif predicate in _FRAMES:
            frames[covered[0]] = predicate
    return tuple(frames)


def _part(parts: dict[str, list[Sentence]], counts: Counter[str]) -> None:
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
    import simplemma

    if not any(character.isalpha() for character in form):
        return form
    clitic = _CLITICS.get(form.lower().replace("’", "'"))
    return clitic or simplemma.lemmatize(form, lang="en").lower().replace(" ", "_")
