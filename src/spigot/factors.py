"""What a factor graph is made of: demands on a few of its variables at a time.

A factor names variables by their numbers. Given rows of numbers instead of one, it stands for as many factors of its
kind, so that a thousand of them cost no more to write down, or to read, than one:

    >>> ExactlyOne([0, 1, 2])
    ExactlyOne(1 of 3)
    >>> ExactlyOne([[0, 1, 2], [3, 4]])                 # rows may differ in length; -1 fills up the rows of a tensor
    ExactlyOne(2 of up to 3)
"""

import abc
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spigot.interface import AbstractStructure

__all__ = [
    "AbstractFactor",
    "And",
    "AtLeastOne",
    "AtMostOne",
    "Budget",
    "ExactlyOne",
    "Implies",
    "Knapsack",
    "Member",
    "Or",
    "Pair",
]

Numbers: TypeAlias = Sequence[Any] | Tensor | NDArray[Any]
"""Variables of one factor, or rows of them."""

Ends: TypeAlias = int | Sequence[int] | Tensor | NDArray[Any]
"""One variable, or one for each row."""

Reals = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


class FactorKind(enum.IntEnum):
    """What a factor demands of its literals; the numbers are those of `native/factors/factors.hpp`."""

    ONE = 0
    AT_MOST_ONE = 1
    AT_LEAST_ONE = 2
    ANY = 3  # the last is on exactly if any of the others is
    NEEDS = 4  # whichever of the others is on, the last is on
    SUM = 5  # weights times literals, between two bounds
    OUTSIDE = 6  # a structure, which knows its own members


class Rows(NamedTuple):
    """Factors of one kind, one in each row.

    Attributes:
        kind: What they demand.
        variables: Their variables, `(m, k)`, -1 where a row is shorter.
        graph: Which graph each belongs to, `(m,)`; the first if `None`.
        negated: Literals that are 1 - x, `(m, k)`.
        weights: Positive numbers, `(m, k)`; ones if `None`.
        least: Bounds of sums, `(m,)`.
        most: Bounds of sums, `(m,)`.
        defines: Whether the last variable follows from the others.
    """

    kind: FactorKind
    variables: Indices
    graph: Indices | None = None
    negated: Flags | None = None
    weights: Reals | None = None
    least: Reals | None = None
    most: Reals | None = None
    defines: bool = False


class AbstractFactor(abc.ABC):
    """A demand on some variables, or several of the same kind."""

    @abc.abstractmethod
    def rows(self) -> Rows:
        """The factors as rows of a table."""

    @abc.abstractmethod
    def broken(self, row: int) -> str:
        """What is wrong where one of them does not hold, in words."""

    def __repr__(self) -> str:
        rows = self.rows().variables
        return f"{type(self).__name__}({len(rows)} of {'up to ' if len(rows) > 1 else ''}{rows.shape[1]})"


class PlainFactor(AbstractFactor):
    """A factor whose table is worked out once, when it is made."""

    _rows: Rows

    def _is(self, rows: Rows) -> None:
        variables = rows.variables
        name = type(self).__name__
        ordered = np.sort(variables, 1)
        twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
        if twice.any():
            row = int(np.argwhere(twice)[0][0])
            raise ValueError(f"{name} has variable {ordered[row, 1:][twice[row]][0]} twice in row {row}.")
        if (variables < -1).any():
            raise ValueError(
                f"{name} names variable {variables.min()}; variables count from 0, and -1 stands for none."
            )
        object.__setattr__(self, "_rows", rows)

    def rows(self) -> Rows:
        return self._rows

    def _named(self, row: int) -> str:
        numbers = [str(i) for i in self._rows.variables[row].tolist() if i >= 0]
        return ", ".join(numbers[:6]) + (", ..." if len(numbers) > 6 else "")


