"""`spigot parse`: plain text in; trees, graphs and sentiment out."""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast

import cyclopts

from spigot.cli.answers import KINDS, Enhanced, given_fields, is_classifier, is_gold_reader
from spigot.cli.console import Flag, counted, progress, say, use_threads
from spigot.data.conventions import Conventions
from spigot.data.files import require, written
from spigot.data.formats import FORMATS, guess
from spigot.data.raw import Splitter
from spigot.data.reading import Errors, Reader
from spigot.data.sentence import Sentence
from spigot.data.spacing import with_text
from spigot.data.vocab import SPECIAL

Style: TypeAlias = Literal["conllu", "sdp", "jsonl", "text"]
_STREAM = Path("-")
_PLACES: dict[str, tuple[str, ...]] = {
    "conllu": ("heads",),
    "sdp": ("graph",),
    "jsonl": tuple(KINDS),
    "text": tuple(KINDS),
}
"""What each format has a place for."""


def parse(
    run: Path,
    /,
    *files: Annotated[Path, cyclopts.Parameter(allow_leading_hyphen=True)],
    out: Annotated[Path, cyclopts.Parameter(name=("--out", "-o"), allow_leading_hyphen=True)] = _STREAM,
    to: Style | None = None,
    graph: Enhanced = False,
    one_per_line: Flag = False,
    tokenised: Flag = False,
    errors: Errors = "strict",
    threads: int | None = None,
) -> None:
    """Read plain text and write what a trained system finds in it.

    The text is cut into sentences and words in the manner of the system's training data; tags and lemmas are its own.
    Lines may be wrapped anywhere; a blank line ends a sentence. Files may be of any size, and answers come in order as
    soon as they are there: after each line that ends a sentence if the text comes from a keyboard or a slow pipe.

    On a terminal the sentences are drawn, with the graph above the words and the tree below. JSON lines have
    everything; CoNLL-U has the tree, the text and its white space, and with --graph the graph in the enhanced column;
    SDP has the graph.

    Parameters
    ----------
    run
        The folder that spigot train made.
    files
        What to read, as UTF-8, gzipped or not; - is standard input, and so is no file at all.
    out
        Where to write; - is standard output. A file appears when it is complete.
    to
        conllu, sdp, jsonl or text (drawn); by default what the name of OUT stands for, or else text on a terminal and
        jsonl elsewhere.
    graph
        Write the graph to the enhanced column of CoNLL-U.
    one_per_line
        Each line is a sentence.
    tokenised
        There are spaces between all tokens already, and nothing else is taken apart.
    errors
        What to do about bytes that are not UTF-8: stop (strict), or read each as U+FFFD (replace).
    threads
        How many threads torch may use; by default one for each core, up to four.
    """
    from spigot.models.parser import CHUNK
    from spigot.report.page import check_target
    from spigot.training import checkpoint

    sources = files or (_STREAM,)
    for name, path in (*(("FILE", file) for file in sources), ("--out", out)):
        if path != _STREAM and str(path).startswith("-"):
            raise ValueError(f"{path} stands where {name} has its file; give one, or - for the standard streams.")
    for path in sources:
        if path != _STREAM:
            require(path)
        elif sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] # so it is with <&-
            raise ValueError("standard input is closed; give a FILE to read.")
    if out == _STREAM and sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] # so it is with >&-
        raise ValueError("standard output is closed; give a file to write, with --out.")
    style = _style(out, to)
    if out != _STREAM:
        check_target(out)
    parser = checkpoint.load(run)
    if is_gold_reader(parser):
        raise ValueError(f"{run} reads the right trees of sentences, and plain text has none; use spigot predict.")
    kept = _kept(style, graph, given_fields(parser), run)
    if parser.tagger is None and len(parser.vocab.tags) > len(SPECIAL):
        say(f"{run} was trained on the tags of its files, and has no tagger for plain text, so it does without tags.")

    conventions = Conventions.of(parser.vocab)
    if _STREAM in sources and sys.stdin.isatty():
        say("Reading from the keyboard; a full stop or a blank line ends a sentence, and Ctrl-D the text.")
    splitter = Splitter(one_per_line, tokenised, conventions.hyphens, conventions.cannot)
    streams = [sys.stdin.buffer if path == _STREAM else path for path in sources]
    reader = Reader(streams, splitter, errors=errors, batch=CHUNK)
    dropped = {field: None for field in KINDS if field not in kept}
    words = number = 0
    started = time.monotonic()
    with use_threads(threads), _target(out) as put:
        write = _writer(style, out, put)
        doing = "classifying" if is_classifier(parser) else "parsing"
        # A bar must not stand between answers, nor between the lines that somebody types.
        quiet = out == _STREAM and (sys.stdout.isatty() or _STREAM in sources)
        for batch in reader if quiet else progress(reader, doing):
            for sentence in conventions.through(parser.parse, batch):
                write(replace(sentence, **dropped))
                words += len(sentence)
                number += 1
            if out == _STREAM:
                sys.stdout.flush()
        if not number:
            put(FORMATS[style].header if style != "text" else "")
    seconds = max(time.monotonic() - started - reader.waited, 1e-9)
    done = "Classified" if is_classifier(parser) else "Parsed"
    amount = f"{counted(number, 'sentence')}, {counted(words, 'token')}"
    say(f"{done} {amount}, in {seconds:.1f} s: {words / seconds:,.0f} tokens/s")


