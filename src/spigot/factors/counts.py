"""How many of some variables are on: exactly one, at most one, at least one."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from spigot._algorithms.factor_tables import FactorKind, Rows
from spigot.factors.factor import Ends, Numbers, PlainFactor, ended, flags, matrix, refuse_empty


@dataclass(frozen=True, eq=False, repr=False)
class _Count(PlainFactor):
    """How many of some literals are on."""

    variables: Numbers
    negated: Numbers | None = None

    kind: ClassVar[FactorKind]
    words: ClassVar[str]

    def __post_init__(self) -> None:
        variables = matrix(self.variables, type(self).__name__)
        negated = None if self.negated is None else flags(self.negated, variables)
        if self.kind != FactorKind.AT_MOST_ONE:
            refuse_empty(variables, type(self).__name__)
        self._is(Rows(self.kind, variables, negated=negated))

    def broken(self, row: int) -> str:
        return f"{self.words} of {self._named(row)} must be on"


@final
@dataclass(frozen=True, eq=False, repr=False)
class ExactlyOne(PlainFactor):
    r"""Exactly one is on: $\sum_i x_i = 1$; or, with an output, $\sum_i x_i = y$: one of them if y is on, none if not.

    Args:
        variables: The variables, or rows of them.
        output: The output of each row, if it has one.
        negated: Where a variable counts as on if it is off.

    Example:
        >>> import spigot, torch
        >>> graph = spigot.FactorGraph(4, [ExactlyOne([0, 1, 2], output=3)])
        >>> graph.argmax(torch.tensor([1.0, 2.0, 0.5, -1.0]))
        tensor([0., 1., 0., 1.])
    """

    variables: Numbers
    output: Ends | None = None
    negated: Numbers | None = None

    def __post_init__(self) -> None:
        variables = matrix(self.variables, "ExactlyOne")
        negated = None if self.negated is None else flags(self.negated, variables)
        if self.output is None:
            refuse_empty(variables, "ExactlyOne")
            self._is(Rows(FactorKind.ONE, variables, negated=negated))
            return
        turned = np.zeros(variables.shape, bool) if negated is None else negated
        self._is(
            Rows(
                FactorKind.ONE,
                ended(variables, self.output, "ExactlyOne"),
                negated=np.concatenate((turned, np.ones((len(turned), 1), bool)), 1),
                defines=True,
            )
        )

    def broken(self, row: int) -> str:
        if self.output is None:
            return f"exactly one of {self._named(row)} must be on"
        return f"{self._rows.variables[row, -1]} must be the sum of the others of {self._named(row)}"


@final
@dataclass(frozen=True, eq=False, repr=False)
class AtMostOne(_Count):
    r"""None or one is on: $\sum_i x_i \le 1$.

    Args:
        variables: The variables, or rows of them.
        negated: Where a variable counts as on if it is off.

    Example:
        >>> import spigot, torch
        >>> spigot.FactorGraph(3, [AtMostOne([0, 1, 2])]).argmax(torch.tensor([1.0, 2.0, 0.5]))
        tensor([0., 1., 0.])
    """

    kind: ClassVar[FactorKind] = FactorKind.AT_MOST_ONE
    words: ClassVar[str] = "at most one"


@final
@dataclass(frozen=True, eq=False, repr=False)
class AtLeastOne(_Count):
    r"""One or more are on: $\sum_i x_i \ge 1$. With negated variables, any clause.

    Args:
        variables: The variables, or rows of them.
        negated: Where a variable counts as on if it is off.

    Example:
        >>> import spigot, torch
        >>> spigot.FactorGraph(3, [AtLeastOne([0, 1, 2])]).argmax(torch.tensor([-1.0, -2.0, -0.5]))
        tensor([0., 0., 1.])
    """

    kind: ClassVar[FactorKind] = FactorKind.AT_LEAST_ONE
    words: ClassVar[str] = "at least one"
