"""What the marks of arcs mean and how they look: by weight, dashes, arrowheads and signs, and last by colour."""

from typing import Literal, TypeAlias

from spigot.report.figures import colour, theme

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
        f".arcs .tag{{font-size:{TAG}px;fill:var(--muted,#5d6575)}}",
        ".arcs .arc{outline:0;transition:opacity .12s}",
        ".arcs .arc path{fill:none;stroke:var(--c);stroke-width:1.5}",
        ".arcs .arc path.h{fill:var(--c);stroke-width:1.2;stroke-dasharray:none;stroke-linejoin:round}",
        ".arcs .arc path.x{stroke:transparent;stroke-width:15;stroke-dasharray:none;stroke-linecap:round}",
        f".arcs .arc text{{font-size:{LABEL}px;fill:var(--c);stroke:var(--ground);stroke-width:6;"
        "stroke-linejoin:round;paint-order:stroke}",
        *(f".arcs .{mark}{{--c:{_COLOURS[mark]}}}" for mark in SIGNS),
        *(f".arcs .{mark} path{{{rule}}}" for mark, rule in _STROKES.items() if rule),
        *(f".arcs .{mark} path.h{{fill:var(--ground)}}" for mark in _OPEN),
        ".arcs:has(.arc:is(:hover,:focus-visible)) .arc:not(:hover,:focus-visible){opacity:.28}",
        ".arcs .arc:is(:hover,:focus-visible) text{font-weight:700}",
        ".arcs .arc:is(:hover,:focus-visible) path.x{stroke:var(--c);stroke-opacity:.13}",
        ".arcs-legend{display:flex;flex-wrap:wrap;gap:.2em 1.4em}",
        ".arcs-legend span{display:inline-flex;align-items:center;gap:.4em}",
    )
)
"""The style sheet of drawings. Each of them carries it; a page that forbids that can have it in its own."""


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
