"""What a drawing of a sentence holds: its words, its arcs and how each compares, and nothing of how it looks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, get_args

from spigot.data.sentence import Sentence
from spigot.report.glyphs import shorten, visible
from spigot.report.layout import LONGEST
from spigot.report.marks import MEANINGS, SIGNS, Held, Mark


@dataclass(frozen=True, slots=True)
class DrawnArc:
    """An arc of a drawing.

    Attributes:
        start: The word it leaves, counted from 1; 0 for the root or a top, a short arrow from above.
        end: The word it points at.
        label: What is written on it.
        mark: How it compares.
        note: What is shown when it is pointed at, for example its score.
        held: Whether a reader forced or forbade it; shown in SVG.

    Example:
        >>> DrawnArc(2, 1, "ARG1").mark
        'plain'
    """

    start: int
    end: int
    label: str = ""
    mark: Mark = "plain"
    note: str = ""
    held: Held = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is to be drawn.

    Attributes:
        words: The words.
        above: The arcs above them: a semantic graph.
        below: The arcs below them: a syntactic tree.
        tags: What is written small under each word; empty for nothing.
        predicates: The words that are written bold, counted from 1.

    Raises:
        ValueError: If an arc does not join two of the words, or there are not as many tags as words.

    Example:
        >>> Drawing(("Rain", "fell"), below=(DrawnArc(2, 1, "nsubj"), DrawnArc(0, 2)), tags=("NN", "VBD")).tags
        ('NN', 'VBD')
    """

    words: tuple[str, ...]
    above: tuple[DrawnArc, ...] = ()
    below: tuple[DrawnArc, ...] = ()
    tags: tuple[str, ...] = ()
    predicates: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.words)
        for arc in (*self.above, *self.below):
            if not (0 <= arc.start <= count and 1 <= arc.end <= count and arc.start != arc.end):
                raise ValueError(
                    f"an arc goes from {arc.start} to {arc.end}; it must join two different ones of the {count} words, "
                    f"counted from 1, or start at 0 for the root."
                )
            if arc.mark not in SIGNS:
                raise ValueError(f"mark is {arc.mark!r}; it must be one of {', '.join(get_args(Mark))}.")
        if self.tags and len(self.tags) != count:
            raise ValueError(f"there are {len(self.tags)} tags for {count} words; give one for each word, or none.")


def drawing(
    sentence: Sentence,
    *,
    gold: Sentence | None = None,
    before: Sentence | None = None,
    notes: Mapping[tuple[str, int, int, str], str] | None = None,
) -> Drawing:
    """What a sentence looks like, by itself or compared.

    Heads of trees are compared without their labels, since the parsers here find none. With both `gold` and `before`,
    what changed is marked as new or gone, and its note says whether that was right.

    Args:
        sentence: What was found.
        gold: What would be right. A side that only one of the two has is not compared.
        before: What was found before, for example by the parser that the end task had not yet touched.
        notes: What to show when an arc is pointed at, by `("above" or "below", start, end, label)`.

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

    def side(name: str, arcs: Callable[[Sentence], list[_Arc] | None], labelled: bool) -> tuple[DrawnArc, ...]:
        found = arcs(sentence)
        if found is None:
            return ()
        right = None if gold is None else arcs(gold)
        earlier = None if before is None else arcs(before)
        marked = _compare(found, right, earlier, labelled)
        written = notes or {}
        return tuple(
            DrawnArc(*arc, mark, "\n".join(filter(None, (written.get((name, *arc), ""), remark))))
            for arc, mark, remark in marked
        )

    return Drawing(
        sentence.forms,
        above=side("above", _graph, True),
        below=side("below", _tree, False),
        tags=sentence.tags or (),
        predicates=sentence.graph.predicates if sentence.graph is not None else (),
    )


_Arc: TypeAlias = tuple[int, int, str]


def _words(sentence: Sentence) -> str:
    return repr(shorten(visible(" ".join(sentence.forms)), 60))


def _graph(sentence: Sentence) -> list[_Arc] | None:
    if sentence.graph is None:
        return None
    return [*sentence.graph.arcs, *((0, top, "TOP") for top in sentence.graph.tops)]


def _tree(sentence: Sentence) -> list[_Arc] | None:
    if sentence.heads is None:
        return None
    relations = sentence.relations or ("",) * len(sentence)
    named = zip(sentence.heads, relations, strict=True)
    return [(head, word, "" if relation == "_" else relation) for word, (head, relation) in enumerate(named, 1)]


def _compare(
    found: list[_Arc], right: list[_Arc] | None, earlier: list[_Arc] | None, labelled: bool
) -> Iterator[tuple[_Arc, Mark, str]]:
    """All arcs with their marks, and a remark on those that changed where it is known what is right."""

    def key(arc: _Arc) -> tuple[int, int, str]:
        return arc if labelled else (*arc[:2], "")

    now, wanted, past = ({key(arc) for arc in arcs or ()} for arcs in (found, right, earlier))
    for arc in found:
        good = key(arc) in wanted
        if earlier is not None and key(arc) not in past:
            yield arc, "new", "" if right is None else "right" if good else "wrong"
        else:
            yield arc, "plain" if right is None else "right" if good else "wrong", ""
    for arc in earlier or ():
        if key(arc) not in now:
            yield arc, "gone", "" if right is None else "was right" if key(arc) in wanted else "was wrong"
    for arc in right or ():
        if key(arc) not in now and key(arc) not in past:
            yield arc, "missed", ""


def caption(arc: DrawnArc) -> str:
    """What is written on an arc: its sign and its label, cut if it is very long. Roots have only the sign.

    Example:
        >>> caption(DrawnArc(1, 2, "ARG1", "wrong")), caption(DrawnArc(0, 2, "root", "plain"))
        ('✗\u2009ARG1', '')
    """
    label = shorten(visible(arc.label), LONGEST) if arc.label and arc.start else ""
    return "\u2009".join(filter(None, (SIGNS[arc.mark], label)))  # a thin space


def marks_of(drawing: Drawing) -> list[Mark]:
    """The marks that occur in a drawing, for its legend.

    Example:
        >>> marks_of(Drawing(("Rain", "fell"), below=(DrawnArc(0, 2, mark="wrong"), DrawnArc(2, 1, mark="right"))))
        ['right', 'wrong']
    """
    order = list(SIGNS)
    return sorted({arc.mark for arc in (*drawing.above, *drawing.below)}, key=order.index)


def describe(drawing: Drawing, arc: DrawnArc) -> str:
    """An arc in words, for those who point at it or cannot see it.

    Example:
        >>> describe(Drawing(("Rain", "fell")), DrawnArc(2, 1, "ARG1", "wrong", "score 1.5"))
        'fell → Rain: ARG1 (found, but wrong)\\nscore 1.5'
    """
    start = visible(drawing.words[arc.start - 1]) if arc.start else "root"
    label = f": {visible(arc.label)}" if arc.label else ""
    said = [*([MEANINGS[arc.mark]] if arc.mark != "plain" else []), *([arc.held] if arc.held else [])]
    mark = f" ({'; '.join(said)})" if said else ""
    note = "\n".join(visible(line) for line in arc.note.split("\n")) if arc.note else ""
    return f"{start} → {visible(drawing.words[arc.end - 1])}{label}{mark}" + (f"\n{note}" if note else "")
