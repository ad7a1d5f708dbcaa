"""`spigot predict`: the trees and graphs of a trained system, in a file."""

import itertools
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import cyclopts

from spigot.cli.answers import Enhanced
from spigot.cli.console import Flag, Skipped, progress, say, use_threads
from spigot.data.files import Location
from spigot.data.formats import guess, read, write
from spigot.data.sdp import SdpSource
from spigot.data.sentence import Sentence

_STREAM = Path("-")


def predict(
    run: Path,
    file: Annotated[Path, cyclopts.Parameter(allow_leading_hyphen=True)],
    /,
    *,
    out: Annotated[Path, cyclopts.Parameter(name=("--out", "-o"), allow_leading_hyphen=True)],
    format: str | None = None,
    to: str | None = None,
    graph: Enhanced = False,
    threads: int | None = None,
    skip_bad: Flag = False,
) -> None:
    """Parse a file with a trained system and write what it finds.

    SDP gets the graph. CoNLL-X and CoNLL-U get the tree in the column of heads; relations are not predicted, so that
    column is left open (_), and so is the enhanced column unless --graph puts the graph there. Annotation that FILE
    has is neither looked at nor kept; tags and lemmas are kept where FILE has them. FILE may be of any size: only
    some two thousand sentences are in memory at a time.

    Parameters
    ----------
    run
        The folder that spigot train made.
    file
        What to parse; - is standard input.
    out
        Where to write, in the format that its name stands for; - is standard output. A file appears when it is
        complete.
    format
        The format of FILE, if its name does not tell: conllu, conllx, sdp, sdp2014.
    to
        The format of OUT, if its name does not tell; by default that of FILE.
    graph
        Write the graph to the enhanced column of CoNLL-U.
    threads
        How many threads torch may use; by default one for each core, up to four.
    skip_bad
        Leave out malformed sentences and say how many; without it they are an error.
    """
    from spigot.report.page import check_target
    from spigot.training import checkpoint

    for name, path in (("FILE", file), ("--out", out)):
        if path != _STREAM and str(path).startswith("-"):
            raise ValueError(f"{path} stands where {name} has its file; give one, or - for the standard streams.")
    source: Location = sys.stdin.buffer if file == _STREAM else file
    target: Location = sys.stdout.buffer if out == _STREAM else out
    if out != _STREAM:
        check_target(out)
    skipped = Skipped()
    sentences = read(source, _input_format(file, format), skip_bad=skipped if skip_bad else None)
    first = list(itertools.islice(sentences, 1))
    style = _output_format(file, format, out, to, first)
    parser = checkpoint.load(run)
    keep_trees, keep_graphs = _kept(style, graph, parser.model.syntax is not None, run)

    words = 0

    def counted() -> Iterator[Sentence]:
        nonlocal words
        for sentence in parser.parse(sentence.without_annotation() for sentence in itertools.chain(first, sentences)):
            words += len(sentence)
            yield replace(
                sentence,
                heads=sentence.heads if keep_trees else None,
                graph=sentence.graph if keep_graphs else None,
            )

    started = time.monotonic()
    with use_threads(threads):
        number = write(progress(counted(), "parsing"), target, style)
    if out == _STREAM:
        sys.stdout.flush()
    seconds = max(time.monotonic() - started, 1e-9)
    say(f"Parsed {number:,} sentences, {words:,} tokens, in {seconds:.1f} s: {words / seconds:,.0f} tokens/s")
    skipped.report()


def _input_format(file: Path, format: str | None) -> str | None:
    if file == _STREAM and format is None:
        raise ValueError("standard input has no name to tell its format; add --format conllu, conllx, sdp or sdp2014.")
    return format


def _output_format(file: Path, format: str | None, out: Path, to: str | None, first: Iterable[Sentence]) -> str:
    """What was asked for, or what the name of OUT stands for, or what FILE is in."""
    if to is not None:
        return to
    given = format or guess(file)
    # Both years of SDP have the same suffix; the contents tell them apart.
    if given == "sdp" and any(isinstance(s.source, SdpSource) and not s.source.frames for s in first):
        given = "sdp2014"
    if out == _STREAM:
        return given
    try:
        wanted = guess(out)
    except ValueError:
        return given
    return given if wanted == "sdp" and given == "sdp2014" else wanted


def _kept(style: str, graph: bool, has_trees: bool, run: Path) -> tuple[bool, bool]:
    """Whether the trees and the graphs have a place in the output; at least one of them must."""
    tabular = style in ("conllu", "conllx")
    if graph and style != "conllu":
        raise ValueError(f"--graph is about the enhanced column of CoNLL-U, and {style} has none; leave it out.")
    if tabular and not has_trees and not graph:
        raise ValueError(
            f"{run} has no syntactic parser, so there are no trees to write; write to a .sdp file, or add --graph to a "
            ".conllu file."
        )
    return tabular and has_trees, graph or not tabular
