"""Files of text or of sentences in, files of answers out."""

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from spigot_nlp.annotations import kind_of
from spigot_nlp.bundled import name_of
from spigot_nlp.data.formats import FORMATS, Format, Writer, guess, read
from spigot_nlp.data.formats.files import PLAIN, Layout, check_target, require, written
from spigot_nlp.data.formats.json_lines import with_class
from spigot_nlp.data.formats.sdp import SdpSource
from spigot_nlp.data.sentence import COLUMNS, Sentence
from spigot_nlp.data.text.reading import Errors, Reader
from spigot_nlp.data.text.spacing import spaced, with_ids, with_text
from spigot_nlp.data.vocab import OutOfVocabulary
from spigot_nlp.garbage import gc_frozen
from spigot_nlp.models.parser import SHARE, Parser
from spigot_nlp.parallel import ordered_map

STREAM = Path("-")
"""What stands for standard input and standard output."""

TEXT = "text"
"""Of what is read: plain text. Of what is written: drawings."""
_EVERYTHING = "jsonl"
_PLACES: dict[str, tuple[str, ...] | None] = {
    "conllu": ("heads", "tags", "upos"),
    "sdp": ("graph",),
    _EVERYTHING: None,
    TEXT: None,
    "conllx": ("heads", "tags", "upos"),
    "sdp2014": ("graph",),
    "labelled": ("label",),
}
"""What each format has a place for; `None` if for everything."""


@dataclass
class Parsed:
    """How much was parsed.

    Attributes:
        sentences: How many sentences.
        words: Their words.
        out_of_vocabulary: How many words of plain text are new to the system.
        waited: Seconds that went by waiting for a stream.
    """

    sentences: int = 0
    words: int = 0
    out_of_vocabulary: OutOfVocabulary = field(default_factory=OutOfVocabulary)
    waited: float = 0.0


