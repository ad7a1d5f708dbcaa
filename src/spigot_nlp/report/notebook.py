"""What a notebook shows of parsed sentences: their drawings, in the colours of the notebook around them."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.report.arcs import drawing, svg
from spigot_nlp.report.figures import theme
from spigot_nlp.report.glyphs import visible
from spigot_nlp.report.marks import STYLE, own_colours

if TYPE_CHECKING:
    from spigot_nlp.annotations import AbstractAnnotation

MOST = 50
"""How many sentences are drawn: a browser takes long over thousands."""

_DARK = ('body[data-jp-theme-light="false"]', "body.vscode-dark", 'html[theme="dark"]')
_LIGHT = ('body[data-jp-theme-light="true"]', "body.vscode-light", 'html[theme="light"]')
"""How notebooks say that they are dark, or light, whatever the rest of the screen is."""


def sentences(
    found: Sequence[tuple[Sentence, str | None]], annotations: "Sequence[AbstractAnnotation] | None" = None
) -> str:
    """Sentences, drawn one below the other.

    Args:
        found: Each sentence, and the class it has, if any.
        annotations: What to draw of them; the graph and the tree if omitted.

    Example:
        >>> html = sentences([(Sentence(("Rain", "fell"), heads=(2, 0)), "sad")])
        >>> html.count("<svg"), html.count("<style"), "sad" in html
        (1, 1, True)
    """
    if not found:
        return '<p class="spigot-note">no sentences</p>'
    rules = f"{STYLE}{own_colours()}{colours('svg.arcs')}"
    rules += ".spigot-arcs{overflow-x:auto}.spigot-arcs p{margin:.2em 0 1em;font-family:system-ui,sans-serif}"
    drawn = []
    for sentence, label in found[:MOST]:
        picture = svg(drawing(sentence, annotations=annotations), standalone=True, styled=False)
        drawn.append(picture + ("" if label is None else f"<p>{escape(visible(label))}</p>"))
    more = len(found) - MOST
    rest = f"<p>and {more:,} more sentence{'' if more == 1 else 's'}</p>" if more > 0 else ""
    body = "".join(f"<div>{each}</div>" for each in drawn)
    return f'<div class="spigot-arcs"><style>{rules}</style>{body}{rest}</div>'


def colours(what: str) -> str:
    """The colours of pictures as rules for the notebooks that are dark, or light, by a choice of their own.

    Args:
        what: The pictures, as a selector.

    Example:
        >>> 'body[data-jp-theme-light="false"] svg.arcs,' in colours("svg.arcs")
        True
    """
    rules = ""
    for selectors, dark in ((_DARK, True), (_LIGHT, False)):
        values = ";".join(f"{name}:{value}" for name, value in theme(dark=dark).items())
        rules += f"{','.join(f'{selector} {what}' for selector in selectors)}{{{values}}}"
    return rules
