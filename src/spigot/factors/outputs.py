"""Variables that follow from others: or, and, pairs; and implications."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from spigot._algorithms.factor_tables import FactorKind, Rows
from spigot.factors.factor import Ends, Numbers, PlainFactor, ended, matrix, whole


@dataclass(frozen=True, eq=False, repr=False)
class _Ended(PlainFactor):
    """Inputs and an output."""

    variables: Numbers
    output: Ends

    kind: ClassVar[FactorKind]
    words: ClassVar[str]
    opposite: ClassVar[bool] = False

    def __post_init__(self) -> None:
        name = type(self).__name__
        row = ended(matrix(self.variables, name), self.output, name)
        negated = np.ones(row.shape, bool) if self.opposite else None
        self._is(Rows(self.kind, row, negated=negated, defines=self.kind == FactorKind.ANY))

    def broken(self, row: int) -> str:
        return f"{self._rows.variables[row, -1]} {self.words} of {self._named(row)}"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Or(_Ended):
    r"""The output is on exactly if any input is: $y = \max_i x_i$.

    Args:
        variables: The inputs, or rows of them.
        output: The output of each row.

    Example:
        >>> import spigot, torch
        >>> spigot.FactorGraph(3, [Or([0, 1], output=2)]).argmax(torch.tensor([1.0, -2.0, -0.5]))
        tensor([1., 0., 1.])
    """

    kind: ClassVar[FactorKind] = FactorKind.ANY
    words: ClassVar[str] = "must be on exactly if any of the others is,"


@final
@dataclass(frozen=True, eq=False, repr=False)
class And(_Ended):
    r"""The output is on exactly if all inputs are: $y = \min_i x_i$.

    Args:
        variables: The inputs, or rows of them.
        output: The output of each row.

    Example:
        >>> import spigot, torch
        >>> spigot.FactorGraph(3, [And([0, 1], output=2)]).argmax(torch.tensor([1.0, -2.0, 3.0]))
        tensor([1., 1., 1.])
    """

    kind: ClassVar[FactorKind] = FactorKind.ANY
    words: ClassVar[str] = "must be on exactly if all the others are,"
    opposite: ClassVar[bool] = True


@final
@dataclass(frozen=True, eq=False, repr=False)
class Implies(_Ended):
    r"""Whichever input is on, the output is on: $x_i \le y$ for all i.

    Args:
        variables: The inputs, or rows of them.
        output: The output of each row.

    Example:
        >>> import spigot, torch
        >>> spigot.FactorGraph(3, [Implies([0, 1], output=2)]).argmax(torch.tensor([1.0, 0.5, -2.0]))
        tensor([0., 0., 0.])
    """

    kind: ClassVar[FactorKind] = FactorKind.NEEDS
    words: ClassVar[str] = "must be on, as one of the others is,"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Pair(PlainFactor):
    r"""Two variables with a score for both: the third is on exactly if the first two are, and its score is the pair's.

    Args:
        first: A variable, or one for each pair.
        second: Another.
        both: The variable that stands for the two.

    Example:
        >>> import spigot, torch
        >>> spigot.FactorGraph(3, [Pair(0, 1, both=2)]).argmax(torch.tensor([1.0, 0.8, -3.0]))    # they repel
        tensor([1., 0., 0.])
    """

    first: Ends
    second: Ends
    both: Ends

    def __post_init__(self) -> None:
        columns = [np.atleast_1d(whole(ends, "Pair")) for ends in (self.first, self.second, self.both)]
        if len({column.shape for column in columns}) > 1 or columns[0].ndim > 1:
            shapes = ", ".join(str(column.shape) for column in columns)
            raise ValueError(f"Pair has variables of shapes {shapes}; there must be one of each kind for each pair.")
        variables = np.stack(columns, 1)
        self._is(Rows(FactorKind.ANY, variables, negated=np.ones(variables.shape, bool), defines=True))

    def broken(self, row: int) -> str:
        first, second, both = self._rows.variables[row].tolist()
        return f"{both} must be on exactly if {first} and {second} are"
