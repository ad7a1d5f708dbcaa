"""`spigot predict`: the trees, graphs and classes of a trained system, in a file."""

import itertools
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

from spigot.cli.answers import KINDS, Enhanced, given_fields, is_classifier
from spigot.cli.console import Flag, FormatName, Skipped, counted, progress, say, use_threads
from spigot.data.files import Location
from spigot.data.formats import FORMATS, guess, read, write
from spigot.data.sdp import SdpSource
from spigot.data.sentence import Sentence
from spigot.data.vocab import SPECIAL

if TYPE_CHECKING:
    from spigot.models.parser import Parser

_STREAM = Path("-")
_EVERYTHING = "jsonl"
_PLACES = {
    "conllx": ("heads",),
    "conllu": ("heads",),
    "sdp": ("graph",),
    "sdp2014": ("graph",),
    "labelled": ("label",),
    _EVERYTHING: tuple(KINDS),
}
"""What is written in each format; the others have no place for anything that a system finds."""


def predict(
    run: Path,
    file: Annotated[Path, cyclopts.Parameter(allow_leading_hyphen=True)],
    /,
    *,
    out: Annotated[Path, cyclopts.Parameter(name=("--out", "-o"), allow_leading_hyphen=True)],
    format: FormatName = None,
    to: Annotated[
        str | None,
        cyclopts.Parameter(
            help=f"The format of OUT, if its name does not tell: {', '.join(_PLACES)}. By default jsonl for a "
            "classifier, and for a parser the format of FILE if that has a place for trees or graphs, or else jsonl."
        ),
    ] = None,
    graph: Enhanced = False,
    threads: int | None = None,
    skip_bad: Flag = False,
) -> None:
    """Parse or classify a file with a trained system and write what it finds.

    Text comes in with a sentence on each line and spaces between words: echo "a fine film ." | spigot predict RUN -
    -o - --format text. What is missing, tags and lemmas, the system finds itself.

    JSON lines get everything: the class, the probability of each class, and the tree or graph that was used. SDP gets
    the graph. CoNLL-X and CoNLL-U get the tree in the column of heads; relations are not predicted, so that column is
    left open (_), and so is the enhanced column unless --graph puts the graph there. A labelled file (.tsv) gets the
    class, a tab and the text. Annotation that FILE has is neither looked at nor kept; tags and lemmas are kept where
    FILE has them. FILE may be of any size: only some two thousand sentences are in memory at a time.

    Parameters
    ----------
    run
        The folder that spigot train made.
    file
        What to parse; - is standard input.
    out
        Where to write, in the format that its name stands for; - is standard output. A file appears when it is
        complete.
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
    given = _input_format(file, format)
    source: Location = sys.stdin.buffer if file == _STREAM else file
    target: Location = sys.stdout.buffer if out == _STREAM else out
    if out != _STREAM:
        check_target(out)
    parser = checkpoint.load(run)
    if file == _STREAM and sys.stdin.isatty():
        say("Reading from the keyboard; end with Ctrl-D on a line of its own.")
    skipped = Skipped()
    sentences = read(source, format, skip_bad=skipped if skip_bad else None)
    first = list(itertools.islice(sentences, 1))
    style = _output_format(given, out, to, first, parser)
    kept = _kept(style, graph, given_fields(parser), run)

    words = 0
    dropped = {field: None for field in KINDS if field not in kept}

    def found() -> Iterator[Sentence]:
        nonlocal words
        for sentence in parser.parse(map(parser.visible, itertools.chain(first, sentences))):
            words += len(sentence)
            yield replace(sentence, **dropped)

    doing, done = ("classifying", "Classified") if is_classifier(parser) else ("parsing", "Parsed")
    started = time.monotonic()
    with use_threads(threads):
        number = write(progress(found(), doing), target, style)
    if out == _STREAM:
        sys.stdout.flush()
    seconds = max(time.monotonic() - started, 1e-9)
    amount = f"{counted(number, 'sentence')}, {counted(words, 'token')}"
    say(f"{done} {amount}, in {seconds:.1f} s: {words / seconds:,.0f} tokens/s")
    if _misses_tags(parser, first):
        say(f"{run} was trained on the tags of its files, and has no tagger for what comes without; see spigot tag.")
    skipped.report()


def _misses_tags(parser: "Parser", sentences: Iterable[Sentence]) -> bool:
    knows_tags = len(parser.vocab.tags) > len(SPECIAL)
    return parser.tagger is None and knows_tags and any(sentence.tags is None for sentence in sentences)


def _input_format(file: Path, format: str | None) -> str:
    """The format of FILE by name; standard input has no name."""
    if format is None and file == _STREAM:
        raise ValueError(f"standard input has no name to tell its format; add --format {_either(FORMATS)}.")
    if format is not None and format not in FORMATS:
        raise ValueError(f"--format is {format}; it must be {_either(FORMATS)}.")
    return format or guess(file)


def _output_format(given: str, out: Path, to: str | None, first: Iterable[Sentence], parser: "Parser") -> str:
    """What was asked for, or what the name of OUT stands for, or what has a place for the answers."""
    if to is not None:
        if to not in FORMATS:
            raise ValueError(f"--to is {to}; it must be {_either(_PLACES)}.")
        return to
    # Both years of SDP have the same suffix; the contents tell them apart.
    if given == "sdp" and any(isinstance(s.source, SdpSource) and not s.source.frames for s in first):
        given = "sdp2014"
    usual = _EVERYTHING if is_classifier(parser) or given not in _PLACES else given
    if out == _STREAM:
        return usual
    try:
        wanted = guess(out)
    except ValueError:
        return usual
    return given if wanted == "sdp" and given == "sdp2014" else wanted


def _kept(style: str, graph: bool, given: Collection[str], run: Path) -> list[str]:
    """Which answers have a place in the output; at least one of them must."""
    if graph and style != "conllu":
        raise ValueError(f"--graph is about the enhanced column of CoNLL-U, and {style} has none; leave it out.")
    if style not in _PLACES:
        raise ValueError(
            f"the format {style} has no place for what {run} finds; choose another OUT, or --to {_either(_PLACES)}."
        )
    places = [*_PLACES[style], *(["graph"] if graph else [])]
    kept = [field for field in KINDS if field in places and field in given]
    if kept:
        return kept
    missing = {"heads": "syntactic parser", "graph": "semantic parser", "label": "classifier"}[places[0]]
    other = ", or add --graph to a .conllu file" if "graph" in given and style == "conllu" else ""
    suffix = ".sdp" if other else ".jsonl"
    raise ValueError(
        f"{run} has no {missing}, so there are no {KINDS[places[0]]} to write; write to a {suffix} file{other}."
    )


def _either(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"
