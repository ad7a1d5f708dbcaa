r"""Alternating directions on factor graphs (AD3), and the same for projections (LP-SparseMAP).

Every factor f keeps a copy $q_f$ of its variables and a price on each; the consensus p is what the copies agree on:

$$q_f = \operatorname{proj}_f(p + \lambda_f / \rho), \qquad
  p = \frac{s + \sum_f (\rho q_f - \lambda_f)}{w + \rho \deg}, \qquad \lambda_f \leftarrow \lambda_f - \rho (q_f - p).$$

It maximises $s^\top p - \tfrac w2 \lVert p \rVert^2$ over the local polytope, the points that suit every factor alone:
$w = 0$ is the linear relaxation of the best member, $w = 1$ the projection of s. At any moment the prices prove a
bound, the sum of what each factor would get by itself.

References:
    Martins, Figueiredo, Aguiar, Smith, Xing (2015), AD3: Alternating directions dual decomposition.
    Niculae, Martins (2020), LP-SparseMAP: Differentiable relaxed optimization for sparse structured prediction.
"""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spigot._runtime import native
from spigot._runtime.native import kernel_threads
from spigot.factor_graphs.ad3_numpy import excess_reference, run_ad3_in_numpy
from spigot.factor_graphs.network import Incidence, Network
from spigot.factors import Flags, Indices, Reals


class Status(enum.IntEnum):
    """How an instance stands; the numbers are those of `native/kernels.hpp`."""

    GOING = 0
    SETTLED = 1
    OPTIMAL = 2
    INFEASIBLE = 3
    CUT = 4


class Column(enum.IntEnum):
    """What stands where in the report on an instance: see `FactorReport` in `native/kernels.hpp`."""

    STATUS = 0
    ITERATIONS = 1
    RHO = 2
    APART = 3
    CHANGE = 4
    BOUND = 5
    VALUE = 6
    CUTOFF = 7
    OUTSIDE = 8


COLUMNS = 10

NEVER, STEPS, ONLY = 0, 1, 2
"""When to look at what the prices prove: never, every few steps, or now and take no steps."""


@dataclass(frozen=True)
class Options:
    """How to run AD3.

    Attributes:
        quadratic: The weight w of the quadratic term.
        tolerance: When copies and consensus agree: root mean square.
        gap: A member as good as the bound up to this is best; scores are scaled to at most 1.
        max_iterations: When to give up.
        rho: Strength of the penalty at the start.
        look_every: Iterations from one look at bound and member to the next.
        adapt_every: Iterations from one change of rho to the next.
        imbalance: How far disagreement and movement may be apart before rho changes.
    """

    quadratic: float = 0.0
    tolerance: float = 1e-6
    gap: float = 1e-7
    max_iterations: int = 1000
    rho: float = 0.1
    look_every: int = 10
    adapt_every: int = 10
    imbalance: float = 10.0


@dataclass
class State:
    """Where AD3 stands on some instances.

    Attributes:
        network: The graphs.
        graph: The graph of each instance, `(batch,)`.
        scores: Scores, `(batch, parts)`.
        fixed: 0 or 1 where a variable may not move, -1 elsewhere.
        exists: Variables that are parts of the structures among the factors.
        p: The consensus.
        z: The best member found, if the report has a value.
        q: The copies of all factors, instance after instance.
        price: The prices on them.
        report: A row for each instance; see `Column`.
        faces: Points that were projected; if given, every projection is replaced by its derivative there.
    """

    network: Network
    graph: Indices
    scores: Reals
    fixed: NDArray[np.int8]
    exists: Flags
    p: Reals
    z: Reals
    q: Reals
    price: Reals
    report: Reals
    faces: Reals | None = None
    slots_from: Indices = field(init=False)

    def __post_init__(self) -> None:
        self.slots_from = np.concatenate(([0], np.cumsum(self.network.table.slots()[self.graph])))

    @classmethod
    def begin(
        cls,
        network: Network,
        graph: Indices,
        scores: Reals,
        fixed: NDArray[np.int8],
        rho: float,
        exists: Flags | None = None,
    ) -> "State":
        """Nothing said yet."""
        slots = int(network.table.slots()[graph].sum())
        report = np.zeros((len(scores), COLUMNS))
        report[:, Column.RHO] = rho
        report[:, Column.BOUND] = np.inf
        report[:, Column.VALUE] = -np.inf
        report[:, Column.CUTOFF] = -np.inf
        p, z, q, price = (np.zeros(shape) for shape in (scores.shape, scores.shape, slots, slots))
        return cls(network, graph, scores, fixed, fixed != 0 if exists is None else exists, p, z, q, price, report)

    def alone(self, index: int) -> "State":
        """Those on one instance; what changes there changes here."""
        one, own = slice(index, index + 1), slice(self.slots_from[index], self.slots_from[index + 1])
        return replace(
            self,
            **{name: getattr(self, name)[one] for name in ("graph", "scores", "fixed", "exists", "p", "z", "report")},
            q=self.q[own],
            price=self.price[own],
            faces=None if self.faces is None else self.faces[own],
        )

    def __getitem__(self, column: Column) -> Reals:
        """One number for each instance."""
        return self.report[:, column]

    @property
    def going(self) -> Flags:
        """Which instances are not at an end."""
        return self[Column.STATUS] == Status.GOING


