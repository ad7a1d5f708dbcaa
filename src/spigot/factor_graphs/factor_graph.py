"""Factor graphs: whatever a few variables at a time may demand of each other."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor

from spigot._runtime.checks import check_parts, contradiction_error, infinite_error, instance_name
from spigot._runtime.host import HostFunction
from spigot._runtime.precision import upcast_half
from spigot._runtime.reduce import refuse_nan
from spigot.factor_graphs.ad3 import Options
from spigot.factor_graphs.ad3_numpy import excesses
from spigot.factor_graphs.branch_and_bound import Found, best_members
from spigot.factor_graphs.local_polytope import LocalPolytope, check_network, graph_of, rows_of
from spigot.factor_graphs.network import Network, make_network
from spigot.factor_graphs.tables import FactorTable, inequalities
from spigot.factors import AbstractFactor, Indices, Member
from spigot.interface import AbstractStructure
from spigot.structures.linear import ZeroOneProgram
from spigot.types import Flags, Mask, Parts, Values


@dataclass(frozen=True)
class FactorSolution:
    """What is known about the best member of a factor graph.

    Attributes:
        z: A member: the best, where `optimal` says so.
        relaxed: The best point of the local polytope, which may be fractional.
        value: The score of z.
        bound: No member scores more.
        integral: Whether the relaxation has a member for its solution.
        optimal: Whether z is proven to be the best member.
        iterations: How many the relaxation took.
        nodes: How many more relaxations were solved, with some variables fixed.
    """

    z: Parts
    relaxed: Parts
    value: Values
    bound: Values
    integral: Flags
    optimal: Flags
    iterations: Tensor
    nodes: Tensor

    @property
    def gap(self) -> Values:
        """How much better than z a member could be, at most."""
        return self.bound - self.value


@dataclass(frozen=True, eq=False, repr=False)
class AbstractFactorGraph(AbstractStructure):
    """What one factor graph and several have in common.

    Attributes:
        exact: Whether the argmax is searched for until it is proven best.
        max_iterations: Of AD3 for one relaxation.
        tolerance: How far factors may be from agreeing for a relaxation to count as solved, root mean square.
        max_nodes: How many relaxations with fixed variables are tried for one instance.
    """

    event_ndim: ClassVar[int] = 1
    tractable_hull: ClassVar[bool] = False

    exact: bool = field(default=False, kw_only=True)
    max_iterations: int = field(default=1000, kw_only=True)
    tolerance: float = field(default=1e-3, kw_only=True)
    max_nodes: int = field(default=10_000, kw_only=True)
    _network: Network = field(init=False)
    _polytope: LocalPolytope = field(init=False)
    _solver: HostFunction = field(init=False)

    def __post_init__(self) -> None:
        for name in ("max_iterations", "max_nodes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be 1 or more.")
        if not self.tolerance > 0:
            raise ValueError(f"tolerance is {self.tolerance}; it must be positive.")
        object.__setattr__(self, "_network", self._make_network())
        object.__setattr__(self, "_polytope", LocalPolytope(self._network, self._graphs))
        object.__setattr__(self, "_solver", HostFunction(partial(_argmax, **self._how), 1))

    def _key(self) -> tuple[object, ...]:
        """What tells two of them apart: the factors, and how hard one looks."""
        return type(self), self._polytope, self.exact, self.max_iterations, self.tolerance, self.max_nodes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractFactorGraph) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @abc.abstractmethod
    def _make_network(self) -> Network:
        """The tables."""

    @abc.abstractmethod
    def _factors(self, graph: int) -> Sequence[AbstractFactor]:
        """The factors of a graph."""

    @property
    def _graphs(self) -> Indices | None:
        """The graph of each instance; `None` if there is one for all."""
        return None

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        """The best member, proven so if `exact`; otherwise a member near the best point of the relaxation.

        The relaxation is solved first. Where its solution is a member, that is the best one. Where it is fractional, it
        is rounded: variables go to the nearer of 0 and 1, structures among the factors decode it, outputs follow from
        their inputs. If that is no member, variables are fixed one by one, as the relaxation suggests, until there is
        one. The result always satisfies every factor. `solve` says how good it is.

        A part scored minus infinity is never used.

        Raises:
            ValueError: A score is NaN or infinite, there is no member, or none was found within `max_nodes`.
        """
        mask = self._check(scores, mask)
        return self._solver(scores.detach(), mask)

    @upcast_half
    def solve(self, scores: Parts, mask: Mask | None = None) -> FactorSolution:
        """The argmax with all that is known about it.

        Args:
            scores: The part scores.
            mask: Parts that exist.
        """
        mask = self._check(scores, mask)
        found = _find(scores.detach(), mask, **self._how)
        whole, each = tuple(scores.shape), tuple(scores.shape[:-1])

        def tensor(values: np.ndarray, like: Tensor | None = scores) -> Tensor:
            moved = torch.from_numpy(values.reshape(whole if values.ndim == 2 else each))
            return moved.to(scores.device) if like is None else moved.to(like)

        real = (found.z, found.relaxed, found.value, found.bound)
        flags = (found.integral, found.optimal, found.iterations, found.nodes)
        return FactorSolution(*(tensor(values) for values in real), *(tensor(values, None) for values in flags))

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        mask = self._check(z, mask, "z")
        whole = ((z == 0) | ((z == 1) & mask)).all(-1)
        return whole & self.relaxation.contains(z, mask)

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        """Factors that do not hold, masked parts in use, values other than 0 and 1."""
        mask = self._check(z, mask, "z")
        values = rows_of(z.detach().double().cpu())
        exists = mask.cpu().reshape(values.shape)
        graph = graph_of(self._graphs, len(values))
        return [self._violations(*one) for one in zip(values, exists, graph.tolist(), strict=True)]

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        """True for the first `lengths` parts; the size is that of the graph."""
        parts = self._network.parts
        if size is not None and size != parts:
            raise ValueError(f"size is {size}; the factor graph has {parts} parts, and so must its mask.")
        if lengths.numel() and int(lengths.max()) > parts:
            raise ValueError(f"a length is {int(lengths.max())}; the factor graph has {parts} parts.")
        return torch.arange(parts, device=lengths.device) < lengths.unsqueeze(-1)

    def full_mask(self, parts: Parts) -> Mask:
        return torch.ones_like(parts, dtype=torch.bool)

    @property
    def relaxation(self) -> LocalPolytope:
        """The local polytope."""
        return self._polytope

    def _check(self, parts: Parts, mask: Mask | None, what: str = "scores") -> Mask:
        mask = check_parts(parts, mask, 1, what)
        check_network(parts, self._network, self._graphs, what)
        return mask

    @property
    def _how(self) -> dict[str, Any]:
        """What the search is told."""
        options = Options(max_iterations=self.max_iterations, tolerance=self.tolerance)
        where = {"network": self._network, "graphs": self._graphs}
        return {**where, "options": options, "exact": self.exact, "max_nodes": self.max_nodes}

    def _violations(self, z: Tensor, exists: Tensor, graph: int) -> list[str]:
        found = [f"part {i} is {z[i]:g}, not 0 or 1" for i in ((z != 0) & (z != 1)).nonzero()[:, 0].tolist()]
        found += [f"part {i} is on but masked" for i in ((z != 0) & ~exists).nonzero()[:, 0].tolist()]
        if not exists.any():
            return found
        for factor in self._factors(graph):
            if isinstance(factor, Member):
                there = torch.from_numpy(factor.at >= 0)
                at = torch.from_numpy(np.maximum(factor.at, 0))
                good = factor.structure.contains(torch.where(there, z[at], 0.0), there & exists[at])
                wrong = (~good).nonzero()[:, 0].tolist()
            else:
                wrong = np.flatnonzero(excesses(FactorTable.of([factor.rows()]), z.numpy()) > 1e-6).tolist()
            found += [factor.broken(row) for row in wrong]
        return found


@final
@dataclass(frozen=True, eq=False, repr=False)
class FactorGraph(AbstractFactorGraph):
    r"""Binary variables, and factors over subsets of them that say which values go together.

    $$\mathcal Z = \{z \in \{0, 1\}^d \mid z_f \in \mathcal Z_f \text{ for every factor } f\}, \qquad
      \hat z = \arg\max_{z \in \mathcal Z} z^\top s.$$

    Factors are those of `spigot.factors`; any structure of the library is one, as `Member`. The argmax solves the
    relaxation by AD3 and rounds it; `exact=True` adds branch and bound; `solve` says how far off it can be.
    `FactorGraphs` has a graph of its own for each instance.

    Args:
        parts: How many variables there are.
        factors: What they demand of each other. A variable that no factor knows is free.
        exact: Whether the argmax is searched for until it is proven best.
        max_iterations: Of AD3 for one relaxation.
        tolerance: How far factors may be from agreeing for a relaxation to count as solved, root mean square.
        max_nodes: How many relaxations with fixed variables are tried for one instance.

    Example:
        Three variables of which one is chosen, and a fourth that is on with the first two; the fifth is worth 2 if the
        third and the fourth are on together.

        >>> from spigot.factors import ExactlyOne, Or, Pair
        >>> graph = FactorGraph(5, [ExactlyOne([0, 1, 2]), Or([0, 1], output=3), Pair(1, 3, both=4)])
        >>> graph
        FactorGraph(5 parts, 3 factors)
        >>> solution = graph.solve(torch.tensor([1.0, 0.0, 1.5, -0.5, 3.0]))
        >>> solution.z, solution.optimal
        (tensor([0., 1., 0., 1., 1.]), tensor(True))
        >>> graph.violations(torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0]))
        [['exactly one of 0, 1, 2 must be on']]

    References:
        Martins, Figueiredo, Aguiar, Smith, Xing (2015), AD3: Alternating directions dual decomposition.
    """

    parts: int
    factors: Sequence[AbstractFactor] = ()

    def __post_init__(self) -> None:
        if self.parts < 0:
            raise ValueError(f"parts is {self.parts}; it counts variables and cannot be negative.")
        object.__setattr__(self, "factors", tuple(self.factors))
        super().__post_init__()

    def __repr__(self) -> str:
        exact = ", exact" if self.exact else ""
        return f"{type(self).__name__}({self.parts} parts, {len(self._network.table.kind)} factors{exact})"

    def as_program(self) -> ZeroOneProgram:
        """The same set as a 0/1 program, for HiGHS to solve.

        Raises:
            ValueError: A structure is among the factors, which has no rows.

        Example:
            >>> from spigot.factors import AtMostOne
            >>> FactorGraph(3, [AtMostOne([0, 1]), AtMostOne([1, 2])]).as_program().argmax(torch.ones(3))
            tensor([1., 0., 1.])
        """
        if self._network.outside:
            raise ValueError(f"{self} has structures among its factors, which cannot be written as rows.")
        return ZeroOneProgram(*inequalities(self._network.table, self.parts))

    def _make_network(self) -> Network:
        return make_network([(self.parts, self.factors)])

    def _factors(self, graph: int) -> Sequence[AbstractFactor]:
        return self.factors


@final
@dataclass(frozen=True, eq=False, repr=False)
class FactorGraphs(AbstractFactorGraph):
    r"""A factor graph for each instance of a batch.

    $$\mathcal Z_b = \{z \in \{0, 1\}^{d_b} \mid z_f \in \mathcal Z_f \text{ for every factor } f \text{ of } b\}$$

    Args:
        graphs: The graphs, in the order of the instances. Those with fewer variables are filled up: mask the rest.
        exact: As in `FactorGraph`, for all of them.
        max_iterations: As in `FactorGraph`.
        tolerance: As in `FactorGraph`.
        max_nodes: As in `FactorGraph`.

    Example:
        >>> from spigot.factors import AtMostOne, ExactlyOne
        >>> graphs = FactorGraphs([FactorGraph(2, [ExactlyOne([0, 1])]), FactorGraph(3, [AtMostOne([0, 1, 2])])])
        >>> scores = torch.tensor([[-1.0, -2.0, 0.0], [1.0, 1.5, 2.0]])
        >>> graphs.argmax(scores, graphs.mask(torch.tensor([2, 3])))
        tensor([[1., 0., 0.],
                [0., 0., 1.]])
    """

    graphs: Sequence[FactorGraph]

    def __post_init__(self) -> None:
        object.__setattr__(self, "graphs", tuple(self.graphs))
        super().__post_init__()

    def __repr__(self) -> str:
        return f"FactorGraphs({len(self.graphs)} graphs of up to {self._network.parts} parts)"

    def _make_network(self) -> Network:
        return make_network([(graph.parts, graph.factors) for graph in self.graphs])

    def _factors(self, graph: int) -> Sequence[AbstractFactor]:
        return self.graphs[graph].factors

    @property
    def _graphs(self) -> Indices:
        return np.arange(len(self.graphs))


def _find(
    scores: Tensor,
    mask: Tensor,
    network: Network,
    graphs: Indices | None,
    options: Options,
    exact: bool,
    max_nodes: int,
) -> Found:
    """A member of each instance, or an error that names the first without."""
    batch = tuple(scores.shape[:-1])
    flat = (scores.shape[:-1].numel(), network.parts)
    values, exists = scores.double().cpu().numpy().reshape(flat), mask.cpu().numpy().reshape(flat)
    usable = exists
    if not np.isfinite(values).all():
        refuse_nan(scores, mask, 1, "scores")
        if (np.isposinf(values) & exists).any():
            raise infinite_error(int(np.argwhere(np.isposinf(values) & exists)[0][0]), batch, "scores")
        usable = exists & ~np.isneginf(values)
    graph = graph_of(graphs, len(values))
    found = best_members(network, graph, values, exists, usable, options, exact=exact, max_nodes=max_nodes)
    if not found.feasible.all():
        raise contradiction_error(int((~found.feasible).argmax()), batch)
    lost = np.isneginf(found.value)
    if lost.any():
        raise ValueError(
            f"no member of the factor graph of {instance_name(int(lost.argmax()), batch)} was found within {max_nodes} "
            "relaxations; there may be none, or raise max_nodes or max_iterations."
        )
    return found


def _argmax(scores: Tensor, mask: Tensor, **how: Any) -> Tensor:
    return torch.from_numpy(_find(scores, mask, **how).z).to(scores).reshape(scores.shape)
