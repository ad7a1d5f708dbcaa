"""Factor graphs as solvers see them: the table of factors, and the structures that stand in as factors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spigot.factor_graphs.tables import FactorTable
from spigot.factors import AbstractFactor, FactorKind, Flags, Indices, Member, Reals
from spigot.interface import AbstractStructure
from spigot.polytopes.hull import ConvexHull


class StructureFactors(NamedTuple):
    """Factors that are structures of one kind: they project and decode together.

    Attributes:
        structure: Which members a factor has.
        project: The nearest point of the convex hull of them, from a point and a mask.
        face: From the same, the derivative of that projection there, a function of directions.
        factor: Where each factor stands in the table, `(m,)`.
        at: The variable of each part, `(m, *parts)`, -1 where there is none.
    """

    structure: AbstractStructure
    project: Callable[[Tensor, Tensor], Tensor]
    face: Callable[[Tensor, Tensor], Callable[[Tensor], Tensor]]
    factor: Indices
    at: Indices


@dataclass(frozen=True, eq=False)
class Network:
    """One or more factor graphs.

    Attributes:
        table: All factors.
        outside: Those that are structures, by structure.
        parts: How many variables a graph has, at most.
    """

    table: FactorTable
    outside: tuple[StructureFactors, ...]
    parts: int

    @cached_property
    def degree(self) -> Indices:
        """How many factors know each variable, `(graphs, parts)`."""
        owner = np.repeat(np.arange(self.table.graphs), self.table.slots())
        flat = np.bincount(owner * self.parts + self.table.variable, minlength=self.table.graphs * self.parts)
        return flat.reshape(self.table.graphs, self.parts)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What tells two networks apart."""
        arrays = tuple(getattr(self.table, column.name).tobytes() for column in fields(self.table))
        outside = tuple((group.structure, group.factor.tobytes(), group.at.tobytes()) for group in self.outside)
        return self.parts, arrays, outside

    def derived(self, z: Reals, graph: Indices) -> Reals:
        """0/1 vectors, `(batch, parts)`, in which whatever a factor defines follows from the rest."""
        if not self.table.defines.any():
            return z
        tables = {g: self.table.alone(g) for g in set(graph.tolist())}
        return np.stack([tables[g].derived(one) for g, one in zip(graph.tolist(), z, strict=True)])


@dataclass(frozen=True, eq=False)
class Incidence:
    """Where the structures of one kind stand in the state of AD3: one row for each structure in each instance.

    Attributes:
        group: The structures.
        instance: The instance of each row.
        at: The variable of each part, `(rows, *parts)`, -1 where there is none.
        slot: Where its copy and its price stand.
        mask: Parts that exist and are not ruled out.
    """

    group: StructureFactors
    instance: Indices
    at: Indices
    slot: Indices
    mask: Tensor

    @classmethod
    def of(
        cls, network: Network, group: StructureFactors, graph: Indices, slots_from: Indices, exists: Flags
    ) -> "Incidence":
        """The incidence of a group.

        Args:
            network: The graphs.
            group: The structures of one kind.
            graph: The graph of each instance.
            slots_from: Where the entries of each instance begin.
            exists: Variables that exist, `(batch, parts)`.
        """
        table = network.table
        owner = np.searchsorted(table.factors_from, group.factor, side="right") - 1
        instance, row = np.nonzero(graph[:, None] == owner[None, :])
        at = group.at[row]
        flat = at.reshape(len(at), -1)
        first = table.start[group.factor[row]] - table.start[table.factors_from[graph[instance]]]
        local = np.cumsum(flat >= 0, 1) - 1
        slot = (slots_from[instance] + first)[:, None] + local
        mask = (flat >= 0) & exists[instance[:, None], np.maximum(flat, 0)]
        return cls(group, instance, at, slot.reshape(at.shape), torch.from_numpy(mask.reshape(at.shape)))

    def gather(self, values: Reals) -> Tensor:
        """Values of variables, `(batch, parts)`, in the layout of the structures; 0 where there is no part."""
        found = values[_along(self.instance, self.at), np.maximum(self.at, 0)]
        return torch.from_numpy(np.where(self.at >= 0, found, 0.0))

    def entries(self, values: Reals) -> Tensor:
        """Values of copies or prices in the layout of the structures; 0 where there is no part."""
        return torch.from_numpy(np.where(self.at >= 0, values[np.where(self.at >= 0, self.slot, 0)], 0.0))

    def put(self, values: Tensor, rows: Flags, to: Reals) -> None:
        """Write copies where they belong."""
        there = (self.at >= 0) & _along(rows, self.at)
        to[self.slot[there]] = values.numpy()[there]

    def spread(self, values: Tensor, to: NDArray[Any]) -> None:
        """Write values of variables where they belong, `(batch, parts)`."""
        there = self.at >= 0
        instance = np.broadcast_to(_along(self.instance, self.at), self.at.shape)[there]
        to[instance, self.at[there]] = values.numpy()[there]

    def covered(self, shape: tuple[int, ...]) -> Flags:
        """The variables, `(batch, parts)`, that a structure here has among its parts."""
        found = np.zeros(shape, bool)
        self.spread(torch.ones(self.at.shape, dtype=torch.bool), found)
        return found

    def sums(self, values: Tensor, batch: int) -> Reals:
        """The sum of each row, added up by instance."""
        total = np.zeros(batch)
        np.add.at(total, self.instance, values.flatten(1).sum(1).numpy())
        return total