def whole(numbers: Any, name: str, of: type = np.int64) -> NDArray[Any]:
    """Numbers as an array."""
    try:
        array = np.asarray(numbers.cpu() if isinstance(numbers, Tensor) else numbers)
    except ValueError as error:
        raise ValueError(f"{name} is given rows that do not make a table: {error}.") from error
    if of is np.int64 and array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{name} is given {array.dtype} numbers; variables are named by whole numbers.")
    return array.astype(of)


def matrix(numbers: Any, name: str, of: type = np.int64) -> NDArray[Any]:
    """One row, or rows of any lengths, filled up with -1."""
    if not isinstance(numbers, Tensor | np.ndarray):
        rows = list(numbers)
        if rows and isinstance(rows[0], Sequence):
            width = max(len(row) for row in rows)
            numbers = [[*row, *[-1] * (width - len(row))] for row in rows]
    array = whole(numbers, name, of)
    if array.ndim > 2:
        raise ValueError(f"{name} is given numbers of shape {array.shape}; it takes a row, or rows.")
    return array if array.ndim == 2 else array[None]


def ended(variables: NDArray[np.int64], output: Ends, name: str) -> NDArray[np.int64]:
    """Rows with their output behind."""
    last = np.atleast_1d(whole(output, name))
    if last.shape != (len(variables),):
        raise ValueError(f"{name} has {len(variables)} rows and {last.size} outputs; there must be one for each row.")
    if (last < 0).any():
        raise ValueError(f"{name} has output {last.min()}; variables count from 0.")
    return np.concatenate((variables, last[:, None]), 1)


def flags(flags: Any, like: NDArray[np.int64]) -> NDArray[np.bool_]:
    found = matrix(flags, "negated", of=np.bool_)
    if found.shape != like.shape:
        raise ValueError(f"negated has shape {found.shape} and the variables {like.shape}; they must be equal.")
    return found


def refuse_empty(variables: NDArray[np.int64], name: str) -> None:
    empty = ~(variables >= 0).any(1)
    if empty.any():
        raise ValueError(f"{name} has no variables in row {int(empty.argmax())}, so that nothing could meet it.")


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


@final
@dataclass(frozen=True, eq=False, repr=False)
class Member(PlainFactor):
    """Some variables, laid out as the parts of a structure, are a member of it: a tree, a chain, a matching.

    Args:
        structure: Any structure of the library, or of yours.
        variables: The variable of each part, in the structure's layout, -1 where there is none; with one axis more, as
            many factors.

    Example:
        A tree over two words, of which the first may not be the root's.

        >>> import spigot, torch
        >>> from spigot.factors import Budget
        >>> arcs = torch.tensor([[-1, 0, 1], [-1, -1, 2], [-1, 3, -1]])      # arcs[head, modifier]
        >>> tree = Member(spigot.ProjectiveTrees(), arcs)
        >>> graph = spigot.FactorGraph(4, [tree, Budget([0], most=0)])
        >>> graph.argmax(torch.tensor([5.0, 0.0, 1.0, 0.0]))
        tensor([0., 1., 0., 1.])
    """

    structure: AbstractStructure
    variables: Numbers

    def __post_init__(self) -> None:
        if not isinstance(self.structure, AbstractStructure):
            raise TypeError(f"Member is given {self.structure!r}; it needs a structure, such as ProjectiveTrees().")
        at, ndim = whole(self.variables, "Member"), self.structure.event_ndim
        if at.ndim not in (ndim, ndim + 1):
            raise ValueError(
                f"Member has variables of shape {at.shape}; {self.structure} has parts along {ndim} axes, so there "
                f"must be {ndim}, or {ndim + 1} for several factors."
            )
        object.__setattr__(self, "at", at if at.ndim == ndim + 1 else at[None])
        self._is(Rows(FactorKind.OUTSIDE, self.at.reshape(len(self.at), -1)))

    at: ClassVar[NDArray[np.int64]]

    def broken(self, row: int) -> str:
        return f"{self._named(row)} must be a member of {self.structure}"
