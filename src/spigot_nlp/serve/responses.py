"""What a client gets: the models of responses, how they are made of what a system found, and drawings of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from spigot_nlp.annotations import AbstractAnnotation
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.models.inspection import Inspection
from spigot_nlp.report.arcs import Drawing, DrawnArc, drawing, svg
from spigot_nlp.report.drawings import ABOVE, BELOW
from spigot_nlp.report.looks import sides
from spigot_nlp.report.marks import Held, Mark
from spigot_nlp.stages.alternatives import Alternative, ArcScore
from spigot_nlp.stages.constraints import Constraints

_NAMED = ("tags", "upos", "heads", "graph", "label")
"""The annotations that have a field of their own in an answer."""


class _Response(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HeadChoice(_Response):
    """A head that a word could have."""

    head: int = Field(description="The word, counted from 1; 0 is the root.")
    score: float | None
    difference: float | None = Field(description="Its score less that of the head that was chosen.")
    marginal: float | None = Field(description="Its probability, where the system has one.")
    relation: str | None = Field(default=None, description="Its relation, where the system finds relations.")


class RoleChoice(_Response):
    """Another role that an arc could have."""

    role: str
    difference: float | None


class ScoredArc(_Response):
    """The score of an arc of a graph."""

    arc: tuple[int, int, str] = Field(description="Predicate, argument, role.")
    score: float | None
    next_roles: list[RoleChoice]


class GraphValue(_Response):
    """A semantic graph."""

    arcs: list[tuple[int, int, str]] = Field(description="Predicate, argument, role.")
    tops: list[int]
    predicates: list[int]


class AnnotationValue(_Response):
    """An annotation under a name of its own, as values and as it is drawn."""

    value: Any = Field(description="The annotation in the form that its kind has.")
    arcs: list[tuple[int, int, str]] | None
    marks: list[str] | None
    note: str | None
    probabilities: dict[str, float | None] | None


class FreeParse(_Response):
    """What a system finds without the constraints."""

    heads: list[int] | None
    graph: GraphValue | None
    label: int | None
    probabilities: dict[str, float | None] | None
    annotations: dict[str, AnnotationValue]


class SystemParse(FreeParse):
    """What one system finds in one sentence; what it does not give is null."""

    system: str
    forms: list[str]
    tags: list[str] | None
    lemmas: list[str] | None
    upos: list[str] | None
    relations: list[str] | None
    next_heads: list[list[HeadChoice]] | None = Field(description="For each word the best heads, the best first.")
    scores: list[ScoredArc] | None = Field(description="The scores of the arcs of the graph.")
    ignored: list[str] = Field(description="Kinds of constraints that this system has no place for.")
    svg: str | None = Field(default=None, description="A drawing, if it was asked for.")
    passed: dict[str, str] | None = Field(default=None, description="A drawing of what passed each wire.")
    free: FreeParse | None = Field(default=None, description="What it finds without the constraints.")


class Comparison(_Response):
    """Two systems in drawings that mark what differs."""

    first: str
    second: str
    both: str


class SentenceParse(_Response):
    """One sentence, and what each system finds in it."""

    forms: list[str]
    answers: list[SystemParse]
    compare: Comparison | None = Field(default=None, description="Two systems compared, if drawings were asked for.")


class OutOfVocabulary(_Response):
    """How much of a request is new to a system."""

    system: str
    words: int
    new: int
    note: str = Field(description="What to tell a reader about it; empty if there is nothing to tell.")


class ParseResponse(_Response):
    """The answer to a request to parse."""

    sentences: list[SentenceParse]
    out_of_vocabulary: list[OutOfVocabulary]


class WireInfo(_Response):
    """A wire of a system: what passes it, and the estimator by which training sends gradients back."""

    name: str
    annotation: str
    noun: str = Field(description="What one of the structures that pass is called.")
    estimator: str
    hard: bool = Field(description="Whether one structure passes, and not a mixture of which it is the best.")


class SystemInfo(_Response):
    """What a system is."""

    name: str = Field(description="How requests call it.")
    title: str = Field(description="What it was trained as.")
    task: str
    system: str = Field(description="How it was trained, e.g. spigot.")
    gives: list[str] = Field(description="The annotations that it finds.")
    called: dict[str, str] = Field(description="What each of these is called.")
    constrains: list[str] = Field(description="The annotations of which parts can be forced and forbidden.")
    holds: dict[str, str] = Field(description="The same by the side of a drawing that they stand on.")
    roles: list[str] = Field(description="The roles of the graphs whose arcs can be forced.")
    classes: list[int] = Field(description="Its classes, in the order of the probabilities.")
    class_names: list[str]
    wires: list[WireInfo]
    tagger: bool = Field(description="Whether it finds the tags it needs by itself.")
    examples: list[str] = Field(description="Texts to begin with, of words that it knows.")


class LimitsInfo(_Response):
    """How much one request may ask for."""

    body: int = Field(description="Bytes of a request.")
    stream: int = Field(description="Bytes of a request whose answer is streamed.")
    words: int = Field(description="Words of a sentence.")
    total: int = Field(description="Words of a request that is not streamed, counted once for each system.")
    systems: int
    top: int


class SystemsResponse(_Response):
    """What there is to ask."""

    systems: list[SystemInfo]
    limits: LimitsInfo


class HealthResponse(_Response):
    """That somebody is there."""

    status: Literal["ok"]
    version: str
    systems: int
    waiting: int = Field(description="Requests that wait for the next batch.")


class ReadyResponse(_Response):
    """That a request now would be answered."""

    status: Literal["ready"]


class ErrorResponse(_Response):
    """Why there is no answer."""

    error: str = Field(description="One sentence: what was given, what was expected, what to do.")


def free_parse(found: Inspection, annotations: Sequence[AbstractAnnotation]) -> dict[str, Any]:
    """The fields of an answer that constraints on it can change."""
    sentence, graph = found.sentence, found.sentence.graph
    chooser = next((annotation for annotation in annotations if annotation.is_usual and annotation.shares), None)
    return {
        "heads": sentence.heads,
        "graph": graph and GraphValue(arcs=list(graph.arcs), tops=list(graph.tops), predicates=list(graph.predicates)),
        "label": sentence.label,
        "probabilities": None if chooser is None else _shares(chooser, sentence),
        "annotations": {a.name: _annotation(a, sentence) for a in annotations if a.name not in _NAMED},
    }


def parse_fields(found: Inspection, annotations: Sequence[AbstractAnnotation], *, top: int) -> dict[str, Any]:
    """The fields of a `SystemParse` that say what a system found, with so many heads of each word."""
    sentence = found.sentence
    return {
        **free_parse(found, annotations),
        **{name: getattr(sentence, name) for name in ("forms", "tags", "lemmas", "upos", "relations")},
        "next_heads": None if found.heads is None else [[*map(_head, choices[:top])] for choices in found.heads],
        "scores": None if found.arcs is None else [*map(_scored, found.arcs)],
    }


def _head(choice: Alternative) -> HeadChoice:
    relation = {"relation": choice.relation} if choice.relation else {}
    return HeadChoice(
        head=choice.head,
        score=_number(choice.score),
        difference=_number(choice.difference),
        marginal=_number(choice.marginal),
        **relation,
    )


def _scored(scored: ArcScore) -> ScoredArc:
    roles = [RoleChoice(role=role, difference=_number(gap)) for role, gap in scored.alternatives]
    return ScoredArc(arc=scored.arc, score=_number(scored.score), next_roles=roles)


def _annotation(annotation: AbstractAnnotation, sentence: Sentence) -> AnnotationValue:
    value, drawn = sentence.get(annotation.name), annotation.drawn(sentence)
    return AnnotationValue(
        value=None if value is None else annotation.plain(value),
        arcs=None if drawn is None else list(drawn.arcs),
        marks=None if drawn is None else list(drawn.marks),
        note=None if drawn is None else drawn.note,
        probabilities=_shares(annotation, sentence),
    )


def _shares(annotation: AbstractAnnotation, sentence: Sentence) -> dict[str, float | None] | None:
    shares = sentence.get(annotation.shares) if annotation.shares else None
    if shares is None:
        return None
    return {str(option): _number(share) for option, share in zip(annotation.options, shares, strict=True)}


def _number(value: float | None) -> float | None:
    """JSON has neither infinities nor a sign for what is no number."""
    return None if value is None or not math.isfinite(value) else round(value, 6)


def draw(
    found: Inspection,
    annotations: Sequence[AbstractAnnotation],
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
    """
    before = None if free is None else free.sentence
    said = _notes(found, sides(found.sentence, annotations))
    whole = drawing(found.sentence, before=before, notes=said, annotations=annotations)
    return _svg(_held(whole, constraints), standalone)