def _along(values: NDArray[Any], like: Indices) -> NDArray[Any]:
    """One value for each row, beside its parts."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def make_network(graphs: Sequence[tuple[int, Sequence[AbstractFactor]]]) -> Network:
    """The tables of some graphs, each given by its number of parts and its factors.

    Example:
        >>> from spigot.factors import ExactlyOne
        >>> make_network([(3, [ExactlyOne([[0, 2]])]), (2, [])]).parts
        3
    """
    rows, members = [], []
    for g, (parts, factors) in enumerate(graphs):
        for factor in factors:
            if not isinstance(factor, AbstractFactor):
                raise TypeError(f"factors holds {factor!r}; it takes factors, such as spigot.factors.ExactlyOne.")
            one = factor.rows()
            if one.variables.size and one.variables.max() >= parts:
                raise ValueError(
                    f"{factor} names variable {one.variables.max()}; the graph has {parts}, counted from 0."
                )
            some = (one.variables >= 0).any(1)  # a factor without variables that could be broken was refused
            picked = [None if column is None else column[some] for column in one[3:7]]
            rows.append(
                one._replace(
                    variables=one.variables[some],
                    graph=np.full(int(some.sum()), g),
                    **dict(zip(("negated", "weights", "least", "most"), picked, strict=True)),
                )
            )
            if isinstance(factor, Member):
                members.append((g, factor.structure, factor.at[some]))
    table = FactorTable.of(rows, max(1, len(graphs)))
    return Network(table, _structure_factors(table, members), max((parts for parts, _ in graphs), default=0))


def _structure_factors(
    table: FactorTable, members: list[tuple[int, AbstractStructure, np.ndarray]]
) -> tuple[StructureFactors, ...]:
    """Structures among the factors, equal ones together, filled up to one size."""
    places = np.flatnonzero(table.kind == FactorKind.OUTSIDE)  # in the order of graphs, and of factors in a graph
    groups: dict[AbstractStructure, list[tuple[np.ndarray, np.ndarray]]] = {}
    begin = 0
    for _, structure, at in members:
        groups.setdefault(structure, []).append((places[begin : begin + len(at)], at))
        begin += len(at)
    found = []
    for structure, several in groups.items():
        size = np.max([at.shape[1:] for _, at in several], 0)
        padded = [
            np.pad(
                at, [(0, 0), *((0, int(s - n)) for s, n in zip(size, at.shape[1:], strict=True))], constant_values=-1
            )
            for _, at in several
        ]
        hull = ConvexHull(structure)
        factor = np.concatenate([place for place, _ in several])
        found.append(StructureFactors(structure, hull.project, hull.face, factor, np.concatenate(padded)))
    return tuple(found)
