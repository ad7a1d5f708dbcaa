"""A sentence with its arcs, as in Figure 2 of the paper: the semantic graph above the words, the tree below.

`drawing` turns sentences into a `Drawing`, which holds what is drawn and nothing of how; `svg` makes a picture of it,
`spigot_nlp.report.tikz.tikz` a TeX file and `spigot_nlp.report.terminal.text` lines for a terminal.
"""

from collections.abc import Iterable, Iterator
from html import escape
from itertools import chain
from typing import get_args

from spigot_nlp.report.drawings import Drawing, DrawnArc, DrawnMark, caption, describe, marks_of, small_text
from spigot_nlp.report.glyphs import ems, visible
from spigot_nlp.report.layout import Layout, Line, Metrics, Span, layout
from spigot_nlp.report.looks import drawing
from spigot_nlp.report.marks import (
    DEMANDS,
    LABEL,
    MEANINGS,
    SIGN,
    SIGNS,
    STYLE,
    TAG,
    WORD,
    Held,
    Mark,
    held_sign,
    own_colours,
)

__all__ = ["STYLE", "Drawing", "DrawnArc", "Mark", "caption", "describe", "drawing", "legend", "marks_of", "svg"]

# In pixels.
_METRICS = Metrics(gap=13, port=8, spread=11, room=22, widest=240)
_FIRST, _STEP, _TALLEST, _MARGIN = 26, 20, 560, 12
_HEAD, _ROUND = 7, 11
_ROW, _CAPTION = 15, 16  # of what is written small, and of the name of a side


def svg(drawing: Drawing, *, standalone: bool = False, styled: bool = True) -> str:
    """A picture, in its natural size: a page lets wide ones scroll.

    Every arc is a group of class `arc` and its mark, with `data-side`, `data-start`, `data-end` and `data-label`, a
    title that says what it is, and a broad invisible line that is easy to hit. Colours are CSS variables, so that the
    picture follows the page around it.

    Args:
        drawing: What to draw.
        standalone: Whether it is to be a file of its own: with its own colours, for light and dark, and with a legend
            if anything is compared.
        styled: Whether it brings its style sheet; a page that has `STYLE` in its own can do without.

    Returns:
        An `<svg>` element.

    Example:
        >>> picture = svg(Drawing(("Rain", "fell"), above=(DrawnArc(2, 1, "ARG1"),)))
        >>> picture.startswith('<svg class="arcs"'), 'data-start="2" data-end="1" data-label="ARG1"' in picture
        (True, True)
    """
    body, width, height = "", 0.0, 0.0
    for layer in drawing.layers:
        drawn, wide, tall = _layer(layer)
        body += f'<g transform="translate(0 {height:.0f})">{drawn}</g>' if height else drawn
        width, height = max(width, wide), height + tall
    if drawing.note:
        note = visible(drawing.note)
        height += _CAPTION
        body += f'<text class="tag side" x="0" y="{height - _CAPTION / 2:.0f}">{escape(note)}</text>'
        width = max(width, ems(note) * TAG + 2 * _MARGIN)
    style, legend = STYLE, ""
    if standalone:
        style += own_colours()
        legend, wide, tall = _legend_inside(drawing, height)
        width, height = max(width, wide), height + tall
        body = f'<rect class="ground" x="{-_MARGIN}" width="100%" height="100%" rx="10"/>{body}'
    name = _attribute(" ".join(map(visible, drawing.words))) or "an empty sentence"
    space = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    return (
        f'<svg class="arcs"{space} width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-_MARGIN} 0 {width:.0f} {height:.0f}" role="group" aria-label="{name}">'
        f"{f'<style>{style}</style>' if styled else ''}{body}{legend}</svg>"
    )