def parse_files(
    parser: Parser,
    files: Sequence[Path],
    out: Path,
    *,
    format: str | None = None,
    to: str | None = None,
    graph: bool = False,
    field: str | None = None,
    one_per_line: bool = False,
    tokenised: bool = False,
    tagged: bool = False,
    plain: bool = False,
    errors: Errors = "strict",
    skip_bad: Callable[[Exception], object] | None = None,
    processes: int = 1,
    draw: Callable[[Sentence], str] | None = None,
    say: Callable[[str], object] = lambda message: None,
    progress: Callable[[Iterator[Any]], Iterable[Any]] = lambda answers: answers,
) -> Parsed:
    """Parse files, and write what is found; a file appears when it is complete.

    Args:
        parser: The system.
        files: Files of plain text, or of sentences, gzipped or not; `-` is standard input, and so is no file at all.
        out: Where to write; `-` is standard output.
        format: The format of the files; by default what their names say, and plain text if they say nothing.
        to: The format of the answers; by default what the name of `out` says, or else that of the files if it has a
            place for them, or else JSON lines.
        graph: Whether the enhanced column of CoNLL-U gets the graph.
        field: Which graph, if the system finds several; without it each goes to an SDP file of its own.
        one_per_line: Of plain text: whether each line is a sentence.
        tokenised: Of plain text: whether there is a space between all tokens already.
        tagged: Of sentences: whether their tags and lemmas are read in place of those that the tagger finds.
        plain: Of sentences: whether words are spelt as people write them, and not as in the training data.
        errors: What to do about bytes of plain text that are not UTF-8.
        skip_bad: Told of malformed sentences, and of those that cannot be parsed, which are then left out.
        processes: How many processes parse.
        draw: What makes a drawing of an answer, for `to="text"`.
        say: Told what is worth knowing.
        progress: Passes on what comes of some hundred sentences at a time.

    Raises:
        ValueError: If the format has no place for what the system finds, or it is not clear which graph is meant.
    """
    given = _check_input(files, format)
    about = {"--tagged": tagged, "--plain": plain}
    if given != TEXT:
        about = {"--one-per-line": one_per_line, "--tokenised": tokenised}
    if idle := [name for name, asked in about.items() if asked]:
        kinds = ("sentences", "plain text") if given == TEXT else ("plain text", f"sentences in {given}")
        raise ValueError(f"{idle[0]} is about {kinds[0]}, and these are {kinds[1]}; leave it out, or say --format.")
    check_ends(files, out)
    if given == TEXT and parser.reads_gold:
        raise ValueError(f"{_name(parser)} reads the right trees of sentences, and plain text has none.")
    parsed = Parsed()
    streams = [sys.stdin.buffer if path == STREAM else path for path in files or (STREAM,)]
    if given == TEXT:
        splitter = parser.conventions.splitter(lines=one_per_line, tokenised=tokenised)
        reader = Reader(streams, splitter, errors=errors, batch=SHARE)
        first, batches, style = [], iter(reader), _style_of_text(out, to)
    else:
        sentences = itertools.chain.from_iterable(read(stream, format, skip_bad=skip_bad) for stream in streams)
        first, reader = list(itertools.islice(sentences, 1)), None
        style = _style_of_sentences(given, out, to, first, parser)
        sentences = itertools.chain(first, sentences)
        if style == "conllu" != given:  # which wants a name for every sentence
            sentences = with_ids(sentences)
        batches = iter(lambda: list(itertools.islice(sentences, SHARE)), [])
    graphs = graphs_of(parser, style, field, graph=graph, one=out == STREAM)
    kept = kept_of(parser, style, graph=graph, graphs=graphs)
    targets = _targets(parser, kept, graphs, out)
    if parser.misses_tags and (given == TEXT or any(sentence.tags is None for sentence in first)):
        say(f"{_name(parser)} was trained on tags, and has no tagger, so it does without those that are not there.")
    if STREAM in (files or (STREAM,)) and sys.stdin.isatty():
        ends = "; a full stop or a blank line ends a sentence" if given == TEXT else ""
        say(f"Reading from the keyboard{ends}; end with Ctrl-D on a line of its own.")
    rendered = _Rendered(
        parser, _format(style, parser, draw), style, [shown for _, shown in targets], kept, given, tagged, plain
    )
    rendered.skips = skip_bad is not None
    with gc_frozen(), contextlib.ExitStack() as stack:
        places = [stack.enter_context(_opened(path, style)) for path, _ in targets]
        writers = [Writer(rendered.format, place) for place in places]
        for some in progress(ordered_map(rendered, enumerate(batches), processes)):
            for writer, pieces in zip(writers, some.pieces, strict=True):
                for piece in pieces:
                    writer.add(*piece)
            for reason in some.bad:
                if skip_bad is not None:
                    skip_bad(ValueError(reason))
            parsed.out_of_vocabulary += some.out_of_vocabulary
            parsed.words += some.words
            parsed.sentences += some.sentences
            if out == STREAM:
                writers[0].flush()
        for writer in writers:
            writer.close()
        if out == STREAM:
            sys.stdout.flush()
    parsed.waited = 0.0 if reader is None else reader.waited
    return parsed


class _Some(NamedTuple):
    """What some sentences became: their text and white space for each of the targets, and how much it was."""

    pieces: list[list[tuple[str, Layout]]]
    sentences: int
    words: int
    out_of_vocabulary: OutOfVocabulary
    bad: list[str]


@dataclass
class _Rendered:
    """What parses a batch, given with its number, and makes text of it: the work of one process."""

    parser: Parser
    format: Format
    style: str
    shown: Sequence[Callable[[Sentence], Sentence]]
    kept: Sequence[str]
    given: str
    tagged: bool
    plain: bool
    skips: bool = False

    def __call__(self, task: tuple[int, list[Sentence]]) -> _Some:
        number, batch = task
        bad: list[str] = []
        of_text = self.given == TEXT
        found = list(
            self.parser.pipe(
                batch,
                tagged=self.tagged,
                plain=of_text or self.plain,
                only=self.kept,
                skip_bad=(lambda sentence, why: bad.append(f"sentence {sentence.id or ''}: {why}"))
                if self.skips
                else None,
            )
        )
        opens = not number
        pieces = [
            [self.format.render(self._dressed(shown(one)), opens and not k) for k, one in enumerate(found)]
            for shown in self.shown
        ]
        new = self.parser.out_of_vocabulary(batch) if of_text else OutOfVocabulary()
        return _Some(pieces, len(found), sum(map(len, found)), new, bad)

    def _dressed(self, sentence: Sentence) -> Sentence:
        if self.style in ("jsonl", "conllu"):
            sentence = with_class(sentence, self.parser.class_names)
        if self.style == "conllu" != self.given:
            sentence = with_text(sentence if self.given == TEXT else spaced(sentence))
        return sentence


