r"""Figure 1 of the paper, drawn from real projections.

Two words and a root: each word chooses its head, the root or the other word. The relaxation
$\mathcal P_{\mathrm{DEP}}$ (Eq. 5) of the trees over them is then a square, so that nothing is lost in drawing it:
three corners are the trees of $\mathcal Z$, the fourth is the cycle, which $\mathcal P$ admits and $\mathcal Z$ does
not. Every point in the picture is what `Spigot.explain` answers.

`python docs/figure1.py` draws it again.

`figure1_interactive` is its relative for a page with scripts, put there when the site is built: one word, three heads
to choose from, a triangle, and a gradient that is dragged.
"""

from dataclasses import dataclass
from pathlib import Path

import jinja2
import torch
from torch import Tensor

import spigot

TREES = spigot.ProjectiveTrees(single_root=False)

HEADS = ("saw", "stars", "night")
"""The words that may be the head, in the interactive figure."""

_FOLDER = Path(__file__).with_name("figure1")
_PLACE = "<!-- figure 1, live -->"
_START, _GRADIENT = 1, (-0.75, 0.3, 0.45)  # the head that was chosen, and what the loss says about all three
_CORNERS = ((190.0, 60.0), (70.0, 268.0), (310.0, 268.0))  # as in figure1.js
_WIDTH, _HEIGHT = 920, 470
_SIDE = 216  # of the square, in pixels
_ORIGIN = (120, 376)  # its lower left corner within a panel


@dataclass(frozen=True)
class Panel:
    """One of the two cases of the figure.

    Attributes:
        title: Its heading.
        trees: The members of $\\mathcal Z$ among the corners, as points of the plane.
        corners: All corners of $\\mathcal P$.
        z: Where the step starts.
        stepped: $\\hat p = \\hat z - \\eta \\nabla L$.
        projected: $\\tilde z$, its projection onto $\\mathcal P$.
    """

    title: str
    trees: tuple[tuple[float, float], ...]
    corners: tuple[tuple[float, float], ...]
    z: tuple[float, float]
    stepped: tuple[float, float]
    projected: tuple[float, float]


def panels() -> tuple[Panel, Panel]:
    """The two cases, as the library computes them."""
    # How much the loss rises when the head of word 1, of word 2, moves from the other word to the root. Each word's
    # two arcs get opposite halves: steps stay in the plane of the square.
    return (
        _panel("The step leaves P: it is projected back", (-0.6, -0.36)),
        _panel("The step stays inside P: nothing to project", (-0.62, 0.3)),
    )


def _panel(title: str, slope: tuple[float, float]) -> Panel:
    chain = _arcs(0.0, 1.0)  # root -> 2 -> 1
    grad = torch.zeros(3, 3, dtype=torch.float64)
    grad[0, 1], grad[2, 1] = slope[0], -slope[0]
    grad[0, 2], grad[1, 2] = slope[1], -slope[1]
    step = spigot.Spigot(eta=1.0).explain(TREES, scores=chain, grad=grad)
    assert step.stepped is not None
    assert step.projected is not None
    corners = [_arcs(a, b) for a, b in ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))]
    return Panel(
        title=title,
        trees=tuple(_plane(c) for c in corners if bool(TREES.contains(c))),
        corners=tuple(_plane(c) for c in corners if bool(TREES.relaxation.contains(c))),
        z=_plane(step.z),
        stepped=_plane(step.stepped),
        projected=_plane(step.projected),
    )


def _arcs(first: float, second: float) -> Tensor:
    """The point of the square where words 1 and 2 have the root as head to these degrees."""
    p = torch.zeros(3, 3, dtype=torch.float64)
    p[0, 1], p[2, 1] = first, 1 - first
    p[0, 2], p[1, 2] = second, 1 - second
    return p


def _plane(p: Tensor) -> tuple[float, float]:
    return round(float(p[0, 1]), 6), round(float(p[0, 2]), 6)


_STYLE = """
.card{fill:#fff;stroke:#d9dee8}.ink{fill:#1c2230}.soft{fill:#5d6575}
.polytope{fill:#e9eefb}.edge{stroke:#5b76b8}.hull{fill:#c9d7f7}
.vertex{fill:#24407f}.stray{fill:#fff;stroke:#8791a5}
.step{stroke:#c2410c}.step-tip,.step-text{fill:#c2410c}
.back{stroke:#5d6575}.move{stroke:#0b7a75}.move-tip,.move-text{fill:#0b7a75}
.arc{stroke:#24407f}.arc-tip{fill:#24407f}.stray-arc{stroke:#8791a5}.stray-tip{fill:#8791a5}
@media (prefers-color-scheme:dark){
.card{fill:#161b24;stroke:#333a49}.ink{fill:#e8ebf2}.soft{fill:#a2abbd}
.polytope{fill:#1f2a44}.edge{stroke:#7d9be6}.hull{fill:#2c3f6e}
.vertex{fill:#a9c1ff}.stray{fill:#161b24;stroke:#8791a5}
.step{stroke:#fb923c}.step-tip,.step-text{fill:#fb923c}
.back{stroke:#a2abbd}.move{stroke:#4fd1c5}.move-tip,.move-text{fill:#4fd1c5}
.arc{stroke:#a9c1ff}.arc-tip{fill:#a9c1ff}}
text{font:15px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.maths{font:italic 19px "STIX Two Text",Cambria,Georgia,"Times New Roman","DejaVu Serif",serif}
.title{font-size:16.5px;font-weight:600}.small{font-size:12.5px}
.arc,.stray-arc,.edge,.step,.back,.move{fill:none}
"""