def draw_pair(
    first: Inspection,
    second: Inspection,
    annotations: Sequence[AbstractAnnotation],
    *,
    constraints: tuple[Constraints | None, Constraints | None] = (None, None),
    standalone: bool = False,
) -> Comparison:
    """Two systems' answers to one sentence, side by side and in one: what only the first has is marked as gone, what
    only the second has as new."""
    before, after = (
        _lent(mine.sentence, theirs.sentence, annotations) for mine, theirs in ((first, second), (second, first))
    )
    named = sides(after, annotations)
    shared = {"first": _notes(first, named), "second": _notes(second, named)}
    shared["both"] = shared["first"] | shared["second"]
    drawn = {name: drawing(after, before=before, notes=said, annotations=annotations) for name, said in shared.items()}
    drawn["first"] = _held(_own(drawn["first"], "new", first.sentence, after, annotations), constraints[0])
    drawn["second"] = _held(_own(drawn["second"], "gone", second.sentence, before, annotations), constraints[1])
    drawn["both"] = _held(drawn["both"], constraints[1] or constraints[0])
    return Comparison(**{name: _svg(whole, standalone) for name, whole in drawn.items()})


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


def _notes(found: Inspection, named: Mapping[str, str]) -> dict[tuple[str, int, int, str], str]:
    """What to say about each arc when a reader points at it; `named` has the side of the drawing of each annotation."""
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