def _layer(drawing: Drawing) -> tuple[str, float, float]:
    """One drawing without those beneath it, with its width and height."""
    words, rows, captions = [visible(word) for word in drawing.words], drawing.small, drawing.captions
    widths = [ems(word) * WORD * (1.06 if i in drawing.predicates else 1.0) for i, word in enumerate(words, 1)]
    for row in rows:
        widths = [max(width, ems(small_text(each)) * TAG) for width, each in zip(widths, row, strict=True)]
    placed = layout(widths, _spans(drawing.above), _spans(drawing.below), _METRICS)
    above, below = (_reach(levels) for levels in placed.height)
    above, below = (reach + (_CAPTION if said else 0) for reach, said in zip((above, below), captions, strict=True))

    top = _MARGIN + above
    line = top + 4 + WORD
    bottom = line + (TAG + 10 + (len(rows) - 1) * _ROW if rows else 7)
    height = bottom + below + _MARGIN
    body = "".join(
        chain(
            _side(drawing, drawing.above, placed.above, drawing.sides[0], top, -_scale(placed.height[0])),
            _side(drawing, drawing.below, placed.below, drawing.sides[1], bottom, _scale(placed.height[1])),
            _texts(drawing, words, rows, placed, line),
        )
    )
    for said, y in zip(captions, (_MARGIN, height - 4), strict=True):
        body += f'<text class="tag side" x="0" y="{y:.0f}">{escape(said)}</text>' if said else ""
    return body, max(placed.width, *(ems(said) * TAG for said in captions)) + 2 * _MARGIN, height


def legend(marks: Iterable[Mark] = get_args(Mark), *, demands: Iterable[Held] = (), styled: bool = True) -> str:
    """What the marks mean: a small arc and a few words for each, as HTML that wraps on a narrow screen.

    Args:
        marks: Those to explain, for example the ones that occur on a page.
        demands: Of forced and forbidden arcs, those to explain too.
        styled: Whether it brings its style sheet, see `svg`.

    Example:
        >>> legend(["wrong"]).count("<svg"), "found, but wrong" in legend(["wrong"])
        (1, True)
    """
    items = "".join(
        f'<span><svg class="arcs" width="58" height="34" viewBox="0 0 58 34" aria-hidden="true">'
        f"{_sample(mark, held)}</svg>{meaning}</span>"
        for mark, held, meaning in _entries(marks, demands)
    )
    style = f"<style>{STYLE}</style>" if styled else ""
    return f'<div class="arcs-legend">{style}{items}</div>'


def _spans(arcs: Iterable[DrawnArc]) -> list[Span]:
    return [Span(arc.start, arc.end, _width(caption(arc), arc.held) if arc.start else 0.0) for arc in arcs]


def _width(written: str, held: Held) -> float:
    """The room that the label of an arc and the sign before it take."""
    return ems(written) * LABEL + (SIGN + (5 if written else 0) if held else 0)


def _scale(levels: int) -> float:
    """The distance of two levels: less where there are so many that the picture would become too tall."""
    return min(_STEP, (_TALLEST - _FIRST) / max(1, levels - 1))


def _reach(levels: int) -> float:
    return _FIRST + (levels - 1) * _scale(levels) + LABEL / 2 if levels else 0.0


def _side(
    drawing: Drawing, arcs: tuple[DrawnArc, ...], lines: tuple[Line, ...], side: str, base: float, step: float
) -> Iterator[str]:
    """The arcs of one side, the highest first: the ground of a label then covers the legs that pass behind it."""
    for arc, place in sorted(zip(arcs, lines, strict=True), key=lambda pair: (-pair[1].level, pair[0].end)):
        attributes = f'data-side="{side}" data-start="{arc.start}" data-end="{arc.end}"'
        yield (
            f'<g class="arc {_kind(arc.mark, arc.held)}" {attributes} data-label="{_attribute(arc.label)}" '
            f'tabindex="0" role="img"><title>{escape(describe(drawing, arc))}</title>'
            f"{_bracket(place, caption(arc), base, step, held=arc.held)}</g>"
        )


def _kind(mark: Mark, held: Held) -> str:
    return f"{mark} {held}" if held else mark


