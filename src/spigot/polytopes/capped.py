r"""The hull of subsets: entries between 0 and 1 whose sum is bounded."""

from dataclasses import dataclass
from typing import final

import torch

from spigot._algorithms.bounded_subsets import project_capped
from spigot._runtime.checks import check_bounds, check_parts
from spigot.interface import AbstractPolytope
from spigot.types import Flags, Mask, Parts


@final
@dataclass(frozen=True)
class CappedSimplex(AbstractPolytope):
    r"""$\{0 \le p \le 1,\ a \le \mathbf 1^\top p \le b\}$ along the last axis: the convex hull of `Subsets`.

    The projection is $\operatorname{clip}(v - \tau, 0, 1)$ with one threshold $\tau$ for the row, found exactly.

    Attributes:
        minimum: The least sum, $a$, a whole number.
        maximum: The largest sum, $b$; `None` for any.

    Example:
        >>> CappedSimplex(2, 2).project(torch.tensor([1.5, 0.5, 0.4, -1.0]))
        tensor([1.0000, 0.5500, 0.4500, 0.0000])
        >>> CappedSimplex(maximum=2).project(torch.tensor([1.5, 0.5, 0.4, -1.0]))
        tensor([1.0000, 0.5000, 0.4000, 0.0000])

    References:
        Wang, Lu (2015), Projection onto the capped simplex.
    """

    minimum: int = 0
    maximum: int | None = None

    def __post_init__(self) -> None:
        check_bounds(self.minimum, self.maximum)

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        mask = check_parts(point, mask, 1, "point")
        return project_capped(point, mask, self.minimum, -1 if self.maximum is None else self.maximum)

    def tangent(self, direction: Parts, mask: Mask) -> Parts:
        """All directions, those that keep the sum if it is fixed, or none if there is one point only."""
        inside = torch.where(mask, direction, 0)
        count = mask.sum(-1, keepdim=True)
        if self.maximum == self.minimum:
            inside = torch.where(mask, inside - inside.sum(-1, keepdim=True) / count.clamp(min=1), 0)
        single = (count <= self.minimum) if self.maximum != 0 else torch.ones_like(count, dtype=torch.bool)
        return inside.masked_fill(single, 0)

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = check_parts(point, mask, 1, "point")
        p = point.masked_fill(~mask, 0)
        stray = (point != 0) & ~mask
        total = p.sum(-1)
        fine = ~(stray | (p < -atol) | (p > 1 + atol) | p.isnan()).any(-1)
        fine = fine & ((total >= self.minimum - atol) | ~mask.any(-1))
        return fine if self.maximum is None else fine & (total <= self.maximum + atol)
