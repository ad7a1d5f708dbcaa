"""AD3 in numpy: what the kernels are held to, and what runs without them. Factors of a kind go together."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spigot.factor_graphs.network import Network
from spigot.factor_graphs.tables import FactorTable
from spigot.factors import FactorKind, Flags, Indices, Reals

_GOING, _SETTLED, _OPTIMAL, _INFEASIBLE, _CUT = range(5)
_NEVER, _STEPS, _ONLY = range(3)


@dataclass
class _Block:
    """The factors of one kind of a graph, as a matrix in which short rows are filled up.

    Attributes:
        kind: Their kind.
        factor: Which ones.
        slot: Where their entries stand, `(m, k)`; the last entry of a row is that of the factor.
        there: Entries that are no filling.
    """

    kind: FactorKind
    factor: Indices
    slot: Indices
    there: Flags


def _blocks(table: FactorTable) -> Iterator[_Block]:
    size = np.diff(table.start)
    for kind in FactorKind:
        factor = np.flatnonzero(table.kind == kind)
        if not len(factor) or kind == FactorKind.OUTSIDE:
            continue
        width = size[factor].max()
        # Filled up in front, so that the last column is the last entry of every factor.
        place = np.arange(width) - (width - size[factor])[:, None]
        yield _Block(kind, factor, table.start[factor][:, None] + np.maximum(place, 0), place >= 0)


def simplex(v: Reals, there: Flags) -> Reals:
    """The nearest point with sum 1 of each row."""
    down = -np.sort(-np.where(there, v, -np.inf), 1)
    rank = np.arange(1, v.shape[1] + 1)
    tau = (np.cumsum(np.where(np.isfinite(down), down, 0), 1) - 1) / rank
    above = np.maximum((down > tau).sum(1), 1)
    return np.where(there, np.maximum(v - np.take_along_axis(tau, above[:, None] - 1, 1), 0), 0)


def level(v: Reals, there: Flags) -> Reals:
    """The level that the last entry of each row rises to, and entries above it come down to."""
    last = v[:, -1:]
    down = -np.sort(-np.where(there, v, -np.inf)[:, :-1], 1)
    means = (last + np.cumsum(np.where(np.isfinite(down), down, 0), 1)) / np.arange(2, v.shape[1] + 1)
    before = np.concatenate((last, means), 1)[:, :-1]
    count = (down > before).sum(1)
    return np.take_along_axis(np.concatenate((last, means), 1), count[:, None], 1)


def threshold(v: Reals, w: Reals, target: Reals) -> Reals:
    """The tau of each row at which the weighed sum of clip(v - w tau) is the target, by halving an interval."""
    safe = np.where(w > 0, w, 1.0)
    low = np.where(w > 0, (v - 1) / safe, np.inf).min(1, keepdims=True)
    high = np.where(w > 0, v / safe, -np.inf).max(1, keepdims=True)
    for _ in range(200):
        middle = (low + high) / 2
        over = (w * np.clip(v - w * middle, 0, 1)).sum(1, keepdims=True) > target
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return (low + high) / 2


def project_block(kind: FactorKind, v: Reals, there: Flags, w: Reals, least: Reals, most: Reals) -> Reals:
    """The nearest point of the polytope of each row."""
    box = np.where(there, np.clip(v, 0, 1), 0)
    if kind == FactorKind.ONE:
        return simplex(v, there)
    if kind in (FactorKind.AT_MOST_ONE, FactorKind.AT_LEAST_ONE):
        sums = np.where(there, np.maximum(v, 0), 0).sum(1) if kind == FactorKind.AT_MOST_ONE else box.sum(1)
        wrong = sums > 1 if kind == FactorKind.AT_MOST_ONE else sums < 1
        return np.where(wrong[:, None], simplex(v, there), box)
    if kind == FactorKind.SUM:
        weight = np.where(there, w, 0.0)
        total = (weight * box).sum(1)
        wrong = (total > most) | (total < least)
        tau = threshold(v, weight, np.where(total > most, most, least)[:, None])
        return np.where(wrong[:, None] & there, np.clip(v - weight * tau, 0, 1), box)
    top = level(v, there)
    found = np.where(there, np.clip(np.minimum(v, top), 0, 1), 0)
    found[:, -1:] = np.clip(top, 0, 1)
    if kind == FactorKind.NEEDS:
        return found
    wrong = found[:, :-1].sum(1) < found[:, -1]
    turned = np.concatenate((v[:, :-1], 1 - v[:, -1:]), 1)
    total = simplex(turned, there)
    total[:, -1] = 1 - total[:, -1]
    return np.where(wrong[:, None], total, found)


def best_of_block(kind: FactorKind, c: Reals, there: Flags, w: Reals, least: Reals, most: Reals) -> Reals:
    """The largest value of c times a point of the polytope, of each row."""
    if kind == FactorKind.SUM:
        rows = zip(c, there, w, least, most, strict=True)
        return np.array([_best_sum(a[t], b[t], low, high) for a, t, b, low, high in rows])
    ends = kind in (FactorKind.ANY, FactorKind.NEEDS)
    some, last = (c[:, :-1], c[:, -1]) if ends else (c, np.zeros(len(c)))
    filled = np.where(there[:, : some.shape[1]], some, -np.inf)
    gains, top = np.maximum(filled, 0).sum(1), filled.max(1, initial=-np.inf)
    match kind:
        case FactorKind.ONE:
            return top
        case FactorKind.AT_MOST_ONE:
            return np.maximum(top, 0)
        case FactorKind.AT_LEAST_ONE:
            return np.where(top > 0, gains, top)
        case FactorKind.ANY:
            return np.maximum(0, last + np.where(top > 0, gains, top))
        case _:
            return np.maximum(0, last + gains)


def _best_sum(c: Reals, w: Reals, least: float, most: float) -> float:
    """One row: all that gains, then what costs least for its weight until the sum is within its bounds."""
    taken = c > 0
    total, value = float(w[taken].sum()), float(c[taken].sum())
    over = total > most
    off = total - most if over else least - total
    for i in sorted(np.flatnonzero(taken == over), key=lambda i: abs(c[i]) / w[i]):
        if off <= 0:
            break
        share = min(1.0, off / w[i])
        value, off = value - share * abs(c[i]), off - share * w[i]
    return value


def excess_of_block(kind: FactorKind, q: Reals, there: Flags, w: Reals, least: Reals, most: Reals) -> Reals:
    """By how much each row breaks its worst inequality."""
    q = np.where(there, q, 0)
    sums = q.sum(1)
    above = (q[:, :-1] - q[:, -1:]).max(1, initial=0)
    match kind:
        case FactorKind.ONE:
            off = abs(sums - 1)
        case FactorKind.AT_MOST_ONE:
            off = sums - 1
        case FactorKind.AT_LEAST_ONE:
            off = 1 - sums
        case FactorKind.ANY:
            off = np.maximum(above, 2 * q[:, -1] - sums)
        case FactorKind.NEEDS:
            off = above
        case _:
            total = (np.where(there, w, 0) * q).sum(1)
            off = np.maximum(total - most, least - total)
    return np.maximum(off, 0)


def excesses(table: FactorTable, point: Reals) -> Reals:
    """By how much each factor of the only graph is broken by a point; 0 for structures."""
    off = np.zeros(len(table.kind))
    literals = table.literals(point)
    for block in _blocks(table):
        rows = (block.there, table.weight[block.slot], table.least[block.factor], table.most[block.factor])
        off[block.factor] = excess_of_block(block.kind, literals[block.slot], *rows)
    return off


def excess_reference(table: FactorTable, graph: Indices, point: Reals) -> tuple[Reals, Indices]:
    """By how much each instance breaks its worst factor, structures aside, and which one of its graph's that is."""
    worst, which = np.zeros(len(point)), np.full(len(point), -1)
    for b, g in enumerate(graph.tolist()):
        off = excesses(table.alone(g), point[b])
        if len(off) and off.max() > 0:
            worst[b], which[b] = off.max(), off.argmax()
    return worst, which


