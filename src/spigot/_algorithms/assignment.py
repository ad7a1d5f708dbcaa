r"""Matchings of rows to columns: the best one, the k best, and their hull, the doubly (sub)stochastic matrices.

The best complete matching is an assignment problem, solved by shortest augmenting paths with prices. Without the duty
to be complete, a pair that gains nothing counts as a gain of nothing, and is left out afterwards.

The projection of v onto the hull has the form $p_{ij} = \max(0, v_{ij} + a_i + t_j)$, with $a_i \le 0$ where row i may
sum to less than one, and $t_j$ likewise. Given all $a$, each $t_j$ has a closed form, a simplex threshold. What is left
is a concave function of $a$ alone, once differentiable and quadratic in pieces: its gradient is one less the row sums,
its Hessian the Laplacian of a graph in which two rows are joined if a column has mass in both. Newton's method ends
after a few steps, exactly up to rounding. It starts from the prices of the best matching, which are the answer for a
large v; where the Laplacian is singular the function is linear, and one walks until it bends.

References:
    Jonker, Volgenant (1987), A shortest augmenting path algorithm for dense and sparse linear assignment problems.
    Murty (1968), An algorithm for ranking all the assignments in order of increasing cost.
"""

import heapq
import itertools
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
import torch
from jaxtyping import Bool, Float, UInt8
from numpy.typing import NDArray
from torch import Tensor

from spigot._algorithms.kernel_calls import flatten, raise_fault
from spigot._runtime import native
from spigot._runtime.checks import impossible_error, infinite_error
from spigot._runtime.native import kernel_threads
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import refuse_infinite, refuse_nan

ABSENT, OPEN, CHOSEN, BARRED = range(4)
"""What may become of a part. A mask says absent or open. The search for the k best also fixes some: a chosen part is in
every matching, a barred one in none, and its row and column exist all the same."""


@operator("spigot::matching_argmax")
@through_host
def matching_argmax(scores: Tensor, mask: Tensor, complete: bool) -> Tensor:
    """The best matching of each `(n, m)` instance; of those that match the whole shorter side, if it is `complete`."""
    if not native.serves(scores):  # kernels look for themselves
        refuse_nan(scores, mask, 2)
    z, found = _search(flatten(scores, 2), flatten(mask, 2).view(torch.uint8), complete, scores)
    _refuse_impossible(found, scores)
    return z.reshape(scores.shape)


@matching_argmax.register_fake
def _(scores: Tensor, mask: Tensor, complete: bool) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


batched(matching_argmax)


@operator("spigot::matching_k_best")
@through_host
def matching_k_best(scores: Tensor, mask: Tensor, k: int, complete: bool) -> tuple[Tensor, Tensor]:
    """The k best matchings, `(*batch, k, n, m)`, and which of them there are, `(*batch, k)`.

    All matchings but the best are split into sets without overlap, one for each of its parts: those that have all parts
    before it, but not this one. The best of each set is one search. The best of these is the second; its set is split
    again. All searches of a round are one call.
    """
    refuse_nan(scores, mask, 2)
    batch, (n, m) = scores.shape[:-2], scores.shape[-2:]
    values, parts = flatten(scores, 2), flatten(mask, 2).to(torch.uint8)
    if not complete:  # a column of its own for each row, to stay alone in: all matchings are then complete
        values = torch.cat((values, values.new_zeros(len(values), n, n)), -1)
        parts = torch.cat((parts, torch.diag_embed(parts.amax(-1)) if m else parts.new_zeros(len(parts), n, n)), -1)
    values = values.contiguous()
    best, found = _search(values, parts.contiguous(), True, scores)
    _refuse_impossible(found, scores)
    members = torch.zeros(len(values), k, n, m, dtype=scores.dtype, device=scores.device)
    exist = torch.zeros(len(values), k, dtype=torch.bool, device=scores.device)
    rank = _Ranking(values.double().cpu().numpy())
    rank.add(np.arange(len(values)), best.bool().cpu().numpy(), parts.cpu().numpy())
    for place in range(k):
        winners = rank.pop(k - place)
        for b, z, _ in winners:
            members[b, place] = torch.from_numpy(z[:, :m]).to(members)
            exist[b, place] = True
        owners, sets = _split(winners)
        if place + 1 == k or not len(owners):
            continue
        whose = torch.from_numpy(owners).to(values.device)
        z, found = _search(values[whose], torch.from_numpy(sets).to(values.device), True, scores)
        kept = found.cpu().numpy()
        rank.add(owners[kept], z.bool().cpu().numpy()[kept], sets[kept])
    return members.reshape(*batch, k, n, m), exist.reshape(*batch, k)


