"""Members of factor graphs: what the relaxation leaves open is settled by search.

The relaxation of a graph bounds its members and often is one. Where it is not, variables are fixed one after another:
depth first and as the relaxation suggests until a member is found, or best bound first until nothing better is left.
"""

import heapq
import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spigot._runtime import native
from spigot.factor_graphs.ad3 import Column, Options, State, Status, is_member, rounded, run_ad3
from spigot.factor_graphs.network import Incidence, Network
from spigot.factors import Flags, Indices, Reals

Fixed = NDArray[np.int8]

_SURE = 1e-2
"""How far from 0 and 1 a variable of the relaxation counts as undecided."""

_TRIES, _EFFORT = 64, 20_000
"""How many undecided variables are tried, one after another; and how many entries of factors are looked at for that, as
every try looks at the whole graph."""

GAP = 1e-6
"""How close a member must come to the bound to be the best: scores scaled to at most 1, and times a larger value."""


@dataclass
class Found:
    """What is known about the best members.

    Attributes:
        z: A member of each instance, `(batch, parts)`; all zeros where none was found.
        relaxed: The best point of the local polytope.
        value: What the member scores; minus infinity where none was found.
        bound: No member scores more.
        integral: Whether the relaxation itself has a member for its solution.
        optimal: Whether the member is proven best.
        feasible: Whether there is a member; where false it is proven that there is none.
        iterations: Of the relaxation.
        nodes: Relaxations solved after the first.
    """

    z: Reals
    relaxed: Reals
    value: Reals
    bound: Reals
    integral: Flags
    optimal: Flags
    feasible: Flags
    iterations: Indices
    nodes: Indices


def best_members(
    network: Network,
    graph: Indices,
    scores: Reals,
    exists: Flags,
    usable: Flags,
    options: Options,
    *,
    exact: bool,
    max_nodes: int,
) -> Found:
    """The best member of each instance, or a good one.

    Args:
        network: The graphs.
        graph: The graph of each instance.
        scores: Scores, finite where parts are usable.
        exists: Parts that exist; the others are off, and no part of structures among the factors.
        usable: Parts that exist and may be on.
        options: How to solve relaxations.
        exact: Whether to search until the member is proven best; otherwise until there is one.
        max_nodes: How many relaxations to solve at most, after the first, for each instance.
    """
    if not usable.all():
        scores = np.where(usable, scores, 0.0)
    scale = np.maximum(abs(scores).max(1, initial=0), 1e-300)
    fixed = -usable.view(np.int8)  # -1 where a part is free
    state = State.begin(network, graph, scores / scale[:, None], fixed, options.rho, exists)
    empty = np.logical_not(exists.any(1))  # nothing is asked of an instance that is padding
    state[Column.STATUS][empty] = Status.OPTIMAL
    state[Column.VALUE][empty] = state[Column.BOUND][empty] = 0.0
    run_ad3(state, options)
    _round(state, np.logical_not(empty))
    relaxed = np.clip(state.p, 0.0, 1.0)
    integral = (abs(relaxed - state.z).max(1, initial=0) < 1e-3) & np.isfinite(state[Column.VALUE])
    nodes = np.zeros(len(scores), np.int64)
    feasible = state[Column.STATUS] != Status.INFEASIBLE
    optimal = feasible & _is_proven(state)
    searched = feasible & ~optimal & (exact | ~np.isfinite(state[Column.VALUE]))
    for b in np.flatnonzero(searched):
        nodes[b], feasible[b] = _Search(state, int(b), options, exact).run(max_nodes)
    if searched.any():
        optimal = feasible & _is_proven(state)
    with np.errstate(over="ignore"):  # beside scores of 1e308 the sum may be no number any more; the member is the best
        value = np.where(np.isfinite(state[Column.VALUE]), state[Column.VALUE] * scale, -np.inf)
        bound = np.maximum(state[Column.BOUND] * scale, value)
    iterations = state[Column.ITERATIONS].astype(np.int64)
    return Found(state.z, relaxed, value, bound, integral, optimal, feasible, iterations, nodes)


def _is_proven(state: State) -> Flags:
    value, bound = state[Column.VALUE], state[Column.BOUND]
    known = np.isfinite(value)
    return known & (bound - np.where(known, value, 0.0) <= GAP * np.maximum(1.0, abs(np.where(known, value, 0.0))))


def _incidences(state: State) -> list[Incidence]:
    place = (state.graph, state.slots_from, state.exists)
    return [Incidence.of(state.network, group, *place) for group in state.network.outside]


