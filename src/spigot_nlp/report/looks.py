"""From the annotations of a sentence to what is drawn of them, alone or compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.report.drawings import ABOVE, BELOW, Drawing, DrawnArc, DrawnMark
from spigot_nlp.report.glyphs import shorten, visible
from spigot_nlp.report.marks import Mark

if TYPE_CHECKING:
    from spigot_nlp.annotations import AbstractAnnotation  # a sentence of a file is drawn without loading torch

Notes: TypeAlias = Mapping[tuple[str, int, int, str], str]
"""What to show when an arc is pointed at, by `(side, start, end, label)`; see `sides`."""

_Arc: TypeAlias = tuple[int, int, str]


def drawing(
    sentence: Sentence,
    *,
    gold: Sentence | None = None,
    before: Sentence | None = None,
    notes: Notes | None = None,
    annotations: "Sequence[AbstractAnnotation] | None" = None,
) -> Drawing:
    """What a sentence looks like, by itself or compared.

    Trees are compared with their relations where all sides have them, and by their heads otherwise. With both `gold`
    and `before`, what changed is marked as new or gone, and its note says whether that was right.

    Args:
        sentence: What was found.
        gold: What would be right. An annotation that only one of the two has is not compared.
        before: What was found before, for example by the parser that the end task had not yet touched.
        notes: What to show when an arc is pointed at.
        annotations: What to draw; the graph and the tree of the sentence if omitted. The first graph stands above the
            words and the first tree below them, others where there is still room, under their names.

    Returns:
        The drawing: the arcs of the sentence in their order, then those it lacks.

    Raises:
        ValueError: If the sentences are not the same words.

    Example:
        >>> found, right = Sentence(("Rain", "fell"), heads=(0, 1)), Sentence(("Rain", "fell"), heads=(2, 0))
        >>> [(arc.start, arc.end, arc.mark) for arc in drawing(found, gold=right).below]
        [(0, 1, 'wrong'), (1, 2, 'wrong'), (2, 1, 'missed'), (0, 2, 'missed')]
    """
    for name, other in (("gold", gold), ("before", before)):
        if other is not None and other.forms != sentence.forms:
            raise ValueError(f"{name} is {_words(other)} but the sentence is {_words(sentence)}; give the same words.")
    right, earlier = (
        {} if other is None else {look.name: look for look in _looks(other, annotations)} for other in (gold, before)
    )
    looks = list(_looks(sentence, annotations))
    named = sides(sentence, annotations)

    def arcs(look: _Look | None) -> tuple[DrawnArc, ...]:
        if look is None:
            return ()
        marked = _compare(look, right.get(look.name), earlier.get(look.name))
        written = notes or {}
        return tuple(
            DrawnArc(*arc, mark, "\n".join(filter(None, (written.get((named[look.name], *arc), ""), remark))))
            for arc, mark, remark in marked
        )

    rows = {look.name: tuple(_row(look, right.get(look.name), earlier.get(look.name))) for look in looks if look.marks}
    whole: Drawing | None = None
    for place, (above, below) in reversed(list(enumerate(_layers(looks)))):
        free = ("", "") if place else (ABOVE, BELOW)
        whole = Drawing(
            sentence.forms,
            above=arcs(above),
            below=arcs(below),
            predicates=tuple(sorted({word for look in (above, below) if look is not None for word in look.bold})),
            sides=(
                free[0] if above is None else named[above.name],
                free[1] if below is None else named[below.name],
            ),
            beneath=whole,
        )
    assert whole is not None
    upper = [look.name for look in looks if look.has_arcs and look.above]
    # Tags that were found stand in a row that can be compared; those that came with the words in one that cannot.
    return replace(
        whole,
        tags=() if "tags" in rows else sentence.tags or (),
        rows=tuple(rows.values()),
        title=upper[0] if len(upper) > 1 else "",
    )


def note(
    sentence: Sentence, annotations: "Sequence[AbstractAnnotation]", class_names: Mapping[int, str] | None = None
) -> str:
    """What annotations say of a sentence as a whole: its class, and how sure that is.

    Args:
        sentence: What was found.
        annotations: Which of it.
        class_names: What classes are called, by their numbers.

    Example:
        >>> from spigot_nlp.annotations import Classes
        >>> note(Sentence(("Great", "!"), label=1, probabilities=(0.02, 0.98)), [Classes()], {1: "positive"})
        'positive (98%)'
    """
    said = []
    for annotation in annotations:
        drawn = annotation.drawn(sentence)
        if drawn is not None and drawn.note:
            usual, value = annotation.is_usual, sentence.get(annotation.name)
            share = f" ({max(sentence.probabilities):.0%})" if sentence.probabilities and usual else ""
            name = (class_names or {}).get(value, "") if usual else ""
            said.append(f"{drawn.note if name in ('', str(value)) else name}{share}")
    return ", ".join(said)


def sides(sentence: Sentence, annotations: "Sequence[AbstractAnnotation] | None" = None) -> dict[str, str]:
    """On which side of its drawing the arcs of each annotation stand: `above`, `below`, or one with their own name.

    Args:
        sentence: What is drawn.
        annotations: What of it; see `drawing`.

    Example:
        >>> from spigot_nlp.annotations import Graphs, Trees
        >>> from spigot_nlp.data.sentence import Graph
        >>> rain = Sentence(("Rain",), heads=(0,), graph=Graph(), annotations={"second": Graph()})
        >>> sides(rain, [Graphs("second"), Graphs(), Trees()])
        {'graph': 'above', 'heads': 'below', 'second': 'second'}
    """
    found: dict[str, str] = {}
    for look in _looks(sentence, annotations):
        if look.has_arcs:
            side = ABOVE if look.above else BELOW
            found[look.name] = look.name if side in found.values() else side
    return found


@dataclass(frozen=True)
class _Look:
    """What an annotation of a sentence looks like; see `spigot_nlp.annotations.Drawn`."""

    name: str
    arcs: tuple[_Arc, ...]
    above: bool
    labelled: bool
    bold: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    has_arcs: bool = True


def _looks(sentence: Sentence, annotations: "Sequence[AbstractAnnotation] | None") -> Iterator[_Look]:
    """What a sentence has of some annotations: those under their usual names first."""
    if annotations is None:
        yield from _common(sentence)
        return
    for annotation in sorted(annotations, key=lambda annotation: not annotation.is_usual):
        drawn = annotation.drawn(sentence)
        if drawn is not None:
            yield _Look(
                annotation.name,
                tuple((arc.start, arc.end, arc.label) for arc in drawn.arcs),
                drawn.above,
                drawn.labelled,
                drawn.bold,
                drawn.marks,
                not drawn.marks and not drawn.note,
            )


def _common(sentence: Sentence) -> Iterator[_Look]:
    """The graph and the tree of a sentence, as their annotations draw them."""
    graph, heads = sentence.graph, sentence.heads
    if graph is not None:
        yield _Look("graph", (*graph.arcs, *((0, top, "TOP") for top in graph.tops)), True, True, graph.predicates)
    if heads is not None:
        relations = sentence.relations
        named = enumerate(zip(heads, relations or ("",) * len(heads), strict=True), 1)
        arcs = ((head, word, "" if relation == "_" else relation) for word, (head, relation) in named)
        yield _Look("heads", tuple(arcs), False, relations is not None)


def _layers(looks: Iterable[_Look]) -> list[tuple[_Look | None, _Look | None]]:
    """What stands above and below the words, drawing after drawing; on its own side if that is free, or on any."""
    layers: list[list[_Look | None]] = [[None, None]]
    waiting = []
    for look in looks:
        if look.has_arcs and layers[0][not look.above] is None:
            layers[0][not look.above] = look
        elif look.has_arcs:
            waiting.append(look)
    for look in waiting:
        free = next(((layer, side) for layer in layers for side in (0, 1) if layer[side] is None), None)
        if free is None:
            layers.append([None, None])
            free = layers[-1], int(not look.above)
        free[0][free[1]] = look
    return [(above, below) for above, below in layers]


def _words(sentence: Sentence) -> str:
    return repr(shorten(visible(" ".join(sentence.forms)), 60))


def _row(look: _Look, right: _Look | None, earlier: _Look | None) -> Iterator[DrawnMark]:
    """What is written under each word, compared as arcs are."""
    for place, text in enumerate(look.marks):
        wanted = None if right is None else right.marks[place]
        past = None if earlier is None else earlier.marks[place]
        good = wanted == text
        if past is not None and past != text:
            remark = "" if wanted is None else "; right" if good else f"; {wanted} is right"
            yield DrawnMark(text, "new", f"{past} before{remark}")
        else:
            mark: Mark = "plain" if wanted is None else "right" if good else "wrong"
            yield DrawnMark(text, mark, "" if wanted is None or good else f"{wanted} is right")


def _compare(look: _Look, right: _Look | None, earlier: _Look | None) -> Iterator[tuple[_Arc, Mark, str]]:
    """All arcs with their marks, and a remark on those that changed where it is known what is right."""

    labelled = all(side.labelled for side in (look, right, earlier) if side is not None)

    def key(arc: _Arc) -> _Arc:
        return arc if labelled else (*arc[:2], "")

    now, wanted, past = ({key(arc) for arc in side.arcs} if side else set() for side in (look, right, earlier))
    for arc in look.arcs:
        good = key(arc) in wanted
        if earlier is not None and key(arc) not in past:
            yield arc, "new", "" if right is None else "right" if good else "wrong"
        else:
            yield arc, "plain" if right is None else "right" if good else "wrong", ""
    for arc in earlier.arcs if earlier else ():
        if key(arc) not in now:
            yield arc, "gone", "" if right is None else "was right" if key(arc) in wanted else "was wrong"
    for arc in right.arcs if right else ():
        if key(arc) not in now and key(arc) not in past:
            yield arc, "missed", ""
