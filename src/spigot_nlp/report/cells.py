"""Small pictures of numbers: tables whose cells are filled by what stands in them, and spans over words."""

from collections.abc import Sequence
from html import escape

from spigot_nlp.report.figures import colour
from spigot_nlp.report.glyphs import ems, visible

_CELL, _GAP, _LETTERS = 34, 14, 12


def cells(rows: Sequence[Sequence[float]], names: Sequence[str] = (), title: str = "") -> str:
    """A table of numbers: the more there is, the darker the cell; below zero in another colour.

    Args:
        rows: The numbers.
        names: What each row is called.
        title: What is written above.

    Example:
        >>> picture = cells([[0.0, 1.0]], ["z"])
        >>> picture.count("<rect"), picture.count(">1<"), "NaN" in picture
        (2, 1, False)
    """
    left = max((ems(visible(name)) * _LETTERS for name in names), default=-_GAP) + _GAP
    top = 18 if title else 0
    most = max((abs(value) for row in rows for value in row), default=0.0) or 1.0
    width = max(left + _CELL * max(map(len, rows), default=0), ems(visible(title)) * _LETTERS)
    height = top + _CELL * len(rows)
    parts = [f'<text class="said" x="0" y="12">{escape(visible(title))}</text>'] if title else []
    for i, row in enumerate(rows):
        y = top + _CELL * i
        if names:
            parts.append(f'<text class="said" x="0" y="{y + 21}">{escape(visible(names[i]))}</text>')
        parts += [_cell(value, most, left + _CELL * j, y) for j, value in enumerate(row)]
    return _svg(width, height, "".join(parts), title or "a table")


def spans(words: int, found: Sequence[tuple[int, int, str]]) -> str:
    """Spans of words, each above those inside it.

    Args:
        words: How many words there are.
        found: The first and the last word of each span, counted from 0, and what is written on it.

    Example:
        >>> spans(2, [(0, 1, ""), (0, 0, ""), (1, 1, "")]).count("<rect")
        3
    """
    wide, tall = 52, 22
    rows = sorted({last - first for first, last, _ in found}, reverse=True)
    parts = []
    for first, last, label in found:
        x, y = first * wide, rows.index(last - first) * tall
        box = f'x="{x + 2}" y="{y + 2}" width="{(last - first + 1) * wide - 4}" height="{tall - 4}" rx="5"'
        middle = f'x="{x + (last - first + 1) * wide / 2:g}" y="{y + 15}" text-anchor="middle"'
        parts.append(f'<rect class="on" {box} fill-opacity="0.25"/><text {middle}>{escape(visible(label))}</text>')
    y = len(rows) * tall + 14
    parts += [f'<text x="{(k + 0.5) * wide:g}" y="{y}" text-anchor="middle">{k}</text>' for k in range(words)]
    return _svg(words * wide, y + 4, "".join(parts), "spans of words")


RULES = (
    ".spigot-cells{font:12px system-ui,sans-serif}.spigot-cells text{fill:var(--ink,#1c2230)}"
    ".spigot-cells .said{fill:var(--muted,#5d6575)}.spigot-cells rect{stroke:var(--line,#dde1ea)}"
    f".spigot-cells .on{{fill:{colour(1)}}}.spigot-cells .off{{fill:none}}.spigot-cells .under{{fill:{colour(3)}}}"
)
"""The style sheet of these pictures."""


def _cell(value: float, most: float, x: float, y: float) -> str:
    kind = "off" if value == 0 else "on" if value > 0 else "under"
    # At most half of the colour: letters stay readable on it, on light pages and on dark ones.
    box = f'x="{x + 1:g}" y="{y + 1:g}" width="{_CELL - 2}" height="{_CELL - 2}" rx="4"'
    shade = f' fill-opacity="{0.1 + 0.4 * abs(value) / most:.2f}"' if value else ""
    said = f"{value:.0f}" if value == round(value) else f"{value:.2f}".replace("0.", ".", 1)
    text = f'<text x="{x + _CELL / 2:g}" y="{y + 21:g}" text-anchor="middle">{said.replace("-", "−")}</text>'
    return f'<rect class="{kind}" {box}{shade}/>{text if value else ""}'


def _svg(width: float, height: float, body: str, name: str) -> str:
    size = f'width="{width + 2:.0f}" height="{height + 2:.0f}" viewBox="-1 -1 {width + 2:.0f} {height + 2:.0f}"'
    return f'<svg class="spigot-cells" {size} role="img" aria-label="{escape(visible(name))}">{body}</svg>'