def draw() -> str:
    """The figure as an SVG file that carries its own colours for light and for dark surroundings."""
    both = "".join(
        f'<g transform="translate({_WIDTH // 2 * i} 0)">{_draw_panel(panel)}</g>' for i, panel in enumerate(panels())
    )
    tips = "".join(
        f'<marker id="{name}" viewBox="0 0 10 10" refX="8.5" refY="5" markerWidth="{size}" markerHeight="{size}" '
        f'orient="auto-start-reverse"><path d="M0 .8 10 5 0 9.2 2 5z" class="{name}"/></marker>'
        for name, size in (("step-tip", 7), ("move-tip", 5), ("arc-tip", 6), ("stray-tip", 6))
    )
    description = (
        "A square polytope P whose corners are the trees over two words, and a cycle. On the left a gradient step "
        "from the current tree leaves P and is projected onto its edge; on the right the step stays inside."
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img" aria-label="{description}"><style>{_STYLE}</style><defs>{tips}</defs>'
        f'<rect class="card" x=".5" y=".5" width="{_WIDTH - 1}" height="{_HEIGHT - 1}" rx="16"/>{both}</svg>\n'
    )


def _draw_panel(panel: Panel) -> str:
    z, stepped, projected = _pixels(panel.z), _pixels(panel.stepped), _pixels(panel.projected)
    outside = panel.stepped != panel.projected
    drawn = [
        _text(_WIDTH / 4, 42, panel.title, "ink title", "middle"),
        _polygon(panel.corners, "polytope", 'stroke="none"'),
        _polygon(panel.trees, "hull", 'opacity=".75"'),
        _polygon(panel.corners, "edge", 'stroke-width="1.5"'),
        _text(_ORIGIN[0] + 20, _ORIGIN[1] - 18, "P", "soft maths"),
        _text(_ORIGIN[0] + _SIDE - 12, _ORIGIN[1] - 78, "conv Z", "soft maths", "end"),
    ]
    drawn += [_draw_corner(corner, corner in panel.trees) for corner in panel.corners]
    drawn.append(_line(z, _short_of(z, projected, 5), "move", 'stroke-width="4" marker-end="url(#move-tip)"'))
    if outside:
        drawn.append(_line(z, _short_of(z, stepped, 5), "step", 'stroke-width="2.2" marker-end="url(#step-tip)"'))
        drawn.append(_line(stepped, projected, "back", 'stroke-width="1.6" stroke-dasharray="4 4"'))
        drawn.append(_dot(stepped, "step-tip"))
        x, y = projected
        drawn.append(f'<path class="back" d="M{x:g} {y - 11:g}h-11v11" stroke-width="1.2"/>')
        drawn.append(_text(stepped[0] + 12, stepped[1] - 2, "p\u0302 = ẑ − η∇L", "step-text maths"))
        drawn.append(_text(x + 2, y + 25, "z\u0303 = proj p\u0302", "move-text maths", "middle"))
        result = "∇ₛL := ẑ − z\u0303  ≠  η∇L"
    else:
        drawn.append(
            _text(projected[0] - 4, projected[1] + 28, "z\u0303 = p\u0302 = ẑ − η∇L", "move-text maths", "middle")
        )
        result = "∇ₛL := ẑ − z\u0303  =  η∇L"
    drawn += [_dot(projected, "move-tip"), _dot(z, "vertex", 6.5)]
    drawn.append(_text(z[0] - 4, z[1] - 16, "ẑ", "ink maths", "end"))
    drawn.append(_text(_WIDTH / 4, _HEIGHT - 22, result, "ink maths", "middle"))
    return "".join(drawn)


def _draw_corner(corner: tuple[float, float], is_tree: bool) -> str:
    """A dot, and outside the square the arcs it stands for."""
    x, y = _pixels(corner)
    side = -1 if corner[0] == 0 else 1
    glyph = _draw_arcs(x + side * 54, y + 8, corner, "arc" if is_tree else "stray")
    if is_tree:
        return _dot((x, y), "vertex", 5) + glyph
    label = _text(x + side * 54, y + 36, "a cycle, no tree", "soft small", "middle")
    return f'<circle class="stray" cx="{x:g}" cy="{y:g}" r="4.5" stroke-width="1.5"/>{glyph}{label}'


