"""`spigot parse`: plain text in; trees, graphs and sentiment out."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeAlias, cast

import cyclopts

from spigot_nlp.bundled import bundled_models, default_model, is_model, name_of, run_folder
from spigot_nlp.cli.answers import Enhanced
from spigot_nlp.cli.console import Device, Flag, Precision, listed, progress, say, torch_device
from spigot_nlp.cli.graph_files import graph_fields, graph_targets
from spigot_nlp.cli.output import STREAM, check_names, kept_fields, say_speed
from spigot_nlp.cli.parse_scale import Corpus, parse_folder
from spigot_nlp.cli.processes import SHARE, Processes, collecting_new, process_count
from spigot_nlp.data.formats import FORMATS, guess
from spigot_nlp.data.formats.files import require, written
from spigot_nlp.data.formats.json_lines import with_class
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.decoding import Errors
from spigot_nlp.data.text.foreign import Foreign
from spigot_nlp.data.text.reading import Reader
from spigot_nlp.data.text.spacing import with_text
from spigot_nlp.forks import in_order
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.annotations import AbstractAnnotation
    from spigot_nlp.models.parser import Parser

Style: TypeAlias = Literal["conllu", "sdp", "jsonl", "text", "parquet"]
_PLACES: dict[str, tuple[str, ...] | None] = {
    "conllu": ("heads", "tags", "upos"),
    "sdp": ("graph",),
    "jsonl": None,
    "text": None,
}
"""What each format has a place for."""


def parse(
    *words: Annotated[Path, cyclopts.Parameter(name="[MODEL] FILES", allow_leading_hyphen=True)],
    out: Annotated[Path, cyclopts.Parameter(name=("--out", "-o"), allow_leading_hyphen=True)] = STREAM,
    to: Style | None = None,
    graph: Enhanced = False,
    field: str | None = None,
    one_per_line: Flag = False,
    tokenised: Flag = False,
    errors: Errors = "strict",
    threads: int | None = None,
    processes: Processes = None,
    device: Device = "cpu",
    precision: Precision = "int16",
    corpus: Annotated[Corpus | None, cyclopts.Parameter(name="*")] = None,
) -> None:
    """Read plain text and write what a trained system finds in it: the English model of spigot, or one of yours.

    The text is cut into sentences and words in the manner of the system's training data; tags and lemmas are its own.
    Lines may be wrapped anywhere; a blank line ends a sentence. Files may be of any size, and answers come in order as
    soon as they are there: after each line that ends a sentence if the text comes from a keyboard or a slow pipe.

    On a terminal the sentences are drawn, with the graph above the words and the tree below. JSON lines have
    everything; CoNLL-U has the tree, the text and its white space, and with --graph the graph in the enhanced column;
    SDP has the graph.

    A corpus of many files (text, JSON lines, CoNLL-U, parquet), folders and URLs is parsed into a folder of shards by
    many workers, here or on a Ray cluster: see --on.

    Parameters
    ----------
    words
        First the model: a folder that spigot train made, or the name of one that comes with spigot (see spigot models);
        en if there is none. Then what to read, as UTF-8, gzipped or not; - is standard input, and so is no file at all.
    out
        Where to write; - is standard output. A file appears when it is complete. A folder gets shards.
    to
        conllu, sdp, jsonl or text (drawn), and for shards parquet; by default what the name of OUT stands for, or else
        text on a terminal and jsonl elsewhere.
    graph
        Write the graph to the enhanced column of CoNLL-U.
    field
        Which graph to write in SDP or to the enhanced column, if the system finds several; without it each goes to an
        SDP file of its own: OUT.sdp, OUT.NAME.sdp.
    one_per_line
        Each line is a sentence.
    tokenised
        There are spaces between all tokens already, and nothing else is taken apart.
    errors
        What to do about bytes that are not UTF-8: stop (strict), or read each as U+FFFD (replace).
    threads
        How many threads torch may use in each process; by default one where there are several processes, and elsewhere
        one for each core, up to four.
    """
    from spigot_nlp.models import checkpoint
    from spigot_nlp.report.page import check_target

    corpus = corpus or Corpus()
    if corpus.is_meant(out, to):
        named = bool(words) and is_model(words[0])
        return parse_folder(
            run_folder(words[0]) if named else default_model(),
            words[1:] if named else words,
            out,
            corpus,
            to=to,
            graph=graph,
            field=field,
            lines=one_per_line,
            tokenised=tokenised,
            errors=errors,
            threads=threads,
            device=device,
            precision=precision,
        )

    model, files = model_and_files(words)
    run = name_of(model)
    sources = files or (STREAM,)
    _check_ends(sources, out)
    style = _style(out, to)
    if out != STREAM:
        check_target(out)
    parser = checkpoint.load(model, torch_device(device), precision=precision)
    if parser.reads_gold:
        raise ValueError(f"{run} reads the right trees of sentences, and plain text has none; use spigot predict.")
    advice = ("use --to jsonl", "use --to jsonl, or add --graph")
    graphs = graph_fields(parser, run, style, out, field, graph=graph)
    kept = kept_fields(parser, run, style, _PLACES, graph=graph, graphs=graphs, advice=advice)
    targets = graph_targets(parser, kept, graphs, out)
    if parser.misses_tags:
        say(f"{run} was trained on the tags of its files, and has no tagger for plain text, so it does without tags.")

    for path in files:
        with contextlib.suppress(ValueError):
            if (named := guess(path)) != "text":
                other = "spigot predict reads files of sentences, and --on processes corpora"
                say(f"{path} is read as plain text, though its name stands for {named}: {other}.")
    if STREAM in sources and sys.stdin.isatty():
        say("Reading from the keyboard; a full stop or a blank line ends a sentence, and Ctrl-D the text.")
    splitter = parser.conventions.splitter(lines=one_per_line, tokenised=tokenised)
    streams = [sys.stdin.buffer if path == STREAM else path for path in sources]
    reader = Reader(streams, splitter, errors=errors, batch=SHARE)
    answer = _answerer(style, targets, kept, parser)
    total, number, foreign = 0, 0, Foreign()
    started = time.monotonic()
    copies = process_count(processes, threads, device, sources)
    with use_threads(1 if copies > 1 and threads is None else threads), contextlib.ExitStack() as stack:
        stack.enter_context(collecting_new())
        puts = [stack.enter_context(_target(path, style)) for path, _ in targets]
        # A bar must not stand between answers, nor between the lines that somebody types.
        quiet = out == STREAM and (sys.stdout.isatty() or STREAM in sources)
        answers = in_order(answer, enumerate(reader), copies)
        for answered in answers if quiet else progress(answers, "parsing"):
            for put, text in zip(puts, answered.texts, strict=True):
                put(text)
            foreign += answered.foreign
            total += answered.words
            number += answered.sentences
            if out == STREAM:
                sys.stdout.flush()
        if not number:
            for put in puts:
                put(FORMATS[style].header if style != "text" else "")
    if foreign.is_notable:
        say(str(foreign))
    say_speed(parser, number, total, time.monotonic() - started - reader.waited)


def model_and_files(words: Sequence[Path]) -> tuple[Path, Sequence[Path]]:
    """The model that is named first, or the one that comes with spigot; and the files behind it.

    Raises:
        FileNotFoundError: If the first is no model, and no file that could be read either.

    Example:
        >>> model, files = model_and_files([Path("-")])
        >>> model.name, files
        ('en', [PosixPath('-')])
    """
    if not words:
        return default_model(), ()
    first = words[0]
    if is_model(first):
        return first, words[1:]
    if first == STREAM or first.is_file():
        return default_model(), words
    if first.is_dir():
        _refuse_folder(first)
        run_folder(first)  # which says what is wrong with it
    models = ", ".join(bundled_models()) or "there are none"
    raise FileNotFoundError(
        f"{first} is no run folder, no model that comes with spigot ({models}), and no file to read."
    )


def _refuse_folder(path: Path) -> None:
    """Complain about a folder of texts where there is to be a file; not about what is left of a run."""
    texts = (child for child in path.rglob("*") if child.is_file() and not child.name.startswith("."))
    if not (path / "vocab.json").exists() and any(texts):
        raise IsADirectoryError(f"{path} is a folder; to parse all files in it, add --on processes -o FOLDER.")


def _check_ends(files: Sequence[Path], out: Path) -> None:
    """Complain before any work if there is nothing to read from, or nowhere to write to."""
    check_names(files, out)
    for path in files:
        if path != STREAM:
            if path.is_dir():
                _refuse_folder(path)
            require(path)
        elif sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] # so it is with <&-
            raise ValueError("standard input is closed; give a FILE to read.")
    if out == STREAM and sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] # so it is with >&-
        raise ValueError("standard output is closed; give a file to write, with --out.")


def _style(out: Path, to: Style | None) -> Style:
    """What was asked for, or what the name of OUT stands for, or what suits where it goes."""
    if to is not None:
        return to
    if out == STREAM:
        return "text" if sys.stdout.isatty() else "jsonl"
    with contextlib.suppress(ValueError):
        found = guess(out)
        if found in _PLACES:
            return cast(Style, found)
    raise ValueError(f"{out}: the name does not tell which format to write; add --to {listed(_PLACES, 'or')}.")


@contextlib.contextmanager
def _target(out: Path, style: Style) -> Iterator[Callable[[str], object]]:
    if out != STREAM:
        with written(out) as file:
            yield lambda text: file.write(text.encode())
        return
    sys.stdout.flush()
    # Drawings are for whoever looks; data are UTF-8 wherever they go.
    own = (sys.stdout.encoding, sys.stdout.errors) if style == "text" else (None, None)
    yield lambda text: sys.stdout.buffer.write(text.encode(own[0] or "utf-8", own[1] or "strict"))


def _annotations(parser: "Parser", kept: Sequence[str]) -> "list[AbstractAnnotation]":
    """What there is to draw of an answer."""
    return [annotation for name, annotation in parser.annotations.items() if name in kept]


class _Answered(NamedTuple):
    """What some sentences became: the text for each of the targets, and how much it was."""

    texts: list[str]
    sentences: int
    words: int
    foreign: Foreign


def _answerer(
    style: Style,
    targets: "Sequence[tuple[Path, Callable[[Sentence], Sentence]]]",
    kept: Sequence[str],
    parser: "Parser",
) -> Callable[[tuple[int, list[Sentence]]], _Answered]:
    """What parses a batch, given with its number, and makes text of it."""
    annotations = _annotations(parser, kept)
    names = parser.class_names if style in ("jsonl", "conllu") else {}

    def rendered(sentence: Sentence, out: Path, opens: bool) -> str:
        if style == "text":
            terminal = out == STREAM and sys.stdout.isatty()
            return f"{_drawn(sentence, terminal, annotations, parser.class_names)}\n\n"
        dressed = with_class(sentence, names)
        text, layout = FORMATS[style].render(with_text(dressed) if style == "conllu" else dressed, opens)
        return text + layout.tail

    def answer(task: tuple[int, list[Sentence]]) -> _Answered:
        number, batch = task
        found = list(parser.parse_sentences(batch, only=kept))
        texts = [
            "".join(rendered(shown(sentence), out, opens=not number and not k) for k, sentence in enumerate(found))
            for out, shown in targets
        ]
        return _Answered(texts, len(found), sum(map(len, found)), parser.foreign(batch))

    return answer


def _drawn(
    sentence: Sentence, terminal: bool, annotations: "Sequence[AbstractAnnotation]", classes: Mapping[int, str]
) -> str:
    from spigot_nlp.cli.draw import drawn_answer, render

    return render(drawn_answer(sentence, annotations, classes), "text", terminal=terminal)
