"""A sentence with its arcs, as in Figure 2 of the paper: the semantic graph above the words, the tree below.

`drawing` turns sentences into a `Drawing`, which holds what is drawn and nothing of how; `svg` makes a picture of it,
`spigot.report.tikz.tikz` a TeX file and `spigot.report.terminal.text` lines for a terminal.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import TypeAlias, get_args

from spigot.data.sentence import Sentence
from spigot.report.glyphs import ems, shorten, visible
from spigot.report.layout import LONGEST, Layout, Line, Metrics, Span, layout
from spigot.report.marks import LABEL, MEANINGS, SIGNS, STYLE, TAG, WORD, Mark, own_colours

__all__ = ["STYLE", "Drawing", "DrawnArc", "Mark", "caption", "describe", "drawing", "legend", "marks_of", "svg"]


@dataclass(frozen=True, slots=True)
class DrawnArc:
    """An arc of a drawing.

    Attributes:
        start: The word it leaves, counted from 1; 0 for the root or a top, a short arrow from above.
        end: The word it points at.
        label: What is written on it.
        mark: How it compares.
        note: What is shown when it is pointed at, for example its score.

    Example:
        >>> DrawnArc(2, 1, "ARG1").mark
        'plain'
    """

    start: int
    end: int
    label: str = ""
    mark: Mark = "plain"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is to be drawn.

    Attributes:
        words: The words.
        above: The arcs above them: a semantic graph.
        below: The arcs below them: a syntactic tree.
        tags: What is written small under each word; empty for nothing.
        predicates: The words that are written bold, counted from 1.

    Raises:
        ValueError: If an arc does not join two of the words, or there are not as many tags as words.

    Example:
        >>> Drawing(("Rain", "fell"), below=(DrawnArc(2, 1, "nsubj"), DrawnArc(0, 2)), tags=("NN", "VBD")).tags
        ('NN', 'VBD')
    """

    words: tuple[str, ...]
    above: tuple[DrawnArc, ...] = ()
    below: tuple[DrawnArc, ...] = ()
    tags: tuple[str, ...] = ()
    predicates: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.words)
        for arc in (*self.above, *self.below):
            if not (0 <= arc.start <= count and 1 <= arc.end <= count and arc.start != arc.end):
                raise ValueError(
                    f"an arc goes from {arc.start} to {arc.end}; it must join two different ones of the {count} words, "
                    f"counted from 1, or start at 0 for the root."
                )
            if arc.mark not in SIGNS:
                raise ValueError(f"mark is {arc.mark!r}; it must be one of {', '.join(get_args(Mark))}.")
        if self.tags and len(self.tags) != count:
            raise ValueError(f"there are {len(self.tags)} tags for {count} words; give one for each word, or none.")


def drawing(
    sentence: Sentence,
    *,
    gold: Sentence | None = None,
    before: Sentence | None = None,
    notes: Mapping[tuple[str, int, int, str], str] | None = None,
) -> Drawing:
    """What a sentence looks like, by itself or compared.

    Heads of trees are compared without their labels, since the parsers here find none. With both `gold` and `before`,
    what changed is marked as new or gone, and its note says whether that was right.

    Args:
        sentence: What was found.
        gold: What would be right. A side that only one of the two has is not compared.
        before: What was found before, for example by the parser that the end task had not yet touched.
        notes: What to show when an arc is pointed at, by `("above" or "below", start, end, label)`.

    Returns:
        The drawing: the arcs of the sentence in their order, then those it lacks.

    Raises:
        ValueError: If the sentences are not the same words.

    Example:
        >>> found, right = Sentence(("Rain", "fell"), heads=(0, 1)), Sentence(("Rain", "fell"), heads=(2, 0))
        >>> [(arc.start, arc.end, arc.mark) for arc in drawing(found, gold=right).below]
        [(0, 1, 'wrong'), (1, 2, 'wrong'), (2, 1, 'missed'), (0, 2, 'missed')]
    """
    for name, other in (("gold", gold), ("before", before)):
        if other is not None and other.forms != sentence.forms:
            raise ValueError(f"{name} is {_words(other)} but the sentence is {_words(sentence)}; give the same words.")

    def side(name: str, arcs: Callable[[Sentence], list[_Arc] | None], labelled: bool) -> tuple[DrawnArc, ...]:
        found = arcs(sentence)
        if found is None:
            return ()
        right = None if gold is None else arcs(gold)
        earlier = None if before is None else arcs(before)
        marked = _compare(found, right, earlier, labelled)
        written = notes or {}
        return tuple(
            DrawnArc(*arc, mark, "\n".join(filter(None, (written.get((name, *arc), ""), remark))))
            for arc, mark, remark in marked
        )

    return Drawing(
        sentence.forms,
        above=side("above", _graph, True),
        below=side("below", _tree, False),
        tags=sentence.tags or (),
        predicates=sentence.graph.predicates if sentence.graph is not None else (),
    )


