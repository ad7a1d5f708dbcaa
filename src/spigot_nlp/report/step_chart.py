"""A chart of what an estimator did to parts of a structure: the step it took, and where it ended."""

import math
from collections.abc import Iterable, Sequence
from html import escape

from spigot_nlp.data.sentence import Arc
from spigot_nlp.models.trace import PartTrace, SentenceTrace
from spigot_nlp.report.axis import Axis
from spigot_nlp.report.figures import colour
from spigot_nlp.report.glyphs import shorten, visible

_WIDTH, _ROW, _LEFT, _RIGHT, _TOP, _FOOT = 440, 22, 160, 12, 50, 46
_LETTERS, _TICKS = 20, 5
_TOUCHED = 0.2  # of the largest change; what is smaller is not worth a line


def parts_of(told: SentenceTrace, chosen: Sequence[Arc]) -> list[PartTrace]:
    """The accounts of some parts; those the estimator never touched are all zeros.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> parts_of(SentenceTrace(Sentence(("a", "b")), 0.1, "", ()), [Arc(2, 1, "")])[0].z
        0.0
    """
    by_arc = {part.part: part for part in told.parts}
    return [by_arc.get(arc, PartTrace(arc, 0.0, 0.0, 0.0, 0.0, 0.0)) for arc in chosen]


def moves(parts: Iterable[PartTrace]) -> list[float]:
    """How far the step and the projection lead away from where the parts were.

    Example:
        >>> moves([PartTrace(Arc(2, 1, ""), z=1.0, grad=0.5, stepped=0.5, projected=0.75, gradient=0.25)])
        [-0.5, -0.25]
    """
    return [value - part.z for part in parts for value in (part.stepped, part.projected)]


def touched(told: Iterable[SentenceTrace]) -> float:
    """The smallest change that counts as one, beside the largest that these accounts have.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> part = PartTrace(Arc(2, 1, ""), z=1.0, grad=0.5, stepped=0.5, projected=0.75, gradient=0.25)
        >>> touched([SentenceTrace(Sentence(("a", "b")), 0.1, "", (part,))])
        0.1
    """
    parts = [part for each in told for part in each.parts]
    most = max((abs(value) for value in (*moves(parts), *(part.gradient for part in parts))), default=0.0)
    return max(_TOUCHED * most, 1e-12)


def step_chart(told: SentenceTrace, chosen: Sequence[Arc], *, title: str, others: Sequence[SentenceTrace] = ()) -> str:
    """Parts of a structure, each on its line: how far the step went from where it was, and where it ended.

    The axis spans the changes that there are, however small. Where a value would be below 0 or above 1 the line is
    shaded: no structure is there.

    Args:
        told: What the estimator did.
        chosen: The parts to draw.
        title: What the chart shows, written above it.
        others: What other estimators did to the same parts; their charts have the same axis.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> part = PartTrace(Arc(2, 1, ""), 1.0, 0.5, 0.5, 0.75, 0.25)
        >>> told = SentenceTrace(Sentence(("Rain", "fell")), 0.1, "", (part,))
        >>> picture = step_chart(told, [part.part], title="spigot")
        >>> picture.startswith("<svg"), "fell → Rain" in picture, ">spigot<" in picture
        (True, True, True)
    """
    parts = parts_of(told, chosen)
    if not any(moves(parts)):
        return "<p>It takes no step here; what it sends back is in the table.</p>"
    reach = [0.0, *moves(parts), *(move for other in others for move in moves(parts_of(other, chosen)))]
    margin = 0.06 * (max(reach) - min(reach))
    axis = Axis(min(reach) - margin, max(reach) + margin, _LEFT, _WIDTH - _RIGHT)
    bottom = _TOP + _ROW * len(parts)
    drawn = [f'<text x="0" y="15" font-size="14" font-weight="700">{escape(title)}</text>']
    drawn += [_outside(part, axis, _TOP + _ROW * row) for row, part in enumerate(parts)]
    for tick in axis.ticks(_TICKS):
        x = axis.place(tick)
        drawn.append(f'<path d="M{x} {_TOP - 6}V{bottom}" stroke="var(--{"muted" if tick == 0 else "line"}, #bbb)"/>')
        drawn.append(_small(x, bottom + 16, "0" if tick == 0 else axis.text(tick, _TICKS)))
    drawn.append(_small((axis.left + axis.right) / 2, bottom + 35, "change of a part's value (ẑ is 0 on this axis)"))
    drawn += [_line(told, part, axis, _TOP + _ROW * row + _ROW / 2) for row, part in enumerate(parts)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + _FOOT}" role="img" '
        f'aria-label="{escape(title)}: {len(parts)} parts" font-family="system-ui, sans-serif" font-size="12.5" '
        f'fill="var(--ink, #1c2230)">{_legend()}{"".join(drawn)}</svg>'
    )


