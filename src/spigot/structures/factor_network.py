"""From the factors that users name to the tables that algorithms walk over."""

from collections.abc import Sequence

import numpy as np

from spigot._algorithms.factor_networks import Network, Outside
from spigot._algorithms.factor_tables import FactorTable
from spigot.factors import AbstractFactor, FactorKind, Member
from spigot.interface import AbstractStructure
from spigot.polytopes.hull import ConvexHull


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
    return Network(table, _outside(table, members), max((parts for parts, _ in graphs), default=0))


def _outside(table: FactorTable, members: list[tuple[int, AbstractStructure, np.ndarray]]) -> tuple[Outside, ...]:
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
        found.append(Outside(structure, hull.project, hull.face, factor, np.concatenate(padded)))
    return tuple(found)