def _bracket(place: Line, written: str, base: float, step: float, *, held: Held = "", hit: bool = True) -> str:
    """The line from word to word with its arrowhead and its label; a double line if it is forced."""
    out = 1 if step > 0 else -1  # which way is away from the words
    far = round(base + out * _FIRST + step * (place.level - 1))
    base, start, end = round(base), round(place.start), round(place.end)
    tip = base + out * (_HEAD - 2)
    if start == end:
        path = along = f"M{end} {far}V{tip}"
        label = (end, far - 4 if out < 0 else far + 11)
    else:
        ahead = 1 if end > start else -1
        bend = min(_ROUND, abs(end - start) // 2)
        path = (
            f"M{start} {base + out}V{far - out * bend}q0 {out * bend} {ahead * bend} {out * bend}"
            f"H{end - ahead * bend}q{ahead * bend} 0 {ahead * bend} {-out * bend}V{tip}"
        )
        along = f"M{start + ahead * bend} {far}H{end - ahead * bend}"
        label = (round(place.label), far + 4)
    head = f"M{end - 3.5:g} {base + out * _HEAD}h7l-3.5 {-out * _HEAD}z"
    x, sign = label[0], ""
    if held:
        width = _width(written, held)
        x, sign = x + (width - ems(written) * LABEL) / 2, held_sign(held, x - (width - SIGN) / 2, label[1] - 4)
    text = f'<text x="{x:g}" y="{label[1]}">{escape(written)}</text>' if written else ""
    broad = f'<path class="x" d="{along}"/>' if hit else ""
    inner = f'<path class="i" d="{path}"/>' if held == "forced" else ""
    return f'{broad}<path d="{path}"/>{inner}<path class="h" d="{head}"/>{sign}{text}'


def _texts(
    drawing: Drawing, words: list[str], rows: list[list[DrawnMark]], placed: Layout, line: float
) -> Iterator[str]:
    predicates = frozenset(drawing.predicates)
    for number, (word, x) in enumerate(zip(words, placed.centres, strict=True), 1):
        kind = "word predicate" if number in predicates else "word"
        yield f'<text class="{kind}" data-word="{number}" x="{x:.0f}" y="{line:.0f}">{escape(word)}</text>'
        for k, row in enumerate(rows):
            each = row[number - 1]
            kind = "tag" if each.mark == "plain" else f"tag marked {each.mark}"
            note = f"<title>{escape(visible(each.note))}</title>" if each.note else ""
            y = line + TAG + 3 + k * _ROW
            yield f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{note}{escape(small_text(each))}</text>'


def _sample(mark: Mark, held: Held = "") -> str:
    """An arc by itself, 58 wide and 34 tall."""
    drawn = _bracket(Line(1, 8, 50, 29), SIGNS[mark], 33, -_STEP, held=held, hit=False)
    return f'<g class="arc {_kind(mark, held)}">{drawn}</g>'


def _entries(marks: Iterable[Mark], demands: Iterable[Held]) -> Iterator[tuple[Mark, Held, str]]:
    """What a legend has to explain, and in which words."""
    for mark in marks:
        yield mark, "", MEANINGS[mark]
    for held in demands:
        yield "gone" if held == "forbidden" else "plain", held, DEMANDS[held]


def _legend_inside(drawing: Drawing, top: float) -> tuple[str, float, float]:
    """The legend of a file of its own, with its width and height; nothing where nothing is compared."""
    marks = marks_of(drawing)
    held = {arc.held for layer in drawing.layers for arc in (*layer.above, *layer.below)}
    demands: list[Held] = [demand for demand in DEMANDS if demand in held]
    if marks in ([], ["plain"]) and not demands:
        return "", 0.0, 0.0
    x, parts = 0.0, []
    for mark, demand, meaning in _entries(marks, demands):
        parts.append(
            f'<g transform="translate({x:.0f} {top:.0f})">{_sample(mark, demand)}'
            f'<text class="key" x="62" y="24">{meaning}</text></g>'
        )
        x += 62 + ems(meaning) * 12 + 18
    return "".join(parts), x + _MARGIN, 34 + _MARGIN


def _attribute(text: str) -> str:
    return escape(visible(text) if text else "")
