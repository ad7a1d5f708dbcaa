"""Drawings in box characters, for terminals."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from spigot_nlp.report.drawings import Drawing, DrawnArc, caption, small_text
from spigot_nlp.report.glyphs import clusters, columns, shorten, visible
from spigot_nlp.report.layout import Layout, Line, Metrics, Span, halves, layout
from spigot_nlp.report.marks import Mark

_METRICS = Metrics(gap=1, port=1, spread=2, room=3, whole=True)

# Along, across, then the corners: left and right of an arc above, left and right of an arc below.
_BOXES: dict[Mark, str] = {
    "plain": "─│┌┐└┘",
    "right": "─│┌┐└┘",
    "wrong": "╌╎┌┐└┘",
    "missed": "┄┆╭╮╰╯",
    "new": "━┃┏┓┗┛",
    "gone": "┈┊╭╮╰╯",
}
_ACROSS = frozenset(box[1] for box in _BOXES.values())
_HEADS = ("▼▽", "▲△")
_OPEN: tuple[Mark, ...] = ("missed", "gone")
_CODES: dict[Mark, str] = {
    "plain": "",
    "right": "36",
    "wrong": "31",
    "missed": "34",
    "new": "1;35",
    "gone": "2",
}
_BOLD, _DIM = "1", "2"


class _Cell(NamedTuple):
    """What stands in a column: a character, or nothing where a wide one began before; and how it is shown."""

    text: str
    code: str


class _Piece(NamedTuple):
    """The words from `first` to `last`, counted from 1, and the columns from `left` up to `right`."""

    first: int
    last: int
    left: int
    right: int


class _Drawn(NamedTuple):
    """An arc with its place: the word and the column of its left and of its right end, and what is written on it."""

    arc: DrawnArc
    line: Line
    low: tuple[int, int]
    high: tuple[int, int]
    written: str


_BLANK = _Cell(" ", "")
_Rows = list[list[_Cell]]


def text(drawing: Drawing, *, width: int | None = None, colour: bool = False) -> str:
    """A drawing for a terminal: the graph above the words, the tree below.

    A sentence wider than the terminal is cut between words into the widest pieces that fit, one under the other. An
    arc that goes on in another piece runs to the edge and is labelled again where it comes back, so that the words
    stay in reading order and no arc is lost; a list of arcs, one to a line, would be shorter for very long sentences
    but would no longer show what nests in what. Marks are told apart by the kind of line, by the arrowhead and by the
    sign before the label.

    Args:
        drawing: What to draw.
        width: Columns of the terminal; by default nothing is cut.
        colour: Whether to colour marks, by ANSI codes.

    Returns:
        Lines without a last line break; the empty string for a drawing without words.

    Raises:
        ValueError: If the width is not positive.

    Example:
        >>> print(text(Drawing(("Rain", "fell"), above=(DrawnArc(2, 1, "ARG1"),), below=(DrawnArc(0, 2),))))
         ┌─ARG1─┐
         ▼      │
        Rain   fell
                ▲
                │
    """
    if width is not None and width < 1:
        raise ValueError(f"width is {width}; it must be at least 1, or None for as wide as it gets.")
    if not drawing.words:
        return ""
    drawn = "\n\n".join(piece for layer in _upright(drawing) for piece in _layer(layer, width, colour))
    return f"{drawn}\n{visible(drawing.note)}" if drawing.note else drawn


def _upright(drawing: Drawing) -> Iterator[Drawing]:
    """The drawings one under the other; arcs below the words that have a name get a drawing of their own, under it."""
    for layer in drawing.layers:
        name = layer.captions[1]
        if not name:
            yield layer
            continue
        if layer.above or layer.small or layer.captions[0]:
            yield replace(layer, below=(), sides=(layer.sides[0], ""), beneath=None)
        yield Drawing(layer.words, above=layer.below, predicates=layer.predicates, sides=(layer.sides[1], ""))


def _layer(drawing: Drawing, width: int | None, colour: bool) -> Iterator[str]:
    """The pieces of one drawing without those beneath it."""
    words = [visible(word) for word in drawing.words]
    rows = [[_plain(small_text(each)) for each in row] for row in drawing.small]
    widths = [max(map(columns, of_word)) for of_word in zip(words, *rows, strict=True)]
    placed = layout(widths, _spans(drawing.above), _spans(drawing.below), _METRICS)
    predicates = frozenset(drawing.predicates)
    codes = [_BOLD if number in predicates else "" for number in range(1, len(words) + 1)]
    texts = [(words, codes)]
    texts += zip(rows, ([_CODES[each.mark] or _DIM for each in row] for row in drawing.small), strict=True)
    above, below = _drawn(drawing.above, placed.above), _drawn(drawing.below, placed.below)
    for piece in _pieces((*above, *below), placed, width):
        drawn = _arcs(above, placed.height[0], piece)[::-1]
        drawn += [_texts(strings, styles, placed, piece) for strings, styles in texts]
        drawn += _arcs(below, placed.height[1], piece, below=True)
        lines = [_line(row, colour) for row in drawn]
        said = drawing.captions[0]
        yield "\n".join((f"{said}:", *lines) if said else lines)


def _drawn(arcs: Sequence[DrawnArc], lines: Sequence[Line]) -> list[_Drawn]:
    """The arcs of one side, the highest first, so that labels cover the legs that pass behind them."""
    drawn = []
    for arc, line in sorted(zip(arcs, lines, strict=True), key=lambda pair: -pair[1].level):
        low, high = sorted(((arc.start or arc.end, int(line.start)), (arc.end, int(line.end))))
        drawn.append(_Drawn(arc, line, low, high, _written(arc)))
    return drawn


def _spans(arcs: Iterable[DrawnArc]) -> list[Span]:
    return [Span(arc.start, arc.end, columns(_written(arc)) if arc.start else 0) for arc in arcs]


def _written(arc: DrawnArc) -> str:
    return _plain(caption(arc))


def _plain(text: str) -> str:
    return text.replace("\u2009", "")  # no terminal has thin spaces


def _pieces(arcs: Iterable[_Drawn], placed: Layout, width: int | None) -> list[_Piece]:
    """As many whole words at a time as fit, with what the arcs that go on to the right need for their labels."""
    reach = [halves(cell, whole=True) for cell in placed.cells]
    lefts = [int(x - left) for x, (left, _) in zip(placed.centres, reach, strict=True)]
    rights = [int(x + right) for x, (_, right) in zip(placed.centres, reach, strict=True)]
    leaving: list[list[tuple[int, int]]] = [[] for _ in lefts]  # for each word, where arcs to the right end and reach
    for one in arcs:
        if one.low != one.high:
            leaving[one.low[0] - 1].append((one.high[0] - 1, one.low[1] + columns(one.written) + 3))
    if width is None:
        return [_Piece(1, len(lefts), 0, rights[-1])]
    pieces, first = [], 0
    while first < len(lefts):
        last, limit = first, lefts[first] + width
        while last + 1 < len(lefts) and rights[last + 1] <= limit:
            last += 1

        def needed(last: int, first: int = first) -> int:
            return max((x for word in leaving[first : last + 1] for end, x in word if end > last), default=0)

        while last > first and needed(last) > limit:
            last -= 1
        right = max(rights[last], min(limit, needed(last)))
        if last + 1 < len(lefts):
            right = max(right, min(limit, lefts[last + 1]))
        pieces.append(_Piece(first + 1, last + 1, lefts[first], right))
        first = last + 1
    return pieces


def _texts(strings: Sequence[str], codes: Sequence[str], placed: Layout, piece: _Piece) -> list[_Cell]:
    row = [_BLANK] * (piece.right - piece.left)
    for word in range(piece.first - 1, piece.last):
        string = strings[word]
        _put(row, int(placed.centres[word]) - (columns(string) - 1) // 2 - piece.left, string, codes[word])
    return row


def _arcs(arcs: Iterable[_Drawn], height: int, piece: _Piece, *, below: bool = False) -> _Rows:
    """The part of one side that falls into a piece: first the row next to the words, then level after level."""
    rows = [[_BLANK] * (piece.right - piece.left) for _ in range(height + 1 if height else 0)]
    for one in arcs:
        if one.low[0] <= piece.last and one.high[0] >= piece.first:
            _draw(rows, one, piece, below)
    # A level on which arcs only pass, on their way to higher ones, shows nothing.
    passing = {" ", *_ACROSS}
    return [
        row for level, row in enumerate(rows) if any(c.text not in passing for c in row) or (level < 2 and _any(row))
    ]


def _any(row: Sequence[_Cell]) -> bool:
    return any(cell is not _BLANK for cell in row)


def _draw(rows: _Rows, one: _Drawn, piece: _Piece, below: bool) -> None:
    arc, line = one.arc, one.line
    along, across, *corners = _BOXES[arc.mark]
    code = _CODES[arc.mark]
    row = rows[line.level]
    ends = [(word, x - piece.left) for word, x in (one.low, one.high) if piece.first <= word <= piece.last]
    for word, x in ends:
        for level in range(1, line.level + (arc.start == 0)):
            rows[level][x] = _Cell(across, code)
        rows[0][x] = _Cell(_HEADS[below][arc.mark in _OPEN] if word == arc.end else across, code)
    if arc.start == 0:
        row[ends[0][1]] = _Cell(one.written or across, code)
        return
    begins, stops = one.low[0] >= piece.first, one.high[0] <= piece.last
    low = one.low[1] - piece.left if begins else 0
    high = one.high[1] - piece.left if stops else piece.right - piece.left - 1
    straight, crossing = _Cell(along, code), _Cell("┼", code)
    row[low : high + 1] = [crossing if cell.text in _ACROSS else straight for cell in row[low : high + 1]]
    if begins:
        row[low] = _Cell(corners[2 * below], code)
    if stops:
        row[high] = _Cell(corners[2 * below + 1], code)
    first, last = low + begins, high - stops  # the columns between the corners
    width, room = columns(one.written), last - first + 1
    if begins and stops:
        _put(
            row, min(max(round(line.label - piece.left - (width - 1) / 2), first), last + 1 - width), one.written, code
        )
    elif width + 1 <= room:
        _put(row, first + (room - width) // 2, one.written, code)
    elif begins and room > 1:
        _put(row, first, shorten(one.written, room), code)


def _put(row: list[_Cell], x: int, string: str, code: str) -> None:
    """Write a string into a row, cluster by cluster; what does not fit into the row is left out."""
    # Words from right to left would otherwise change places where they stand side by side.
    mark = "\u200e" if any(unicodedata.bidirectional(character) in ("R", "AL") for character in string) else ""
    parts = list(clusters(string))
    for number, (cluster, width) in enumerate(parts, 1):
        if not 0 <= x <= len(row) - width:
            return
        row[x] = _Cell(cluster + mark if number == len(parts) else cluster, code)
        for more in range(1, width):
            row[x + more] = _Cell("", code)
        x += width


def _line(row: Sequence[_Cell], colour: bool) -> str:
    if not colour:
        return "".join(cell.text for cell in row).rstrip()
    end = max((x for x, cell in enumerate(row, 1) if cell.text.strip()), default=0)
    parts = []
    for code, cells in groupby(row[: end + 1], key=lambda cell: cell.code):
        string = "".join(cell.text for cell in cells)
        parts.append(f"\x1b[{code}m{string}\x1b[0m" if code else string)
    return "".join(parts).rstrip()
