"""Treebanks of Universal Dependencies: their trees, and enhanced dependencies as graphs with one role for a pair."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from spigot_nlp.data.enhanced import Labels, enhanced_graph
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.formats.files import written
from spigot_nlp.data.sentence import Sentence

_NAME = re.compile(r"\w+-ud-(train|dev|test)\.conllu")


@dataclass(frozen=True)
class Converted:
    """What became of a file.

    Attributes:
        sentences: How many there are.
        words: How many words these have.
        arcs: How many arcs their graphs have.
        empty: How many arcs were left out because they begin or end in an empty node (`8.1`).
        second: How many were left out because their two words have another one.
    """

    sentences: int
    words: int
    arcs: int
    empty: int
    second: int


def convert_treebank(
    source: Path, out: Path, *, labels: Labels = "whole", overwrite: bool = False
) -> dict[Path, Converted]:
    """Write the enhanced dependencies of a treebank as graphs.

    SDP has words only, and one role for a pair of words. So arcs from and to empty nodes are left out, and of several
    labels between two words the one that the basic tree has stays, or else the first in the alphabet. The words under
    the root are the tops.

    Args:
        source: A clone of a treebank, or one file in CoNLL-U.
        out: For a clone the folder that gets `train.sdp` and so on, and beside these the released files as
            `train.conllu`; for a file the file to write, in a format that its name tells.
        labels: `whole` as they are (`nmod:of`), `subtypes` without words and cases but with what the basic trees of the
            treebank distinguish (`nsubj:pass`), `universal` up to the first colon.
        overwrite: Whether files that are there may go.

    Returns:
        What each file that was written has.

    Raises:
        FileNotFoundError: If there is no treebank.
        ValueError: If it has no enhanced dependencies.
        FileExistsError: If a file is there that may not go. Then nothing is written.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "storm.conllu"
        >>> rows = ["1 Rain _ _ _ _ 2 nsubj 2:nsubj:outer _", "2 fell _ _ _ _ 0 root 0:root _"]
        >>> _ = path.write_text("\\n".join(rows).replace(" ", "\\t") + "\\n\\n")
        >>> convert_treebank(path, path.with_suffix(".sdp"), labels="universal")[path.with_suffix(".sdp")].arcs
        1
        >>> next(read(path.with_suffix(".sdp"))).graph.arcs
        (Arc(predicate=2, argument=1, role='nsubj'),)
    """
    files = {source: out} if source.is_file() else _parts(source, out)
    copies = {} if source.is_file() else {path: target.with_suffix(".conllu") for path, target in files.items()}
    there = next((path for path in (*files.values(), *copies.values()) if path.exists()), None)
    if there is not None and not overwrite:
        raise FileExistsError(f"{there} is there already; choose another --out, or give --replace.")
    if not any(sentence.graph is not None and sentence.graph.arcs for path in files for sentence in read(path)):
        raise ValueError(
            f"{source} has no enhanced dependencies; not every treebank has, see universaldependencies.org."
        )
    basic = (
        frozenset(name for path in files for sentence in read(path) for name in sentence.relations or ())
        if labels == "subtypes"
        else frozenset()
    )
    for path, copy in copies.items():
        out.mkdir(parents=True, exist_ok=True)
        with written(copy) as file:
            file.write(path.read_bytes())
    return {target: _convert(path, target, labels, basic) for path, target in files.items()}


def _parts(folder: Path, out: Path) -> dict[Path, Path]:
    """The files of a clone, and what becomes of each."""
    names = sorted(folder.iterdir()) if folder.is_dir() else ()
    found = {match[1]: path for path in names if (match := _NAME.fullmatch(path.name))}
    if not found:
        raise FileNotFoundError(
            f"{folder} is no CoNLL-U file, nor a folder with files such as en_ewt-ud-train.conllu; give either, such "
            f"as a clone of https://github.com/UniversalDependencies/UD_English-EWT."
        )
    return {found[split]: out / f"{split}.sdp" for split in ("train", "dev", "test") if split in found}


def _convert(path: Path, target: Path, labels: Labels, basic: frozenset[str]) -> Converted:
    counts: Counter[str] = Counter()

    def graphs() -> Iterator[Sentence]:
        for sentence in read(path):
            graph, second = enhanced_graph(sentence, labels, basic)
            counts.update(words=len(sentence), arcs=len(graph.arcs), empty=_of_empty_nodes(sentence), second=second)
            yield replace(sentence, graph=graph, source=None)

    sentences = write(graphs(), target)
    return Converted(sentences, *(counts[name] for name in ("words", "arcs", "empty", "second")))


def _of_empty_nodes(sentence: Sentence) -> int:
    """How many enhanced dependencies begin or end in a word that is not there."""
    source = sentence.source
    if not isinstance(source, ConllSource):
        return 0
    links = (part for cell in source.links or () if cell != "_" for part in cell.split("|"))
    cells = (line.split("\t") for _, line in source.others)
    to_them = sum(len(cell[8].split("|")) for cell in cells if "." in cell[0] and cell[8] != "_")
    return to_them + sum("." in part.partition(":")[0] for part in links)
