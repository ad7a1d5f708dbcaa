"""What a factor is: a demand on some variables, or several of the same kind, as rows of a table."""

import abc
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spigot._algorithms.factor_tables import Rows

Numbers: TypeAlias = Sequence[Any] | Tensor | NDArray[Any]
"""Variables of one factor, or rows of them."""

Ends: TypeAlias = int | Sequence[int] | Tensor | NDArray[Any]
"""One variable, or one for each row."""


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
