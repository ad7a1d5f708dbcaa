"""What was found, as plain values and as drawings."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spigot.data.sentence import Arc, Sentence
from spigot.models.constraints import Constraints
from spigot.models.inspection import Alternative, Inspection
from spigot.report.arcs import Drawing, DrawnArc, drawing, svg
from spigot.report.marks import Held


def plain(found: Inspection, classes: Sequence[int] = (), *, top: int = 5) -> dict[str, Any]:
    """An answer as values for JSON; what the system does not give is null.

    Args:
        found: The answer.
        classes: The classes that the probabilities are of.
        top: How many heads to list for each word.

    Example:
        >>> found = Inspection(Sentence(("Rain",), heads=(0,)), ((Alternative(0, 2.0, 0.0, 1.0),),), None)
        >>> plain(found)["next_heads"]
        [[{'head': 0, 'score': 2.0, 'difference': 0.0, 'marginal': 1.0}]]
    """
    sentence = found.sentence
    graph = sentence.graph
    probabilities = None
    if sentence.probabilities is not None:
        probabilities = {
            str(label): _number(share) for label, share in zip(classes, sentence.probabilities, strict=True)
        }
    return {
        "forms": list(sentence.forms),
        "tags": _listed(sentence.tags),
        "lemmas": _listed(sentence.lemmas),
        "heads": _listed(sentence.heads),
        "graph": None
        if graph is None
        else {
            "arcs": [list(arc) for arc in graph.arcs],
            "tops": list(graph.tops),
            "predicates": list(graph.predicates),
        },
        "label": sentence.label,
        "probabilities": probabilities,
        "next_heads": None if found.heads is None else [_heads(choices[:top]) for choices in found.heads],
        "scores": None
        if found.arcs is None
        else [
            {
                "arc": list(scored.arc),
                "score": _number(scored.score),
                "next_roles": [{"role": role, "difference": _number(gap)} for role, gap in scored.alternatives],
            }
            for scored in found.arcs
        ],
    }


def draw(
    found: Inspection,
    *,
    free: Inspection | None = None,
    constraints: Constraints | None = None,
    standalone: bool = False,
) -> str:
    """What was found as SVG, with scores as notes.

    Args:
        found: What to draw.
        free: The answer of the same system without constraints: what they changed is marked.
        constraints: What was forced and forbidden, which is marked too.
        standalone: Whether to make a file instead of an element of a page.

    Example:
        >>> draw(Inspection(Sentence(("Rain", "fell"), heads=(2, 0)), None, None)).startswith("<svg")
        True
    """
    before = None if free is None else free.sentence
    return _svg(_held(drawing(found.sentence, before=before, notes=notes(found)), constraints), standalone)


def draw_pair(
    first: Inspection,
    second: Inspection,
    *,
    constraints: tuple[Constraints | None, Constraints | None] = (None, None),
    standalone: bool = False,
) -> dict[str, str]:
    """Two systems' answers to one sentence: side by side and in one, marked by what differs.

    Args:
        first: The answer to start from; what only it has is marked `gone`.
        second: The other one; what only it has is marked `new`.
        constraints: What was forced and forbidden in each of them.
        standalone: Whether to make files instead of elements of a page.

    Returns:
        The drawings `first`, `second` and `both`.

    Example:
        >>> one = Inspection(Sentence(("Rain", "fell"), heads=(2, 0)), None, None)
        >>> two = Inspection(Sentence(("Rain", "fell"), heads=(0, 1)), None, None)
        >>> pair = draw_pair(one, two)
        >>> [('arc gone' in pair[name], 'arc new' in pair[name]) for name in ("first", "second", "both")]
        [(True, False), (False, True), (True, True)]
    """
    shared = {"first": notes(first), "second": notes(second), "both": notes(first) | notes(second)}
    before, after = _comparable(first.sentence, second.sentence), _comparable(second.sentence, first.sentence)
    drawn = {name: drawing(after, before=before, notes=said) for name, said in shared.items()}
    drawn["first"] = _held(_own(drawn["first"], "new", first.sentence), constraints[0])
    drawn["second"] = _held(_own(drawn["second"], "gone", second.sentence), constraints[1])
    drawn["both"] = _held(drawn["both"], constraints[1] or constraints[0])
    return {name: _svg(whole, standalone) for name, whole in drawn.items()}


def _held(whole: Drawing, constraints: Constraints | None) -> Drawing:
    """The drawing with what was forced and forbidden marked as such; what is not drawn at all has no mark."""
    if constraints is None:
        return whole

    def below(arc: DrawnArc) -> Held:
        pair = arc.end, arc.start
        return "forced" if pair in constraints.heads else "forbidden" if pair in constraints.not_heads else ""

    def above(arc: DrawnArc) -> Held:
        def among(arcs: Sequence[Arc]) -> bool:
            return any((a.predicate, a.argument) == (arc.start, arc.end) and a.role in ("", arc.label) for a in arcs)

        return "forced" if among(constraints.arcs) else "forbidden" if among(constraints.not_arcs) else ""

    return replace(
        whole,
        above=tuple(replace(arc, held=above(arc)) for arc in whole.above),
        below=tuple(replace(arc, held=below(arc)) for arc in whole.below),
    )


def _svg(whole: Drawing, standalone: bool) -> str:
    """The page has the style of all drawings; its policy lets none bring its own."""
    return svg(whole, standalone=standalone, styled=standalone)


def _comparable(sentence: Sentence, other: Sentence) -> Sentence:
    """What only one of two systems gives at all does not differ, it is not there: the other one is lent it."""
    return replace(
        sentence,
        heads=other.heads if sentence.heads is None else sentence.heads,
        graph=other.graph if sentence.graph is None else sentence.graph,
    )


def _own(whole: Drawing, without: str, sentence: Sentence) -> Drawing:
    """The part of a drawing of two answers that is one of them."""
    return replace(
        whole,
        above=() if sentence.graph is None else tuple(arc for arc in whole.above if arc.mark != without),
        below=() if sentence.heads is None else tuple(arc for arc in whole.below if arc.mark != without),
        predicates=() if sentence.graph is None else sentence.graph.predicates,
        tags=sentence.tags or (),
    )


def notes(found: Inspection) -> dict[tuple[str, int, int, str], str]:
    """What to say about each arc when a reader points at it.

    Example:
        >>> from spigot.data.sentence import Arc
        >>> from spigot.models.inspection import ArcScore
        >>> heads = ((Alternative(0, 2.0, 0.0, 0.75),),)
        >>> notes(Inspection(Sentence(("Rain",), heads=(0,)), heads, (ArcScore(Arc(0, 1, "TOP"), 1.5, ()),)))
        {('below', 0, 1, ''): 'score 2.00, marginal 75.0 %', ('above', 0, 1, 'TOP'): 'score 1.50'}
    """
    said: dict[tuple[str, int, int, str], str] = {}
    for word, choices in enumerate(found.heads or (), start=1):
        for choice in choices:
            share = "" if choice.marginal is None else f", marginal {100 * choice.marginal:.1f} %"
            said["below", choice.head, word, ""] = f"score {choice.score:.2f}{share}"
    for scored in found.arcs or ():
        others = ", ".join(f"{role} {gap:+.2f}" for role, gap in scored.alternatives[:2])
        said["above", *scored.arc] = f"score {scored.score:.2f}" + (f"; next: {others}" if others else "")
    return said


def _heads(choices: Sequence[Alternative]) -> list[dict[str, Any]]:
    return [
        {
            "head": choice.head,
            "score": _number(choice.score),
            "difference": _number(choice.difference),
            "marginal": _number(choice.marginal),
        }
        for choice in choices
    ]


def _listed(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)


def _number(value: float | None) -> float | None:
    """JSON has neither infinities nor a sign for what is no number."""
    return None if value is None or not math.isfinite(value) else round(value, 6)
