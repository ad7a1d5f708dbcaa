"""What notebooks show of structures and estimators, where a prompt shows their `repr`."""

import inspect
import re
from collections.abc import Iterator
from html import escape
from typing import Any

import torch

_SECTION = re.compile(r"^(Args|Attributes|Example|References|Raises|Returns):$", re.MULTILINE)
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$", re.DOTALL)
_SIZES = (4, 8, 16, 3, 2, 1)
_MOST, _WIDEST = 240, 60  # parts that fit into a small table, and that no solver takes long over


class HtmlRepr:
    """What a notebook shows: the `repr`, the formula of the docstring, and of a structure a small member."""

    def _repr_html_(self) -> str:
        latex = formula(type(self))
        if not hasattr(self, "preview"):
            return _html(self, latex)
        structure: Any = self
        condition = structure.latex_constraints()
        return _html(self, rf"{latex},\quad {condition}" if latex and condition else latex, *_member(structure))


def tables(z: torch.Tensor) -> tuple[tuple[str, list[list[float]]], ...]:
    """The parts of a member by rows and columns; a table for each of their leading axes."""
    if z.ndim <= 2:
        return (("", z.reshape(-1, z.shape[-1]).tolist()),)
    slices = z.reshape(-1, *z.shape[-2:]).tolist()
    return tuple((f"{k}", table) for k, table in enumerate(slices))


def formula(cls: type) -> str | None:
    r"""The formula of a class, from its docstring: the first on a line of its own, or else the first equation.

    Example:
        >>> import spigot
        >>> formula(spigot.StraightThrough)
        '\\nabla_s L = \\eta \\nabla_z L'
    """
    for each in cls.__mro__:
        text = _SECTION.split(inspect.cleandoc(each.__doc__ or ""))[0]
        found = [(match[1], match[2]) for match in _FORMULA.finditer(text)]
        displayed = [block for block, _ in found if block]
        equations = [line for _, line in found if line and "=" in line]
        if chosen := displayed or equations:
            return " ".join(chosen[0].split()).rstrip(".,")
    return None


def _html(thing: object, latex: str | None, *parts: str) -> str:
    typeset = (escape(f"$${latex}$$"),) if latex else ()
    return "".join(f"<div>{part}</div>" for part in (f"<code>{escape(repr(thing))}</code>", *typeset, *parts))


def _member(structure: Any) -> Iterator[str]:
    """Arcs and spans as text, other parts as tables; nothing if there is no small member, or finding it fails."""
    for size in _SIZES:
        try:
            shape = structure.mask(torch.tensor([size])).shape
            if shape.numel() > _MOST or shape[-1] > _WIDEST:
                continue
            scores = torch.randn(shape, generator=torch.Generator().manual_seed(3))
            preview = structure.preview(structure.argmax(scores, structure.full_mask(scores))[0])
        except Exception:  # whatever a user's own structure says to a size it does not take; a picture is no reason
            continue
        for marks, between in ((preview.arcs, " → "), (preview.spans, " to ")):
            if marks:
                said = (f"{first}{between}{last}{f' ({label})' if label else ''}" for first, last, label in marks)
                yield escape(", ".join(said))
        for title, table in preview.tables:
            rows = "".join(f"<tr>{''.join(f'<td>{value:g}</td>' for value in row)}</tr>" for row in table)
            yield f"{escape(title)}<table>{rows}</table>"
        return
