"""`spigot predict`: the trees, graphs and classes of a trained system, in a file."""

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

from spigot_nlp.cli.answers import Enhanced
from spigot_nlp.cli.console import Device, Flag, FormatName, Precision, Skipped, listed, progress, say, torch_device
from spigot_nlp.cli.graph_files import graph_fields, graph_targets
from spigot_nlp.cli.output import STREAM, check_names, kept_fields, say_speed
from spigot_nlp.cli.processes import SHARE, Processes, collecting_new, process_count
from spigot_nlp.data.formats import FORMATS, guess, read, write_several
from spigot_nlp.data.formats.files import Location, require
from spigot_nlp.data.formats.json_lines import with_class
from spigot_nlp.data.formats.sdp import SdpSource
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.spacing import spaced, with_ids, with_text
from spigot_nlp.forks import in_order
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.models.parser import Parser

_EVERYTHING = "jsonl"
_PLACES: dict[str, tuple[str, ...] | None] = {
    "conllx": ("heads", "tags", "upos"),
    "conllu": ("heads", "tags", "upos"),
    "sdp": ("graph",),
    "sdp2014": ("graph",),
    "labelled": ("label",),
    _EVERYTHING: None,
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
    field: str | None = None,
    threads: int | None = None,
    processes: Processes = None,
    device: Device = "cpu",
    precision: Precision = "float32",
    skip_bad: Flag = False,
) -> None:
    """Parse or classify a file with a trained system and write what it finds.

    Text comes in with a sentence on each line and spaces between words: echo "a fine film ." | spigot predict RUN -
    -o - --format text.

    JSON lines get everything: the class, the probability of each class, and the tree or graph inside. SDP gets the
    graph. CoNLL-X and CoNLL-U get the tree in the columns of heads and relations; the latter is left open (_) if
    the system finds no relations, and so is the enhanced column unless --graph puts the graph there. With a tree, the
    class is a comment of CoNLL-U. A labelled file (.tsv) gets the class, a tab and the text.

    Annotation that FILE has is neither looked at nor kept: tags and lemmas are the system's own, too, unless it was
    trained to read those of its files. Trees are looked at by a classifier with classifier.structure = gold. FILE may
    be of any size: only some two thousand sentences are in memory at a time.

    Parameters
    ----------
    run
        The folder that spigot train made, or the name of a model that comes with spigot.
    file
        What to parse; - is standard input.
    out
        Where to write, in the format that its name stands for; - is standard output. A file appears when it is
        complete.
    graph
        Write the graph to the enhanced column of CoNLL-U.
    field
        Which graph to write in SDP or to the enhanced column, if the system finds several; without it each goes to an
        SDP file of its own: OUT.sdp, OUT.NAME.sdp.
    threads
        How many threads torch may use in each process; by default one where there are several processes, and elsewhere
        one for each core, up to four.
    skip_bad
        Leave out malformed sentences and say how many; without it they are an error.
    """
    from spigot_nlp.models import checkpoint
    from spigot_nlp.report.page import check_target

    check_names([file], out)
    if file != STREAM:
        require(file)
    given = _input_format(file, format)
    source: Location = sys.stdin.buffer if file == STREAM else file
    if out != STREAM:
        check_target(out)
    parser = checkpoint.load(run, torch_device(device), precision=precision)
    if file == STREAM and sys.stdin.isatty():
        say("Reading from the keyboard; end with Ctrl-D on a line of its own.")
    skipped = Skipped()
    sentences = read(source, format, skip_bad=skipped if skip_bad else None)
    first = list(itertools.islice(sentences, 1))
    places = _places(parser)
    style = _output_format(given, out, to, first, parser)
    if style not in places:
        other = listed(places, "or")
        raise ValueError(f"the format {style} has no place for what {run} finds; choose another OUT, or --to {other}.")
    advice = ("write to a .jsonl file", "write to a .sdp file, or add --graph to a .conllu file")
    graphs = graph_fields(parser, run, style, out, field, graph=graph)
    kept = kept_fields(parser, run, style, places, graph=graph, graphs=graphs, advice=advice)
    targets: list[tuple[Location, Callable[[Sentence], Sentence]]] = [
        (sys.stdout.buffer if out == STREAM else path, shown)
        for path, shown in graph_targets(parser, kept, graphs, out)
    ]

    words, names = 0, parser.class_names if style in ("jsonl", "conllu") else {}

    def batches() -> Iterator[list[Sentence]]:
        rest = itertools.chain(first, sentences)
        while batch := list(itertools.islice(rest, SHARE)):
            yield batch

    def found() -> Iterator[Sentence]:
        nonlocal words
        for batch in in_order(lambda batch: list(parser.parse(batch, only=kept)), batches(), copies):
            words += sum(map(len, batch))
            yield from (with_class(sentence, names) for sentence in batch)

    def shown() -> Iterator[Sentence]:
        if style != "conllu" or given == style:
            return found()
        return map(with_text, map(spaced, with_ids(found())))  # which wants a name and the text of every sentence

    started = time.monotonic()
    copies = process_count(processes, threads, device, [file])
    with use_threads(1 if copies > 1 and threads is None else threads), collecting_new():
        number = write_several(progress(shown(), "parsing"), targets, style)
    if out == STREAM:
        sys.stdout.flush()
    say_speed(parser, number, words, time.monotonic() - started)
    if parser.misses_tags and any(sentence.tags is None for sentence in first):
        say(f"{run} was trained on the tags of its files, and has no tagger for what comes without; see spigot tag.")
    skipped.report()


def _places(parser: "Parser") -> dict[str, tuple[str, ...] | None]:
    """What each format has a place for; those of plug-ins for the kind of annotation that is written so."""
    places = dict(_PLACES)
    for name in parser.gives:
        if parser.stage_of(name) is not None and parser.annotations[name].suffix in FORMATS:
            places.setdefault(parser.annotations[name].suffix, (name,))
    return places


def _input_format(file: Path, format: str | None) -> str:
    """The format of FILE by name; standard input has no name."""
    if format is None and file == STREAM:
        raise ValueError(f"standard input has no name to tell its format; add --format {listed(FORMATS, 'or')}.")
    if format is not None and format not in FORMATS:
        raise ValueError(f"--format is {format}; it must be {listed(FORMATS, 'or')}.")
    return format or guess(file)


def _output_format(given: str, out: Path, to: str | None, first: Iterable[Sentence], parser: "Parser") -> str:
    """What was asked for, or what the name of OUT stands for, or what has a place for the answers."""
    if to is not None:
        if to not in FORMATS:
            raise ValueError(f"--to is {to}; it must be {listed(_places(parser), 'or')}.")
        return to
    # Both years of SDP have the same suffix; the contents tell them apart.
    if given == "sdp" and any(isinstance(s.source, SdpSource) and not s.source.frames for s in first):
        given = "sdp2014"
    has_place = set(_places(parser).get(given) or ()) & set(parser.gives)
    usual = given if has_place and parser.end.arc_labels is not None else _EVERYTHING
    if out == STREAM:
        return usual
    try:
        wanted = guess(out)
    except ValueError:
        return usual
    return given if wanted == "sdp" and given == "sdp2014" else wanted
