"""`spigot parse` of a corpus: many files in, a folder of shards out, on this machine or on a Ray cluster."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import cyclopts

from spigot_nlp.cli.console import counted, say, torch_device
from spigot_nlp.data.text.decoding import Errors

if TYPE_CHECKING:
    from spigot_nlp.scale import Progress

_UNIT = 1_000_000
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)")


@dataclass(frozen=True)
class Corpus:
    """What can be said about a corpus, beside what can be said about any text.

    Example:
        >>> Corpus(on="ray").given
        ['--on']
    """

    on: Annotated[
        str | None,
        cyclopts.Parameter(
            help="Parse files and folders into shards in the folder OUT: with processes of this machine (processes, "
            "which a folder as OUT means, too), the Ray cluster of this machine (ray), or one at ray://HOST:10001. "
            "Given again, an interrupted command goes on."
        ),
    ] = None
    from_: Annotated[
        Literal["text", "jsonl", "conllu", "parquet"] | None,
        cyclopts.Parameter(name="--from", help="What the files of a corpus hold, if their names do not tell."),
    ] = None
    text_field: Annotated[
        str | None,
        cyclopts.Parameter(help="The field of JSON lines, or column of parquet, that has the text; by default text."),
    ] = None
    id_field: Annotated[
        str | None,
        cyclopts.Parameter(help="The one that names documents; by default id where there is one, or else the place."),
    ] = None
    workers: Annotated[
        int | None,
        cyclopts.Parameter(help="How many workers a corpus is given; by default one for each core."),
    ] = None
    piece: Annotated[
        float | None,
        cyclopts.Parameter(help="How many megabytes of text become one shard of a corpus; by default 4."),
    ] = None

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        return [f"--{name.strip('_').replace('_', '-')}" for name, value in vars(self).items() if value is not None]

    def is_meant(self, out: Path, to: str | None) -> bool:
        """Whether a command is about a corpus.

        Args:
            out: Where it writes.
            to: What it writes.

        Raises:
            ValueError: If only its options make sense of it.
        """
        if self.on is not None or out.is_dir():
            return True
        if to == "parquet" or self.given:
            what = "--to parquet" if to == "parquet" else self.given[0]
            raise ValueError(f"{what} is about a corpus; add --on processes, or --on ray, and a folder as --out.")
        return False


@contextmanager
def _watched() -> Iterator[Callable[["Progress"], None]]:
    """A bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda progress: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True) as bars:
        bar = bars.add_task("starting", total=None)

        def watch(progress: "Progress") -> None:
            words = f", {counted(progress.counts.words, 'word')}" if progress.counts.words else ""
            bad = f", {counted(progress.counts.errors, 'error')}" if progress.counts.errors else ""
            bars.update(
                bar,
                completed=progress.done,
                total=progress.total,
                description=f"{progress.doing} {progress.done:,} of {progress.total:,}{words}{bad}",
            )

        yield watch


def parse_folder(
    run: Path,
    files: Sequence[Path],
    out: Path,
    corpus: Corpus,
    *,
    to: str | None,
    graph: bool,
    field: str | None,
    lines: bool,
    tokenised: bool,
    errors: Errors,
    threads: int | None,
    device: str,
    precision: str,
) -> None:
    """Parse a corpus, and say how much there was.

    Args:
        run: The folder of the model.
        files: Files, folders and URLs.
        out: The folder of the shards.
        corpus: What was said about the corpus.
        to: The format of the shards; JSON lines if omitted.
        graph: Whether the enhanced column of CoNLL-U gets the graph.
        field: Which graph, if the system finds several.
        lines: Whether each line is a sentence.
        tokenised: Whether there is a space between all tokens already.
        errors: What to do about bytes that are not UTF-8.
        threads: How many threads each worker may use.
        device: Where to compute.
        precision: What words are encoded in.

    Raises:
        ValueError: If there is nothing to read, or nowhere to write to, or nothing of it could be parsed.
    """
    from spigot_nlp.scale import Options, parse_corpus
    from spigot_nlp.scale.corpus import PIECE

    if not files:
        raise ValueError("a corpus is read from files, folders or URLs, and there are none; give some.")
    if out == Path("-") or Path("-") in files:
        raise ValueError("a corpus is read from files and written to a folder, not - ; name them.")
    if to == "text":
        raise ValueError("--to is text, which is drawn for people; shards are parquet, jsonl, conllu or sdp.")
    chosen = Options(
        to=to or "jsonl",  # pyright: ignore[reportArgumentType] # it was checked when the command was read
        kind=corpus.from_,
        text=corpus.text_field or "text",
        id=corpus.id_field,
        piece=PIECE if corpus.piece is None else int(corpus.piece * _UNIT),
        graph=graph,
        field=field,
        lines=lines,
        tokenised=tokenised,
        errors=errors,
        precision=precision,
    )
    started, before = time.monotonic(), [0]
    with _watched() as watch:

        def noted(progress: "Progress") -> None:
            if progress.doing == "parsing" and len(before) == 1:
                before.append(progress.counts.words)
            watch(progress)

        try:
            manifest = parse_corpus(
                run,
                [_name(file) for file in files],
                out,
                chosen,
                on=corpus.on or "processes",
                workers=corpus.workers,
                threads=1 if threads is None else threads,
                device=str(torch_device(device)),
                watch=noted,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; the same command goes on.") from None
    counts, seconds = manifest.counts, max(time.monotonic() - started, 1e-9)
    amount = f"{counted(counts.documents, 'document')}, {counted(counts.sentences, 'sentence')}"
    words = counts.words - before[-1]
    speed = f", in {seconds:.1f} s: {words / seconds:,.0f} words/s" if words and len(before) > 1 else ""
    rest = f" ({before[-1]:,} were there already)" if before[-1] else ""
    say(f"{amount}, {counted(counts.words, 'word')}{rest} in {counted(len(manifest.shards), 'shard')}{speed}")
    if counts.foreign.is_notable:
        say(str(counts.foreign))
    if counts.errors:
        unparsed = f"{counted(counts.errors, 'document')} could not be parsed; {out}/errors-*.jsonl say why."
        if not counts.sentences:
            raise ValueError(unparsed)
        say(unparsed)


def _name(file: Path) -> str:
    """A path as it was given; one that is a URL has lost a slash."""
    name = str(file)
    return name if file.exists() else _URL.sub(r"\1://", name, count=1)
