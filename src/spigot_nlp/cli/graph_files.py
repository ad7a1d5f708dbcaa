"""Where graphs go if a system finds several, and a format has a place for one."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spigot_nlp.cli.console import listed
from spigot_nlp.cli.output import STREAM, with_only

if TYPE_CHECKING:
    from spigot_nlp.data.sentence import Sentence
    from spigot_nlp.models.parser import Parser

_USUAL = "graph"


def graph_fields(
    parser: "Parser", run: Path | str, style: str, out: Path, field: str | None, *, graph: bool = False
) -> tuple[str, ...]:
    """The graphs that go out in a format with a place for one: to a file each, or the one that was named.

    Args:
        parser: The system.
        run: What it is called.
        style: The format of the output.
        out: Where it goes.
        field: The graph that was asked for.
        graph: Whether the enhanced column of CoNLL-U gets a graph.

    Raises:
        ValueError: If there is no such graph, no place for it, or no way to tell which one is meant.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Graph.of([Arc(2, 1, "ARG1")], tops=[2])
        >>> rain = Sentence(("Rain", "fell"), annotations={"dm": rain, "psd": rain})
        >>> stages = {"all": {"annotation": "formalisms", "graphs": ["dm", "psd"]}}
        >>> parser = fresh(make_config({"stages": stages}), {"graphs": [rain]})
        >>> graph_fields(parser, Path("run"), "sdp", Path("out.sdp"), None)
        ('dm', 'psd')
        >>> graph_fields(parser, Path("run"), "sdp", STREAM, None)
        Traceback (most recent call last):
        ValueError: run finds dm and psd, and here is a place for one graph; name it with --field.
    """
    names = tuple(name for name, annotation in parser.annotations.items() if type(annotation).name == _USUAL)
    has_place = graph or style.startswith("sdp")
    if field is not None:
        if not has_place:
            raise ValueError(f"--field is {field}, but {style} has no place for one graph; leave it out, or write SDP.")
        if field not in names:
            raise ValueError(f"--field is {field}; {run} finds {listed(names, 'and') if names else 'no graphs'}.")
        return (field,)
    if has_place and len(names) > 1 and (graph or out == STREAM):
        raise ValueError(
            f"{run} finds {listed(names, 'and')}, and here is a place for one graph; name it with --field."
        )
    if graph and not names:
        raise ValueError(f"--graph asks for a graph, and {run} finds none; leave it out.")
    return names if has_place else ()


def graph_file(out: Path, name: str) -> Path:
    """The file of a further graph beside that of the first.

    Args:
        out: The file of the first.
        name: The graph.

    Example:
        >>> graph_file(Path("out.sdp"), "psd").name, graph_file(Path("out.dev.sdp.gz"), "psd").name
        ('out.psd.sdp', 'out.dev.psd.sdp.gz')
    """
    plain = out.with_suffix("") if out.suffix == ".gz" else out
    return out.with_name(f"{plain.stem}.{name}{plain.suffix}{out.name[len(plain.name) :]}")


def graph_targets(
    parser: "Parser", kept: Sequence[str], graphs: Sequence[str], out: Path
) -> "list[tuple[Path, Callable[[Sentence], Sentence]]]":
    """The files to write, each with what makes of an answer the sentence that goes there.

    Args:
        parser: The system.
        kept: The annotations that have a place in the output.
        graphs: Those of them that a file each is for, as `graph_fields` has them; if there are none, there is one file.
        out: The first file.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.models.build import fresh
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> parser = fresh(make_config({"system": "neurboparser"}), {"graphs": [rain]})
        >>> [path.name for path, _ in graph_targets(parser, ["graph"], ["graph"], Path("out.sdp"))]
        ['out.sdp']
    """
    if not graphs:
        return [(out, partial(with_only, kept=kept, gives=parser.gives))]

    def shown(sentence: "Sentence", name: str) -> "Sentence":
        mine = [field for field in kept if field == name or field not in graphs]
        sentence = with_only(parser.annotations[name].written(sentence), [*mine, _USUAL], parser.gives)
        return sentence if name == _USUAL else sentence.put(name, None)

    return [(graph_file(out, name) if place else out, partial(shown, name=name)) for place, name in enumerate(graphs)]
