"""propbank-ewt: PropBank's graphs on the English Web Treebank, and its trees.

    git clone https://github.com/UniversalDependencies/UD_English-EWT
    git clone https://github.com/propbank/propbank-release
    python -m research.corpora.propbank_ewt --ud UD_English-EWT --propbank propbank-release --out DATA

Words and trees come from one repository, predicates from the other. An argument of PropBank is a span; here it is the
word that heads it in the tree: the one whose own head lies outside.

Weblogs are in none of training, development and test data: every second document of them, in the order of the
treebank, makes the out-of-domain test `ood`, and the others are held back. Documents that PropBank has not annotated
are left out.

References:
    Carreras and Màrquez (2005), Introduction to the CoNLL-2005 shared task: semantic role labeling, §3.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from research.corpora.build import Target, arguments, require, run
from spigot_nlp.data import Arc, FormatError, Graph, Sentence, read
from spigot_nlp.data.formats.conll import ConllSource

SPLITS = ("train", "dev", "test")
_SKELETONS, _ENDING = "data/google/ewt", ".xml.gold_skel"
_CLONE = "git clone https://github.com/"
_NEWDOC = "# newdoc id = "
_TAG, _ROLESET, _FIXED = 4, 7, 8
_OPENED = re.compile(r"\(([^*()]+)")


class Span(NamedTuple):
    """Tokens from 0, both ends included, and their role."""

    first: int
    last: int
    role: str


class Skeleton(NamedTuple):
    """A sentence of PropBank without its words: tags, and for each predicate its place, roleset and arguments."""

    tags: tuple[str, ...]
    propositions: tuple[tuple[int, str, tuple[Span, ...]], ...]


def read_skeletons(path: Path) -> Iterator[Skeleton]:
    """The sentences of a document.

    A token on each line, a blank line between sentences. The columns are the document, the numbers of sentence and
    token, a place for the word, its tag, its piece of the phrase structure, a lemma and a roleset if it is a predicate,
    then one for each predicate, in which brackets mark where its arguments begin and end: `(ARG1*`, `*`, `*)`.

    Raises:
        FormatError: If a line is not so.
    """
    rows: list[list[str]] = []
    for number, line in enumerate([*path.read_text(encoding="utf-8").split("\n"), ""], 1):
        if cells := line.split():
            rows.append(cells)
            if len(cells) < _FIXED or len(cells) != len(rows[0]):
                wanted = f"at least {_FIXED}" if len(cells) < _FIXED else f"{len(rows[0])}, as in the first line"
                raise FormatError(str(path), number, f"{len(cells)} columns where there should be {wanted}.")
        elif rows:
            propositions = []
            for column in range(_FIXED, len(rows[0])):
                spans = _spans([row[column] for row in rows], path, number - len(rows))
                place = next((span.first for span in spans if span.role == "V"), None)
                if place is not None:
                    # What continues the predicate, as a particle does, is no argument of it.
                    some = tuple(span for span in spans if span.role != "V" and not span.role.startswith("C-V"))
                    propositions.append((place, rows[place][_ROLESET], some))
            yield Skeleton(tuple(row[_TAG] for row in rows), tuple(propositions))
            rows = []


def _spans(column: list[str], path: Path, first: int) -> list[Span]:
    """The bracketed spans of a column, in the order in which they end."""
    found: list[Span] = []
    waiting: list[tuple[int, str]] = []
    for place, cell in enumerate(column):
        waiting += [(place, role) for role in _OPENED.findall(cell)]
        for _ in range(cell.count(")")):
            if not waiting:
                raise FormatError(str(path), first + place, f"{cell!r} closes an argument that was never opened.")
            begin, role = waiting.pop()
            found.append(Span(begin, place, role))
    if waiting:
        begin, role = waiting[-1]
        raise FormatError(str(path), first + begin, f"the argument {role!r} is never closed.")
    return found


def build(ud: Path, propbank: Path, out: Path, *, replace: bool = False) -> Counter[str]:
    """Build the corpus; what could not be used, in numbers."""
    files = {split: f"en_ewt-ud-{split}.conllu" for split in SPLITS}
    require(ud, f"{_CLONE}UniversalDependencies/UD_English-EWT", *files.values())
    require(propbank, f"{_CLONE}propbank/propbank-release", _SKELETONS)
    skeletons = {
        f"{path.relative_to(propbank / _SKELETONS).parts[0]}-{path.name.removesuffix(_ENDING)}": path
        for path in sorted((propbank / _SKELETONS).rglob(f"*{_ENDING}"))
    }
    counts: Counter[str] = Counter()
    parts: dict[str, list[Sentence]] = defaultdict(list)
    weblogs = 0
    for split, file in files.items():
        for name, sentences in _documents(ud / file):
            counts["documents"] += 1
            if name not in skeletons:
                counts["documents without PropBank"] += 1
                continue
            part = split
            if name.startswith("weblog-"):
                weblogs += 1
                part = "ood" if weblogs % 2 else "held back"
            parts[part] += annotated(sentences, list(read_skeletons(skeletons[name])), counts)
    counts["weblog sentences held back"] = len(parts["held back"])
    with Target(out, "propbank-ewt", replace=replace, sources=(ud, propbank)) as target:
        for part in (*SPLITS, "ood"):
            target.write(f"{part}.sdp", map(_graph_only, parts[part]))
            target.write(f"{part}.conllu", map(_tree_only, parts[part]))
        target.copy(ud / "LICENSE.txt")
    return counts


def _documents(path: Path) -> Iterator[tuple[str, list[Sentence]]]:
    """The documents of a file, each with its name."""
    name, sentences = "", []
    for sentence in read(path):
        comments = sentence.source.comments if isinstance(sentence.source, ConllSource) else ()
        begins = next((c.removeprefix(_NEWDOC).strip() for c in comments if c.startswith(_NEWDOC)), "")
        if begins and sentences:
            yield name, sentences
            sentences = []
        name = begins or name
        sentences.append(sentence)
    if sentences:
        yield name, sentences


def annotated(sentences: Sequence[Sentence], skeletons: Sequence[Skeleton], counts: Counter[str]) -> list[Sentence]:
    """The sentences of a document with the graphs of its skeletons, which may be divided otherwise."""
    words = [(number, word) for number, sentence in enumerate(sentences) for word in range(len(sentence))]
    tags = [tag for sentence in sentences for tag in sentence.tags or ("_",) * len(sentence)]
    place = _alignment([tag for skeleton in skeletons for tag in skeleton.tags], tags)
    counts["tokens"] += sum(len(skeleton.tags) for skeleton in skeletons)
    counts["tokens aligned"] += len(place)
    arcs: list[dict[tuple[int, int], str]] = [{} for _ in sentences]
    frames: list[dict[int, str]] = [{} for _ in sentences]
    start = 0
    for skeleton in skeletons:
        for predicate, roleset, spans in skeleton.propositions:
            counts["predicates"] += 1
            if start + predicate not in place:
                counts["predicates not aligned"] += 1
                continue
            number, governor = words[place[start + predicate]]
            frames[number][governor] = roleset
            for first, last, role in spans:
                counts["arguments"] += 1
                found = [words[place[k]] for k in range(start + first, start + last + 1) if k in place]
                span = {word for other, word in found if other == number}
                if not span:
                    counts["arguments not aligned"] += 1
                    continue
                head = _head(span, sentences[number])
                if head == governor or (governor, head) in arcs[number]:
                    counts["arguments of themselves" if head == governor else "second roles of a word"] += 1
                else:
                    arcs[number][governor, head] = role
        start += len(skeleton.tags)
    return [
        replace(sentence, graph=_graph(sentence, some, named))
        for sentence, some, named in zip(sentences, arcs, frames, strict=True)
    ]


def _alignment(tags: list[str], others: list[str]) -> dict[int, int]:
    """Which place in one sequence of tags is which in another, wherever that is clear."""
    if tags == others:
        return {place: place for place in range(len(tags))}
    place: dict[int, int] = {}
    for kind, i, end, j, other_end in SequenceMatcher(None, tags, others, autojunk=False).get_opcodes():
        if kind == "equal" or (kind == "replace" and end - i == other_end - j):
            place.update(zip(range(i, end), range(j, other_end), strict=True))
    return place


def _head(span: set[int], sentence: Sentence) -> int:
    """The word of a span whose head lies outside; of several, the first that is no punctuation."""
    assert sentence.heads is not None  # a treebank has trees
    outer = [word for word in sorted(span) if sentence.heads[word] - 1 not in span]
    coarse = sentence.upos
    return next((word for word in outer if coarse is None or coarse[word] != "PUNCT"), outer[0])


def _graph(sentence: Sentence, arcs: Mapping[tuple[int, int], str], frames: Mapping[int, str]) -> Graph:
    assert sentence.heads is not None
    graph = Graph.of(
        (Arc(governor + 1, argument + 1, role) for (governor, argument), role in arcs.items()),
        tops=(word + 1 for word in frames if sentence.heads[word] == 0),
        predicates=(word + 1 for word in frames),
    )
    return replace(graph, frames=tuple(frames.get(word, "_") for word in range(len(sentence))))


def _graph_only(sentence: Sentence) -> Sentence:
    return replace(sentence, source=None)


def _tree_only(sentence: Sentence) -> Sentence:
    """The sentence as the treebank has it, with its own graph, the enhanced dependencies, again."""
    source = sentence.source
    return replace(sentence, graph=source.graph if isinstance(source, ConllSource) else None)


def main() -> None:
    """Run the script."""
    options = arguments("propbank_ewt", __doc__ or "")
    options.add_argument("--ud", type=Path, required=True, help="a clone of UD_English-EWT")
    options.add_argument("--propbank", type=Path, required=True, help="a clone of propbank-release")
    for what, number in build(**vars(options.parse_args())).items():
        print(f"{what}: {number:,}")


if __name__ == "__main__":
    run(main)
