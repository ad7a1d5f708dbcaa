"""Doubly stochastic matrices, and those that fall short."""

from dataclasses import dataclass
from typing import final

import torch

from spigot._algorithms.assignment import matching_tangent, project_matchings
from spigot._runtime.checks import check_parts
from spigot.interface import AbstractPolytope
from spigot.types import Flags, Mask, Parts


@final
@dataclass(frozen=True)
class Birkhoff(AbstractPolytope):
    r"""Matrices that are not negative and whose rows and columns sum to at most one: the hull of `Matchings`.

    $$\mathcal P = \Big\{p \in [0, 1]^{n \times m} \;\Big|\; \sum_j p_{ij} \le 1,\ \sum_i p_{ij} \le 1 \Big\},$$

    and with `complete` the sums of the shorter side are one, or those of both sides if they are alike. Rows and columns
    count if they have a part that exists. The relaxation is exact, with any mask: all vertices are matchings (Birkhoff,
    von Neumann).

    The projection $p$ is found by Newton's method on the dual. It is the exact projection of the point for sums that
    differ from the stated ones by at most $10^{-12}$, computed in float64 whatever the dtype. A point of $-\infty$ gets
    nothing.

    Attributes:
        complete: Whether all of the shorter side is matched.

    Example:
        >>> point = torch.tensor([[1.5, 0.9], [0.6, 0.2]])
        >>> Birkhoff().project(point)
        tensor([[0.5500, 0.4500],
                [0.4500, 0.5500]])
        >>> Birkhoff(complete=False).project(point)
        tensor([[0.6667, 0.3333],
                [0.3333, 0.2000]])

    References:
        Birkhoff (1946), Three observations on linear algebra.
        Li, Sun, Toh (2020), On the efficient computation of a generalized Jacobian of the projector over the Birkhoff
        polytope, which also works on the dual.
    """

    complete: bool = True

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        """As `AbstractPolytope.project`.

        Raises:
            ValueError: A point is NaN or infinite, or (as a `NoStructureError`) the mask leaves no complete matching.
        """
        return project_matchings(point, check_parts(point, mask, 2, "point"), self.complete)

    def tangent(self, direction: Parts, mask: Mask) -> Parts:
        """Row and column means taken off, where they are fixed; a linear system where the mask has holes."""
        if not self.complete:
            return torch.where(mask, direction, 0)
        return matching_tangent(direction, mask)

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = check_parts(point, mask, 2, "point")
        inside = point.masked_fill(~mask, 0)
        rows, columns = mask.any(-1), mask.any(-2)
        down, across = rows.sum(-1, keepdim=True), columns.sum(-1, keepdim=True)
        fine = ~((point < -atol) & mask | (point != 0) & ~mask | point.isnan() & mask).flatten(-2).any(-1)
        for sums, exist, short in (
            (inside.sum(-1), rows, down <= across),
            (inside.sum(-2), columns, across <= down),
        ):
            low = (sums < 1 - atol) & exist & short if self.complete else torch.zeros_like(exist)
            fine = fine & ~((sums > 1 + atol) | low).any(-1)
        return fine
