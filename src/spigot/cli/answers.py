"""Gold files, and what a trained system or another file says about the same sentences."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import cyclopts

from spigot.cli.console import progress
from spigot.data.conll import ConllSource
from spigot.data.formats import FormatError, read
from spigot.data.sentence import Graph, Sentence

if TYPE_CHECKING:
    from spigot.models.parser import Parser

Enhanced: TypeAlias = Annotated[bool, cyclopts.Parameter(name="--graph", negative="")]
"""`--graph`: whether the enhanced column of CoNLL-U holds semantic graphs."""


def read_gold(
    path: Path, format: str | None, *, enhanced: bool, skip_bad: Callable[[FormatError], None] | None
) -> list[Sentence]:
    """Read sentences with the annotation that is to be scored.

    The enhanced column of CoNLL-U is left out unless it is asked for: it is usually a second syntax and no semantics.

    Args:
        path: The file.
        format: Its format, if the name does not tell.
        enhanced: Whether the enhanced column holds semantic graphs.
        skip_bad: Told of malformed sentences, which are then left out.

    Raises:
        ValueError: If there is nothing to score.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "gold.conllu"
        >>> _ = file.write_text("1\\tGo\\t_\\t_\\t_\\t_\\t0\\troot\\t0:root\\t_\\n\\n")
        >>> (sentence,) = read_gold(file, None, enhanced=False, skip_bad=None)
        >>> sentence.heads, sentence.graph
        ((0,), None)
    """
    sentences = _read(path, format, enhanced, skip_bad)
    if not sentences:
        raise ValueError(f"{path} has no sentences.")
    if all(sentence.heads is None and sentence.graph is None for sentence in sentences):
        raise ValueError(f"{path} has neither trees nor graphs, so there is nothing to compare with.")
    return sentences


def _read(
    path: Path, format: str | None, enhanced: bool, skip_bad: Callable[[FormatError], None] | None
) -> list[Sentence]:
    sentences = []
    for sentence in read(path, format, skip_bad=skip_bad):
        if isinstance(sentence.source, ConllSource):
            # An enhanced column without any arc is a graph without any, if it is a graph.
            sentence = replace(sentence, graph=(sentence.graph or Graph()) if enhanced else None)
        sentences.append(sentence)
    return sentences


def answers(
    source: Path,
    gold: Sequence[Sentence],
    *,
    format: str | None = None,
    enhanced: bool = False,
    skip_bad: Callable[[FormatError], None] | None = None,
) -> list[Sentence]:
    """What a run, or a file of predictions, says about sentences.

    Args:
        source: A run folder, whose system then parses the sentences, or a file.
        gold: The sentences.
        format: The format of a file, if its name does not tell.
        enhanced: Whether the enhanced column of a file holds semantic graphs.
        skip_bad: Told of malformed sentences of a file, which are then left out.

    Example:
        >>> answers(Path("no-such-run"), [])
        Traceback (most recent call last):
        FileNotFoundError: no-such-run is neither a run folder nor a file of predictions: there is no such thing.
    """
    if source.is_dir():
        from spigot.training import checkpoint

        return parsed(checkpoint.load(source), gold)
    if not source.exists():
        raise FileNotFoundError(f"{source} is neither a run folder nor a file of predictions: there is no such thing.")
    return _read(source, format, enhanced, skip_bad)


def parsed(parser: "Parser", gold: Sequence[Sentence]) -> list[Sentence]:
    """What a system says about sentences whose annotation it does not get to see.

    Args:
        parser: The system.
        gold: The sentences.
    """
    plain = (sentence.without_annotation() for sentence in gold)
    return list(progress(parser.parse(plain), "parsing", total=len(gold)))