def _round(state: State, asked: Flags) -> None:
    """Keep what rounding the consensus gives, where that is a member and better than what there is.

    The kernels have done so where no structure is among the factors.
    """
    if native.available and not state.network.outside:
        return
    open_ones = asked & (state[Column.STATUS] != Status.OPTIMAL) & (state[Column.STATUS] != Status.INFEASIBLE)
    if not open_ones.any():
        return
    incidences = _incidences(state)
    z = rounded(state, incidences)
    value = (z * state.scores).sum(1)
    better = open_ones & (value > state[Column.VALUE])
    if better.any():
        better &= is_member(state, z, incidences)
        state.z[better], state[Column.VALUE][better] = z[better], value[better]
    for b in np.flatnonzero(open_ones & np.isfinite(state[Column.VALUE])):
        _greedy(state.alone(int(b)))


def _greedy(state: State) -> None:
    """Switch on what the relaxation of one instance is in two minds about, the best first, where that is a member."""
    p, scores, report = state.p[0], state.scores[0], state.report[0]
    tried = np.flatnonzero((p > _SURE) & (p < 1 - _SURE) & (state.fixed[0] < 0) & (scores > 0))
    tried = tried[np.argsort(-scores[tried])][: min(_TRIES, _EFFORT // max(1, len(state.q)))]
    incidences = _incidences(state) if len(tried) else []
    for variable in tried:
        z = state.z.copy()
        z[0, variable] = 1.0
        z = state.network.derived(z, state.graph)
        value = float(z[0] @ scores)
        if value > report[Column.VALUE] and is_member(state, z, incidences)[0]:
            state.z[:], report[Column.VALUE] = z, value


@dataclass
class _Search:
    """Of one instance."""

    state: State
    index: int
    options: Options
    exact: bool

    def run(self, max_nodes: int) -> tuple[int, bool]:
        """Search; the record of the instance is brought up to date.

        Returns:
            How many relaxations were solved, and whether there may be a member: `False` if there is proven to be none.
        """
        report, order, nodes = self.state.report[self.index], itertools.count(), 0
        queue: list[tuple[float, int, float, Fixed]] = []

        def push(p: Reals, fixed: Fixed, bound: float) -> None:
            free = fixed < 0
            if not free.any():
                return
            doubt = np.where(free, abs(p - 0.5), np.inf)
            variable = int(doubt.argmin())
            likely = int(p[variable] > 0.5)
            for value in (1 - likely, likely):
                child = fixed.copy()
                child[variable] = value
                # Best bound first; or the latest first, and of the two the likely one.
                heapq.heappush(queue, (-bound if self.exact else -next(order), next(order), bound, child))

        push(self.state.p[self.index], self.state.fixed[self.index], report[Column.BOUND])
        options = (
            self.options if self.exact else replace(self.options, max_iterations=min(self.options.max_iterations, 200))
        )
        while queue and nodes < max_nodes:
            _, _, bound, fixed = heapq.heappop(queue)
            if bound <= self._enough():
                continue
            node = self._solve(fixed, bound, options)
            nodes += 1
            if node is None:
                continue
            if not self.exact and np.isfinite(report[Column.VALUE]):
                break
            push(*node)
        known = np.isfinite(report[Column.VALUE])
        if not queue:  # everything was looked at
            report[Column.BOUND] = min(report[Column.BOUND], report[Column.VALUE]) if known else report[Column.BOUND]
            return nodes, bool(known)
        if self.exact:
            open_bound = max(-entry[0] for entry in queue)
            report[Column.BOUND] = min(report[Column.BOUND], max(open_bound, report[Column.VALUE]))
        return nodes, True

    def _enough(self) -> float:
        """A bound below which nothing better can be."""
        value = self.state.report[self.index, Column.VALUE]
        return value + 0.5 * GAP * max(1.0, abs(value)) if np.isfinite(value) else -np.inf

    def _solve(self, fixed: Fixed, bound: float, options: Options) -> tuple[Reals, Fixed, float] | None:
        """The relaxation with some variables fixed: its solution if there may be more to find below."""
        state, b = self.state, self.index
        one = slice(b, b + 1)
        inner = State.begin(
            state.network, state.graph[one], state.scores[one], fixed[None], options.rho, state.exists[one]
        )
        inner[Column.CUTOFF][:] = self._enough()
        inner[Column.BOUND][:] = bound
        run_ad3(inner, options)
        _round(inner, np.ones(1, bool))
        report, mine = inner.report[0], state.report[b]
        if report[Column.VALUE] > mine[Column.VALUE]:
            mine[Column.VALUE], state.z[b] = report[Column.VALUE], inner.z[0]
        if report[Column.STATUS] in (Status.INFEASIBLE, Status.CUT) or report[Column.BOUND] <= self._enough():
            return None
        if not (fixed < 0).any():  # nothing is left to fix, and it is no member
            return None
        return inner.p[0], fixed, float(report[Column.BOUND])
