"""A chart of scores: a dot for each system, with its interval as a line."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from spigot_nlp.report.axis import Axis
from spigot_nlp.report.figures import colour
from spigot_nlp.report.glyphs import ems, shorten, visible

_WIDTH, _TOP, _ROW, _FOOT = 430, 42, 28, 46
_NAMES, _VALUE, _GAP = 180, 44, 12  # the widest names, room for the numbers, and what lies between
_LETTERS, _TICKS = 26, 6


@dataclass(frozen=True)
class Dot:
    """A row of the chart.

    Attributes:
        name: Whose score it is.
        value: The score, in per cent.
        low: Where its interval begins; `None` if that is not known.
        high: Where it ends.
        series: Its colour.
        each: The scores that it is the mean of, if there are several.

    Example:
        >>> Dot("spigot", 84.5, 83.0, 86.0, series=2).each
        ()
    """

    name: str
    value: float
    low: float | None
    high: float | None
    series: int
    each: tuple[float, ...] = ()


def dot_chart(dots: Sequence[Dot], *, title: str, x_label: str) -> str:
    """Scores side by side, on an axis that spans the intervals and no more.

    Args:
        dots: The rows, from top to bottom.
        title: What the chart shows, written above it.
        x_label: Name of the axis, written below it.

    Returns:
        An `<svg>` element that needs no page around it; each row is a group of class `line series-<number>`.

    Example:
        >>> svg = dot_chart([Dot("spigot", 84.5, 83.0, 86.0, 0)], title="LF in domain", x_label="LF, per cent")
        >>> svg.startswith("<svg"), ">84.50<" in svg, ">LF in domain<" in svg
        (True, True, True)
    """
    names = {dot.name: shorten(visible(dot.name), _LETTERS) for dot in dots}
    left = min(_NAMES, max((13 * ems(name) for name in names.values()), default=0.0)) + _GAP
    axis = _axis(dots, left + 6, _WIDTH - _VALUE - _GAP)
    bottom = _TOP + _ROW * len(dots)
    drawn = [f'<text x="0" y="16" font-size="15" font-weight="700">{escape(visible(title))}</text>']
    for tick in axis.ticks(_TICKS):
        x = axis.place(tick)
        drawn.append(f'<path d="M{x} {_TOP - 8}V{bottom}" stroke="var(--line, #dde1ea)"/>')
        drawn.append(_small(x, bottom + 16, axis.text(tick, _TICKS)))
    drawn.append(_small((axis.left + axis.right) / 2, bottom + 35, escape(x_label)))
    drawn += [_row(dot, names[dot.name], axis, _TOP + _ROW * k + _ROW / 2 - 4) for k, dot in enumerate(dots)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + _FOOT}" role="img" '
        f'aria-label="{escape(visible(title))}" font-family="system-ui, sans-serif" font-size="13" '
        f'fill="var(--ink, #1c2230)">{"".join(drawn)}</svg>'
    )


def _axis(dots: Sequence[Dot], left: float, right: float) -> Axis:
    values = [v for dot in dots for v in (dot.value, dot.low, dot.high, *dot.each) if v is not None] or [0.0]
    margin = 0.04 * (max(values) - min(values)) or 1.0
    return Axis(min(values) - margin, max(values) + margin, left, right)


def _row(dot: Dot, name: str, axis: Axis, y: float) -> str:
    shade, x = colour(dot.series), axis.place(dot.value)
    said = f"{dot.name}: {dot.value:.2f}"
    line = ""
    if dot.low is not None and dot.high is not None:
        said += f", {dot.low:.1f} to {dot.high:.1f}"
        ends = axis.place(dot.low), axis.place(dot.high)
        caps = "".join(f"M{end} {y - 4:g}v8" for end in ends)
        line = f'<path d="M{ends[0]} {y:g}H{ends[1]}{caps}" stroke="{shade}" stroke-width="2"/>'
    seeds = "".join(
        f'<circle cx="{axis.place(value)}" cy="{y:g}" r="2.5" fill="var(--card, #fff)" stroke="{shade}"/>'
        for value in dot.each
        if len(dot.each) > 1
    )
    return (
        f'<g class="line series-{dot.series}"><title>{escape(visible(said))}</title>'
        f'<text x="0" y="{y + 4:g}">{escape(name)}</text>{line}'
        f'<circle cx="{x}" cy="{y:g}" r="5.5" fill="{shade}"/>{seeds}'
        f'<text x="{_WIDTH}" y="{y + 4:g}" text-anchor="end" font-weight="600">{dot.value:.2f}</text></g>'
    )


def _small(x: float, y: float, text: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle" font-size="12" fill="var(--muted, #5d6575)">{text}</text>'
