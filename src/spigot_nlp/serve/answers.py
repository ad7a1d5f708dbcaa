"""What was found, as plain values and as drawings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spigot_nlp.annotations import AbstractAnnotation, Graphs, Trees
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.models.inspection import Inspection
from spigot_nlp.report.arcs import Drawing, DrawnArc, drawing, svg
from spigot_nlp.report.drawings import ABOVE, BELOW
from spigot_nlp.report.looks import sides
from spigot_nlp.report.marks import Held, Mark
from spigot_nlp.stages.alternatives import Alternative, ArcScore
from spigot_nlp.stages.constraints import Constraints

_COMMON: tuple[AbstractAnnotation, ...] = (Graphs(), Trees())
_KEYS = ("tags", "upos", "heads", "graph", "label")
"""The annotations that stand in an answer by their short names."""


def plain(found: Inspection, annotations: Sequence[AbstractAnnotation] = _COMMON, *, top: int = 5) -> dict[str, Any]:
    """An answer as values for JSON; what the system does not give is null.

    Args:
        found: The answer.
        annotations: What the system gives.
        top: How many heads to list for each word.

    Example:
        >>> found = Inspection(Sentence(("Rain",), heads=(0,)), {"heads": ((Alternative(0, 2.0, 0.0, 1.0),),)})
        >>> plain(found)["next_heads"]
        [[{'head': 0, 'score': 2.0, 'difference': 0.0, 'marginal': 1.0}]]
        >>> from spigot_nlp.annotations import Tags
        >>> other = Sentence(("Rain",), annotations={"chunks": ("NP",)})
        >>> plain(Inspection(other), [Tags("chunks")])["annotations"]["chunks"]["marks"]
        ['NP']
    """
    sentence = found.sentence
    graph = sentence.graph
    chooser = next((annotation for annotation in annotations if annotation.is_usual and annotation.shares), None)
    return {
        "forms": list(sentence.forms),
        "tags": _listed(sentence.tags),
        "lemmas": _listed(sentence.lemmas),
        "upos": _listed(sentence.upos),
        "heads": _listed(sentence.heads),
        "relations": _listed(sentence.relations),
        "graph": None
        if graph is None
        else {
            "arcs": [list(arc) for arc in graph.arcs],
            "tops": list(graph.tops),
            "predicates": list(graph.predicates),
        },
        "label": sentence.label,
        "probabilities": None if chooser is None else _shares(chooser, sentence),
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
        "annotations": {a.name: _other(a, sentence) for a in annotations if a.name not in _KEYS},
    }


def _other(annotation: AbstractAnnotation, sentence: Sentence) -> dict[str, Any]:
    """An annotation under a name of its own, as values and as it is drawn."""
    value, drawn = sentence.get(annotation.name), annotation.drawn(sentence)
    return {
        "value": None if value is None else annotation.plain(value),
        "arcs": None if drawn is None else [list(arc) for arc in drawn.arcs],
        "marks": None if drawn is None else list(drawn.marks),
        "note": None if drawn is None else drawn.note,
        "probabilities": _shares(annotation, sentence),
    }


def _shares(annotation: AbstractAnnotation, sentence: Sentence) -> dict[str, float | None] | None:
    shares = sentence.get(annotation.shares) if annotation.shares else None
    if shares is None:
        return None
    return {str(option): _number(share) for option, share in zip(annotation.options, shares, strict=True)}


def draw(
    found: Inspection,
    annotations: Sequence[AbstractAnnotation] = _COMMON,
    *,
    free: Inspection | None = None,
    constraints: Constraints | None = None,
    standalone: bool = False,
) -> str:
    """What was found as SVG, with scores as notes.

    Args:
        found: What to draw.
        annotations: What of it.
        free: The answer of the same system without constraints: what they changed is marked.
        constraints: What was forced and forbidden, which is marked too.
        standalone: Whether to make a file instead of an element of a page.

    Example:
        >>> draw(Inspection(Sentence(("Rain", "fell"), heads=(2, 0)))).startswith("<svg")
        True
    """
    before = None if free is None else free.sentence
    said = notes(found, sides(found.sentence, annotations))
    whole = drawing(found.sentence, before=before, notes=said, annotations=annotations)
    return _svg(_held(whole, constraints), standalone)


def draw_pair(
    first: Inspection,
    second: Inspection,
    annotations: Sequence[AbstractAnnotation] = _COMMON,
    *,
    constraints: tuple[Constraints | None, Constraints | None] = (None, None),
    standalone: bool = False,
) -> dict[str, str]:
    """Two systems' answers to one sentence: side by side and in one, marked by what differs.

    Args:
        first: The answer to start from; what only it has is marked `gone`.
        second: The other one; what only it has is marked `new`.
        annotations: What is drawn of them.
        constraints: What was forced and forbidden in each of them.
        standalone: Whether to make files instead of elements of a page.

    Returns:
        The drawings `first`, `second` and `both`.

    Example:
        >>> one = Inspection(Sentence(("Rain", "fell"), heads=(2, 0)))
        >>> two = Inspection(Sentence(("Rain", "fell"), heads=(0, 1)))
        >>> pair = draw_pair(one, two)
        >>> [('arc gone' in pair[name], 'arc new' in pair[name]) for name in ("first", "second", "both")]
        [(True, False), (False, True), (True, True)]
    """
    before, after = (
        _lent(mine.sentence, theirs.sentence, annotations) for mine, theirs in ((first, second), (second, first))
    )
    named = sides(after, annotations)
    shared = {"first": notes(first, named), "second": notes(second, named)}
    shared["both"] = shared["first"] | shared["second"]
    drawn = {name: drawing(after, before=before, notes=said, annotations=annotations) for name, said in shared.items()}
    drawn["first"] = _held(_own(drawn["first"], "new", first.sentence, after, annotations), constraints[0])
    drawn["second"] = _held(_own(drawn["second"], "gone", second.sentence, before, annotations), constraints[1])
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

    # Sides with a name of their own are of annotations that nobody can demand anything of.
    upper, lower = (side == usual for side, usual in zip(whole.sides, (ABOVE, BELOW), strict=True))
    return replace(
        whole,
        above=tuple(replace(arc, held=above(arc)) for arc in whole.above) if upper else whole.above,
        below=tuple(replace(arc, held=below(arc)) for arc in whole.below) if lower else whole.below,
    )


def _svg(whole: Drawing, standalone: bool) -> str:
    """The page has the style of all drawings; its policy lets none bring its own."""
    return svg(whole, standalone=standalone, styled=standalone)


def _lent(sentence: Sentence, other: Sentence, annotations: Sequence[AbstractAnnotation]) -> Sentence:
    """What only one of two systems gives at all does not differ, it is not there: the other one is lent it."""
    for annotation in annotations:
        if sentence.get(annotation.name) is None and other.get(annotation.name) is not None:
            for name in (annotation.name, *annotation.beside):
                sentence = sentence.put(name, other.get(name))
    return sentence


def _own(
    whole: Drawing, without: Mark, sentence: Sentence, other: Sentence, annotations: Sequence[AbstractAnnotation]
) -> Drawing:
    """The part of a drawing of two answers that is one of them."""
    named = {side: name for name, side in sides(_lent(sentence, other, annotations), annotations).items()}
    known = {annotation.name: annotation.drawn(sentence) for annotation in annotations}

    def kept(side: str, arcs: Sequence[DrawnArc]) -> tuple[DrawnArc, ...]:
        drawn = known.get(named.get(side, ""))
        return () if drawn is None else tuple(arc for arc in arcs if arc.mark != without)

    def layer(one: Drawing) -> Drawing:
        looks = (known.get(named.get(side, "")) for side in one.sides)
        bold = {word for drawn in looks if drawn is not None for word in drawn.bold}
        return replace(
            one,
            above=kept(one.sides[0], one.above),
            below=kept(one.sides[1], one.below),
            predicates=tuple(sorted(bold)),
            beneath=beneath(one.beneath),
        )

    def beneath(one: Drawing | None) -> Drawing | None:
        if one is None:
            return None
        if any(known.get(named.get(side, "")) for side in one.sides):
            return layer(one)
        return beneath(one.beneath)  # all of it is the other one's

    alone = drawing(sentence, before=other, annotations=annotations)
    # Only what the other one lacks is new; here it is the first of the two that may have it.
    mark: Mark = "gone" if without == "new" else "new"
    rows = (tuple(replace(m, mark=mark) if m.mark == "new" else m for m in row) for row in alone.rows)
    return replace(layer(whole), tags=alone.tags, rows=tuple(rows))


def notes(found: Inspection, named: Mapping[str, str]) -> dict[tuple[str, int, int, str], str]:
    """What to say about each arc when a reader points at it.

    Args:
        found: What was found.
        named: On which side of the drawing each annotation stands.

    Example:
        >>> choices = {"heads": ((Alternative(0, 2.0, 0.0, 0.75),),), "graph": (ArcScore(Arc(0, 1, "TOP"), 1.5, ()),)}
        >>> notes(Inspection(Sentence(("Rain",), heads=(0,)), choices), {"heads": "below", "graph": "above"})
        {('below', 0, 1, ''): 'score 2.00, marginal 75.0 %', ('above', 0, 1, 'TOP'): 'score 1.50'}
    """
    said: dict[tuple[str, int, int, str], str] = {}
    for name, choices in found.choices.items():
        if name not in named:
            continue
        for word, choice in enumerate(choices, start=1):
            if isinstance(choice, ArcScore):
                others = ", ".join(f"{role} {gap:+.2f}" for role, gap in choice.alternatives[:2])
                said[named[name], *choice.arc] = f"score {choice.score:.2f}" + (f"; next: {others}" if others else "")
                continue
            for head in choice:
                share = "" if head.marginal is None else f", marginal {100 * head.marginal:.1f} %"
                said[named[name], head.head, word, head.relation] = f"score {head.score:.2f}{share}"
    return said


def _heads(choices: Sequence[Alternative]) -> list[dict[str, Any]]:
    return [
        {
            "head": choice.head,
            "score": _number(choice.score),
            "difference": _number(choice.difference),
            "marginal": _number(choice.marginal),
            **({"relation": choice.relation} if choice.relation else {}),
        }
        for choice in choices
    ]


def _listed(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)


def _number(value: float | None) -> float | None:
    """JSON has neither infinities nor a sign for what is no number."""
    return None if value is None or not math.isfinite(value) else round(value, 6)
