"""Factors as flat tables: what the kernels read, and what the numpy twin is written for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when they are used
from numpy.typing import NDArray

from spigot.factors import FactorKind, Flags, Indices, Reals, Rows

_DEPTH = 8
"""How long a chain of outputs that follow from each other may be to be followed to its end."""


@dataclass(frozen=True, eq=False)
class FactorTable:
    """The factors of one or more graphs.

    Factor f has the entries `start[f] : start[f + 1]` of `variable`, `negated` and `weight`; graph g has the factors
    `factors_from[g] : factors_from[g + 1]`. Where a factor `defines`, its last variable follows from the others.
    """

    kind: NDArray[np.uint8]
    start: Indices
    variable: NDArray[np.int32]
    negated: NDArray[np.uint8]
    weight: Reals
    least: Reals
    most: Reals
    factors_from: Indices
    defines: Flags

    @classmethod
    def of(cls, several: Sequence[Rows], graphs: int = 1) -> "FactorTable":
        """The table of rows, those of one graph next to each other and otherwise in the order given."""
        parts = [_Flat.of(rows) for rows in several]
        parts = parts or [_Flat.of(Rows(FactorKind.ONE, np.empty((0, 0), np.int64)))]
        flat = _Flat._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
        if graphs > 1:
            flat = flat.in_order(np.argsort(flat.graph, kind="stable"))
        start = np.concatenate(([0], np.cumsum(flat.size)))
        factors_from = np.searchsorted(flat.graph, np.arange(graphs + 1))
        return cls(
            flat.kind,
            start.astype(np.int64),
            flat.variable.astype(np.int32),
            flat.negated.astype(np.uint8),
            flat.weight,
            flat.least,
            flat.most,
            factors_from.astype(np.int64),
            flat.defines,
        )

    @property
    def graphs(self) -> int:
        """How many graphs there are."""
        return len(self.factors_from) - 1

    def slots(self) -> Indices:
        """How many entries each graph has."""
        return np.diff(self.start[self.factors_from])

    def literals(self, point: Reals) -> Reals:
        """The literals of all factors of one graph's values, one entry after another."""
        values = point[self.variable]
        return np.where(self.negated != 0, 1 - values, values)

    def derived(self, z: Reals) -> Reals:
        """A 0/1 vector of the first graph in which whatever a factor defines follows from the rest."""
        if not self.defines.any():
            return z
        last, first = self.start[1:] - 1, self.start[:-1]
        flipped = (self.negated[last] != 0) ^ (self.kind == FactorKind.ONE)  # of exactly one, the output is negated
        z = z.copy()
        for _ in range(_DEPTH):
            literals = self.literals(z)
            literals[last] = 0
            any_on = np.maximum.reduceat(literals, first) > 0
            value = (any_on ^ flipped)[self.defines]
            output = self.variable[last[self.defines]]
            if (z[output] == value).all():
                break
            z[output] = value
        return z

    def alone(self, graph: int) -> "FactorTable":
        """The table of one graph."""
        first, last = self.factors_from[graph], self.factors_from[graph + 1]
        low, high = self.start[first], self.start[last]
        return FactorTable(
            self.kind[first:last],
            self.start[first : last + 1] - low,
            self.variable[low:high],
            self.negated[low:high],
            self.weight[low:high],
            self.least[first:last],
            self.most[first:last],
            np.array([0, last - first]),
            self.defines[first:last],
        )

    def for_kernels(self, graph: Indices) -> tuple[NDArray, ...]:
        """What kernels take: the table, and which graph each instance is of."""
        rows = (self.kind, self.start, self.variable, self.negated, self.weight, self.least, self.most)
        return *rows, self.defines.view(np.uint8), self.factors_from, graph


class _Flat(NamedTuple):
    kind: NDArray[np.uint8]
    size: Indices
    graph: Indices
    least: Reals
    most: Reals
    defines: Flags
    variable: Indices
    negated: Flags
    weight: Reals

    @classmethod
    def of(cls, rows: Rows) -> "_Flat":
        count = len(rows.variables)
        there = rows.variables >= 0
        size = there.sum(1)
        nothing = np.zeros(count)
        return cls(
            np.full(count, rows.kind, np.uint8),
            size,
            np.zeros(count, np.int64) if rows.graph is None else rows.graph,
            nothing if rows.least is None else rows.least,
            nothing if rows.most is None else rows.most,
            np.full(count, rows.defines),
            rows.variables[there],
            np.zeros(int(size.sum()), bool) if rows.negated is None else rows.negated[there],
            np.ones(int(size.sum())) if rows.weights is None else rows.weights[there],
        )

    def in_order(self, order: Indices) -> "_Flat":
        before = np.concatenate(([0], np.cumsum(self.size)))[:-1]
        size = self.size[order]
        # Entry k of the new order comes from where its factor began before, as far into it.
        into = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
        entries = np.repeat(before[order], size) + into
        of_factors = (column[order] for column in self[:6])
        of_entries = (column[entries] for column in self[6:])
        return _Flat._make((*of_factors, *of_entries))


def inequalities(table: FactorTable, parts: int) -> "tuple[scipy.sparse.csr_matrix, Reals]":
    r"""The local polytope of the only graph as $A x \le b$, beside $0 \le x \le 1$. It must have no structures."""
    size = np.diff(table.start)
    owner = np.repeat(np.arange(len(size)), size)
    kind, last = table.kind[owner], table.start[1:] - 1
    ends = np.zeros(len(owner), bool)
    ends[last] = True
    ones = np.ones(len(owner))
    entries: list[tuple[Indices, Indices, Reals]] = []  # row, entry of the table, coefficient
    bounds: list[Reals] = []

    def demand(row: Indices, slot: Indices, coefficient: Reals, most: Reals) -> None:
        """Rows of literals, counted from 0, and what each may be at most."""
        flipped = table.negated[slot] != 0
        entries.append((row + sum(map(len, bounds)), slot, np.where(flipped, -coefficient, coefficient)))
        bounds.append(most - np.bincount(row, coefficient * flipped, len(most)))

    def sums(kinds: Sequence[FactorKind], coefficient: Reals, most: Reals) -> None:
        slot = np.flatnonzero(np.isin(kind, kinds))
        factors, row = np.unique(owner[slot], return_inverse=True)
        demand(row, slot, coefficient[slot], most[factors])

    one = np.ones(len(size))
    sums([FactorKind.ONE, FactorKind.AT_MOST_ONE], ones, one)
    sums([FactorKind.ONE, FactorKind.AT_LEAST_ONE], -ones, -one)
    sums([FactorKind.ANY], np.where(ends, 1.0, -1.0), 0 * one)
    sums([FactorKind.SUM], table.weight, table.most)
    sums([FactorKind.SUM], -table.weight, -table.least)
    inputs = np.flatnonzero(np.isin(kind, [FactorKind.ANY, FactorKind.NEEDS]) & ~ends)
    row = np.arange(len(inputs))
    pairs = np.concatenate((inputs, last[owner[inputs]]))
    signs = np.repeat([1.0, -1.0], len(inputs))
    demand(np.concatenate((row, row)), pairs, signs, np.zeros(len(inputs)))
    rows, slots, data = (np.concatenate(columns) for columns in zip(*entries, strict=True))
    bound = np.concatenate(bounds)
    return scipy.sparse.csr_matrix((data, (rows, table.variable[slots])), (len(bound), parts)), bound