def _legend() -> str:
    """What the signs are, in a line below the title."""
    y, parts = 32, []
    for x, sign, name in (
        (6, _disc(6, y, 1.0), "in ẑ"),
        (56, _disc(56, y, 0.0), "not in ẑ"),
        (126, _cross(126, y), "step p\u0302"),
        (194, _diamond(194, y), "result z\u0303"),
        (272, f'<rect x="264" y="{y - 6}" width="16" height="12" fill="{_SHADE}"/>', "outside 0 to 1"),
    ):
        parts.append(
            f'{sign}<text x="{x + 12}" y="{y + 4}" font-size="11.5" fill="var(--muted, #5d6575)">{name}</text>'
        )
    return "".join(parts)


_SHADE = "color-mix(in srgb, var(--muted, #5d6575) 20%, transparent)"


def _outside(part: PartTrace, axis: Axis, y: float) -> str:
    """What lies below 0 and above 1, as far as the axis shows it."""
    ends = [(axis.low, min(-part.z, axis.high)), (max(1 - part.z, axis.low), axis.high)]
    return "".join(
        f'<rect x="{axis.place(start)}" y="{y + 1}" width="{axis.place(end) - axis.place(start):.1f}" '
        f'height="{_ROW - 2}" fill="{_SHADE}"/>'
        for start, end in ends
        if end > start
    )


def _line(told: SentenceTrace, part: PartTrace, axis: Axis, y: float) -> str:
    start, step, home = (axis.place(value - part.z) for value in (part.z, part.stepped, part.projected))
    said = f"{part_name(told, part)}: from {part.z:g} to {part.stepped:.4g}, then {part.projected:.4g}"
    return (
        f"<g><title>{escape(said)}</title>"
        f'<text x="{_LEFT - 12}" y="{y + 4:g}" text-anchor="end">{escape(part_name(told, part, _LETTERS))}</text>'
        f'<path d="M{axis.left:g} {y:g}H{axis.right:g}" stroke="var(--line, #dde1ea)"/>'
        f'<path d="M{start} {y - 3:g}H{step}" stroke="{colour(3)}" stroke-width="2"/>'
        f'<path d="M{start} {y + 3:g}H{home}" stroke="{colour(1)}" stroke-width="3"/>'
        f"{_disc(start, y, part.z)}{_cross(step, y - 3)}{_diamond(home, y + 3)}</g>"
    )


def _disc(x: float, y: float, z: float) -> str:
    ground = "var(--ink, #1c2230)" if z > 0.5 else "var(--card, #fff)"
    return f'<circle cx="{x:g}" cy="{y:g}" r="4.5" fill="{ground}" stroke="var(--ink, #1c2230)" stroke-width="1.5"/>'


def _cross(x: float, y: float) -> str:
    return f'<path d="M{x - 3.5:g} {y - 3.5:g}l7 7m0-7l-7 7" stroke="{colour(3)}" stroke-width="2" fill="none"/>'


def _diamond(x: float, y: float) -> str:
    return f'<path d="M{x:g} {y - 4.5:g}l4.5 4.5-4.5 4.5-4.5-4.5z" fill="{colour(1)}"/>'


def _small(x: float, y: float, text: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle" font-size="11" fill="var(--muted, #5d6575)">{text}</text>'


def part_name(told: SentenceTrace, part: PartTrace, longest: int | None = None) -> str:
    """A part in words: its arc, that a word is a predicate, or what was chosen for a word or for the sentence.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> part = PartTrace(Arc(2, 1, ""), 1.0, 0.5, 0.5, 0.75, 0.25)
        >>> part_name(SentenceTrace(Sentence(("Rain", "fell")), 0.1, "", ()), part)
        'fell → Rain'
    """
    start, end, role = part.part
    forms = tuple(map(visible, told.sentence.forms))
    if start == end:
        word = forms[end - 1] if end else "the sentence"
        name = f"{word}: {visible(role)}" if role else f"{word} is a predicate"
    else:
        name = f"{forms[start - 1] if start else 'root'} → {forms[end - 1]}{f': {visible(role)}' if role else ''}"
    return name if longest is None else shorten(name, longest)


def written(value: float, largest: float) -> str:
    """A number with as many digits as show changes of this size.

    Example:
        >>> written(0.98765, 0.0123), written(-0.5, 1.0), written(1.0, 0.0123)
        ('0.9877', '−0.50', '1')
    """
    digits = 2 if largest <= 0 else min(max(2, 2 - math.floor(math.log10(largest))), 6)
    text = f"{value:.{digits}f}"
    if float(text) in (0.0, 1.0):
        text = f"{float(text):.0f}".lstrip("-")
    return text.replace("-", "−")