def _draw_arcs(x: float, y: float, corner: tuple[float, float], kind: str) -> str:
    """The root and two words in a row, with an arc from each word's head to it."""
    place = (x - 28, x, x + 28)
    heads = {1: 0 if corner[0] == 1 else 2, 2: 0 if corner[1] == 1 else 1}
    drawn = [_text(at, y + 11, name, "soft small", "middle") for at, name in zip(place, "∗12", strict=True)]
    for word, head in heads.items():
        outer = heads.get(head) == word and word > head  # of a cycle's two arcs, the one drawn around the other
        inset = -3 if outer else 4
        sign = 1 if word > head else -1
        start, end = place[head] + sign * inset, place[word] - sign * inset
        top = y - 18 - 15 * (abs(word - head) - 1) - (11 if outer else 0)
        curve = f"M{start:g} {y - 3:g}C{start:g} {top:g} {end:g} {top:g} {end:g} {y - 3:g}"
        name = "stray-arc" if kind == "stray" else "arc"
        drawn.append(f'<path class="{name}" d="{curve}" stroke-width="1.4" marker-end="url(#{kind}-tip)"/>')
    return "".join(drawn)


def _pixels(point: tuple[float, float]) -> tuple[float, float]:
    return round(_ORIGIN[0] + _SIDE * point[0], 2), round(_ORIGIN[1] - _SIDE * point[1], 2)


def _short_of(start: tuple[float, float], end: tuple[float, float], by: float) -> tuple[float, float]:
    """The point a little before `end`, so that the tip of an arrow touches the dot there."""
    length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5
    return tuple(round(e - by * (e - s) / length, 2) for s, e in zip(start, end, strict=True))  # pyright: ignore[reportReturnType]


def _polygon(points: tuple[tuple[float, float], ...], kind: str, attributes: str) -> str:
    corners = " ".join(f"{x:g},{y:g}" for x, y in map(_pixels, points))
    return f'<polygon class="{kind}" points="{corners}" {attributes}/>'


def _line(start: tuple[float, float], end: tuple[float, float], kind: str, attributes: str) -> str:
    return f'<path class="{kind}" d="M{start[0]:g} {start[1]:g}L{end[0]:g} {end[1]:g}" {attributes}/>'


def _dot(at: tuple[float, float], kind: str, radius: float = 5) -> str:
    return f'<circle class="{kind}" cx="{at[0]:g}" cy="{at[1]:g}" r="{radius:g}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{text}</text>'


def figure1_interactive(*, script: bool = True) -> str:
    """The step and its projection as part of a page: a triangle whose gradient is dragged, STE and SPIGOT beside it.

    Without scripts the figure stands still, at numbers that the library computed.

    Args:
        script: Whether to append the script that moves it. A page that allows only scripts it knows takes
            `figure1_script()` beside it instead, once, however many figures there are.

    Returns:
        A `<figure>` element that brings its own style, followed by a `<script>` if asked for.
    """
    scores = torch.nn.functional.one_hot(torch.tensor(_START), len(HEADS)).double()
    grad = torch.tensor(_GRADIENT, dtype=torch.float64)
    step = spigot.Spigot(eta=1.0).explain(spigot.OneOf(), scores=scores, grad=grad)
    straight = spigot.StraightThrough(eta=1.0).explain(spigot.OneOf(), scores=scores, grad=grad)
    assert step.stepped is not None
    assert step.projected is not None
    rows = (
        ("z", "ẑ, the choice", step.z),
        ("gradient", "∇L", step.grad),
        ("stepped", "p\u0302 = ẑ − η∇L", step.stepped),
        ("projected", "z\u0303 = proj p\u0302", step.projected),
        ("straight", "STE: η∇L", straight.gradient),
        ("spigot", "SPIGOT: ẑ − z\u0303", step.gradient),
    )
    figure = jinja2.Template((_FOLDER / "figure1.html").read_text(encoding="utf-8"), autoescape=True)
    text = figure.render(
        heads=HEADS,
        gradient=_GRADIENT,
        rows=[(key, name, values.tolist()) for key, name, values in rows],
        z=_on_triangle(step.z),
        wanted=_on_triangle(step.z - grad),
        stepped=_on_triangle(step.stepped),
        projected=_on_triangle(step.projected),
        path=_path,
    )
    return f"{text}\n<script>{figure1_script()}</script>\n" if script else text


def figure1_script() -> str:
    """The script that brings every `figure1_interactive` of a page to life."""
    return (_FOLDER / "figure1.js").read_text(encoding="utf-8")


def _on_triangle(weights: Tensor) -> tuple[float, float]:
    x, y = (float((weights * torch.tensor(axis, dtype=weights.dtype)).sum()) for axis in zip(*_CORNERS, strict=True))
    return round(x, 1), round(y, 1)


def _path(start: tuple[float, float], end: tuple[float, float], short: float = 0) -> str:
    x, y = _short_of(start, end, short) if start != end else end
    return f"M{start[0]:g} {start[1]:g}L{x:g} {y:g}"


def on_page_content(content: str, **_: object) -> str:
    """Called by mkdocs with the HTML of each page."""
    return content.replace(_PLACE, figure1_interactive()) if _PLACE in content else content


if __name__ == "__main__":
    (Path(__file__).parent / "figures" / "figure1.svg").write_text(draw(), encoding="utf-8")