_Arc: TypeAlias = tuple[int, int, str]


def _words(sentence: Sentence) -> str:
    return repr(shorten(visible(" ".join(sentence.forms)), 60))


def _graph(sentence: Sentence) -> list[_Arc] | None:
    if sentence.graph is None:
        return None
    return [*sentence.graph.arcs, *((0, top, "TOP") for top in sentence.graph.tops)]


def _tree(sentence: Sentence) -> list[_Arc] | None:
    if sentence.heads is None:
        return None
    relations = sentence.relations or ("",) * len(sentence)
    named = zip(sentence.heads, relations, strict=True)
    return [(head, word, "" if relation == "_" else relation) for word, (head, relation) in enumerate(named, 1)]


def _compare(
    found: list[_Arc], right: list[_Arc] | None, earlier: list[_Arc] | None, labelled: bool
) -> Iterator[tuple[_Arc, Mark, str]]:
    """All arcs with their marks, and a remark on those that changed where it is known what is right."""

    def key(arc: _Arc) -> tuple[int, int, str]:
        return arc if labelled else (*arc[:2], "")

    now, wanted, past = ({key(arc) for arc in arcs or ()} for arcs in (found, right, earlier))
    for arc in found:
        good = key(arc) in wanted
        if earlier is not None and key(arc) not in past:
            yield arc, "new", "" if right is None else "right" if good else "wrong"
        else:
            yield arc, "plain" if right is None else "right" if good else "wrong", ""
    for arc in earlier or ():
        if key(arc) not in now:
            yield arc, "gone", "" if right is None else "was right" if key(arc) in wanted else "was wrong"
    for arc in right or ():
        if key(arc) not in now and key(arc) not in past:
            yield arc, "missed", ""


def caption(arc: DrawnArc) -> str:
    """What is written on an arc: its sign and its label, cut if it is very long. Roots have only the sign.

    Example:
        >>> caption(DrawnArc(1, 2, "ARG1", "wrong")), caption(DrawnArc(0, 2, "root", "plain"))
        ('✗\u2009ARG1', '')
    """
    label = shorten(visible(arc.label), LONGEST) if arc.label and arc.start else ""
    return "\u2009".join(filter(None, (SIGNS[arc.mark], label)))  # a thin space


def marks_of(drawing: Drawing) -> list[Mark]:
    """The marks that occur in a drawing, for its legend.

    Example:
        >>> marks_of(Drawing(("Rain", "fell"), below=(DrawnArc(0, 2, mark="wrong"), DrawnArc(2, 1, mark="right"))))
        ['right', 'wrong']
    """
    order = list(SIGNS)
    return sorted({arc.mark for arc in (*drawing.above, *drawing.below)}, key=order.index)


def describe(drawing: Drawing, arc: DrawnArc) -> str:
    """An arc in words, for those who point at it or cannot see it.

    Example:
        >>> describe(Drawing(("Rain", "fell")), DrawnArc(2, 1, "ARG1", "wrong", "score 1.5"))
        'fell → Rain: ARG1 (found, but wrong)\\nscore 1.5'
    """
    start = visible(drawing.words[arc.start - 1]) if arc.start else "root"
    label = f": {visible(arc.label)}" if arc.label else ""
    mark = f" ({MEANINGS[arc.mark]})" if arc.mark != "plain" else ""
    note = "\n".join(visible(line) for line in arc.note.split("\n")) if arc.note else ""
    return f"{start} → {visible(drawing.words[arc.end - 1])}{label}{mark}" + (f"\n{note}" if note else "")


