"""PropBank's graphs on the English Web Treebank: words and trees from one repository, predicates from another.

An argument of PropBank is a span. Here it is the word that heads it in the tree: the one whose own head lies outside.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

from spigot_nlp.corpora.builders.skeletons import Skeleton, read_skeletons
from spigot_nlp.corpora.builders.sources import Material, Watch, unwatched
from spigot_nlp.corpora.builders.target import Built, Target
from spigot_nlp.data.formats import read
from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.sentence import Arc, Graph, Sentence

TREEBANK = Material.repository("https://github.com/UniversalDependencies/UD_English-EWT", "CC BY-SA 4.0")
PROPBANK = Material.repository("https://github.com/propbank/propbank-release", "CC BY-SA 4.0")
_SPLITS = ("train", "dev", "test")
_FILES = {split: f"en_ewt-ud-{split}.conllu" for split in _SPLITS}
_SKELETONS = "data/google/ewt"
_ENDING = ".xml.gold_skel"
_NEWDOC = "# newdoc id = "
_OUT_OF_DOMAIN = "weblog"


def propbank_ewt(
    ud: str | Path, propbank: str | Path, out: str | Path, *, replace: bool = False, watch: Watch = unwatched
) -> Built:
    """Build `propbank-ewt`: for each part an SDP file of graphs, and a CoNLL-U file of the same sentences.

    Weblogs are in none of training, development and test data: every second document of them, in the order of the
    treebank, makes the out-of-domain test `ood`, and the others are held back. Documents that PropBank has not
    annotated are left out.

    Args:
        ud: A clone of UD_English-EWT.
        propbank: A clone of propbank-release.
        out: The folder that holds the corpora.
        replace: Whether other files in the place of these may go.
        watch: Shows how far it is.

    Raises:
        FileNotFoundError: If something is missing in the clones.
        FileExistsError: If other files are in the place, and may not go.

    Example:
        >>> propbank_ewt("UD_English-EWT", "propbank-release", "data")
        Traceback (most recent call last):
        FileNotFoundError: there is no folder UD_English-EWT; it should hold UD_English-EWT: git clone \
https://github.com/UniversalDependencies/UD_English-EWT
    """
    ud = TREEBANK.require(ud, *_FILES.values())
    propbank = PROPBANK.require(propbank, _SKELETONS)
    skeletons = _skeletons(propbank / _SKELETONS)
    counts: Counter[str] = Counter()
    parts: dict[str, list[Sentence]] = defaultdict(list)
    weblogs = 0
    for split, file in _FILES.items():
        for name, sentences in watch(_documents(ud / file), f"aligning {file}"):
            counts["documents"] += 1
            if name not in skeletons:
                counts["documents without PropBank"] += 1
                continue
            part = split
            if name.startswith(f"{_OUT_OF_DOMAIN}-"):
                weblogs += 1
                part = "ood" if weblogs % 2 else "held back"
            annotated = _annotated(sentences, list(read_skeletons(skeletons[name])), counts)
            if part == "held back":
                counts["weblog sentences held back"] += len(annotated)
            else:
                parts[part] += annotated
    with Target(out, "propbank-ewt", replace=replace) as target:
        for part in (*_SPLITS, "ood"):
            target.write(f"{part}.sdp", map(_graph_only, parts[part]))
            target.write(f"{part}.conllu", map(_tree_only, parts[part]))
        target.copy(ud / "LICENSE.txt", "LICENSE.txt")
        origins = (TREEBANK.origin(ud, *_FILES.values()), PROPBANK.origin(propbank, _SKELETONS))
        return target.finish(origins, "CC BY-SA 4.0", counts=counts)


def _skeletons(folder: Path) -> dict[str, Path]:
    """The documents of PropBank by the names that the treebank has for them."""
    found = {
        f"{path.relative_to(folder).parts[0]}-{path.name.removesuffix(_ENDING)}": path
        for path in sorted(folder.rglob(f"*{_ENDING}"))
    }
    if not found:
        raise FileNotFoundError(f"{folder} has no files *{_ENDING}; it should be complete: {PROPBANK.how}")
    return found


def _documents(path: Path) -> Iterator[tuple[str, list[Sentence]]]:
    """The documents of a file, each with its name."""
    name, sentences = "", []
    for sentence in read(path):
        begins = _document(sentence)
        if begins and sentences:
            yield name, sentences
            sentences = []
        name = begins or name
        sentences.append(sentence)
    if sentences:
        yield name, sentences


def _document(sentence: Sentence) -> str:
    """The document that begins with a sentence, if one does."""
    source = sentence.source
    comments = source.comments if isinstance(source, ConllSource) else ()
    return next((c.removeprefix(_NEWDOC).strip() for c in comments if c.startswith(_NEWDOC)), "")


def _annotated(sentences: Sequence[Sentence], skeletons: Sequence[Skeleton], counts: Counter[str]) -> list[Sentence]:
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
        for predicate, roleset, arguments in skeleton.propositions:
            counts["predicates"] += 1
            if start + predicate not in place:
                counts["predicates not aligned"] += 1
                continue
            number, governor = words[place[start + predicate]]
            frames[number][governor] = roleset
            for first, last, role in arguments:
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
    """What goes to the SDP file; the source of another format would only be carried along."""
    return replace(sentence, source=None)


def _tree_only(sentence: Sentence) -> Sentence:
    """The sentence as the treebank has it, with its own graph, the enhanced dependencies, again."""
    source = sentence.source
    return replace(sentence, graph=source.graph if isinstance(source, ConllSource) else None)