@matching_k_best.register_fake
def _(scores: Tensor, mask: Tensor, k: int, complete: bool) -> tuple[Tensor, Tensor]:
    batch, parts = scores.shape[:-2], scores.shape[-2:]
    return scores.new_empty(*batch, k, *parts), scores.new_empty(*batch, k, dtype=torch.bool)


batched(matching_k_best)

_Winner = tuple[int, NDArray[np.bool_], NDArray[np.uint8]]
"""An instance, its matching, and what was fixed when it was found."""


class _Ranking:
    """For each instance the matchings that were found and not yet handed out, best first."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.values = values
        self.heaps: list[list[tuple[int, float, int, _Winner]]] = [[] for _ in values]
        self.numbers = itertools.count()  # among equals the earlier; arrays are not compared

    def add(self, owners: NDArray[np.int64], z: NDArray[np.bool_], parts: NDArray[np.uint8]) -> None:
        for b, matching, fixed in zip(owners.tolist(), z, parts, strict=True):
            scores = self.values[b][matching]
            infinite = np.isinf(scores)
            # An infinity outweighs every finite number, and one of each kind cancels.
            worth = int(np.sign(scores[infinite]).sum()), float(scores[~infinite].sum())
            heapq.heappush(self.heaps[b], (-worth[0], -worth[1], next(self.numbers), (b, matching, fixed)))

    def pop(self, wanted: int) -> list[_Winner]:
        """The best of each instance that has any; of the rest, those are kept that can still be wanted."""
        self.heaps = [heapq.nsmallest(wanted, heap) for heap in self.heaps]
        return [heapq.heappop(heap)[-1] for heap in self.heaps if heap]


def _split(winners: list[_Winner]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The sets that are left when each winner is taken out of its own, and whose they are."""
    owners, sets = [], []
    for b, z, parts in winners:
        before = parts.copy()
        for place in zip(*np.nonzero(z & (parts == OPEN)), strict=True):
            without = before.copy()
            without[place] = BARRED
            before[place] = CHOSEN
            owners.append(b)
            sets.append(without)
    return np.array(owners, dtype=np.int64), np.stack(sets) if sets else np.zeros((0, 0, 0), dtype=np.uint8)


def _refuse_impossible(found: Tensor, parts: Tensor) -> None:
    if not found.all():
        first = int((~found).nonzero()[0])
        raise impossible_error(first, tuple(parts.shape[:-2]), "complete matching", "parts")


def _search(
    scores: Float[Tensor, "batch n m"], parts: UInt8[Tensor, "batch n m"], complete: bool, given: Tensor
) -> tuple[Float[Tensor, "batch n m"], Bool[Tensor, "batch"]]:
    """The best matchings that agree with what is fixed, and whether there is one; `given` names instances in errors."""
    if native.serves(scores):
        z, found = torch.empty_like(scores), torch.ones(len(scores), dtype=torch.bool)
        if z.numel():
            fault = native.kernels.match(scores, parts, complete, z, found, kernel_threads())
            raise_fault(fault, given, 2, "scores")
        return z, found
    pairs = zip(scores.double().cpu().numpy(), parts.cpu().numpy(), strict=True)
    answers = [best_matching(s, p, complete) for s, p in pairs]
    z = (
        np.stack([np.zeros(scores.shape[1:]) if z is None else z for z in answers])
        if answers
        else np.zeros(scores.shape)
    )
    found = torch.tensor([z is not None for z in answers], dtype=torch.bool, device=scores.device)
    return torch.from_numpy(z).to(scores), found