def _style(out: Path, to: Style | None) -> Style:
    """What was asked for, or what the name of OUT stands for, or what suits where it goes."""
    if to is not None:
        return to
    if out == _STREAM:
        return "text" if sys.stdout.isatty() else "jsonl"
    with contextlib.suppress(ValueError):
        found = guess(out)
        if found in _PLACES:
            return cast(Style, found)
    raise ValueError(f"{out}: the name does not tell which format to write; add --to {_either()}.")


def _kept(style: Style, graph: bool, given: Collection[str], run: Path) -> list[str]:
    """Which answers have a place in the output; at least one of them must."""
    if graph and style != "conllu":
        raise ValueError(f"--graph is about the enhanced column of CoNLL-U, and {style} has none; leave it out.")
    places = [*_PLACES[style], *(["graph"] if graph else [])]
    kept = [field for field in KINDS if field in places and field in given]
    if kept:
        return kept
    missing = {"heads": "syntactic parser", "graph": "semantic parser"}[places[0]]
    other = ", or add --graph" if "graph" in given and style == "conllu" else ""
    raise ValueError(f"{run} has no {missing}, so there are no {KINDS[places[0]]} to write; use --to jsonl{other}.")


def _either() -> str:
    *most, last = _PLACES
    return f"{', '.join(most)} or {last}"


@contextlib.contextmanager
def _target(out: Path) -> Iterator[Callable[[str], object]]:
    if out != _STREAM:
        with written(out) as file:
            yield lambda text: file.write(text.encode())
        return
    sys.stdout.flush()
    yield lambda text: sys.stdout.buffer.write(text.encode())


def _writer(style: Style, out: Path, put: Callable[[str], object]) -> Callable[[Sentence], None]:
    """What writes a sentence, with all that belongs to it, so that whoever waits for it can go on."""
    terminal = out == _STREAM and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    colour = terminal and "NO_COLOR" not in os.environ
    opens = True

    def write(sentence: Sentence) -> None:
        nonlocal opens
        if style == "text":
            put(f"{_drawn(sentence, width, colour)}\n\n")
            return
        text, layout = FORMATS[style].render(with_text(sentence) if style == "conllu" else sentence, opens)
        put(text + layout.tail)
        opens = False

    return write


def _drawn(sentence: Sentence, width: int | None, colour: bool) -> str:
    from spigot.report.arcs import drawing
    from spigot.report.terminal import text

    shown = text(drawing(sentence), width=width, colour=colour)
    if sentence.label is None:
        return shown
    share = f" ({max(sentence.probabilities):.0%})" if sentence.probabilities else ""
    return f"{shown}\nclass {sentence.label}{share}"
