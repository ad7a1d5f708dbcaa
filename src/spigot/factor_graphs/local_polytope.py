"""The local polytope of a factor graph: what suits every factor alone."""

from dataclasses import dataclass, field
from functools import partial
from typing import final

import numpy as np
import torch
from torch import Tensor

from spigot._runtime.checks import check_parts, contradiction_error, instance_name
from spigot._runtime.host import HostFunction
from spigot.factor_graphs.ad3 import Column, Options, State, Status, excess, run_ad3
from spigot.factor_graphs.network import Incidence, Network
from spigot.factors import Indices
from spigot.interface import AbstractPolytope
from spigot.types import Flags, Mask, Parts

PROJECTING = Options(quadratic=1.0, tolerance=1e-13, max_iterations=10_000, rho=1.0)


@final
@dataclass(frozen=True, eq=False, repr=False)
class LocalPolytope(AbstractPolytope):
    r"""Points that each factor of a graph, by itself, takes for a mixture of its members.

    $$\mathcal L = \big\{p \in [0, 1]^d \;\big|\; p_f \in \operatorname{conv}\mathcal Z_f
    \text{ for every factor } f\big\}.$$

    It contains the convex hull of the graph's members, and is that hull where the factors form a tree. Projections go
    by AD3 as the argmax (LP-SparseMAP), to about 1e-8, and have their derivative.

    Made by `FactorGraph.relaxation`.

    Example:
        >>> import spigot
        >>> from spigot.factors import AtMostOne
        >>> graph = spigot.FactorGraph(3, [AtMostOne([0, 1]), AtMostOne([1, 2])])
        >>> graph.relaxation.project(torch.tensor([1.0, 1.0, 1.0])).round(decimals=4)
        tensor([0.6667, 0.3333, 0.6667])
        >>> graph.relaxation.contains(torch.tensor([0.5, 0.5, 0.6]))
        tensor(False)

    References:
        Niculae, Martins (2020), LP-SparseMAP: Differentiable relaxed optimization for sparse structured prediction.
    """

    network: Network
    graphs: Indices | None = None
    _projector: HostFunction = field(init=False)
    _derivative: HostFunction = field(init=False)

    def __post_init__(self) -> None:
        where = {"network": self.network, "graphs": self.graphs}
        object.__setattr__(self, "_projector", HostFunction(partial(_project, **where), 1, "point"))
        object.__setattr__(self, "_derivative", HostFunction(partial(_pull, **where), 1, "point"))

    def _key(self) -> tuple[object, ...]:
        return self.network.key, None if self.graphs is None else self.graphs.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalPolytope) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"LocalPolytope({len(self.network.table.kind)} factors, {self.network.parts} parts)"

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        """As `AbstractPolytope.project`, differentiable.

        Raises:
            ValueError: A point is NaN or infinite, or the polytope of an instance is empty.
        """
        mask = check_parts(point, mask, 1, "point")
        check_network(point, self.network, self.graphs, "point")
        if torch.is_grad_enabled() and point.requires_grad:
            return _Projection.apply(point, mask, self)
        return self._projector(point.detach(), mask)

    def project_vjp(self, point: Parts, grad: Parts, mask: Mask) -> Parts:
        both = torch.stack((point.detach(), grad.detach().to(point)))
        return self._derivative(both, mask.expand_as(both))[0]

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = check_parts(point, mask, 1, "point")
        check_network(point, self.network, self.graphs, "point")
        p = rows_of(point.detach().double().cpu()).numpy()
        exists = mask.cpu().reshape(p.shape).numpy()
        graph = graph_of(self.graphs, len(p))
        good = ((p >= -atol) & (p <= 1 + atol) & (exists | (abs(p) <= atol))).all(1)
        padding = np.logical_not(exists.any(1))
        good &= (excess(self.network, graph, p)[0] <= atol) | padding
        slots_from = np.zeros(len(p), np.int64)
        for group in self.network.outside:
            incidence = Incidence.of(self.network, group, graph, slots_from, exists)
            values = incidence.gather(p)
            off = (values - group.project(values, incidence.mask)).abs().flatten(1).amax(1).numpy()
            np.logical_and.at(good, incidence.instance, (off <= atol) | padding[incidence.instance])
        return torch.from_numpy(good).to(point.device).reshape(point.shape[:-1])


