"""What a drawing of a sentence holds: its words, its arcs and how each compares, and nothing of how it looks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from spigot_nlp.report.glyphs import shorten, visible
from spigot_nlp.report.layout import LONGEST
from spigot_nlp.report.marks import MEANINGS, SIGNS, Held, Mark

ABOVE, BELOW = "above", "below"
"""The two sides of a drawing."""


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
class DrawnMark:
    """What is written small under a word.

    Attributes:
        text: The text.
        mark: How it compares.
        note: What is shown when it is pointed at.

    Example:
        >>> DrawnMark("NN", "wrong", "VB is right").text
        'NN'
    """

    text: str
    mark: Mark = "plain"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is to be drawn.

    Attributes:
        words: The words.
        above: The arcs above them: a semantic graph.
        below: The arcs below them: a syntactic tree.
        tags: What is written small under each word; empty for nothing.
        predicates: The words that are written bold, counted from 1.
        rows: Further rows of what is written small under each word.
        sides: What the arcs above and below are called; a name of its own is written beside them. Empty for a side of a
            drawing beneath another where there is nothing.
        beneath: A second drawing of the same words, for arcs that have no place in this one.
        title: What the arcs above are called, where it has to be said since others of their kind are drawn too.
        note: What is said of the sentence as a whole, under it: its class, for instance.

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
    rows: tuple[tuple[DrawnMark, ...], ...] = ()
    sides: tuple[str, str] = (ABOVE, BELOW)
    beneath: "Drawing | None" = None
    title: str = ""
    note: str = ""

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
        for row in (self.tags, *self.rows):
            if row and len(row) != count:
                raise ValueError(f"there are {len(row)} tags for {count} words; give one for each word, or none.")

    @property
    def layers(self) -> "Iterator[Drawing]":
        """This drawing, and those beneath it."""
        layer: Drawing | None = self
        while layer is not None:
            yield layer
            layer = layer.beneath

    @property
    def small(self) -> list[list[DrawnMark]]:
        """All that is written small: the tags, and the further rows."""
        return [[DrawnMark(tag) for tag in self.tags], *map(list, self.rows)] if self.tags else [*map(list, self.rows)]

    @property
    def captions(self) -> tuple[str, str]:
        """What is written beside the arcs above and below; nothing where it goes without saying."""
        above, below = self.sides
        upper, lower = self.title if above in (ABOVE, "") else above, "" if below == BELOW else below
        return upper and visible(upper), lower and visible(lower)


def caption(arc: DrawnArc) -> str:
    """What is written on an arc: its sign and its label, cut if it is very long. Roots have only the sign.

    Example:
        >>> caption(DrawnArc(1, 2, "ARG1", "wrong")), caption(DrawnArc(0, 2, "root", "plain"))
        ('✗\u2009ARG1', '')
    """
    label = shorten(visible(arc.label), LONGEST) if arc.label and arc.start else ""
    return "\u2009".join(filter(None, (SIGNS[arc.mark], label)))  # a thin space


def small_text(each: DrawnMark) -> str:
    """What is written under a word: its sign and its text.

    Example:
        >>> small_text(DrawnMark("NN", "wrong")), small_text(DrawnMark("NN", "right"))
        ('✗\\u2009NN', 'NN')
    """
    return "\u2009".join(filter(None, (SIGNS[each.mark], visible(each.text))))


def marks_of(drawing: Drawing) -> list[Mark]:
    """The marks that occur in a drawing, for its legend.

    Example:
        >>> marks_of(Drawing(("Rain", "fell"), below=(DrawnArc(0, 2, mark="wrong"), DrawnArc(2, 1, mark="right"))))
        ['right', 'wrong']
    """
    order = list(SIGNS)
    found: set[Mark] = {arc.mark for layer in drawing.layers for arc in (*layer.above, *layer.below)}
    found |= {each.mark for layer in drawing.layers for row in layer.rows for each in row}
    return sorted(found, key=order.index)


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