@dataclass
class _Ad3:
    """One instance; as the class of the same name in `native/factors/ad3.hpp`, without the skipping of factors that
    have settled."""

    table: FactorTable
    scores: Reals
    fixed: NDArray[np.int8]
    p: Reals
    z: Reals
    q: Reals
    price: Reals
    faces: Reals | None
    report: Reals
    quadratic: float
    tolerance: float
    gap: float

    def __post_init__(self) -> None:
        self.degree = np.bincount(self.table.variable, minlength=len(self.p))
        self.blocks = list(_blocks(self.table))
        self.patient = False

    def begin(self) -> None:
        self.p[:] = self.alone(np.full(len(self.p), 0.5 if self.faces is None else 0.0))
        share = self.scores / np.maximum(self.degree, 1)
        self.price[:] = 0 if self.quadratic > 0 else share[self.table.variable]

    def alone(self, otherwise: Reals) -> Reals:
        """Values of variables that no factor has a say in, or that are fixed; otherwise what is given."""
        if self.faces is not None:
            own = self.scores
        elif self.quadratic > 0:
            own = np.clip(self.scores / self.quadratic, 0, 1)
        else:
            own = (self.scores > 0).astype(float)
        held = np.zeros(len(self.p)) if self.faces is not None else self.fixed
        return np.where(self.fixed >= 0, held, np.where(self.degree > 0, otherwise, own))

    def project(self) -> None:
        table = self.table
        point = self.p[table.variable] + self.price / self.report[2]
        negated = table.negated != 0
        for block in self.blocks:
            rows = (block.there, table.weight[block.slot], table.least[block.factor], table.most[block.factor])
            if self.faces is None:
                v = np.where(negated, 1 - point, point)[block.slot]
                found = project_block(block.kind, v, *rows)
                found = np.where(negated[block.slot], 1 - found, found)
            else:  # the projection is linear in pieces: a small step to both sides stays in one, almost always
                v = np.where(negated, 1 - self.faces, self.faces)[block.slot]
                d = np.where(negated, -point, point)[block.slot]
                small = 1e-6 / max(1e-300, abs(d).max())
                high, low = (project_block(block.kind, v + sign * small * d, *rows) for sign in (1, -1))
                found = (high - low) / (2 * small)
                found = np.where(negated[block.slot], -found, found)
            self.q[block.slot[block.there]] = found[block.there]

    def step(self, judge: bool, look_every: int, adapt_every: int, imbalance: float) -> None:
        rho = self.report[2]
        self.project()
        variable = self.table.variable
        total = self.scores + np.bincount(variable, rho * self.q - self.price, len(self.p))
        before = self.p.copy()
        self.p[:] = self.alone(total / np.maximum(self.quadratic + rho * self.degree, 1e-300))
        off = self.q - self.p[variable]
        self.price -= rho * off
        slots = max(1, len(off))
        self.report[1] += 1
        self.report[3] = np.sqrt((off**2).sum() / slots)
        self.report[4] = np.sqrt((self.degree * (self.p - before) ** 2).sum() / slots)
        settled = max(self.report[3], self.report[4]) < self.tolerance * (1e-3 if self.patient else 1.0)
        if judge and (settled or self.report[1] % look_every == 0):
            self.judge()
        if self.report[0] == _GOING and settled:
            near = judge and self.quadratic == 0 and abs(self.p - self.z).max(initial=0) < 0.1
            self.report[0] = _GOING if near and not self.patient else _SETTLED
            self.patient = True
        if self.report[1] % adapt_every == 0:
            up, down = self.report[3] > imbalance * self.report[4], self.report[4] > imbalance * self.report[3]
            self.report[2] = np.clip(rho * (2.0 if up else 0.5 if down else 1.0), 1e-6, 1e6)

    def judge(self) -> None:
        table, w = self.table, self.quadratic
        negated = table.negated != 0
        inside = np.repeat(table.kind != FactorKind.OUTSIDE, np.diff(table.start))
        bound = self.price[negated & inside].sum()
        literal = np.where(negated, -self.price, self.price)
        for block in self.blocks:
            rows = (block.there, table.weight[block.slot], table.least[block.factor], table.most[block.factor])
            bound += best_of_block(block.kind, literal[block.slot], *rows).sum()
        rest = self.scores - np.bincount(table.variable, self.price, len(self.p))
        held = self.fixed * rest - 0.5 * w * self.fixed
        free = self.p * rest - 0.5 * w * self.p**2
        shared = rest**2 / (2 * w) if w > 0 else np.zeros(len(rest))
        bound += np.where(self.fixed >= 0, held, np.where(self.degree > 0, shared, free)).sum()
        floor = np.minimum(0, self.scores - 0.5 * w).sum()
        self.report[5] = min(self.report[5], bound + self.report[8])
        if self.report[5] < floor - 1e-9 * (1 + abs(floor)):
            self.report[0] = _INFEASIBLE
            return
        if w > 0:
            return
        z = table.derived((self.p > 0.5).astype(float))
        value = z @ self.scores
        if value > self.report[6] and not (table.kind == FactorKind.OUTSIDE).any():
            worst, _ = excess_reference(table, np.zeros(1, np.int64), z[None])
            if worst[0] <= 1e-9 and ((self.fixed < 0) | (z == self.fixed)).all():
                self.report[6], self.z[:] = value, z
        if self.report[5] - self.report[6] <= self.gap:
            self.report[0], self.p[:] = _OPTIMAL, self.z
        elif self.report[5] <= self.report[7]:
            self.report[0] = _CUT


def run_ad3_in_numpy(
    network: Network,
    slots_from: Indices,
    scores: Reals,
    fixed: NDArray[np.int8],
    p: Reals,
    z: Reals,
    q: Reals,
    price: Reals,
    faces: Reals | None,
    report: Reals,
    quadratic: float,
    tolerance: float,
    gap: float,
    judge: int,
    max_iterations: int,
    look_every: int,
    adapt_every: int,
    imbalance: float,
    graph: Indices,
) -> None:
    """What the kernel `negotiate` does, in place."""
    for b, g in enumerate(graph.tolist()):
        if report[b, 0] != _GOING and not (report[b, 0] == _SETTLED and judge == _ONLY):
            continue
        own = slice(slots_from[b], slots_from[b + 1])
        one = _Ad3(
            *(network.table.alone(g), scores[b], fixed[b], p[b], z[b], q[own], price[own]),
            *(None if faces is None else faces[own], report[b], quadratic, tolerance, gap),
        )
        if report[b, 1] == 0:
            one.begin()
        if judge == _ONLY:
            one.judge()
        for _ in range(max_iterations):
            if report[b, 0] != _GOING:
                break
            one.step(judge == _STEPS, look_every, adapt_every, imbalance)
