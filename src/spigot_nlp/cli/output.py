"""What `spigot predict` and `spigot parse` share: where answers go, which have a place there, how fast they came."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spigot_nlp.cli.console import counted, say
from spigot_nlp.data.sentence import COLUMNS

if TYPE_CHECKING:
    from spigot_nlp.data.sentence import Sentence
    from spigot_nlp.models.parser import Parser

STREAM = Path("-")
"""What stands for standard input and standard output."""


def check_names(files: Sequence[Path], out: Path) -> None:
    """Complain about an option that stands where a file should, and about a file that would be written over itself.

    Args:
        files: What to read.
        out: What to write.

    Example:
        >>> check_names([STREAM], Path("--graph"))
        Traceback (most recent call last):
        ValueError: --graph stands where --out has its file; give one, or - for the standard streams.
    """
    for name, path in (*(("FILE", file) for file in files), ("--out", out)):
        if path != STREAM and str(path).startswith("-"):
            raise ValueError(f"{path} stands where {name} has its file; give one, or - for the standard streams.")
    for file in files:
        if STREAM not in (file, out) and file.is_file() and out.is_file() and file.samefile(out):
            raise ValueError(f"{out} is read, and would be written over; give --out another name.")


def kept_fields(
    parser: "Parser",
    run: Path | str,
    style: str,
    places: Mapping[str, Iterable[str] | None],
    *,
    graph: bool,
    graphs: Sequence[str] = (),
    advice: tuple[str, str],
) -> list[str]:
    """Which answers of a system have a place in the output; at least one of them must.

    Args:
        parser: The system.
        run: What it is called.
        style: The format of the output.
        places: What each format has a place for; `None` if for everything.
        graph: Whether the enhanced column of CoNLL-U gets the graph.
        graphs: Those that are written where there is a place for a graph, if they have names of their own.
        advice: What to do if none has: in general, and where --graph would make a place.

    Raises:
        ValueError: If none has, or `graph` is asked for where there is no such column.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> parser = fresh(make_config({"system": "neurboparser"}), {"graphs": [rain]})
        >>> places = {"conllu": ("heads",), "sdp": ("graph",)}
        >>> kept_fields(parser, Path("run"), "sdp", places, graph=False, advice=("use SDP", "add --graph"))
        ['graph']
        >>> kept_fields(parser, Path("run"), "conllu", places, graph=False, advice=("use SDP", "add --graph"))
        Traceback (most recent call last):
        ValueError: run finds no trees, so there are none to write; add --graph.
    """
    from spigot_nlp.annotations import kind_of

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
        column = style == "conllu" and "graph" in parser.gives
        nouns = wanted[0] if kind is None else kind.nouns
        raise ValueError(f"{run} finds no {nouns}, so there are none to write; {advice[column]}.")
    return kept


def with_only(sentence: "Sentence", kept: Iterable[str], gives: Iterable[str]) -> "Sentence":
    """An answer without what has no place in the output, but with what belongs to what has.

    Args:
        sentence: The answer.
        kept: The annotations that have a place.
        gives: All that the system gives.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> with_only(Sentence(("Go",), heads=(0,), label=1), ["heads"], ["heads", "label"]).label is None
        True
    """
    from spigot_nlp.annotations import kind_of

    for name in set(gives) - set(kept) - set(COLUMNS):  # which stand beside each word wherever there are words
        kind = kind_of(name)
        away = [one for one in (name, *(kind.beside if kind else ())) if sentence.get(one) is not None]
        if away:
            sentence = sentence.put_all(dict.fromkeys(away))
    return sentence


def say_speed(parser: "Parser", sentences: int, words: int, seconds: float) -> None:
    """Say on standard error how much was done, and how fast.

    Args:
        parser: The system that did it.
        sentences: How many sentences.
        words: How many words.
        seconds: How long it took.

    Example:
        >>> import contextlib, sys
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> parser = fresh(make_config({"system": "neurboparser"}), {"graphs": [rain]})
        >>> with contextlib.redirect_stderr(sys.stdout):
        ...     say_speed(parser, 100, 2000, 0.5)
        Parsed 100 sentences, 2,000 tokens, in 0.5 s: 4,000 tokens/s
    """
    done = "Parsed" if parser.end.arc_labels is not None else "Classified"
    seconds = max(seconds, 1e-9)
    amount = f"{counted(sentences, 'sentence')}, {counted(words, 'token')}"
    say(f"{done} {amount}, in {seconds:.1f} s: {words / seconds:,.0f} tokens/s")
