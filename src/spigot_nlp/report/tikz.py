r"""Drawings as TikZ, for papers.

The result needs TikZ and its library `arrows.meta` only. Words beyond Latin script need LuaLaTeX or XeLaTeX and a font
that has them; a file that does says so in its first line.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from spigot_nlp.report.drawings import Drawing, DrawnArc, caption, marks_of, small_text
from spigot_nlp.report.glyphs import ems, visible
from spigot_nlp.report.layout import Layout, Line, Metrics, Span, layout
from spigot_nlp.report.marks import Mark

# In points: sizes of letters, and the measures of arcs.
_WORD, _TAG, _LABEL = 11.0, 7.5, 8.0
_METRICS = Metrics(gap=9, port=5.5, spread=8, room=15, widest=170)
_FIRST, _STEP, _TALLEST = 18.0, 14.0, 400.0
_ROW = _TAG + 3  # of what is written small under the words
_LARGEST = 12_000.0  # TeX knows no length beyond 16,383 points

_COLOURS: dict[Mark, str] = {
    "plain": "1C2230",
    "right": "0B7A75",
    "wrong": "C2410C",
    "missed": "2563EB",
    "new": "7C3AED",
    "gone": "5D6575",
}
_LINES: dict[Mark, str] = {
    "plain": "line width=.8pt",
    "right": "line width=.8pt",
    "wrong": "line width=1.1pt, dash pattern=on 4pt off 2pt",
    "missed": "line width=1.1pt, line cap=round, dash pattern=on 0pt off 2.4pt",
    "new": "line width=1.7pt",
    "gone": "line width=.6pt, dash pattern=on 2pt off 2pt",
}
_OPEN: tuple[Mark, ...] = ("missed", "gone")
_SIGNS: dict[Mark, str] = {
    "plain": "",
    "right": "",
    "wrong": r"$\times$",
    "missed": r"$\circ$",
    "new": "$+$",
    "gone": "$-$",
}
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    '"': r"\textquotedbl{}",
    "…": r"\ldots{}",
    "∅": r"$\emptyset$",
    "−": "$-$",
    "→": r"$\rightarrow$",
    "\u25cc": r"$\circ$",
    "\ufffd": r"$\diamond$",  # LuaTeX takes the character itself for a fault of the file
    **{chr(0x2400 + code): rf"\textbackslash{{}}x{code:02x}" for code in range(0x20)},
    "\u2421": r"\textbackslash{}x7f",
    **{character: f"\\{character}" for character in "{}$&#_%"},
}
_LIGATURES = frozenset("-,<>!?")  # two of them would become another sign
# What pdfLaTeX has beyond Latin-1 and the first block after it, and what it lacks of that.
_QUOTES = frozenset("\u2013\u2014\u2018\u2019\u201a\u201c\u201d\u201e\u2022\u20ac\u2122")
_LACKING = frozenset("ĦħĸĿŀŉŦŧſ")


def tikz(drawing: Drawing, *, standalone: bool = True) -> str:
    r"""A drawing as TeX source.

    Args:
        drawing: What to draw.
        standalone: Whether to write a whole file, or else only the `tikzpicture`, for a document that has
            `\usepackage{tikz}` and `\usetikzlibrary{arrows.meta}`.

    Returns:
        The source. Sentences so long that TeX has no lengths for them are drawn smaller.

    Example:
        >>> source = tikz(Drawing(("50_%", "off"), above=(DrawnArc(2, 1, "ARG1"),)))
        >>> source.splitlines()[0], r"{50\_\%}" in source
        ('\\documentclass[border=4pt]{standalone}', True)
    """
    picture = "\n".join(_picture(drawing))
    if not standalone:
        return f"{picture}\n"
    hint = (
        [] if _is_latin(picture) else ["% !TeX program = lualatex (with \\setsansfont for a font that has the letters)"]
    )
    return "\n".join(
        (
            *hint,
            r"\documentclass[border=4pt]{standalone}",
            r"\usepackage{iftex}",
            r"\ifPDFTeX",
            r"  \usepackage[T1]{fontenc}",
            r"  \usepackage[utf8]{inputenc}",
            r"  \usepackage{textcomp}",
            r"\else",
            r"  \usepackage{fontspec}",
            r"\fi",
            r"\usepackage{tikz}",
            r"\usetikzlibrary{arrows.meta}",
            r"\begin{document}",
            picture,
            r"\end{document}",
            "",
        )
    )


def escape(text: str) -> str:
    r"""A text for TeX, in which every character stands for itself.

    Example:
        >>> print(escape("100% of {A_1}, ''so''--"))
        100\% of \{A\_1\}, \textquotesingle{}\textquotesingle{}so\textquotesingle{}\textquotesingle{}-{}-
    """
    shown = visible(text) if text else ""
    pieces = []
    for here, following in zip(shown, f"{shown[1:]} ", strict=False):
        pieces.append(_SPECIAL.get(here, here))
        if here in _LIGATURES and following in _LIGATURES:
            pieces.append("{}")
    return "".join(pieces)


def _is_latin(text: str) -> bool:
    """Whether pdfLaTeX has every letter: those of the T1 encoding are most of the first two blocks beyond ASCII."""
    return all((character <= "\u017f" or character in _QUOTES) and character not in _LACKING for character in text)


def _picture(drawing: Drawing) -> Iterator[str]:
    layers = [(layer, _placed(layer)) for layer in drawing.layers]
    scale = min(1.0, _LARGEST / max(1.0, *(placed.width for _, placed in layers)))
    yield from _opening(drawing, scale)
    floor = 0.0
    for number, (layer, placed) in enumerate(layers):
        upper, lower = (_FIRST + _step(levels) * levels if levels else 0.0 for levels in placed.height)
        if number:
            floor -= upper + 3 * _WORD
            yield rf"  \begin{{scope}}[yshift={floor * scale:.1f}pt]"
        yield from _layer(layer, placed, scale)
        if number:
            yield r"  \end{scope}"
        floor -= lower + _ROW * len(layer.small)
    if drawing.note:
        place = _point(0, floor - 2 * _WORD, scale)
        yield rf"  \node[tag, anchor=base west] at ({place}) {{{escape(drawing.note)}}};"
    yield r"\end{tikzpicture}"


def _placed(drawing: Drawing) -> Layout:
    widths = [ems(visible(word)) * _WORD for word in drawing.words]
    for row in drawing.small:
        widths = [max(width, ems(small_text(each)) * _TAG) for width, each in zip(widths, row, strict=True)]
    return layout(widths, _spans(drawing.above), _spans(drawing.below), _METRICS)


def _layer(drawing: Drawing, placed: Layout, scale: float) -> Iterator[str]:
    """One drawing without those beneath it."""
    predicates = frozenset(drawing.predicates)
    for number, (word, x) in enumerate(zip(drawing.words, placed.centres, strict=True), 1):
        style = "predicate" if number in predicates else "word"
        yield rf"  \node[{style}] at ({_point(x, 0, scale)}) {{{escape(word or '∅')}}};"
    rows = drawing.small
    for k, row in enumerate(rows):
        for each, x in zip(row, placed.centres, strict=True):
            sign = _SIGNS[each.mark]
            text = (rf"{sign}\," if sign else "") + escape(each.text)
            style = "tag" if each.mark == "plain" else f"tag, text=arc{each.mark}"
            yield rf"  \node[{style}] at ({_point(x, -_TAG - 2 - k * _ROW, scale)}) {{{text}}};"
    upper, lower = placed.height
    base = -_TAG - 6 - (len(rows) - 1) * _ROW if rows else -5.0
    yield from _side(drawing.above, placed.above, _WORD, _step(upper), scale)
    yield from _side(drawing.below, placed.below, base, -_step(lower), scale)
    far = (_WORD + _FIRST + _step(upper) * upper, base - _FIRST - _step(lower) * lower)
    for said, y in zip(drawing.captions, far, strict=True):
        if said:
            yield rf"  \node[tag, anchor=base west] at ({_point(0, y, scale)}) {{{escape(said)}}};"


def _opening(drawing: Drawing, scale: float) -> Iterator[str]:
    """Colours and styles, of those marks that occur."""
    marks = marks_of(drawing)
    yield from (rf"\definecolor{{arc{mark}}}{{HTML}}{{{_COLOURS[mark]}}}" for mark in marks)
    yield r"\begin{tikzpicture}[x=1pt, y=1pt,"
    yield f"  word/.style={{anchor=base, inner sep=0pt, {_font(_WORD * scale)}}},"
    yield f"  predicate/.style={{anchor=base, inner sep=0pt, {_font(_WORD * scale, bold=True)}}},"
    yield f"  tag/.style={{anchor=base, inner sep=0pt, text=black!60, {_font(_TAG * scale)}}},"
    yield f"  role/.style={{fill=white, inner sep={1.5 * scale:.2f}pt, {_font(_LABEL * scale)}}},"
    for mark in marks:
        tip = f"Stealth[length={5 * scale:.2f}pt, width={4.5 * scale:.2f}pt{', open' if mark in _OPEN else ''}]"
        corners = f"rounded corners={5 * scale:.2f}pt"
        yield f"  {mark} arc/.style={{draw=arc{mark}, {_LINES[mark]}, {corners}, -{{{tip}}}}},"
    yield "]"


def _font(size: float, *, bold: bool = False) -> str:
    weight = r"\bfseries" if bold else ""
    return rf"font=\sffamily{weight}\fontsize{{{size:.2f}pt}}{{{size:.2f}pt}}\selectfont"


def _side(arcs: Sequence[DrawnArc], lines: Sequence[Line], base: float, step: float, scale: float) -> Iterator[str]:
    """The arcs of one side, the highest first: labels cover the legs that pass behind them."""
    out = 1 if step > 0 else -1
    for arc, place in sorted(zip(arcs, lines, strict=True), key=lambda pair: (-pair[1].level, pair[0].end)):
        far = base + out * _FIRST + step * (place.level - 1)
        turns = [(place.start, far)] if arc.start == 0 else [(place.start, base), (place.start, far), (place.end, far)]
        path = " -- ".join(f"({_point(x, y, scale)})" for x, y in (*turns, (place.end, base)))
        yield rf"  \draw[{arc.mark} arc] {path};"
        if written := _written(arc):
            middle = _point(place.label, far + (4 * out if arc.start == 0 else 0), scale)
            yield rf"  \node[role, text=arc{arc.mark}] at ({middle}) {{{written}}};"


def _written(arc: DrawnArc) -> str:
    label = escape(caption(replace(arc, mark="plain")))
    return r"\,".join(filter(None, (_SIGNS[arc.mark], label)))


def _spans(arcs: Iterable[DrawnArc]) -> list[Span]:
    return [Span(arc.start, arc.end, ems(caption(arc)) * _LABEL if arc.start else 0.0) for arc in arcs]


def _step(levels: int) -> float:
    return min(_STEP, (_TALLEST - _FIRST) / max(1, levels - 1))


def _point(x: float, y: float, scale: float) -> str:
    return f"{x * scale:.1f},{y * scale:.1f}"
