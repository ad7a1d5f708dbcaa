"""`spigot parse`: text or sentences in; trees, graphs and sentiment out."""

import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import cyclopts

from spigot_nlp.bundled import bundled_models, default_model, is_model, run_folder
from spigot_nlp.cli.console import Device, Flag, FormatName, Precision, Skipped, counted, progress, say, torch_device
from spigot_nlp.data.formats.files import require
from spigot_nlp.parallel import can_fork
from spigot_nlp.threads import cores, use_threads

if TYPE_CHECKING:
    from spigot_nlp.corpora_ray import Counts
    from spigot_nlp.models.parser import Parser

STREAM = Path("-")
_MOST, _LONG = 4, 150_000  # processes for files of so many bytes: some seconds of work
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)")
_Out: TypeAlias = Annotated[Path, cyclopts.Parameter(name=("--out", "-o"), allow_leading_hyphen=True)]


def parse(
    *words: Annotated[Path, cyclopts.Parameter(name="[MODEL] FILES", allow_leading_hyphen=True)],
    out: _Out = STREAM,
    format: FormatName = None,
    to: str | None = None,
    graph: Flag = False,
    field: str | None = None,
    one_per_line: Flag = False,
    tokenised: Flag = False,
    tagged: Flag = False,
    plain: Flag = False,
    errors: Literal["strict", "replace"] = "strict",
    skip_bad: Flag = False,
    processes: int | None = None,
    threads: int | None = None,
    device: Device = "cpu",
    precision: Precision = "int16",
    ray: str | None = None,
    text_field: str | None = None,
    id_field: str | None = None,
    shard_megabytes: float | None = None,
) -> None:
    """Write what a trained system finds in text or in sentences: the English model of spigot, or one of yours.

    Plain text is cut into sentences and words in the manner of the system's training data. Lines may be wrapped
    anywhere; a blank line ends a sentence. Files of sentences (.conllu, .sdp, .tsv, .jsonl) keep their words. Tags and
    lemmas are the system's own, unless it was trained to read those of its files; no other annotation is looked at or
    kept. Files may be of any size, and answers come in order as soon as they are there: after each line that ends a
    sentence if text comes from a keyboard or a slow pipe.

    On a terminal the sentences are drawn. JSON lines have everything; CoNLL-U has the tree, the text and its white
    space, and with --graph the graph in the enhanced column; SDP has the graph; a labelled file (.tsv) has the class.

    A folder as OUT gets a file for each of FILES, which may be folders and URLs, too: text, JSON lines of documents,
    CoNLL-U and parquet, here or on a Ray cluster (--ray). Given again, an interrupted command goes on.

    Parameters
    ----------
    words
        First the model: a folder that spigot train made, or the name of one that comes with spigot (see spigot models);
        en if there is none. Then what to read, gzipped or not; - is standard input, and so is no file at all.
    out
        Where to write; - is standard output. A file appears when it is complete.
    to
        conllu, sdp, jsonl, text (drawn), conllx, sdp2014, labelled, and in a folder parquet; by default what the name
        of OUT stands for, or what FILES are in if there is a place for the answers, or else text on a terminal and
        jsonl elsewhere.
    graph
        Write the graph to the enhanced column of CoNLL-U.
    field
        Which graph to write in SDP or to the enhanced column, if the system finds several; without it each goes to an
        SDP file of its own: OUT.sdp, OUT.NAME.sdp.
    one_per_line
        Of plain text: each line is a sentence.
    tokenised
        Of plain text: there are spaces between all tokens already, and nothing else is taken apart.
    tagged
        Of sentences: read the tags and lemmas that they have, in place of those that the tagger finds.
    plain
        Of sentences: their words are spelt as people write them, not as in the training data.
    errors
        Of plain text: what to do about bytes that are not UTF-8: stop (strict), or read each as U+FFFD (replace).
    skip_bad
        Leave out sentences that are malformed or cannot be parsed and say how many; without it they are an error.
    processes
        How many processes parse; by default one for each core, of a single output up to four and where files are long,
        and one where --threads is given. The answers are the same for any number.
    threads
        How many threads each process may use; by default one where there are several, and else up to four.
    ray
        The address of a Ray cluster, or auto for that of this machine, which is started if there is none.
    text_field
        Into a folder: the field of JSON lines, or column of parquet, that has the text; by default text.
    id_field
        Into a folder: the one that names documents; by default id where there is one, or else the place.
    shard_megabytes
        Into a folder: how much text becomes one file; by default 4.
    """
    named = bool(words) and is_model(words[0])
    model, files = (run_folder(words[0]), words[1:]) if named else (default_model(), words)
    corpus = {"text_field": text_field, "id_field": id_field, "shard_megabytes": shard_megabytes, "ray": ray}
    corpus = {name: value for name, value in corpus.items() if value is not None}
    shared = {"to": to, "format": format, "graph": graph, "field": field, "one_per_line": one_per_line}
    shared |= {"tokenised": tokenised, "errors": errors}
    if out.is_dir() or (ray is not None and out != STREAM):
        what = {"--tagged": tagged, "--plain": plain, "--skip-bad": skip_bad, "--to text": to == "text"}
        if given := [name for name, value in what.items() if value]:
            raise ValueError(f"{given[0]} is about one output, and {out} is a folder of them; leave it out.")
        if not files or STREAM in files:
            raise ValueError(f"{out} is a folder, for files, folders or URLs; name them.")
        names = [str(file) if file.exists() else _URL.sub(r"\1://", str(file), count=1) for file in files]
        options = {name: value for name, value in {**shared, **corpus}.items() if value is not None}
        options |= {"processes": processes, "threads": threads or 1, "device": str(torch_device(device))}
        _parse_corpus(model, names, out, {**options, "precision": precision})
        return
    if corpus or to == "parquet":
        what = f"--{next(iter(corpus)).replace('_', '-')}" if corpus else "--to parquet"
        raise ValueError(f"{what} is about a corpus; give a folder that exists as --out.")
    if words and not named:
        _check_first(words[0])
    for file in files:
        if file.is_dir():
            raise ValueError(f"{file} is a folder; to parse all files in it, give a folder that exists as --out.")
        if file != STREAM:
            require(file)  # before torch is loaded
    from spigot_nlp.models import Parser
    from spigot_nlp.parse_files import check_ends, parse_files

    check_ends(files, out)
    started, skipped = time.monotonic(), Skipped()
    parser = Parser.load(model, device=torch_device(device), precision=precision)
    team = _process_count(processes, threads, device, files)
    # A bar must not stand between answers, nor between the lines that somebody types.
    quiet = out == STREAM and (sys.stdout.isatty() or not files or STREAM in files)
    with use_threads(1 if team > 1 and threads is None else threads):
        started = time.monotonic()
        parsed = parse_files(
            parser,
            files,
            out,
            **shared,
            tagged=tagged,
            plain=plain,
            skip_bad=skipped if skip_bad else None,
            processes=team,
            draw=_drawing(parser, terminal=out == STREAM and sys.stdout.isatty()),
            say=say,
            progress=iter if quiet else lambda answers: progress(answers, "parsing"),
        )
    seconds = max(time.monotonic() - started - parsed.waited, 1e-9)
    if parsed.out_of_vocabulary.is_notable:
        say(str(parsed.out_of_vocabulary))
    done = "Parsed" if parser.end.arc_labels is not None else "Classified"
    amount = f"{counted(parsed.sentences, 'sentence')}, {counted(parsed.words, 'token')}"
    say(f"{done} {amount}, in {seconds:.1f} s: {parsed.words / seconds:,.0f} tokens/s")
    skipped.report()


