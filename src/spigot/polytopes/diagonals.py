"""The relaxation of alignments: the cells of each anti-diagonal on their own."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from spigot._algorithms.dtw import last_cell, skew, unskew
from spigot._algorithms.simplex import project_simplex
from spigot._runtime.checks import check_parts
from spigot.interface import AbstractPolytope
from spigot.types import Flags, Mask, Parts


@final
@dataclass(frozen=True)
class DiagonalSimplex(AbstractPolytope):
    r"""The cells of an anti-diagonal are weights that sum to at most one; the first and the last cell are one.

    $$\Big\{p \ge 0 \;\Big|\; p_{11} = p_{nm} = 1,\ \sum_{i+j=d} p_{ij} \le 1\ \forall d\Big\}$$

    in the layout of `Alignments`, over the cells that exist. Every step of a path leads to a later anti-diagonal, so
    that it has at most one cell of each: these are the cells that exclude each other. That a path is connected is left
    out, as `HeadSimplex` leaves out that trees have no cycles: the projection is one simplex for each anti-diagonal.

    Example:
        >>> DiagonalSimplex().project(torch.tensor([[0.3, 0.9], [0.5, 0.2]]))
        tensor([[1.0000, 0.7000],
                [0.3000, 1.0000]])
    """

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        mask = check_parts(point, mask, 2, "point")
        if point.shape[-1] == 0 or point.shape[-2] == 0:
            return point.clone()
        rows, exists = skew(torch.where(mask, point, 0)), skew(mask)
        whole = project_simplex(rows, exists)
        inside = rows.clamp(min=0)
        fits = ~_needed(mask) & (inside.sum(-1) <= 1)
        return unskew(torch.where(fits.unsqueeze(-1), inside, whole))

    def tangent(self, direction: Parts, mask: Mask) -> Parts:
        if direction.shape[-1] == 0 or direction.shape[-2] == 0:
            return direction.clone()
        rows = skew(torch.where(mask, direction, 0))
        return unskew(rows.masked_fill(_needed(mask).unsqueeze(-1), 0))  # one cell each, which is given

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = check_parts(point, mask, 2, "point")
        if point.shape[-1] == 0 or point.shape[-2] == 0:
            return torch.ones(point.shape[:-2], dtype=torch.bool, device=point.device)
        total = skew(torch.where(mask, point, 0)).sum(-1)
        fine = torch.where(mask, point >= -atol, point == 0).flatten(-2).all(-1)  # NaN is neither
        return fine & ((total <= 1 + atol) & (~_needed(mask) | (total >= 1 - atol))).all(-1)


def _needed(mask: Mask) -> Tensor:
    """The anti-diagonals of the first and of the last cell."""
    row, column = last_cell(mask)
    some, end = (row >= 0).unsqueeze(-1), (row + column).unsqueeze(-1)
    place = torch.arange(sum(mask.shape[-2:]) - 1, device=mask.device)
    return some & ((place == 0) | (place == end))