def best_matching(scores: NDArray[np.float64], parts: NDArray[np.uint8], complete: bool) -> NDArray[np.float64] | None:
    """One instance, through scipy; `None` if there is no complete matching."""
    chosen = parts == CHOSEN
    rows = np.flatnonzero(parts.any(1) & ~chosen.any(1))
    columns = np.flatnonzero(parts.any(0) & ~chosen.any(0))
    inside = np.ix_(rows, columns)
    may = parts[inside] == OPEN
    s = np.where(may, scores[inside], 0.0)
    finite = np.where(np.isinf(s), 0.0, s)
    shrink = 2.0**-64 if np.abs(finite).max(initial=0.0) > 1e290 else 1.0
    # As few -inf and as many +inf as possible, then the best finite sum.
    limit = 1 + 2 * np.abs(finite * shrink).max(1, initial=0.0).sum()
    tame = np.where(np.isinf(s), limit * np.sign(s), finite * shrink)
    attempts = [np.where(may & (s > -np.inf), tame, -np.inf), np.where(may, tame, -np.inf)]
    if not complete:
        attempts = [np.where(may, tame, 0.0).clip(min=0)]
    for gain in attempts:
        try:
            taken = scipy.optimize.linear_sum_assignment(gain, maximize=True)
        except ValueError:  # what it calls infeasible
            continue
        z = chosen.astype(np.float64)
        kept = slice(None) if complete else gain[taken] > 0
        z[rows[taken[0][kept]], columns[taken[1][kept]]] = 1
        return z
    return None


TOLERANCE = 1e-12
"""How far a row or a column may be from its sum."""

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


@operator("spigot::project_matchings")
@through_host
def project_matchings(point: Tensor, mask: Tensor, complete: bool) -> Tensor:
    """The nearest point of the hull of all matchings, or of the complete ones, of each `(n, m)` instance."""
    batch = tuple(point.shape[:-2])
    values, exists = flatten(point, 2), flatten(mask, 2)
    if native.serves(point):
        projected = torch.empty_like(values)
        if projected.numel():
            threads = kernel_threads()
            fault = native.kernels.project_matchings(values, exists, complete, projected, threads)
            if fault is not None and fault[0] == native.kernels.FAULT_IMPOSSIBLE:
                raise impossible_error(fault[1], batch, "complete matching", "parts")
            raise_fault(fault, point, 2, "points")
        return projected.reshape(point.shape)
    refuse_nan(point, mask, 2, "points")
    refuse_infinite(point.isposinf() & mask, 2, "points")
    projected = np.zeros(values.shape)
    for b, (v, m) in enumerate(zip(values.double().cpu().numpy(), exists.cpu().numpy(), strict=True)):
        nearest = nearest_matching(v, m, complete)
        if nearest is None:
            cut = np.isneginf(v[m]).any()
            raise infinite_error(b, batch) if cut else impossible_error(b, batch, "complete matching", "parts")
        projected[b] = nearest
    return torch.from_numpy(projected).to(point).reshape(point.shape)


@project_matchings.register_fake
def _(point: Tensor, mask: Tensor, complete: bool) -> Tensor:
    return torch.empty_like(point, memory_format=torch.contiguous_format)


batched(project_matchings)


