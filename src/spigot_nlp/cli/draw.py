"""`spigot draw`: a sentence of a file, as a picture, for TeX or in the terminal."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import cyclopts

from spigot_nlp.bundled import default_model, is_model
from spigot_nlp.cli.answers import Enhanced, format_beside, stream_answers
from spigot_nlp.cli.console import AsJson, FormatName, counted, print_json, say
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.report.arcs import Drawing, drawing, svg
from spigot_nlp.report.looks import note
from spigot_nlp.report.page import write
from spigot_nlp.report.terminal import text as in_letters
from spigot_nlp.report.tikz import tikz

if TYPE_CHECKING:
    from spigot_nlp.annotations import AbstractAnnotation

To: TypeAlias = Literal["svg", "tikz", "text"]
"""What a drawing can be made into."""

_SUFFIXES: dict[str, To] = {".svg": "svg", ".tex": "tikz", ".tikz": "tikz", ".txt": "text"}
_COMMON = {"heads", "relations", "graph", "label", "probabilities"}
_Others: TypeAlias = Annotated[list[Path] | None, cyclopts.Parameter(negative="")]


def draw(
    file: Path | None = None,
    /,
    *,
    text: Annotated[str | None, cyclopts.Parameter(name="--text")] = None,
    model: Path | None = None,
    trees: Path | None = None,
    gold: _Others = None,
    before: _Others = None,
    sentence: str | None = None,
    to: To | None = None,
    out: Annotated[Path | None, cyclopts.Parameter(name=("--out", "-o"))] = None,
    graph: Enhanced = False,
    format: FormatName = None,
    as_json: AsJson = False,
) -> None:
    """Draw a sentence of a file, or one that a model parses: its semantic graph above the words, its tree below.

    Beside another annotation, arcs are told apart: right, wrong and missed ones (--gold), new and gone ones (--before).

    Parameters
    ----------
    file
        The file with the sentence.
    text
        A text to parse and to draw, instead of a file.
    model
        What parses it: a folder that spigot train made, or the name of a model that comes with spigot; en by default.
    trees
        A file with the trees of the same sentences, where they are not in FILE or others are wanted.
    gold
        A file with what is right about the same sentences; give it twice if trees are in a file of their own.
    before
        A file with what was found before, for example by another system; it may be given twice too.
    sentence
        Which sentence: its number, counted from 1, or what the file calls it; by default the first of a file, and of a
        text all sentences, or the first where there is room for one alone (SVG, JSON).
    to
        What to make: svg, tikz or text. By default what the name of OUT says, and text without one.
    out
        Where to write it; by default it is printed.
    graph
        Take the enhanced column of CoNLL-U as a semantic graph; it is usually a second syntax.
    as_json
        Print the words and the arcs with their marks as JSON, instead of drawing them.
    """
    if file is not None and is_model(file) and not file.is_file():
        raise ValueError(f"{file} is a model, not a file to draw; give --model {file} with --text.")
    if text is not None or file is None:
        if text is None or file is not None:
            raise ValueError("there is nothing to draw, or too much; give either a file or --text.")
        if trees is not None or gold or before:
            raise ValueError("--trees, --gold and --before go with a file; leave them out, or parse the text first.")
        drawings = _parsed(text, model or default_model(), sentence)
        kind = to or ("text" if out is None else _SUFFIXES.get(out.suffix.lower()))
        if (as_json or kind == "svg") and len(drawings) > 1:
            say(f"Drew the first of {len(drawings)} sentences; --sentence 2 draws the second, and so on.")
            del drawings[1:]
        _show(drawings, to, out, as_json=as_json)
        return
    number, found = find(file, sentence or "1", format, graph=graph)

    def same(paths: Sequence[Path] | None) -> Sentence | None:
        sides = [
            counterpart(path, number, found, format_beside(path, file, format), graph=graph) for path in paths or ()
        ]
        return join(sides) if sides else None

    if trees is not None and (other := same([trees])) is not None:
        if other.heads is None:
            raise ValueError(f"{trees} has no tree for sentence {number}; give a file with trees, or leave it out.")
        shown = replace(found, heads=other.heads, relations=other.relations)
    else:
        shown = found
    drawn = drawing(shown, gold=same(gold), before=same(before), annotations=_others(shown))
    if not (drawn.above or drawn.below or drawn.rows or drawn.beneath) and shown.heads is None and shown.graph is None:
        say("The sentence has neither a tree nor a graph: there are only words to draw.")
    _show([drawn], to, out, as_json=as_json)


def _parsed(text: str, model: Path, sentence: str | None) -> list[Drawing]:
    """What a model finds in the sentences of a text, of which there must be one, or in one of them."""
    from spigot_nlp.models import Parser

    parser = Parser.load(model)
    sentences = [sentence.found for sentence in parser(text)]
    if not sentences:
        raise ValueError("the text has no words, so there is nothing to draw; give one that has.")
    annotations = list(parser.annotations.values())
    drawings = [drawn_answer(one, annotations, parser.class_names) for one in sentences]
    if sentence is None:
        return drawings
    if not sentence.isdecimal() or not 1 <= int(sentence) <= len(sentences):
        has = counted(len(sentences), "sentence")
        raise ValueError(f"sentence is {sentence!r}, and the text has {has}; give a number from 1.")
    return [drawings[int(sentence) - 1]]


def _show(drawings: Sequence[Drawing], to: To | None, out: Path | None, *, as_json: bool) -> None:
    """Print drawings, or write them, with a blank line between two."""
    if as_json:
        print_json(asdict(drawings[0]))
        return
    if out is None:
        terminal = sys.stdout.isatty()
        print("\n\n".join(render(drawn, to or "text", terminal=terminal) for drawn in drawings))
        return
    kind = to or _SUFFIXES.get(out.suffix.lower())
    if kind is None:
        raise ValueError(f"out is {out}; its name must end in {', '.join(_SUFFIXES)}, or name the kind with --to.")
    write("\n\n".join(render(drawn, kind) for drawn in drawings) + "\n", out)
    say(f"Wrote {out}.")


def _others(sentence: Sentence) -> "list[AbstractAnnotation] | None":
    """All that a sentence has, if that is more than a tree and a graph, which are drawn without asking anyone."""
    if not sentence.annotations.keys() - _COMMON:
        return None
    from spigot_nlp.annotations import annotations_in

    return list(annotations_in([sentence]).values())


def find(path: Path, sentence: str, format: str | None = None, *, graph: bool = False) -> tuple[int, Sentence]:
    """A sentence of a file, by its number or its name, with its number. What comes after it is not read.

    Args:
        path: The file.
        sentence: A number, counted from 1, or what the file calls the sentence.
        format: The format of the file, if its name does not tell.
        graph: Whether the enhanced column of CoNLL-U holds semantic graphs.

    Raises:
        ValueError: If there is no such sentence.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "two.txt"
        >>> _ = file.write_text("Rain fell\\nIt rained\\n")
        >>> find(file, "2")[1].forms
        ('It', 'rained')
    """
    wanted = int(sentence) if sentence.isdecimal() else None
    number = 0
    for number, found in enumerate(stream_answers(path, format, enhanced=graph), 1):
        if number == wanted or (found.id and found.id == sentence):
            return number, found
    has = f"has {counted(number, 'sentence')}" if wanted is not None else f"has no sentence of that name among {number}"
    raise ValueError(f"sentence is {sentence!r} but {path} {has}; give a number from 1 or the id of a sentence.")


def counterpart(
    path: Path, number: int, sentence: Sentence, format: str | None = None, *, graph: bool = False
) -> Sentence:
    """What another file says about a sentence: at the same place, or else wherever the same words are.

    Args:
        path: The other file.
        number: The number of the sentence in its own file.
        sentence: The sentence.
        format: The format of the other file, if its name does not tell.
        graph: Whether the enhanced column of CoNLL-U holds semantic graphs.

    Raises:
        ValueError: If the other file does not have these words.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "one.conllx"
        >>> _ = file.write_text("1\\tGo\\t_\\t_\\t_\\t_\\t0\\troot\\t_\\t_\\n\\n")
        >>> counterpart(file, 7, Sentence(("Go",))).heads
        (0,)
    """
    elsewhere = None
    for place, other in enumerate(stream_answers(path, format, enhanced=graph), 1):
        if other.forms == sentence.forms:
            if place >= number:
                return elsewhere if elsewhere is not None and place > number else other
            elsewhere = elsewhere or other
    if elsewhere is not None:
        return elsewhere
    start = " ".join(sentence.forms[:8])
    raise ValueError(f"{path} has no sentence with the words of sentence {number}, {start!r}; give the same sentences.")


def join(sides: Sequence[Sentence]) -> Sentence:
    """The same words from several files as one sentence: each annotation from the first file that has it.

    Args:
        sides: At least one sentence.

    Example:
        >>> from spigot_nlp.data.sentence import Graph
        >>> join([Sentence(("Go",), graph=Graph()), Sentence(("Go",), heads=(0,))]).heads
        (0,)
    """
    joined = sides[0]
    for side in sides[1:]:
        lacks = [name for name in side.annotations if joined.get(name) is None]
        if joined.heads is not None and "relations" in lacks:
            lacks.remove("relations")  # which belong to other heads
        for name in lacks:
            joined = joined.put(name, side.get(name))
        joined = joined if joined.tags is not None else joined.put("tags", side.tags)
    return joined


def drawn_answer(
    sentence: Sentence, annotations: "Sequence[AbstractAnnotation]", class_names: Mapping[int, str]
) -> Drawing:
    """All that a system found in a sentence, its class included.

    Args:
        sentence: The answer.
        annotations: What the system finds.
        class_names: What classes are called, by their numbers.

    Example:
        >>> from spigot_nlp.annotations import Classes, Trees
        >>> drawn_answer(Sentence(("Great", "!"), heads=(0, 1), label=1), [Trees(), Classes()], {1: "positive"}).note
        'positive'
    """
    return replace(drawing(sentence, annotations=annotations), note=note(sentence, annotations, class_names))


def render(drawn: Drawing, to: To, *, terminal: bool = False) -> str:
    """A drawing as text of the kind asked for.

    Args:
        drawn: What to draw.
        to: The kind.
        terminal: Whether it goes to a terminal: then text is as wide as that, and coloured unless `NO_COLOR` is set.

    Example:
        >>> render(Drawing(("Rain", "fell")), "text")
        'Rain fell'
    """
    if to == "svg":
        return svg(drawn, standalone=True)
    if to == "tikz":
        return tikz(drawn).removesuffix("\n")
    width = shutil.get_terminal_size().columns if terminal else None
    return in_letters(drawn, width=width, colour=terminal and not os.environ.get("NO_COLOR"))
