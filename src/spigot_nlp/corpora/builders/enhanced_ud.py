"""The enhanced dependencies of a UD treebank as graphs, in which shared subjects have several heads."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace as changed
from pathlib import Path

from spigot_nlp.corpora.builders.sources import Material, Watch, unwatched
from spigot_nlp.corpora.builders.target import Built, Target
from spigot_nlp.data.enhanced import Labels, enhanced_graph
from spigot_nlp.data.formats import read
from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.sentence import Sentence

_NAMES = re.compile(r"(?P<language>[a-z]+)_(?P<treebank>[a-z0-9]+)-ud-(?P<split>train|dev|test)\.conllu")
_SPLITS = ("train", "dev", "test")


def enhanced_ud(
    folder: str | Path,
    out: str | Path,
    *,
    name: str = "",
    labels: Labels = "whole",
    replace: bool = False,
    watch: Watch = unwatched,
) -> Built:
    """Build `ud-TREEBANK`: the released CoNLL-U files as they are, and beside each the enhanced graphs as SDP.

    SDP has words only, and one role for a pair of words. So arcs from and to empty nodes are left out, and of several
    labels between two words the one that the basic tree has stays, or else the first in the alphabet. The words under
    the root are the tops.

    Args:
        folder: A clone of a UD treebank.
        out: The folder that holds the corpora.
        name: What to call it. By default `ud-ewt` for UD_English-EWT, `ud-de-hdt` for UD_German-HDT.
        labels: `whole` as they are (`nmod:of`), `subtypes` without words and cases but with what the basic trees of the
            treebank distinguish (`nsubj:pass`), `universal` up to the first colon.
        replace: Whether other files in the place of these may go.
        watch: Shows how far it is.

    Raises:
        FileNotFoundError: If there is no treebank in the folder.
        ValueError: If it has no enhanced dependencies.
        FileExistsError: If other files are in the place, and may not go.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> rows = ["1 Rain _ _ _ _ 2 nsubj 2:nsubj:outer _", "2 fell _ _ _ _ 0 root 0:root _"]
        >>> text = "\\n".join(rows).replace(" ", "\\t")
        >>> _ = (folder / "en_storm-ud-test.conllu").write_text(f"{text}\\n\\n")
        >>> built = enhanced_ud(folder, folder / "data", labels="universal")
        >>> built.corpus, next(read(built.folder / "test.sdp")).graph.arcs
        ('ud-storm', (Arc(predicate=2, argument=1, role='nsubj'),))
    """
    if labels not in ("whole", "subtypes", "universal"):
        raise ValueError(f"labels is {labels!r}; it must be whole, subtypes or universal.")
    if name and not re.fullmatch(r"\w[\w.+-]*", name):
        raise ValueError(f"name is {name!r}, and a folder is called so; use letters, digits and hyphens.")
    material, files = _treebank(Path(folder))
    folder = Path(folder)
    name = name or _name(next(iter(files.values())))
    basic = _relations(files.values(), watch) if labels == "subtypes" else frozenset()
    counts: Counter[str] = Counter({"arcs of empty nodes": 0, "second labels of a pair": 0})
    with Target(out, name, replace=replace) as target:
        for split, path in files.items():
            graphs = (_graph(sentence, labels, basic, counts) for sentence in watch(read(path), f"reading {path.name}"))
            target.write(f"{split}.sdp", graphs)
            target.copy(path, f"{split}.conllu")
            written = target.parts[f"{split}.sdp"]
            if not written.sentences:
                raise ValueError(f"{path} has no sentences; get it again: {material.how}")
            target.note(f"{split}.conllu", written.sentences, written.words)
        if not any(part.arcs for part in target.parts.values()):
            raise ValueError(
                f"{folder} has no enhanced dependencies; not every treebank has, see universaldependencies.org."
            )
        target.copy(folder / "LICENSE.txt", "LICENSE.txt")
        origins = [material.origin(folder, *(path.name for path in files.values()))]
        return target.finish(origins, material.licence, options={"labels": labels}, counts=counts)


def _treebank(folder: Path) -> tuple[Material, dict[str, Path]]:
    """What the folder is a clone of, and its files by split."""
    address = f"https://github.com/UniversalDependencies/{folder.resolve().name}"
    general = "git clone https://github.com/UniversalDependencies/UD_English-EWT, or another treebank"
    Material("a UD treebank", address, "", general).require(folder)
    found = {match["split"]: path for path in sorted(folder.iterdir()) if (match := _NAMES.fullmatch(path.name))}
    if not found:
        raise FileNotFoundError(
            f"{folder} has no files such as en_ewt-ud-train.conllu; it should hold a UD treebank: {general}"
        )
    return (
        Material(folder.resolve().name, address, _licence(folder), general),
        {split: found[split] for split in _SPLITS if split in found},
    )


def _licence(folder: Path) -> str:
    """The licence as the treebank's README has it in its metadata."""
    for path in sorted(folder.glob("README*")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("License:"):
                return line.partition(":")[2].strip()
    return "see LICENSE.txt"


def _name(path: Path) -> str:
    match = _NAMES.fullmatch(path.name)
    assert match is not None
    language = "" if match["language"] == "en" else f"{match['language']}-"
    return f"ud-{language}{match['treebank']}"


def _relations(files: Iterable[Path], watch: Watch) -> frozenset[str]:
    """The relations that the basic trees have."""
    found: set[str] = set()
    for path in files:
        for sentence in watch(read(path), f"looking through {path.name}"):
            found.update(sentence.relations or ())
    return frozenset(found)


def _graph(sentence: Sentence, labels: Labels, basic: frozenset[str], counts: Counter[str]) -> Sentence:
    """A sentence with its enhanced graph, as SDP can have it."""
    graph, second = enhanced_graph(sentence, labels, basic)
    counts["arcs of empty nodes"] += _through_empty_nodes(sentence)
    counts["second labels of a pair"] += second
    return changed(sentence, graph=graph, source=None)


def _through_empty_nodes(sentence: Sentence) -> int:
    """How many enhanced dependencies begin or end in a word that is not there."""
    source = sentence.source
    if not isinstance(source, ConllSource):
        return 0
    from_them = sum(
        "." in part.partition(":")[0] for cell in source.links or () if cell != "_" for part in cell.split("|")
    )
    cells = (line.split("\t") for _, line in source.others)
    to_them = sum(len(cell[8].split("|")) for cell in cells if "." in cell[0] and cell[8] != "_")
    return from_them + to_them