def _name(parser: Parser) -> str:
    return "the system" if parser.folder is None else name_of(parser.folder)


def _check_input(files: Sequence[Path], format: str | None) -> str:
    """The format of the files: what was said, or what their names say."""
    if format is not None:
        if format not in FORMATS:
            raise ValueError(f"--format is {format}; it must be {_listed(FORMATS, 'or')}.")
        return format
    found = dict.fromkeys(map(_guess, files or (STREAM,)))
    if len(found) > 1:
        raise ValueError(f"the files are {_listed(found, 'and')} by their names; parse one kind at a time.")
    return next(iter(found))


def _guess(path: Path) -> str:
    try:
        return guess(path)
    except ValueError:
        return TEXT


def check_ends(files: Sequence[Path], out: Path) -> None:
    """Complain before any work if there is nothing to read from, or nowhere to write to."""
    for name, path in (*(("FILE", file) for file in files), ("--out", out)):
        if path != STREAM and str(path).startswith("-"):
            raise ValueError(f"{path} stands where {name} has its file; give one, or - for the standard streams.")
    for file in files:
        if file != STREAM:
            require(file)
            if out.is_file() and file.samefile(out):
                raise ValueError(f"{out} is read, and would be written over; give --out another name.")
    if STREAM in (files or (STREAM,)) and sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] # <&-
        raise ValueError("standard input is closed; give a FILE to read.")
    if out == STREAM and sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] # so it is with >&-
        raise ValueError("standard output is closed; give a file to write, with --out.")
    if out != STREAM:
        check_target(out)


def _style_of_text(out: Path, to: str | None) -> str:
    """What was asked for, or what the name of the output stands for, or what suits where it goes."""
    if to is not None:
        return to
    if out == STREAM:
        return TEXT if sys.stdout.isatty() else _EVERYTHING
    with contextlib.suppress(ValueError):
        if (found := guess(out)) in _PLACES:
            return found
    raise ValueError(f"{out}: the name does not tell which format to write; add --to {_listed(_PLACES, 'or')}.")


def _style_of_sentences(given: str, out: Path, to: str | None, first: Iterable[Sentence], parser: Parser) -> str:
    """What was asked for, or what the name of the output stands for, or what has a place for the answers."""
    if to is not None:
        return to
    # Both years of SDP have the same suffix; the contents tell them apart.
    if given == "sdp" and any(isinstance(s.source, SdpSource) and not s.source.frames for s in first):
        given = "sdp2014"
    has_place = {*(_places(parser).get(given) or ())} & {*parser.gives}
    usual = given if has_place and parser.end.arc_labels is not None else _EVERYTHING
    if out == STREAM:
        return TEXT if sys.stdout.isatty() else usual
    try:
        wanted = guess(out)
    except ValueError:
        return usual
    return given if wanted == "sdp" and given == "sdp2014" else wanted


def _places(parser: Parser) -> dict[str, tuple[str, ...] | None]:
    """What each format has a place for; those of plug-ins for the kind of annotation that is written so."""
    own = {parser.annotations[name].suffix: (name,) for name in parser.gives if parser.stage_of(name) is not None}
    return {**{suffix: names for suffix, names in own.items() if suffix in FORMATS}, **_PLACES}


def _format(style: str, parser: Parser, draw: Callable[[Sentence], str] | None) -> Format:
    if style != TEXT:
        return FORMATS[style]
    if draw is None:
        raise ValueError("to is text, and nothing draws; give draw, or another format.")
    return Format(lambda block: (), lambda sentence, opens: (draw(sentence), PLAIN))


