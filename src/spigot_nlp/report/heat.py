"""A table of shares whose cells are the darker the larger they are: numbers for reading, colour for looking."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from spigot_nlp.report.figures import colour
from spigot_nlp.report.glyphs import ems, shorten, visible

_TOP, _HEAD, _ROW, _CELL, _GAP, _FOOT = 30, 30, 27, 92, 12, 8
_LETTERS = 30


@dataclass(frozen=True)
class HeatRow:
    """A row of the table.

    Attributes:
        name: What it is about.
        shares: One for each column, from 0 to 1; `None` where there is nothing.
        aside: Set apart by its letters, for bounds and floors.

    Example:
        >>> HeatRow("Spigot", [0.5, None]).aside
        False
    """

    name: str
    shares: Sequence[float | None]
    aside: bool = False


def heat_table(columns: Sequence[str], rows: Sequence[HeatRow], *, title: str, nothing: str) -> str:
    """Shares in per cent, as a picture that is also a table for those who have it read to them.

    Args:
        columns: The heads of the columns.
        rows: The rows, from top to bottom.
        title: What it shows, written above it.
        nothing: What an empty cell means, for those who have it read to them; they see a dash.

    Returns:
        An `<svg>` element that needs no page around it.

    Example:
        >>> svg = heat_table(["trees"], [HeatRow("Spigot", [0.256])], title="Parts found, %", nothing="not tried")
        >>> svg.startswith("<svg"), ">26<" in svg, 'role="table"' in svg
        (True, True, True)
    """
    left = max((13 * ems(shorten(visible(row.name), _LETTERS)) for row in rows), default=0.0) + _GAP
    width = max(left + _CELL * len(columns), 17 * ems(visible(title)))  # in bold letters
    height = _TOP + _HEAD + _ROW * len(rows) + _FOOT
    heads = "".join(
        f'<text role="columnheader" x="{left + _CELL * (k + 0.5):g}" y="{_TOP + 18}" text-anchor="middle" '
        f'fill="var(--muted, #5d6575)">{escape(visible(column))}</text>'
        for k, column in enumerate(columns)
    )
    body = "".join(_row(row, left, _TOP + _HEAD + _ROW * k, nothing) for k, row in enumerate(rows))
    said = escape(visible(title))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="table" '
        f'style="max-width: {1.3 * width:.0f}px" aria-label="{said}" font-family="system-ui, sans-serif" '
        f'font-size="13" fill="var(--ink, #1c2230)">'
        f'<text x="0" y="16" font-size="15" font-weight="700" aria-hidden="true">{said}</text>'
        f'<g role="row"><text role="columnheader" x="0" y="{_TOP + 18}"></text>{heads}</g>{body}</svg>'
    )


def _row(row: HeatRow, left: float, y: float, nothing: str) -> str:
    letters = ' font-style="italic" fill="var(--muted, #5d6575)"' if row.aside else ""
    name = escape(shorten(visible(row.name), _LETTERS))
    cells = "".join(_cell(share, left + _CELL * k, y, nothing) for k, share in enumerate(row.shares))
    return f'<g role="row"><text role="rowheader" x="0" y="{y + 18:g}"{letters}>{name}</text>{cells}</g>'


def _cell(share: float | None, x: float, y: float, nothing: str) -> str:
    middle = f'x="{x + _CELL / 2:g}" y="{y + 18:g}" text-anchor="middle"'
    if share is None:
        label = f'aria-label="{escape(visible(nothing))}"'
        return f'<text role="cell" {label} {middle} fill="var(--muted, #5d6575)">–</text>'
    # At most 0.6 of the colour: letters stay readable on it, on light pages, on dark ones and on paper.
    shade = f'fill="{colour(1)}" fill-opacity="{0.6 * min(1.0, max(0.0, share)) ** 2:.3f}"'
    box = f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{_CELL - 2}" height="{_ROW - 2}" rx="4" {shade}/>'
    return f'<g role="cell">{box}<text {middle}>{100 * share:.0f}</text></g>'
