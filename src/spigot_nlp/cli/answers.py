"""Gold files, and what a trained system or another file says about the same sentences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import cyclopts

from spigot_nlp.cli.console import listed, progress, say
from spigot_nlp.data.formats import FormatError, guess, read
from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.sentence import Graph, Sentence

if TYPE_CHECKING:
    from spigot_nlp.annotations import AbstractAnnotation
    from spigot_nlp.models.parser import Parser

Enhanced: TypeAlias = Annotated[bool, cyclopts.Parameter(name="--graph", negative="")]
"""`--graph`: whether the enhanced column of CoNLL-U holds semantic graphs."""


def has(sentences: Sequence[Sentence], field: str) -> bool:
    """Whether any of the sentences is annotated so.

    Example:
        >>> has([Sentence(("Rain",)), Sentence(("Snow",), label=0)], "label")
        True
    """
    return any(sentence.get(field) is not None for sentence in sentences)


def shared(*sides: Sequence[Sentence]) -> "dict[str, AbstractAnnotation]":
    """The annotations that all of some lists of sentences have, by name.

    Example:
        >>> rain, snow = Sentence(("Rain",), heads=(0,), label=1), Sentence(("Rain",), heads=(0,))
        >>> list(shared([rain], [snow]))
        ['heads']
    """
    from spigot_nlp.annotations import Trees, annotations_in

    first, *rest = sides
    found = {name: kind for name, kind in annotations_in(first).items() if all(has(side, name) for side in rest)}
    if Trees.name in found and all(s.relations is not None for side in (first, *rest) for s in side):
        found[Trees.name] = Trees(relations=())  # of whichever names
    return found


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
    sentences = read_answers(path, format, enhanced=enhanced, skip_bad=skip_bad)
    if not sentences:
        raise ValueError(f"{path} has no sentences.")
    from spigot_nlp.annotations import annotations_in

    if not annotations_in(sentences) and not has(sentences, "tags"):
        column = "; --graph takes the enhanced column as graphs" if _is_universal(sentences[0]) and not enhanced else ""
        raise ValueError(
            f"{path} has neither trees nor graphs nor classes, so there is nothing to compare with{column}."
        )
    return sentences


def read_answers(
    path: Path, format: str | None, *, enhanced: bool, skip_bad: Callable[[FormatError], None] | None
) -> list[Sentence]:
    """Read sentences with whatever a file says about them; the enhanced column of CoNLL-U only if it is asked for.

    Args:
        path: The file.
        format: Its format, if the name does not tell.
        enhanced: Whether the enhanced column holds semantic graphs.
        skip_bad: Told of malformed sentences, which are then left out.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "found.conllu"
        >>> _ = file.write_text("1\\tGo\\t_\\t_\\t_\\t_\\t0\\troot\\t0:root\\t_\\n\\n")
        >>> [sentence.heads for sentence in read_answers(file, None, enhanced=False, skip_bad=None)]
        [(0,)]
    """
    return all_classed(list(stream_answers(path, format, enhanced=enhanced, skip_bad=skip_bad)), path)


def all_classed(sentences: list[Sentence], path: Path) -> list[Sentence]:
    """The sentences of a file; without classes if it is CoNLL-U, where they are comments, and not all have one.

    Args:
        sentences: The sentences.
        path: The file.

    Example:
        >>> rain = Sentence(("Rain",), label=1)
        >>> all_classed([rain], Path("rain.conllu")) == [rain]
        True
    """
    classed = sum(sentence.label is not None for sentence in sentences)
    if classed in (0, len(sentences)) or not isinstance(sentences[0].source, ConllSource):
        return sentences
    say(f"{path}: {classed:,} of {len(sentences):,} sentences have a class (# label), so classes are left out.")
    return [sentence.put("label", None) for sentence in sentences]


def stream_answers(
    path: Path, format: str | None, *, enhanced: bool, skip_bad: Callable[[FormatError], None] | None = None
) -> Iterator[Sentence]:
    """The same as `read_answers`, one after the other; what nobody asks for is not read.

    Args:
        path: The file.
        format: Its format, if the name does not tell.
        enhanced: Whether the enhanced column holds semantic graphs.
        skip_bad: Told of malformed sentences, which are then left out.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "found.txt"
        >>> _ = file.write_text("Rain fell\\nIt rained\\n")
        >>> next(stream_answers(file, None, enhanced=False)).forms
        ('Rain', 'fell')
    """
    for sentence in read(path, format, skip_bad=skip_bad):
        if isinstance(sentence.source, ConllSource):
            # An enhanced column without any arc is a graph without any, if it is a graph.
            sentence = replace(sentence, graph=(sentence.graph or Graph()) if enhanced else None)
        yield sentence


def _is_universal(sentence: Sentence) -> bool:
    return isinstance(sentence.source, ConllSource) and sentence.source.universal


def format_beside(path: Path, gold: Path, format: str | None) -> str | None:
    """The format of a second file, where `--format` was meant for a first one.

    A file that is named alike is in the same format. One whose name stands for another is in that one: `--format
    sst-binary` is about the `.txt` file, and not about the `.jsonl` file beside it.

    Args:
        path: The second file.
        gold: The first.
        format: What was asked for.

    Returns:
        A format, or `None` if the name of the second file tells.

    Example:
        >>> format_beside(Path("b.txt"), Path("a.txt"), "sst"), format_beside(Path("b.jsonl"), Path("a.txt"), "sst")
        ('sst', None)
    """
    if format is None or _ending(path) == _ending(gold):
        return format
    try:
        guess(path)
    except ValueError:
        return format
    return None


def _ending(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def answers(
    source: Path,
    gold: Sequence[Sentence],
    *,
    file: Path,
    format: str | None = None,
    enhanced: bool = False,
    skip_bad: Callable[[FormatError], None] | None = None,
) -> list[Sentence]:
    """What a run, or a file of predictions, says about sentences.

    Args:
        source: A run folder, whose system then parses the sentences, or a file.
        gold: The sentences.
        file: The file they are from.
        format: The format of that file, and of one that is named like it.
        enhanced: Whether the enhanced column of a file holds semantic graphs.
        skip_bad: Told of malformed sentences of a file, which are then left out.

    Example:
        >>> answers(Path("no-such-run"), [], file=Path("gold.sdp"))
        Traceback (most recent call last):
        FileNotFoundError: no-such-run is neither a run folder nor a file of predictions: there is no such thing.
    """
    if source.is_dir():
        from spigot_nlp.models import Parser

        parser = Parser.load(source)
        check_values(parser, gold, run=source, file=file, format=format)
        return parsed(parser, gold)
    if not source.exists():
        raise FileNotFoundError(f"{source} is neither a run folder nor a file of predictions: there is no such thing.")
    return read_answers(source, format_beside(source, file, format), enhanced=enhanced, skip_bad=skip_bad)


def parsed(parser: "Parser", gold: Sequence[Sentence], *, tagged: bool = False) -> list[Sentence]:
    """What a system says about sentences whose annotation it does not get to see, as far as it can be judged.

    Args:
        parser: The system.
        gold: The sentences.
        tagged: Whether they have the tags and lemmas of this system already.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> (found,) = parsed(fresh(make_config({"system": "neurboparser"}), {"graphs": [rain]}), [rain])
        >>> found.heads is None, found.graph is None            # it has no syntactic parser
        (True, False)
    """
    sentences = progress(parser.pipe(gold, tagged=tagged), "parsing", total=len(gold))
    made = [name for name in parser.gives if name not in parser.finds]
    return [_without(sentence, made) for sentence in sentences]


def _without(sentence: Sentence, names: Sequence[str]) -> Sentence:
    for name in names:
        sentence = sentence.put(name, None)
    return sentence


def check_values(
    parser: "Parser", gold: Sequence[Sentence], *, run: Path, file: Path, format: str | None = None
) -> None:
    """Complain about classes, or whatever else, that a system has never seen, and so cannot find.

    Args:
        parser: The system.
        gold: Sentences with what is right.
        run: What the system is called.
        file: Where the sentences are from.
        format: The format of the file, if it was named.

    Raises:
        ValueError: If there are such values.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.models.build import fresh
        >>> known = [Sentence(("Bad",), label=0), Sentence(("Good",), label=1)]
        >>> parser = fresh(make_config({"stages": {"mood": {"annotation": "label"}}}), {"labels": known})
        >>> check_values(parser, [Sentence(("Fair",), label=2)], run=Path("mood"), file=Path("dev.tsv"))
        Traceback (most recent call last):
        ValueError: dev.tsv has sentences of class 2, and mood knows only 0 and 1; give a file with the same classes.
    """
    from spigot_nlp.annotations import Classes

    for name in parser.finds:
        stage = parser.stage_of(name)
        if stage is None or not isinstance(annotation := stage.annotation, Classes):
            continue
        known = annotation.classes
        if format is not None and format.startswith("sst-binary") and len(known) > 2:
            raise ValueError(
                f"{run} knows the classes {listed(known)}, and {format} has two that mean something else; read {file} "
                f"with --format {format.replace('sst-binary', 'sst')}."
            )
        given = {sentence.get(name) for sentence in gold} - {None}
        strange = sorted(value for value in given if annotation.class_index.get(value) is None)
        if strange:
            raise ValueError(
                f"{file} has sentences of {annotation.noun} {listed(strange)}, and {run} knows only {listed(known)}; "
                f"{annotation.advice(strange, format)}."
            )