class _Projection(torch.autograd.Function):
    """The projection, with its derivative: what of a direction lies along the face that was reached."""

    @staticmethod
    def forward(point: Tensor, mask: Tensor, polytope: LocalPolytope) -> Tensor:
        return polytope._projector(point.detach(), mask)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        point, mask, ctx.polytope = inputs
        ctx.save_for_backward(point, mask)

    @staticmethod
    def backward(ctx, *grads):
        point, mask = ctx.saved_tensors
        return ctx.polytope.project_vjp(point, grads[0], mask), None, None


def check_network(parts: Tensor, network: Network, graphs: Indices | None, what: str) -> None:
    """The last axis must have one entry for each variable, and there must be a graph for each instance."""
    if parts.shape[-1] != network.parts:
        raise ValueError(
            f"{what} has shape {tuple(parts.shape)}; its last axis must have {network.parts} entries, one for each "
            "variable of the factor graph."
        )
    count = parts.shape[:-1].numel()
    if graphs is not None and count != len(graphs):
        raise ValueError(
            f"{what} has shape {tuple(parts.shape)}, which is {count} instances; there are {len(graphs)} factor "
            "graphs, one for each."
        )


def rows_of(parts: Tensor) -> Tensor:
    """One axis of instances, and one of parts."""
    return parts.reshape(parts.shape[:-1].numel(), parts.shape[-1])


def graph_of(graphs: Indices | None, count: int) -> Indices:
    """The graph of each instance: the only one, if there are not as many as instances."""
    return np.zeros(count, np.int64) if graphs is None else graphs


def _solved(point: Tensor, mask: Tensor, network: Network, graphs: Indices | None) -> State:
    """The projection of each instance, as a state that has come to an end."""
    batch = tuple(point.shape[:-1])
    values = rows_of(point.double()).numpy()
    exists = mask.reshape(values.shape).numpy()
    if not np.isfinite(values[exists]).all():
        index, part = (int(i) for i in np.argwhere(~np.isfinite(values) & exists)[0])
        raise ValueError(
            f"point of {instance_name(index, batch)} is {values[index, part]} at part [{part}]; only finite points "
            "have a nearest."
        )
    fixed = np.where(exists, -1, 0).astype(np.int8)
    state = State.begin(network, graph_of(graphs, len(values)), np.where(exists, values, 0.0), fixed, PROJECTING.rho)
    state[Column.STATUS][~exists.any(1)] = Status.SETTLED
    run_ad3(state, PROJECTING)
    empty = state[Column.STATUS] == Status.INFEASIBLE
    if empty.any():
        raise contradiction_error(int(empty.argmax()), batch)
    return state


def _project(point: Tensor, mask: Tensor, network: Network, graphs: Indices | None) -> Tensor:
    state = _solved(point, mask, network, graphs)
    return torch.from_numpy(np.clip(state.p, 0.0, 1.0)).to(point).reshape(point.shape)


def _pull(both: Tensor, mask: Tensor, network: Network, graphs: Indices | None) -> Tensor:
    """The derivative at the first of two, applied to the second: AD3 once more, along the faces reached."""
    point, direction = both
    state = _solved(point, mask[0], network, graphs)
    instance = np.repeat(np.arange(len(state.p)), np.diff(state.slots_from))
    variable = np.concatenate([_variables(network, g) for g in state.graph]) if len(state.graph) else np.empty(0, int)
    faces = state.p[instance, variable] + state.price / state[Column.RHO][instance]
    # A variable that no factor knows moves freely between its bounds, and not beyond them.
    free = network.degree[state.graph] == 0
    held = (state.fixed >= 0) | (free & ((state.p <= 0) | (state.p >= 1)))
    given = np.where(held, 0.0, direction.double().reshape(state.p.shape).numpy())
    fixed = np.where(held, 0, -1).astype(np.int8)
    along = State.begin(network, state.graph, given, fixed, PROJECTING.rho, state.exists)
    along.faces = faces
    run_ad3(along, PROJECTING, judge=False)
    pulled = torch.from_numpy(along.p).to(point).reshape(point.shape)
    return torch.stack((pulled, torch.zeros_like(pulled)))


def _variables(network: Network, graph: int) -> Indices:
    table = network.table
    first, last = table.start[table.factors_from[graph]], table.start[table.factors_from[graph + 1]]
    return table.variable[first:last].astype(np.int64)
