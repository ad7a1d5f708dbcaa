"""Where the words and arcs of a drawing go: one algorithm for pictures, for TeX and for terminals.

Arcs are brackets over the words they join. An arc lies above all arcs it contains, on the lowest level on which
nothing shares a stretch with it, so that the number of levels grows like the depth of the nesting and not like the
length of the sentence. The ends of arcs at a word stand side by side: first those that go left, the inner ones outside;
then those that come from the root; then those that go right, the outer ones first. So arcs of one word never cross.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf
from typing import NamedTuple

LONGEST = 24
"""Columns after which the label of an arc is cut; a drawing is not for reading those."""


class Span(NamedTuple):
    """What the layout must know of an arc.

    Attributes:
        start: The word it leaves, counted from 1; 0 for a root or top.
        end: The word it arrives at.
        label: The width of its label.

    Example:
        >>> Span(2, 1, label=20.5).end
        1
    """

    start: int
    end: int
    label: float = 0.0


@dataclass(frozen=True)
class Metrics:
    """The measures of a medium, in its own unit.

    Attributes:
        gap: Between two words, at least.
        port: Between two ends of arcs at one word, at least.
        spread: Between two ends of arcs at one word, at most.
        room: What an arc needs beside its label.
        widest: The most that a word is widened for the ends of its arcs.
        whole: Whether places are whole numbers.

    Example:
        >>> Metrics(gap=9, port=5.5, spread=8, room=15).widest
        inf
    """

    gap: float
    port: float
    spread: float
    room: float
    widest: float = inf
    whole: bool = False


class Line(NamedTuple):
    """Where an arc goes.

    Attributes:
        level: Its height, counted from 1.
        start: Where its first leg stands.
        end: Where its arrow points at.
        label: The middle of its label.

    Example:
        >>> Line(level=2, start=10.0, end=50.0, label=30.0).level
        2
    """

    level: int
    start: float
    end: float
    label: float


@dataclass(frozen=True)
class Layout:
    """Where everything goes.

    Attributes:
        width: Of the whole.
        centres: The middle of each word.
        cells: The room of each word: its own, or more for the ends of its arcs.
        above: The arcs above the words, in the order they were given.
        below: The arcs below them.

    Example:
        >>> Layout(40.0, (10.0, 30.0), (20.0, 20.0), (Line(1, 10.0, 30.0, 20.0),), ()).height
        (1, 0)
    """

    width: float
    centres: tuple[float, ...]
    cells: tuple[float, ...]
    above: tuple[Line, ...]
    below: tuple[Line, ...]

    @property
    def height(self) -> tuple[int, int]:
        """The number of levels above and below."""
        return max((a.level for a in self.above), default=0), max((b.level for b in self.below), default=0)


def layout(widths: Sequence[float], above: Sequence[Span], below: Sequence[Span], metrics: Metrics) -> Layout:
    """Place words and arcs.

    Args:
        widths: What each word needs.
        above: The arcs above the words.
        below: The arcs below them.
        metrics: The measures of the medium.

    Example:
        >>> placed = layout([3, 3, 3], [Span(1, 2), Span(3, 1)], [Span(0, 2)], Metrics(1, 1, 1, 0))
        >>> [line.level for line in placed.above], placed.centres, placed.below[0].end
        ([1, 2], (1.5, 5.5, 9.5), 5.5)
    """
    sides = [(spans, levels(spans)) for spans in (above, below)]
    ports = [_ports(len(widths), spans, heights) for spans, heights in sides]
    cells = [
        max(width, min(metrics.widest, metrics.port * max(len(side[word]) for side in ports)))
        for word, width in enumerate(widths)
    ]
    offsets = [_offsets(side, cells, len(spans), metrics) for side, (spans, _) in zip(ports, sides, strict=True)]
    centres = _centres(cells, sides, offsets, metrics)
    lines = [
        _lines(spans, heights, centres, offset, metrics)
        for (spans, heights), offset in zip(sides, offsets, strict=True)
    ]
    width = centres[-1] + halves(cells[-1], whole=metrics.whole)[1] if centres else 0.0
    return Layout(width, tuple(centres), tuple(cells), lines[0], lines[1])


def levels(spans: Sequence[Span]) -> list[int]:
    """The height of each arc: above what it contains, and never where another one shares a stretch with it.

    Args:
        spans: The arcs of one side.

    Returns:
        Numbers from 1. Roots are on level 1, and arcs that pass over one are above it.

    Example:
        >>> levels([Span(1, 4), Span(2, 3), Span(3, 5), Span(0, 2)])
        [2, 1, 1, 1]
    """
    found = [1] * len(spans)
    roots = sorted(span.end for span in spans if span.start == 0)
    rows: list[list[tuple[int, int]]] = []  # the arcs of each level, which are disjoint, from left to right
    order = sorted((abs(s.end - s.start), min(s.start, s.end), number) for number, s in enumerate(spans) if s.start)
    for length, low, number in order:
        high = low + length
        lowest = int(bisect_left(roots, high) > bisect_right(roots, low))
        for level in range(len(rows) - 1, lowest - 1, -1):
            row = rows[level]
            inside = bisect_left(row, (low, 0))
            if inside < len(row) and row[inside][1] <= high:
                lowest = level + 1
                break
        while lowest < len(rows) and _shares(rows[lowest], low, high):
            lowest += 1
        while lowest >= len(rows):
            rows.append([])
        insort(rows[lowest], (low, high))
        found[number] = lowest + 1
    return found


def _shares(row: list[tuple[int, int]], low: int, high: int) -> bool:
    before = bisect_left(row, (high, 0)) - 1
    return before >= 0 and row[before][1] > low


def _ports(words: int, spans: Sequence[Span], heights: Sequence[int]) -> list[list[tuple[int, bool]]]:
    """For each word the ends of its arcs from left to right: the number of the arc, and whether it arrives there."""
    ends: list[list[tuple[int, int, int, bool]]] = [[] for _ in range(words)]
    for number, (span, level) in enumerate(zip(spans, heights, strict=True)):
        if span.start == 0:
            ends[span.end - 1].append((1, 0, number, True))
            continue
        right = span.end > span.start
        ends[span.start - 1].append((2, -level, number, False) if right else (0, level, number, False))
        ends[span.end - 1].append((0, level, number, True) if right else (2, -level, number, True))
    return [[(number, arrives) for _, _, number, arrives in sorted(word)] for word in ends]


def _offsets(
    ports: Sequence[Sequence[tuple[int, bool]]], cells: Sequence[float], arcs: int, metrics: Metrics
) -> list[list[float]]:
    """How far the two ends of each arc are from the middles of their words."""
    offsets = [[0.0, 0.0] for _ in range(arcs)]
    for cell, ends in zip(cells, ports, strict=True):
        step = min(metrics.spread, cell / max(1, len(ends)))
        for place, (number, arrives) in enumerate(ends):
            offset = step * (place - (len(ends) - 1) / 2)
            offsets[number][arrives] = floor(offset + 0.5) if metrics.whole else offset
    return offsets


def _centres(
    cells: Sequence[float],
    sides: Sequence[tuple[Sequence[Span], Sequence[int]]],
    offsets: Sequence[Sequence[Sequence[float]]],
    metrics: Metrics,
) -> list[float]:
    """The middle of each word: as far left as the word before it and the labels of arcs that end here allow."""
    needs: list[list[tuple[int, float]]] = [[] for _ in cells]
    for (spans, _), side in zip(sides, offsets, strict=True):
        for span, (leaves, arrives) in zip(spans, side, strict=True):
            if span.start:
                low, high = min(span.start, span.end), max(span.start, span.end)
                shift = leaves - arrives if span.start < span.end else arrives - leaves
                needs[high - 1].append((low - 1, span.label + metrics.room + shift))
    centres: list[float] = []
    for word, cell in enumerate(cells):
        place = halves(cell, whole=metrics.whole)[0]
        if centres:
            place += centres[-1] + halves(cells[word - 1], whole=metrics.whole)[1] + metrics.gap
        place = max([place, *(centres[low] + need for low, need in needs[word])])
        centres.append(place)
    return centres


def halves(cell: float, *, whole: bool = False) -> tuple[float, float]:
    """How far a cell reaches left and right of its middle; in columns, the middle is itself one of them.

    Example:
        >>> halves(5.0), halves(4, whole=True), halves(5, whole=True)
        ((2.5, 2.5), (1, 3), (2, 3))
    """
    return ((cell - 1) // 2, cell // 2 + 1) if whole else (cell / 2, cell / 2)


def _lines(
    spans: Sequence[Span],
    heights: Sequence[int],
    centres: Sequence[float],
    offsets: Sequence[Sequence[float]],
    metrics: Metrics,
) -> tuple[Line, ...]:
    tips = [centres[span.end - 1] + arrives for span, (_, arrives) in zip(spans, offsets, strict=True)]
    starts = [
        centres[span.start - 1] + leaves if span.start else tip
        for span, (leaves, _), tip in zip(spans, offsets, tips, strict=True)
    ]
    legs = sorted((x, level) for ends in (starts, tips) for x, level in zip(ends, heights, strict=True))
    places = [x for x, _ in legs]
    lines = []
    for span, level, start, tip in zip(spans, heights, starts, tips, strict=True):
        low, high = min(start, tip), max(start, tip)
        inside = legs[bisect_right(places, low) : bisect_left(places, high)]
        taller = [x for x, other in inside if other > level]
        lines.append(Line(level, start, tip, _clear(low, high, span.label + metrics.room, taller)))
    return tuple(lines)


def _clear(low: float, high: float, need: float, legs: Sequence[float]) -> float:
    """The middle of a label: as near the middle of its arc as the legs of taller arcs allow."""
    middle = (low + high) / 2
    best, distance = middle, inf
    for left, right in zip((low, *legs), (*legs, high), strict=True):
        if right - left >= need:
            place = min(max(middle, left + need / 2), right - need / 2)
            if abs(place - middle) < distance:
                best, distance = place, abs(place - middle)
    return best