def graphs_of(parser: Parser, style: str, field: str | None, *, graph: bool, one: bool) -> tuple[str, ...]:
    """The graphs that go out in a format with a place for one: to a file each, or the one that was named."""
    run = _name(parser)
    names = tuple(name for name, annotation in parser.annotations.items() if type(annotation).name == "graph")
    has_place = graph or style.startswith("sdp")
    if field is not None:
        if not has_place:
            raise ValueError(f"--field is {field}, but {style} has no place for one graph; leave it out, or write SDP.")
        if field not in names:
            raise ValueError(f"--field is {field}; {run} finds {_listed(names, 'and') if names else 'no graphs'}.")
        return (field,)
    if has_place and len(names) > 1 and (graph or one):
        raise ValueError(
            f"{run} finds {_listed(names, 'and')}, and here is a place for one graph; name it with --field."
        )
    if graph and not names:
        raise ValueError(f"--graph asks for a graph, and {run} finds none; leave it out.")
    return names if has_place else ()


def kept_of(parser: Parser, style: str, *, graph: bool, graphs: Sequence[str]) -> list[str]:
    """Which answers of a system have a place in the output; at least one of them must."""
    places, run = _places(parser), _name(parser)
    if style not in places:
        raise ValueError(
            f"the format {style} has no place for what {run} finds; choose another --out, or --to "
            f"{_listed(places, 'or')}."
        )
    if graph and style != "conllu":
        raise ValueError(f"--graph is about the enhanced column of CoNLL-U, and {style} has none; leave it out.")
    everything = places[style] is None
    wanted = [*(places[style] or ()), *(["graph"] if graph else [])]
    wanted = [name for one in wanted for name in (graphs if one == "graph" and graphs else (one,))]
    kept = [name for name in parser.gives if everything or name in wanted]
    if kept and style == "conllu" and "label" in parser.gives:
        kept.append("label")  # as a comment
    if not kept:
        kind = kind_of(wanted[0])
        nouns = wanted[0] if kind is None else kind.nouns
        column = ", or add --graph" if style == "conllu" and "graph" in parser.gives else ""
        raise ValueError(f"{run} finds no {nouns}, so there are none to write; use --to jsonl{column}.")
    return kept


def _targets(
    parser: Parser, kept: Sequence[str], graphs: Sequence[str], out: Path
) -> list[tuple[Path, Callable[[Sentence], Sentence]]]:
    """The files to write, each with what makes of an answer the sentence that goes there."""
    if not graphs:
        return [(out, partial(_with_only, kept=kept, gives=parser.gives))]

    def shown(sentence: Sentence, name: str) -> Sentence:
        mine = [field for field in kept if field == name or field not in graphs]
        sentence = _with_only(parser.annotations[name].written(sentence), [*mine, "graph"], parser.gives)
        return sentence if name == "graph" else sentence.put(name, None)

    return [(_graph_file(out, name) if place else out, partial(shown, name=name)) for place, name in enumerate(graphs)]


def _with_only(sentence: Sentence, kept: Iterable[str], gives: Iterable[str]) -> Sentence:
    """An answer without what has no place in the output, but with what belongs to what has."""
    for name in {*gives} - {*kept} - {*COLUMNS}:  # which stand beside each word wherever there are words
        kind = kind_of(name)
        away = [one for one in (name, *(kind.beside if kind else ())) if sentence.get(one) is not None]
        if away:
            sentence = sentence.put_all(dict.fromkeys(away))
    return sentence


def _graph_file(out: Path, name: str) -> Path:
    """The file of a further graph beside that of the first: `out.psd.sdp`."""
    plain = out.with_suffix("") if out.suffix == ".gz" else out
    return out.with_name(f"{plain.stem}.{name}{plain.suffix}{out.name[len(plain.name) :]}")


@contextlib.contextmanager
def _opened(out: Path, style: str) -> Iterator[Any]:
    if out != STREAM:
        with written(out) as file:
            yield file
        return
    sys.stdout.flush()
    # Drawings are for whoever looks; data are UTF-8 wherever they go.
    yield sys.stdout if style == TEXT else sys.stdout.buffer


def _listed(items: Iterable[object], last: str) -> str:
    *most, end = map(str, items)
    return f"{', '.join(most)} {last} {end}" if most else end
