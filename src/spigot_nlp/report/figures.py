"""Charts as SVG text whose colours follow the page around them.

A chart is drawn once, in placeholder colours that are then replaced by CSS variables with a fallback. On a page that
defines the variables it follows the reader's theme; anywhere else it keeps the fallbacks.
"""

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SERIES = (
    ("#3a3f4b", "#d8dce6"),
    ("#0b7a75", "#4fd1c5"),
    ("#5b8c1a", "#a3d65c"),
    ("#c2410c", "#fb923c"),
    ("#7c3aed", "#c4a7ff"),
    ("#2563eb", "#7fb0ff"),
    ("#db2777", "#ff8fc2"),
    ("#8a8f9c", "#8a8f9c"),
    ("#a16207", "#facc15"),
    ("#0e7490", "#67e8f9"),
)
"""Colours of the first, second, ... series: on a light and on a dark page."""

_LETTERS = 64  # names of curves that fit into one line of a chart
_GROUNDS = {"page": ("#f5f6f9", "#11141a"), "card": ("#ffffff", "#1a1f29")}
_ROLES = {"ink": ("#1c2230", "#e8ebf2"), "muted": ("#5d6575", "#a2abbd"), "line": ("#dde1ea", "#333a49")}


def theme(dark: bool) -> dict[str, str]:
    """The CSS variables of a light or a dark page, and of the figures on it.

    Example:
        >>> theme(dark=False)["--ink"], theme(dark=True)["--ink"]
        ('#1c2230', '#e8ebf2')
    """
    variables = {f"--{role}": pair[dark] for role, pair in (_GROUNDS | _ROLES).items()}
    return variables | {f"--series-{i}": pair[dark] for i, pair in enumerate(SERIES)}


def colour(index: int) -> str:
    """The CSS colour of a series; colours come round again when there are more series than colours.

    Example:
        >>> colour(1)
        'var(--series-1, #0b7a75)'
    """
    index %= len(SERIES)
    return f"var(--series-{index}, {SERIES[index][0]})"


@dataclass(frozen=True)
class Curve:
    """A line of a chart.

    Attributes:
        name: Read out when the pointer rests on the line.
        x: Where it was measured.
        mean: The line.
        spread: Half the height of the band around it.
        series: Its colour and its identity: the same number in another chart or table means the same thing.
        dashed: For bounds and floors.

    Example:
        >>> Curve("SPIGOT", [1, 2], [0.5, 0.75], [0.0, 0.1], series=0).dashed
        False
    """

    name: str
    x: Sequence[float]
    mean: Sequence[float]
    spread: Sequence[float]
    series: int
    dashed: bool = False


