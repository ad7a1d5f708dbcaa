r"""The hull of matchings: its nearest points, and the directions inside it.

The projection of v has the form $p_{ij} = \max(0, v_{ij} + a_i + t_j)$, with $a_i \le 0$ where row i may sum to less
than one, and $t_j$ likewise. Given all $a$, each $t_j$ has a closed form, a simplex threshold. What is left is a
concave function of $a$ alone, once differentiable and quadratic in pieces: its gradient is one less the row sums, its
Hessian the Laplacian of a graph in which two rows are joined if a column has mass in both. Newton's method ends after a
few steps, exactly up to rounding. It starts from the prices of the best matching, which are the answer for a large v;
where the Laplacian is singular the function is linear, and one walks until it bends.
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
import torch
from numpy.typing import NDArray
from torch import Tensor

from spigot._algorithms.kernel_calls import flatten, raise_fault
from spigot._algorithms.matchings import OPEN, best_matching
from spigot._runtime import native
from spigot._runtime.checks import impossible_error, infinite_error
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import refuse_infinite, refuse_nan
from spigot._runtime.threads import kernel_threads

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
