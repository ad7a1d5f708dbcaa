"""What the marks of arcs mean and how they look: by weight, dashes, arrowheads and signs, and last by colour.

Beside its mark, an arc may be held: forced into a structure, or forbidden. That is another matter than how it compares,
so it shows in another way: a forced arc is a double line with a lock on it, a forbidden one has a sign of no entry.
"""

from typing import Literal, TypeAlias

from spigot_nlp.report.figures import colour, theme

Mark: TypeAlias = Literal["plain", "right", "wrong", "missed", "new", "gone"]
"""What an arc is compared with something else. `plain`: there is nothing to compare with. `right`, `wrong`, `missed`:
predicted and gold, predicted only, gold only. `new`, `gone`: only after and only before."""

SIGNS: dict[Mark, str] = {"plain": "", "right": "", "wrong": "✗", "missed": "○", "new": "+", "gone": "−"}
"""What stands before the label of an arc, so that nobody must tell marks by colour."""

MEANINGS: dict[Mark, str] = {
    "plain": "found",
    "right": "found, and right",
    "wrong": "found, but wrong",
    "missed": "right, but not found",
    "new": "new: not there before",
    "gone": "gone: only there before",
}
"""What each mark means, in words."""


Held: TypeAlias = Literal["", "forced", "forbidden"]
"""What a reader demanded of an arc, if anything."""

DEMANDS: dict[Held, str] = {"forced": "forced: must be there", "forbidden": "forbidden: must not be there"}
"""What each demand means, in words."""

SIGN = 13
"""Width of the sign of a held arc, in pixels."""

_SHAPES: dict[Held, str] = {
    "forced": '<path class="b" d="M-4.5-1h9v6.5h-9z"/><path d="M-2.8-1v-1.7a2.8 2.8 0 0 1 5.6 0v1.7"/>',
    "forbidden": '<path d="M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0M-3.4 3.4L3.4-3.4"/>',
}

WORD, TAG, LABEL = 15, 10.5, 11
"""Sizes of the letters of words, of what stands under them and of what stands on arcs, in pixels."""

_COLOURS: dict[Mark, str] = {
    "plain": "var(--ink, #1c2230)",
    "right": colour(1),
    "wrong": colour(3),
    "missed": colour(5),
    "new": colour(4),
    "gone": "var(--muted, #5d6575)",
}
# Beside their colours, marks differ in weight, dashes and arrowheads.
_STROKES: dict[Mark, str] = {
    "plain": "",
    "right": "",
    "wrong": "stroke-width:2;stroke-dasharray:7 3",
    "missed": "stroke-width:1.9;stroke-dasharray:.1 4;stroke-linecap:round",
    "new": "stroke-width:3",
    "gone": "stroke-width:1.1;stroke-dasharray:3 3",
}
_OPEN: tuple[Mark, ...] = ("missed", "gone")

STYLE = "".join(
    (
        "svg.arcs{font-family:system-ui,sans-serif;--ground:var(--card,#fff)}",
        ".arcs text{text-anchor:middle;unicode-bidi:plaintext;fill:var(--ink,#1c2230)}",
        f".arcs .word{{font-size:{WORD}px}}.arcs .predicate{{font-weight:650}}",
        f".arcs .tag{{font-size:{TAG}px;fill:var(--muted,#5d6575)}}.arcs .marked{{fill:var(--c)}}",
        ".arcs .side{text-anchor:start;font-weight:650}",
        ".arcs .arc{outline:0;transition:opacity .12s}",
        ".arcs .arc path{fill:none;stroke:var(--c);stroke-width:1.5}",
        ".arcs .arc path.h{fill:var(--c);stroke-width:1.2;stroke-dasharray:none;stroke-linejoin:round}",
        ".arcs .arc path.x{stroke:transparent;stroke-width:15;stroke-dasharray:none;stroke-linecap:round}",
        f".arcs .arc text{{font-size:{LABEL}px;fill:var(--c);stroke:var(--ground);stroke-width:6;"
        "stroke-linejoin:round;paint-order:stroke}",
        *(f".arcs .{mark}{{--c:{_COLOURS[mark]}}}" for mark in SIGNS),
        *(f".arcs .{mark} path{{{rule}}}" for mark, rule in _STROKES.items() if rule),
        *(f".arcs .{mark} path.h{{fill:var(--ground)}}" for mark in _OPEN),
        ".arcs .forced path:not([class]){stroke-width:5.5;stroke-dasharray:none}",
        ".arcs .arc path.i{stroke:var(--ground);stroke-width:2.2;stroke-dasharray:none}",
        ".arcs .k rect{fill:var(--ground)}.arcs .arc .k path{stroke-width:1.7;stroke-dasharray:none}",
        ".arcs .arc .k path.b{fill:var(--c)}",
        ".arcs:has(.arc:is(:hover,:focus-visible)) .arc:not(:hover,:focus-visible){opacity:.28}",
        ".arcs .arc:is(:hover,:focus-visible) text{font-weight:700}",
        ".arcs .arc:is(:hover,:focus-visible) path.x{stroke:var(--c);stroke-opacity:.13}",
        ".arcs-legend{display:flex;flex-wrap:wrap;gap:.2em 1.4em}",
        ".arcs-legend span{display:inline-flex;align-items:center;gap:.4em}",
    )
)
"""The style sheet of drawings. Each of them carries it; a page that forbids that can have it in its own."""


def held_sign(held: Held, x: float, y: float) -> str:
    """A lock for what is forced, a sign of no entry for what is forbidden, to be put into the drawing of an arc.

    Args:
        held: Which.
        x: Its middle.
        y: Its middle.

    Example:
        >>> held_sign("forced", 10, 20).startswith('<g class="k" transform="translate(10 20)">')
        True
    """
    ground = '<rect x="-7" y="-7" width="14" height="14"/>'
    return f'<g class="k" transform="translate({x:g} {y:g})">{ground}{_SHAPES[held]}</g>'


def sign(held: Held) -> str:
    """The sign of a held arc by itself, for texts that speak of it.

    Example:
        >>> sign("forced").startswith('<svg class="arcs sign"')
        True
    """
    return (
        '<svg class="arcs sign" width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true"><g class="arc plain">'
        f'<g class="k">{_SHAPES[held]}</g></g></svg>'
    )


def own_colours() -> str:
    """The rules that a picture needs where no page gives it colours: those of a light or a dark reader.

    Example:
        >>> "prefers-color-scheme:dark" in own_colours()
        True
    """
    names = ("--card", "--ink", "--muted", *(f"--series-{i}" for i in (1, 3, 4, 5)))
    themes = (theme(dark=False), theme(dark=True))
    rules = [f"svg.arcs{{{';'.join(f'{name}:{values[name]}' for name in names)}}}" for values in themes]
    return (
        f"{rules[0]}@media (prefers-color-scheme:dark){{{rules[1]}}}.arcs .ground{{fill:var(--card)}}"
        ".arcs .key{font-size:12px;text-anchor:start;fill:var(--muted)}"
    )