def curves(lines: Sequence[Curve], *, title: str, x_label: str, y_label: str, key: str, shares: bool = True) -> str:
    """Learning curves, of shares between 0 and 1 shown in per cent or of any other numbers.

    Args:
        lines: The curves, drawn in order.
        title: What the chart shows, written above it, with the names of the curves below.
        x_label: Name of the horizontal axis.
        y_label: Name of the vertical axis, written above it.
        key: Prefix of the element names, unique on a page.
        shares: Whether the numbers are shares.

    Returns:
        An `<svg>` element; each curve is a group of class `series-<number>`.

    Example:
        >>> line = Curve("a", [0, 1], [0.5, 0.9], [0.1, 0.05], 0)
        >>> svg = curves([line], title="Learning", x_label="epoch", y_label="accuracy", key="k")
        >>> svg.startswith("<svg"), ">Learning<" in svg, "var(--series-0" in svg, "http://www.w3.org/1999/xlink" in svg
        (True, True, True, False)
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    placeholders = {f"#fe{i:02x}01": colour(i) for i in range(len(SERIES))}
    roles = {f"#fd{i:02x}01": f"var(--{role}, {pair[0]})" for i, (role, pair) in enumerate(_ROLES.items())}
    series, (ink, muted, line_colour) = tuple(placeholders), tuple(roles)

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": key, "font.size": 11, "font.family": "sans-serif"}):
        columns = max(1, _LETTERS // (5 + max((len(line.name) for line in lines), default=0)))
        top = 0.56 + 0.22 * -(-len(lines) // columns)  # the title, the names and the name of the axis, in inches
        height = 2.95 + top
        figure = Figure(figsize=(5.2, height))
        FigureCanvasSVG(figure)
        axes = figure.add_axes((0.105, 0.45 / height, 0.88, 2.5 / height))
        figure.patch.set_visible(False)
        axes.patch.set_visible(False)
        for line in lines:
            _draw_curve(axes, line, series[line.series % len(series)], key, most=1.0 if shares else math.inf)
        if shares:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _calm(axes, line_colour, muted)
        axes.set_xlabel(x_label, color=muted, parse_math=False)
        figure.text(0.004, 1 - 0.17 / height, title, color=ink, fontweight="bold", fontsize=12, parse_math=False)
        figure.text(0.004, 1 - (top - 0.12) / height, y_label, color=muted, parse_math=False)
        _name_curves(figure, lines, [series[line.series % len(series)] for line in lines], muted, columns)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})

    svg = _inline(text.getvalue(), placeholders | roles, key)
    svg = svg.replace(' role="img">', f' role="img" aria-label="{escape(title)}">', 1)
    for line in lines:
        for part in ("band", "line"):
            name = f'<g id="{key}-{part}-{line.series}">'
            title = f"<title>{escape(line.name, quote=False)}</title>" if part == "line" else ""
            svg = svg.replace(name, f'<g class="{part} series-{line.series}">{title}')
    return svg


def _name_curves(figure: "Figure", lines: Sequence[Curve], shades: Sequence[str], ink: str, columns: int) -> None:
    """What the curves are called, below the title, so that a chart by itself can be read."""
    from matplotlib.lines import Line2D

    strokes = [
        Line2D([], [], color=shade, linewidth=2.4, linestyle=_stroke(line))
        for line, shade in zip(lines, shades, strict=True)
    ]
    legend = figure.legend(
        strokes,
        [line.name for line in lines],
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - 0.24 / figure.get_figheight()),
        ncols=columns,
        frameon=False,
        fontsize=10,
        labelcolor=ink,
        handlelength=1.3,
        columnspacing=1.3,
        borderpad=0.0,
        borderaxespad=0.0,
        labelspacing=0.35,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _stroke(curve: Curve) -> Literal["-"] | tuple[float, tuple[float, float]]:
    return (0, (4, 2.5)) if curve.dashed else "-"


def _draw_curve(axes: "Axes", curve: Curve, shade: str, key: str, most: float) -> None:
    """A line and the band around it, which ends at 0 and at the most that there can be."""
    low = [max(0.0, m - s) for m, s in zip(curve.mean, curve.spread, strict=True)]
    high = [min(most, m + s) for m, s in zip(curve.mean, curve.spread, strict=True)]
    band = axes.fill_between(curve.x, low, high, color=shade, alpha=0.1, linewidth=0)
    band.set_gid(f"{key}-band-{curve.series}")
    (path,) = axes.plot(
        curve.x,
        curve.mean,
        color=shade,
        linewidth=1.9,
        linestyle=_stroke(curve),
        marker="o" if len(curve.x) == 1 else None,
        markersize=4,
    )
    path.set_gid(f"{key}-line-{curve.series}")


def _calm(axes: "Axes", line_colour: str, muted: str) -> None:
    """No frame and no ticks: a base line, thin lines to read values by, and numbers."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(line_colour)
    axes.grid(axis="y", color=line_colour, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=muted, pad=6)
    axes.margins(x=0.01, y=0.05)


def _inline(svg: str, colours: dict[str, str], key: str) -> str:
    """A matplotlib file as an element of a page: no preamble, no fixed size, no names that could clash."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    start = r'<svg xmlns="http://www.w3.org/2000/svg" \1 role="img">'
    svg = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', start, svg, count=1)
    svg = svg.replace("xlink:href", "href")
    svg = re.sub(r'(id="|href="#|url\(#)(?!' + re.escape(key) + ")", rf"\g<1>{key}-", svg)
    for placeholder, variable in colours.items():
        svg = svg.replace(placeholder, variable)
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # its rules would hold for the whole page
    # The page's font instead of the drawing program's list. Older versions write one `font` property.
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)
    svg = re.sub(r"font: ([^;\"']*?\d+px) [^;\"]*", r"font: \1 system-ui, sans-serif", svg)
    return re.sub(r">\s+<", "><", svg).strip()
