"""What a notebook shows of a structure or an estimator: its formula, and a small member or a small step.

The formula is that of the docstring, of a user's own class too. What is drawn comes from the object: a structure says
by `sketch` what is to be seen of a member, an estimator by `explain` what it does.
"""

import inspect
import re
from collections.abc import Iterator
from html import escape

import torch

from spigot.interface import AbstractEstimator, AbstractStructure
from spigot.structures import OneOf
from spigot.types import Parts
from spigot_nlp.report.arcs import Drawing, DrawnArc, svg
from spigot_nlp.report.cells import RULES, cells, spans
from spigot_nlp.report.figures import theme
from spigot_nlp.report.marks import STYLE
from spigot_nlp.report.mathml import mathml
from spigot_nlp.report.notebook import colours

_SECTION = re.compile(r"^(Args|Attributes|Example|References|Raises|Returns):$", re.MULTILINE)
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$", re.DOTALL)
_SIZES = (4, 8, 16, 3, 2, 1)
_MOST = 60
"""Parts that fit into a small picture, and that no solver takes long over."""


def portrait(thing: AbstractStructure | AbstractEstimator) -> str:
    """A structure or an estimator as HTML: its formula, and a picture of a small member, or of what comes back.

    Notebooks ask for it by themselves.

    Args:
        thing: The structure or estimator.

    Example:
        >>> import spigot
        >>> html = portrait(spigot.ProjectiveTrees())
        >>> "ProjectiveTrees(single_root=True)" in html, html.count("<math"), html.count('class="arcs"')
        (True, 1, 1)
        >>> portrait(spigot.Spigot()).count("<svg")
        1
    """
    if not isinstance(thing, AbstractStructure | AbstractEstimator):
        raise TypeError(
            f"a portrait is of a structure or an estimator, spigot.Spigot() for instance, not of {thing!r}."
        )
    parts = [f"<code>{escape(repr(thing))}</code>"]
    if latex := formula(type(thing)):
        condition = thing.condition() if isinstance(thing, AbstractStructure) else ""
        parts.append(_typeset(rf"{latex},\quad {condition}" if condition else latex))
    pictures = "".join(_member(thing) if isinstance(thing, AbstractStructure) else _step(thing))
    if pictures:
        parts.append(pictures)
    return (
        f'<div class="spigot-portrait"><style>{_rules()}</style>{"".join(f"<div>{part}</div>" for part in parts)}</div>'
    )


def _rules() -> str:
    """The style sheet: letters on a ground of their own, so that they can be read whatever is around."""
    light, dark = (";".join(f"{name}:{value}" for name, value in theme(dark=dark).items()) for dark in (False, True))
    return (
        f"{STYLE}{RULES}.spigot-portrait{{{light}}}@media (prefers-color-scheme:dark){{.spigot-portrait{{{dark}}}}}"
        f"{colours('.spigot-portrait')}.spigot-portrait{{display:inline-block;max-width:100%;overflow-x:auto;"
        "box-sizing:border-box;padding:.8em 1.2em;border-radius:10px;background:var(--card);color:var(--ink);"
        "border:1px solid var(--line)}.spigot-portrait>div{margin:.5em 0}.spigot-portrait code{color:inherit;"
        "background:none}.spigot-portrait math{font-size:1.15em;width:fit-content}"
        ".spigot-portrait svg{margin:0 1.2em 0 0}"
    )


def formula(cls: type) -> str | None:
    r"""The formula of a class, from its docstring: the first on a line of its own, or else the first equation.

    Example:
        >>> import spigot
        >>> formula(spigot.StraightThrough)
        '\\nabla_s L = \\eta \\nabla_z L'
        >>> formula(int) is None
        True
    """
    for each in cls.__mro__:
        text = _SECTION.split(inspect.cleandoc(each.__doc__ or ""))[0]
        found = [(match[1], match[2]) for match in _FORMULA.finditer(text)]
        displayed = [block for block, _ in found if block]
        equations = [line for _, line in found if line and "=" in line]
        if chosen := displayed or equations:
            return " ".join(chosen[0].split()).rstrip(".,")
    return None


def small_member(structure: AbstractStructure) -> Parts | None:
    """A small member: the best one for some scores, of four words, choices or positions if there are any such.

    Returns:
        The member; `None` if the structure has none that is small, or fails at finding it.

    Example:
        >>> import spigot
        >>> small_member(spigot.Subsets(2, 2)).sum()
        tensor(2.)
    """
    for size in _SIZES:
        try:
            shape = structure.mask(torch.tensor([size])).shape
            if shape.numel() > _MOST * 4 or (structure.event_ndim == 1 and shape.numel() > _MOST):
                continue
            scores = torch.randn(shape, generator=torch.Generator().manual_seed(3))
            return structure.argmax(scores, structure.everything(scores))[0]
        except Exception:  # whatever a user's own structure says to a size it does not take; a picture is no reason
            continue
    return None


def _member(structure: AbstractStructure) -> Iterator[str]:
    z = small_member(structure)
    if z is None:
        return
    sketch = structure.sketch(z)
    if sketch.arcs:
        words = tuple(map(str, range(1, sketch.words + 1)))
        yield svg(Drawing(words, above=tuple(DrawnArc(*arc) for arc in sketch.arcs)), styled=False)
    if sketch.spans:
        yield spans(sketch.words, sketch.spans)
    for title, table in sketch.tables:
        yield cells(table, title=title)


def _step(estimator: AbstractEstimator) -> Iterator[str]:
    """One of four: what goes forward, and what comes back for a gradient."""
    scores, grad = torch.tensor([0.2, 1.0, 0.6, -0.4]), torch.tensor([-0.3, 0.5, -0.6, 0.1])
    try:
        told = estimator.explain(OneOf(), scores, grad)
    except Exception:  # as above
        return
    rows = {"scores s": scores, "forward": told.z, "gradient g of the loss": told.grad, "back to s": told.gradient}
    yield cells([row.tolist() for row in rows.values()], list(rows))


def _typeset(latex: str) -> str:
    try:
        return mathml(latex, block=True)
    except (ImportError, ValueError):
        return escape(f"$${latex}$$")  # Jupyter draws these, too