def nearest_matching(point: Array, mask: Flags, complete: bool) -> Array | None:
    """One instance in numpy; `None` if there is no complete matching."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    inside = np.ix_(rows, columns)
    v = np.where(mask[inside], point[inside], -np.inf)
    open_parts = np.where(v > -np.inf, OPEN, OPEN + 2).astype(np.uint8)  # rows and columns exist, as they did
    z = best_matching(np.where(v > -np.inf, v, 0.0), open_parts, complete)
    if z is None:
        return None
    projected = np.zeros(point.shape)
    turned = len(rows) > len(columns)
    if turned:
        v, z = v.T, z.T
    if len(v):
        p = _Dual.start(v, z, complete).solve()
        projected[inside] = p.T if turned else p
    return projected


@dataclass
class _Dual:
    """The dual problem of one instance, the shorter side in rows, with the prices at the start taken off."""

    reduced: Array
    row_bound: Array
    column_bound: Array

    @classmethod
    def start(cls, v: Array, z: Array, complete: bool) -> "_Dual":
        """From the best matching: its prices by shortest paths between columns."""
        cost = -v if complete else np.where(v > 0, -v, 0.0)
        mine = z.argmax(1)
        alone = ~z.any(1)  # these keep to themselves, at no cost
        own = np.where(alone, 0.0, cost[np.arange(len(v)), mine])
        price = np.zeros(v.shape[1])
        for _ in range(len(v) + 1):
            worth = np.minimum(own - np.where(alone, 0.0, price[mine]), np.inf if complete else 0.0)
            lower = np.minimum(price, (cost - worth[:, None]).min(0, initial=np.inf))
            if (lower >= price).all():
                break
            price = lower
        worth = own - np.where(alone, 0.0, price[mine])
        square = complete and v.shape[0] == v.shape[1]
        reduced = v + price + worth[:, None]
        return cls(
            np.minimum(reduced, 0.0) if complete else reduced,
            np.full(len(v), np.inf) if complete else -worth,
            np.full(v.shape[1], np.inf) if square else -price,
        )

    def solve(self) -> Array:
        a = np.minimum(0.0, self.row_bound)
        p, gradient = self.evaluate(a)
        left, stuck = self.residual(a, gradient), 0
        for _ in range(500):
            if left <= TOLERANCE or stuck >= 20:
                break
            before = left
            step, linear = self.newton(a, p, gradient)
            trial = np.minimum(a + step, self.row_bound)
            if self.residual(trial, self.evaluate(trial)[1]) <= 0.5 * left:
                a = trial
            else:
                climbed = self.climb(a, trial - a, gradient, linear) if stuck < 3 else None
                a = self.sweep(p, a) if climbed is None else climbed
            p, gradient = self.evaluate(a)
            left = self.residual(a, gradient)
            stuck = 0 if left < 0.9 * before else stuck + 5 if left < 1e-9 else stuck + 1 if stuck < 19 else 3
        return p

    def evaluate(self, a: Array) -> tuple[Array, Array]:
        """The point that `a` stands for, each column at its best, and one less its row sums."""
        x = self.reduced + a[:, None]
        p = np.maximum(x + _thresholds(x, self.column_bound), 0.0)
        return p, 1 - p.sum(1)

    def residual(self, a: Array, gradient: Array) -> float:
        return float(np.abs(gradient[~self.settled(a, gradient)]).max(initial=0.0))

    def settled(self, a: Array, gradient: Array) -> Flags:
        """Rows that may sum to less than one, and do."""
        return (a >= self.row_bound) & (gradient >= 0)

    def newton(self, a: Array, p: Array, gradient: Array) -> tuple[Array, bool]:
        """The Newton step, and whether the function is linear along a part of it."""
        free = ~self.settled(a, gradient)
        here = (p > 0).astype(np.float64)
        full = p.sum(0) > 1 - 1e-9  # columns whose sum is held at one
        share = np.where(full, 1 / np.maximum(here.sum(0), 1), 0.0)
        laplacian = (np.diag(here.sum(1)) - (here * share) @ here.T)[np.ix_(free, free)]
        inside = np.linalg.lstsq(laplacian, gradient[free], rcond=1e-10)[0]
        rest = gradient[free] - laplacian @ inside
        linear = bool(np.abs(rest).max(initial=0.0) > 1e-9)
        step = np.zeros_like(a)
        step[free] = inside + rest if linear else inside
        return step, linear

    def climb(self, a: Array, step: Array, gradient: Array, linear: bool) -> Array | None:
        """A point along the step, or beyond it where the function is linear, at which it still rises, but less."""
        start = step @ gradient
        low, high, at_low, at_high, t = 0.0, np.inf, start, 0.0, 1.0
        for attempt in range(60 if start > 0 else 0):
            trial = np.minimum(a + t * step, self.row_bound)
            slope = step @ np.where((trial < self.row_bound) | (t <= 1), self.evaluate(trial)[1], 0.0)
            if slope >= 0 and (slope <= 0.5 * start or (t >= 1 and not linear)):
                return trial
            if slope >= 0:
                low, at_low = t, slope
            else:
                high, at_high = t, slope
            if high == np.inf:
                t *= 4
            elif attempt % 3 == 2:
                t = 0.5 * (low + high)
            else:
                t = low + (high - low) * at_low / (at_low - at_high)
        return None

    def sweep(self, p: Array, a: Array) -> Array:
        """All rows at their best, given the columns: slow, but never wrong."""
        levels = _thresholds(self.reduced + a[:, None], self.column_bound)
        return _thresholds((self.reduced + levels).T, self.row_bound)


def _thresholds(x: Array, bound: Array) -> Array:
    """For each column the t with $\\sum_i \\max(0, x_i + t) = 1$, at most its bound."""
    order = -np.sort(-x, axis=0)
    with np.errstate(invalid="ignore"):
        candidates = (1 - np.cumsum(order, 0)) / np.arange(1, len(x) + 1)[:, None]
        count = np.maximum((order + candidates > 0).sum(0), 1)
    level = candidates[count - 1, np.arange(x.shape[1])]
    return np.minimum(np.where(order[0] > -np.inf, level, 0.0), bound)


@operator("spigot::matching_tangent")
def matching_tangent(direction: Tensor, mask: Tensor) -> Tensor:
    """The nearest direction along which complete matchings differ, of each `(n, m)` instance."""
    rows, columns = mask.any(-1, keepdim=True), mask.any(-2, keepdim=True)
    inside = torch.where(mask, direction, 0)
    inside = inside if inside.device.type == "mps" else inside.double()  # which has no float64
    down, across = rows.sum(-2, keepdim=True), columns.sum(-1, keepdim=True)
    along_rows = inside.sum(-1, keepdim=True) / across.clamp(min=1)
    along_columns = inside.sum(-2, keepdim=True) / down.clamp(min=1)
    both = along_rows.sum(-2, keepdim=True) / down.clamp(min=1)
    # The shorter side sums to one, both if they are alike.
    taken_off = torch.where(
        down == across, along_rows + along_columns - both, torch.where(down < across, along_rows, along_columns)
    )
    centred = torch.where(mask, inside - taken_off, 0).to(direction.dtype).contiguous()
    for place in (mask != rows & columns).any(-1).any(-1).nonzero().tolist():
        where = tuple(place)
        answer = _tangent(inside[where].double().cpu().numpy(), mask[where].cpu().numpy())
        centred[where] = torch.from_numpy(answer).to(centred)
    return centred


@matching_tangent.register_fake
def _(direction: Tensor, mask: Tensor) -> Tensor:
    return torch.empty_like(direction, memory_format=torch.contiguous_format)


batched(matching_tangent)


def _tangent(direction: Array, mask: Flags) -> Array:
    """One instance with holes: parts that no complete matching has stay where they are, and so do full columns.

    A part is in some complete matching if it is in a given one, or on an alternating cycle. All columns that stay alone
    are matched to one more row, the last node, which is joined to every column.
    """
    z = best_matching(np.zeros(mask.shape), mask.astype(np.uint8), complete=True)
    result = np.zeros(direction.shape)
    if z is None:
        return result
    turned = mask.any(1).sum() > mask.any(0).sum()
    may, taken = (mask.T, z.T > 0) if turned else (mask, z > 0)
    n, m = may.shape
    graph = np.zeros((n + m + 1, n + m + 1), dtype=bool)
    graph[:n, n:-1] = may & ~taken
    graph[n:-1, :n] = taken.T
    graph[n:-1, -1] = ~taken.any(0) & may.any(0)
    graph[-1, n:-1] = may.any(0) & ~graph[n:-1, -1]
    _, group = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(graph), connection="strong")
    used = (taken | (may & (group[:n, None] == group[None, n:-1]))).astype(np.float64)
    full = group[n:-1] != group[-1]
    joined = used * full
    system = np.block([[np.diag(used.sum(1)), joined], [joined.T, np.diag(joined.sum(0))]])
    inside = (direction.T if turned else direction) * used
    sums = np.concatenate((inside.sum(1), inside.sum(0) * full))
    shift = np.linalg.lstsq(system, -sums, rcond=None)[0]
    moved = (inside + shift[:n, None] + shift[None, n:] * full) * used
    return moved.T if turned else moved
