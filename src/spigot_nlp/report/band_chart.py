"""A chart of scores against a number, such as how much there was to learn from: a line for each system, in a band."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from spigot_nlp.report.axis import Axis
from spigot_nlp.report.figures import colour
from spigot_nlp.report.glyphs import ems, shorten, visible

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _FOOT = 520, 270, 40, 14, 44  # the height is that of the field alone
_HEAD, _ROW = 24, 19  # the title, and each line of names below it
_LETTERS, _SIZE, _TICKS = 30, 12.0, 6


@dataclass(frozen=True)
class BandPoint:
    """A point of a line.

    Attributes:
        x: The number that it was measured at.
        value: What was measured, in per cent.
        low: Where its interval begins; `None` if that is not known.
        high: Where it ends.

    Example:
        >>> BandPoint(250, 71.5).low is None
        True
    """

    x: float
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Band:
    """A line of the chart, and the band around it.

    Attributes:
        name: Whose scores they are.
        points: The points, from left to right.
        series: Its colour.

    Example:
        >>> Band("spigot", [BandPoint(250, 71.5, 70.0, 73.0)], series=2).points[0].high
        73.0
    """

    name: str
    points: Sequence[BandPoint]
    series: int


def band_chart(
    bands: Sequence[Band],
    *,
    title: str,
    x_label: str,
    y_label: str,
    marks: Sequence[tuple[float, str]],
    logarithmic: bool = False,
    zero: bool = False,
) -> str:
    """Lines with bands around them, over a number.

    Args:
        bands: The lines, drawn in order.
        title: What the chart shows, written above it, with the names of the lines below.
        x_label: Name of the horizontal axis.
        y_label: Name of the vertical axis, written above it.
        marks: What to write below the horizontal axis: where, and what. Marks that would run into others are left out.
        logarithmic: Whether equal steps on the horizontal axis are equal ratios; then every place is above 0.
        zero: Whether to draw where 0 is, for differences.

    Returns:
        An `<svg>` element that needs no page around it; each line is a group of class `line series-<number>`.

    Example:
        >>> points = [BandPoint(x, y, y - 1, y + 1) for x, y in ((250, 60.0), (500, 66.0), (1000, 70.0))]
        >>> marks = [(250, "250"), (500, "500"), (1000, "all")]
        >>> svg = band_chart([Band("spigot", points, 0)], title="LF", x_label="graphs", y_label="LF", marks=marks)
        >>> svg.startswith("<svg"), ">all<" in svg, ">spigot<" in svg
        (True, True, True)
    """
    places = [point.x for band in bands for point in band.points] + [x for x, _ in marks]
    if not places:
        raise ValueError("there are no points to draw; give one line or more.")
    if logarithmic and min(places) <= 0:
        raise ValueError(f"{min(places):g} has no logarithm; draw the places as they are.")
    names, rows = _names(bands)
    top = _HEAD + _ROW * rows + 24
    bottom = top + _HEIGHT
    across, up = _across(places, logarithmic), _up(bands, zero, bottom, top)
    drawn = [f'<text x="0" y="16" font-size="15" font-weight="700">{escape(visible(title))}</text>', names]
    drawn.append(_small(0, top - 12, escape(visible(y_label)), "start"))
    for tick in up.ticks(_TICKS):
        y = up.place(tick)
        shade = "var(--muted, #5d6575)" if zero and tick == 0 else "var(--line, #dde1ea)"
        drawn.append(f'<path d="M{_LEFT} {y:g}H{_WIDTH - _RIGHT}" stroke="{shade}"/>')
        drawn.append(_small(_LEFT - 6, y + 4, up.text(tick, _TICKS), "end"))
    drawn += _below(marks, across, logarithmic, bottom)
    drawn.append(_small((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 36, escape(visible(x_label))))

    def spot(point: BandPoint, value: float) -> str:
        within = min(max(value, up.low), up.high)
        return f"{across.place(_scaled(point.x, logarithmic)):g} {up.place(within):g}"

    for band in bands:
        known = [(point, point.low, point.high) for point in band.points if point.low is not None]
        edge = [spot(point, low) for point, low, _ in known if low is not None]
        edge += [spot(point, high) for point, _, high in reversed(known) if high is not None]
        if edge:
            drawn.append(
                f'<path class="band series-{band.series}" d="M{"L".join(edge)}Z" fill="{colour(band.series)}" '
                f'fill-opacity="0.1"/>'
            )
    drawn += [_line(band, [spot(point, point.value) for point in band.points], x_label) for band in bands]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + _FOOT}" role="img" '
        f'aria-label="{escape(visible(title))}" font-family="system-ui, sans-serif" font-size="13" '
        f'fill="var(--ink, #1c2230)">{"".join(drawn)}</svg>'
    )


def _scaled(x: float, logarithmic: bool) -> float:
    return math.log10(x) if logarithmic else x


def _across(places: Sequence[float], logarithmic: bool) -> Axis:
    scaled = [_scaled(x, logarithmic) for x in places]
    margin = 0.03 * (max(scaled) - min(scaled)) or 1.0
    return Axis(min(scaled) - margin, max(scaled) + margin, _LEFT, _WIDTH - _RIGHT)


def _up(bands: Sequence[Band], zero: bool, bottom: float, top: float) -> Axis:
    """From the lowest to the highest that is drawn, and no more; but a band so wide that lines look flat is cut."""
    values = [point.value for band in bands for point in band.points] + ([0.0] if zero else [])
    low, high = min(values, default=0.0), max(values, default=0.0)
    reach = max(high - low, 1.0)
    edges = [edge for band in bands for p in band.points for edge in (p.low, p.high) if edge is not None]
    low, high = max(min([low, *edges]), low - reach), min(max([high, *edges]), high + reach)
    margin = 0.04 * (high - low) or 1.0
    return Axis(low - margin, high + margin, bottom, top)


def _names(bands: Sequence[Band]) -> tuple[str, int]:
    """What the lines are called, with their colours, in as many rows as it takes; and how many those are."""
    drawn, x, row = [], 0.0, 0
    for band in bands:
        name = shorten(visible(band.name), _LETTERS)
        width = 24 + _SIZE * ems(name) + 16
        if x and x + width > _WIDTH:
            x, row = 0.0, row + 1
        y = _HEAD + _ROW * row + 14
        drawn.append(
            f'<g class="line series-{band.series}"><path d="M{x:g} {y - 4}h16" stroke="{colour(band.series)}" '
            f'stroke-width="3"/><text x="{x + 22:g}" y="{y}" font-size="{_SIZE:g}" '
            f'fill="var(--muted, #5d6575)">{escape(name)}</text></g>'
        )
        x += width
    return "".join(drawn), row + 1


def _below(marks: Sequence[tuple[float, str]], across: Axis, logarithmic: bool, bottom: float) -> list[str]:
    drawn, free = [], -math.inf
    for x, text in sorted(marks):
        at, half = across.place(_scaled(x, logarithmic)), _SIZE * ems(visible(text)) / 2
        drawn.append(f'<path d="M{at:g} {bottom:g}v5" stroke="var(--muted, #5d6575)"/>')
        if at - half > free:
            drawn.append(_small(at, bottom + 18, escape(visible(text))))
            free = at + half + 4
    return drawn


def _line(band: Band, spots: Sequence[str], x_label: str) -> str:
    shade, dots = colour(band.series), []
    for point, spot in zip(band.points, spots, strict=True):
        said = f"{band.name}, {x_label} {point.x:g}: {point.value:.2f}"
        if point.low is not None and point.high is not None:
            said += f", {point.low:.2f} to {point.high:.2f}"
        x, y = spot.split()
        dots.append(f'<circle cx="{x}" cy="{y}" r="3.2" fill="{shade}"><title>{escape(visible(said))}</title></circle>')
    path = f'<path d="M{"L".join(spots)}" fill="none" stroke="{shade}" stroke-width="2"/>'
    return f'<g class="line series-{band.series}">{path}{"".join(dots)}</g>'


def _small(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{_SIZE:g}" '
        f'fill="var(--muted, #5d6575)">{text}</text>'
    )