# In pixels.
_METRICS = Metrics(gap=13, port=8, spread=11, room=22, widest=240)
_FIRST, _STEP, _TALLEST, _MARGIN = 26, 20, 560, 12
_HEAD, _ROUND = 7, 11


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
    words, tags = [visible(word) for word in drawing.words], [visible(tag) for tag in drawing.tags]
    widths = [ems(word) * WORD * (1.06 if i in drawing.predicates else 1.0) for i, word in enumerate(words, 1)]
    if tags:
        widths = [max(width, ems(tag) * TAG) for width, tag in zip(widths, tags, strict=True)]
    placed = layout(widths, _spans(drawing.above), _spans(drawing.below), _METRICS)
    above, below = (_reach(levels) for levels in placed.height)

    top = _MARGIN + above
    line = top + 4 + WORD
    bottom = line + (TAG + 10 if tags else 7)
    height = bottom + below + _MARGIN
    body = "".join(
        chain(
            _side(drawing, drawing.above, placed.above, "above", top, -_scale(placed.height[0])),
            _side(drawing, drawing.below, placed.below, "below", bottom, _scale(placed.height[1])),
            _texts(drawing, words, tags, placed, line),
        )
    )
    width = placed.width + 2 * _MARGIN
    style, legend = STYLE, ""
    if standalone:
        style += own_colours()
        legend, wide, tall = _legend_inside(drawing, height)
        width, height = max(width, wide), height + tall
        body = f'<rect class="ground" x="{-_MARGIN}" width="100%" height="100%" rx="10"/>{body}'
    name = _attribute(" ".join(words)) or "an empty sentence"
    space = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    return (
        f'<svg class="arcs"{space} width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-_MARGIN} 0 {width:.0f} {height:.0f}" role="group" aria-label="{name}">'
        f"{f'<style>{style}</style>' if styled else ''}{body}{legend}</svg>"
    )


def legend(marks: Iterable[Mark] = get_args(Mark), *, styled: bool = True) -> str:
    """What the marks mean: a small arc and a few words for each, as HTML that wraps on a narrow screen.

    Args:
        marks: Those to explain, for example the ones that occur on a page.
        styled: Whether it brings its style sheet, see `svg`.

    Example:
        >>> legend(["wrong"]).count("<svg"), "found, but wrong" in legend(["wrong"])
        (1, True)
    """
    items = "".join(
        f'<span><svg class="arcs" width="58" height="34" viewBox="0 0 58 34" aria-hidden="true">{_sample(mark)}</svg>'
        f"{MEANINGS[mark]}</span>"
        for mark in marks
    )
    style = f"<style>{STYLE}</style>" if styled else ""
    return f'<div class="arcs-legend">{style}{items}</div>'


def _spans(arcs: Iterable[DrawnArc]) -> list[Span]:
    return [Span(arc.start, arc.end, ems(caption(arc)) * LABEL if arc.start else 0.0) for arc in arcs]


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
            f'<g class="arc {arc.mark}" {attributes} data-label="{_attribute(arc.label)}" tabindex="0" role="img">'
            f"<title>{escape(describe(drawing, arc))}</title>{_bracket(place, caption(arc), base, step)}</g>"
        )


def _bracket(place: Line, written: str, base: float, step: float, *, hit: bool = True) -> str:
    """The line from word to word with its arrowhead and its label."""
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
    text = f'<text x="{label[0]}" y="{label[1]}">{escape(written)}</text>' if written else ""
    broad = f'<path class="x" d="{along}"/>' if hit else ""
    return f'{broad}<path d="{path}"/><path class="h" d="{head}"/>{text}'


def _texts(drawing: Drawing, words: list[str], tags: list[str], placed: Layout, line: float) -> Iterator[str]:
    predicates = frozenset(drawing.predicates)
    for number, (word, x) in enumerate(zip(words, placed.centres, strict=True), 1):
        kind = "word predicate" if number in predicates else "word"
        yield f'<text class="{kind}" data-word="{number}" x="{x:.0f}" y="{line:.0f}">{escape(word)}</text>'
        if tags:
            yield f'<text class="tag" x="{x:.0f}" y="{line + TAG + 3:.0f}">{escape(tags[number - 1])}</text>'


def _sample(mark: Mark) -> str:
    """An arc by itself, 58 wide and 34 tall."""
    return f'<g class="arc {mark}">{_bracket(Line(1, 8, 50, 29), SIGNS[mark], 33, -_STEP, hit=False)}</g>'


def _legend_inside(drawing: Drawing, top: float) -> tuple[str, float, float]:
    """The legend of a file of its own, with its width and height; nothing where nothing is compared."""
    marks = marks_of(drawing)
    if marks in ([], ["plain"]):
        return "", 0.0, 0.0
    x, parts = 0.0, []
    for mark in marks:
        meaning = MEANINGS[mark]
        parts.append(
            f'<g transform="translate({x:.0f} {top:.0f})">{_sample(mark)}'
            f'<text class="key" x="62" y="24">{meaning}</text></g>'
        )
        x += 62 + ems(meaning) * 12 + 18
    return "".join(parts), x + _MARGIN, 34 + _MARGIN


def _attribute(text: str) -> str:
    return escape(visible(text) if text else "")