def run_ad3(state: State, options: Options, *, judge: bool = True) -> State:
    """Go on until every instance has come to an end, or to the limit of iterations.

    Args:
        state: Of the instances; changed.
        options: How to go on.
        judge: Whether to look for bounds and members on the way.
    """
    if not state.network.outside:
        _advance(state, options, options.max_iterations, STEPS if judge else NEVER)
        return state
    place = (state.graph, state.slots_from, state.exists)
    incidences = [Incidence.of(state.network, group, *place) for group in state.network.outside]
    projections = [_projection(state, incidence) for incidence in incidences]
    _advance(state, options, 0, NEVER)
    for _ in range(options.max_iterations):
        going = state.going
        if not going.any():
            break
        for incidence, project in zip(incidences, projections, strict=True):
            _project(state, incidence, going, project)
        _advance(state, options, 1, NEVER)
        if judge:
            looked = going & (~state.going | (state[Column.ITERATIONS] % options.look_every == 0))
            if looked.any():
                _judge(state, options, incidences, looked)
    return state


def excess(network: Network, graph: Indices, point: Reals) -> tuple[Reals, Indices]:
    """By how much each instance breaks its worst factor, structures aside, and which one of its graph's that is."""
    if not native.available:
        return excess_reference(network.table, graph, point)
    worst, which = np.zeros(len(point)), np.zeros(len(point), np.int64)
    tables = network.table.for_kernels(graph)
    native.kernels.factor_excess(tables, np.ascontiguousarray(point), worst, which, kernel_threads())
    return worst, which


def _advance(state: State, options: Options, iterations: int, judge: int) -> None:
    """Some iterations of all instances that are going."""
    arguments = (
        state.network.table.for_kernels(state.graph),
        *(state.slots_from, state.scores, state.fixed, state.p, state.z, state.q, state.price, state.faces),
        *(state.report, options.quadratic, options.tolerance, options.gap, judge, iterations),
        *(options.look_every, options.adapt_every, options.imbalance),
    )
    if native.available:
        native.kernels.negotiate(*arguments, kernel_threads())
    else:
        run_ad3_in_numpy(state.network, *arguments[1:], state.graph)


def _projection(state: State, incidence: Incidence) -> "_Projection":
    """How the copies of structures are found: by projection, or along the faces that were reached before."""
    if state.faces is None:
        return incidence.group.project
    along = incidence.group.face(incidence.entries(state.faces), incidence.mask)
    return lambda point, mask: along(point)


_Projection = Callable[[Tensor, Tensor], Tensor]


def _project(state: State, incidence: Incidence, going: Flags, project: _Projection) -> None:
    """The copies of structures in the instances that are going."""
    rows = going[incidence.instance]
    beside = (-1, *[1] * (incidence.at.ndim - 1))
    rho = torch.from_numpy(state[Column.RHO][incidence.instance].reshape(beside))
    point = incidence.gather(state.p) + incidence.entries(state.price) / rho
    incidence.put(project(point, incidence.mask & torch.from_numpy(rows.reshape(beside))), rows, state.q)


def _judge(state: State, options: Options, incidences: Sequence[Incidence], looked: Flags) -> None:
    """What prices prove with structures among the factors, and what rounding finds."""
    outside = state[Column.OUTSIDE]
    outside[:] = 0
    for incidence in incidences:
        price = incidence.entries(state.price)
        outside += incidence.sums(price * incidence.group.structure.argmax(price, incidence.mask), len(outside))
    z = rounded(state, incidences)
    better = looked & is_member(state, z, incidences)
    value = (z * state.scores).sum(1)
    better &= value > state[Column.VALUE]
    state.z[better] = z[better]
    state[Column.VALUE][better] = value[better]
    _advance(state, options, 0, ONLY)


def rounded(state: State, incidences: Sequence[Incidence]) -> Reals:
    """A guess from the consensus: structures decode it, what is left goes to the nearer of 0 and 1.

    Structures decode one kind after the other, and hold to what is fixed and to what those before have chosen: a chain
    over some arcs of a tree follows the tree, wherever it can.
    """
    z = np.where(state.fixed >= 0, state.fixed, state.p > 0.5).astype(np.float64)
    settled, most = state.fixed >= 0, 1.0 + state.network.parts  # more than all the rest is worth together
    for incidence in incidences:
        wish = incidence.gather(np.where(settled, most * (2 * z - 1), state.p))
        incidence.spread(incidence.group.structure.argmax(wish, incidence.mask), z)
        settled = settled | incidence.covered(settled.shape)
    return state.network.derived(z, state.graph)


def is_member(state: State, z: Reals, incidences: Sequence[Incidence]) -> Flags:
    """Whether all factors agree, and nothing that is fixed has moved."""
    worst, _ = excess(state.network, state.graph, z)
    good = (worst <= 1e-9) & ((state.fixed < 0) | (z == state.fixed)).all(1)
    for incidence in incidences:
        fits = incidence.group.structure.contains(incidence.gather(z), incidence.mask).numpy()
        np.logical_and.at(good, incidence.instance, fits)
    return good