def _parse_corpus(model: Path, names: list[str], out: Path, options: dict[str, Any]) -> None:
    from spigot_nlp.corpora_ray import parse_corpus

    started = time.monotonic()
    with _watched() as watch:
        try:
            counts = parse_corpus(model, names, out, **options, watch=watch)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; the same command goes on.") from None
    seconds = max(time.monotonic() - started, 1e-9)
    amount = f"{counted(counts.documents, 'document')}, {counted(counts.sentences, 'sentence')}"
    speed = f", in {seconds:.1f} s: {counts.words / seconds:,.0f} words/s" if counts.words else ""
    say(f"{amount}, {counted(counts.words, 'word')} in {counted(counts.shards, 'new file')}{speed}")
    if counts.out_of_vocabulary.is_notable:
        say(str(counts.out_of_vocabulary))
    if counts.errors:
        unparsed = f"{counted(counts.errors, 'document')} could not be parsed; their rows say why"
        if not counts.sentences:
            raise ValueError(f"{unparsed}: see {shlex.quote(str(out))}.")
        say(f"{unparsed}.")


@contextmanager
def _watched() -> "Iterator[Callable[[int, int, Counts], object]]":
    """A bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    bars = Progress(
        *columns,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bars:
        bar = bars.add_task("starting", total=None)

        def watch(done: int, total: int, counts: "Counts") -> None:
            bad = f", {counted(counts.errors, 'error')}" if counts.errors else ""
            said = f"{done:,} of {total:,} files, {counted(counts.words, 'word')}{bad}"
            bars.update(bar, completed=done, total=total, description=said)

        yield watch


def _drawing(parser: "Parser", *, terminal: bool) -> Callable[[Any], str]:
    def draw(sentence: Any) -> str:
        from spigot_nlp.cli.draw import drawn_answer, render

        drawn = [one for name, one in parser.annotations.items() if sentence.get(name) is not None]
        return render(drawn_answer(sentence, drawn, parser.class_names), "text", terminal=terminal)

    return draw


def _check_first(first: Path) -> None:
    """Complain about a first word that is neither a model nor a file to read."""
    if first == STREAM or first.is_file() or str(first).startswith("-"):
        return
    if first.is_dir():
        texts = (child for child in first.rglob("*") if child.is_file() and not child.name.startswith("."))
        if not (first / "vocab.json").exists() and any(texts):
            raise IsADirectoryError(f"{first} is a folder; to parse all files in it, make a folder and give it as -o.")
        run_folder(first)  # which says what is wrong with it
    models = ", ".join(bundled_models()) or "there are none"
    raise FileNotFoundError(
        f"{first} is no run folder, no model that comes with spigot ({models}), and no file to read."
    )


def _process_count(wanted: int | None, threads: int | None, device: str, files: tuple[Path, ...]) -> int:
    """How many processes are to parse some files: several where that pays."""
    if wanted is not None:
        if wanted < 1:
            raise ValueError(f"processes is {wanted}; it must be at least 1.")
        if wanted > 1 and (device != "cpu" or not can_fork()):
            raise ValueError(f"processes is {wanted}; several need a CPU and Linux. Leave it out, or use --threads.")
        return wanted
    if threads is not None or device != "cpu" or not can_fork() or not files or STREAM in files:
        return 1
    return 1 if sum(path.stat().st_size for path in files) < _LONG else min(_MOST, cores())
