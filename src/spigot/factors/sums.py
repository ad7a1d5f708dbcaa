"""Sums of variables between bounds: budgets and knapsacks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spigot._algorithms.factor_tables import FactorKind, Rows
from spigot.factors.factor import Numbers, PlainFactor, matrix


@final
@dataclass(frozen=True, eq=False, repr=False)
class Budget(PlainFactor):
    r"""How many may be on: $\text{least} \le \sum_i x_i \le \text{most}$.

    Args:
        variables: The variables, or rows of them.
        most: The largest number.
        least: The smallest.

    Example:
        >>> import spigot, torch
        >>> spigot.FactorGraph(3, [Budget([0, 1, 2], most=2)]).argmax(torch.tensor([1.0, 2.0, 0.5]))
        tensor([1., 1., 0.])
    """

    variables: Numbers
    most: int
    least: int = 0

    def __post_init__(self) -> None:
        variables = matrix(self.variables, "Budget")
        fewest = int((variables >= 0).sum(1).min(initial=variables.shape[1]))
        if not 0 <= self.least <= self.most:
            raise ValueError(f"Budget has least {self.least} and most {self.most}; it needs 0 <= least <= most.")
        if self.least > fewest:
            raise ValueError(f"Budget demands at least {self.least} of {fewest} variables, which no values meet.")
        bounds = [np.full(len(variables), float(bound)) for bound in (self.least, self.most)]
        self._is(Rows(FactorKind.SUM, variables, least=bounds[0], most=bounds[1]))

    def broken(self, row: int) -> str:
        return f"{self.least} to {self.most} of {self._named(row)} must be on"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Knapsack(PlainFactor):
    r"""What is on must fit: $\sum_i w_i x_i \le c$.

    In the relaxation this is the inequality as it stands, between 0 and 1, which is wider than the hull of the 0/1
    vectors that satisfy it.

    Args:
        variables: The variables, or rows of them.
        weights: Their weights, of the same shape, of any sign.
        capacity: The room, or that of each row.

    Example:
        >>> import spigot, torch
        >>> bag = Knapsack([0, 1, 2], weights=[3.0, 4.0, 5.0], capacity=8.0)
        >>> spigot.FactorGraph(3, [bag], exact=True).argmax(torch.tensor([2.0, 2.5, 2.8]))
        tensor([1., 0., 1.])
    """

    variables: Numbers
    weights: Numbers
    capacity: float | Sequence[float] | Tensor | NDArray[Any]

    def __post_init__(self) -> None:
        variables = matrix(self.variables, "Knapsack")
        weights = matrix(self.weights, "Knapsack", of=np.float64)
        if weights.shape != variables.shape:
            raise ValueError(
                f"Knapsack has variables of shape {variables.shape} and weights of shape {weights.shape}; there must "
                "be a weight for each variable."
            )
        capacity = np.broadcast_to(np.asarray(self.capacity, np.float64), (len(variables),))
        if not np.isfinite(weights[variables >= 0]).all() or not np.isfinite(capacity).all():
            raise ValueError("Knapsack has a weight or a capacity that is not finite.")
        weights = np.where(variables >= 0, weights, 0.0)
        variables = np.where(weights == 0, -1, variables)  # what weighs nothing always fits
        negated = weights < 0  # -w x <= c is w (1 - x) <= c + w
        most = capacity - np.where(negated, weights, 0.0).sum(1)
        if (most < 0).any():
            row = int(np.argwhere(most < 0)[0][0])
            raise ValueError(f"Knapsack has capacity {capacity[row]:g} in row {row}, which no values meet.")
        rows = Rows(
            FactorKind.SUM,
            variables,
            negated=negated,
            weights=np.abs(weights, dtype=np.float64),
            least=np.zeros(len(most)),
            most=most,
        )
        self._is(rows)

    def broken(self, row: int) -> str:
        return f"the weights of {self._named(row)} must fit"
