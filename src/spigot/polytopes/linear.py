r"""Any polytope $\{p : A [p; \psi] \le b\}$, by quadratic programming."""

from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import final

import numpy as np
import scipy  # its parts load when they are used
import torch
from torch import Tensor

from spigot._algorithms.programs import (
    Matrix,
    Problem,
    Rows,
    Vector,
    broken,
    holds,
    maximise,
    no_solution,
    problems,
    read_rows,
    row_scale,
)
from spigot._runtime.checks import any_violation, check_parts, instance_name
from spigot._runtime.host import HostFunction
from spigot.interface import AbstractPolytope
from spigot.types import Flags, Mask, Parts


@final
@dataclass(frozen=True, eq=False, repr=False)
class LinearPolytope(AbstractPolytope):
    r"""Points between 0 and 1 that satisfy linear constraints (§2.1: a 0/1 program without its integrality).

    $$\mathcal P = \big\{p \in [0,1]^d \;\big|\; \exists \psi \in [0,1]^a :\ A [p; \psi] \le b \big\}$$

    With auxiliary variables this is the *shadow* of the joint polytope: the projection moves $p$ alone, and $\psi$ goes
    along at no cost,
    $$\operatorname{proj}_{\mathcal P}(v) = \arg\min_p \min_\psi\ \tfrac12 \lVert p - v \rVert_2^2
    \quad\text{s.t.}\quad A [p; \psi] \le b.$$

    One sparse quadratic program for each instance, solved on the CPU in float64 to about 1e-10 by the `piqp` extra.
    Good for a few hundred variables; where a closed form or an argmax is at hand, `Simplex`, `HeadSimplex`, `ArcLabel`
    or `ConvexHull` are faster. The projection has no gradient.

    Args:
        A: The rows, `(m, d + auxiliary)`, columns of auxiliary variables last: a tensor, an array or a scipy sparse
            matrix. With leading batch axes, one system for each instance.
        b: The right-hand sides, `(m,)` or `(*batch, m)`; infinity switches a row off.
        auxiliary: How many of the columns are auxiliary variables. They lie in $[0, 1]$ too: write a variable of
            another range $[l, u]$ as $l + (u - l) \psi$.
        equality: The rows that are equations: their indices, or a truth value for each row.

    Masked parts are fixed at 0; auxiliary variables always exist. An instance without any parts is the point 0.

    Example:
        At most two of four, projected from outside.

        >>> at_most_two = LinearPolytope(torch.ones(1, 4), torch.tensor([2.0]))
        >>> at_most_two
        LinearPolytope(1 rows, 4 parts)
        >>> at_most_two.project(torch.tensor([1.5, 1.0, 0.5, -1.0]))
        tensor([1.0000, 0.7500, 0.2500, 0.0000])
    """

    A: Matrix
    b: Vector
    auxiliary: int = 0
    equality: Vector = ()
    _rows: Rows = field(init=False)
    _solver: HostFunction = field(init=False)

    def __post_init__(self) -> None:
        rows = read_rows(self.A, self.b, self.auxiliary, self.equality)
        # The fields show the canonical copy, so that later changes to what was given cannot reach it.
        object.__setattr__(self, "A", rows.matrix)
        object.__setattr__(self, "b", rows.bound)
        object.__setattr__(self, "equality", rows.equality)
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_solver", HostFunction(partial(_project, rows=rows), 1, "point"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearPolytope) and self._rows.key() == other._rows.key()

    def __hash__(self) -> int:
        return hash(self._rows.key())

    def __repr__(self) -> str:
        return f"LinearPolytope({self._rows})"

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        """As `AbstractPolytope.project`.

        Raises:
            ImportError: `piqp` is not installed.
            ValueError: A point is NaN or infinite, or the polytope of an instance is empty.
        """
        mask = check_parts(point, mask, 1, "point")
        check_size(point, self._rows, "point")
        return self._solver(point, mask)

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = check_parts(point, mask, 1, "point")
        check_size(point, self._rows, "point")
        return rows_hold(point, mask, self._rows, integral=False, integral_auxiliary=False, atol=atol)


def check_size(parts: Tensor, rows: Rows, what: str) -> None:
    """The last axis must have one entry for each part of the program."""
    if parts.shape[-1] != rows.parts:
        raise ValueError(
            f"{what} has shape {tuple(parts.shape)}; its last axis must have {rows.parts} entries, one for each column "
            f"of A that is not auxiliary."
        )


def rows_hold(
    z: Tensor, mask: Tensor, rows: Rows, *, integral: bool, integral_auxiliary: bool, atol: float | None
) -> Tensor:
    """Which instances `broken_rows` finds nothing wrong with; at once, where no auxiliary variables are to be found."""
    if rows.auxiliary or np.broadcast_shapes(rows.batch, z.shape[:-1]) != tuple(z.shape[:-1]):
        found = broken_rows(z, mask, rows, integral=integral, integral_auxiliary=integral_auxiliary, atol=atol)
        return ~any_violation(found, z, 1)
    x, exists = z.detach().double().cpu().numpy(), mask.cpu().numpy()
    inside = (x == 0) | (x == 1) if atol is None else (x >= -atol) & (x <= 1 + atol)
    with np.errstate(invalid="ignore"):
        value = _products(x, rows)
        size = abs(rows.matrix).max(-1)
        scale = np.maximum(size.toarray().ravel() if scipy.sparse.issparse(size) else size, 1.0)
        limit = 1e-6 * np.maximum(scale, np.where(np.isfinite(rows.bound), np.abs(rows.bound), 0.0))
        limit = limit if atol is None else np.full_like(limit, atol)
        hold = value - rows.bound <= limit
        equal = list(rows.equality)
        hold[..., equal] &= (rows.bound - value <= limit)[..., equal]
    fine = ((x == 0) | exists & inside).all(-1) & (hold.all(-1) | ~exists.any(-1))
    return torch.from_numpy(np.asarray(fine)).to(z.device)


def _products(x: np.ndarray, rows: Rows) -> np.ndarray:
    """$A x$ of each instance."""
    if isinstance(rows.matrix, np.ndarray):
        return (rows.matrix @ x[..., None])[..., 0]
    return np.asarray((rows.matrix @ x.reshape(-1, x.shape[-1]).T).T).reshape(*x.shape[:-1], rows.shape[-2])


def broken_rows(
    z: Tensor, mask: Tensor, rows: Rows, *, integral: bool, integral_auxiliary: bool, atol: float | None
) -> list[list[str]]:
    """For each instance, what keeps it out of the set; see `programs.broken`."""
    values = z.detach().double().cpu().reshape(-1, rows.parts).numpy()
    each = problems(rows, mask.cpu(), integral, integral_auxiliary)
    return [broken(problem, values[i], exists, atol) for i, (problem, exists) in enumerate(each)]


def _project(point: Tensor, mask: Tensor, rows: Rows) -> Tensor:
    """The nearest point of each instance."""
    batch = tuple(point.shape[:-1])
    values = point.double().reshape(-1, rows.parts).numpy()
    if not np.isfinite(values).all():
        index, part = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
        name = instance_name(index, batch)
        raise ValueError(
            f"point of {name} is {values[index, part]} at part [{part}]; only finite points have a nearest."
        )
    nearest = np.zeros_like(values)
    solver = _Solver()
    for index, (problem, exists) in enumerate(problems(rows, mask, integral=False, integral_auxiliary=False)):
        if not exists.any():
            continue
        # A point of the box that satisfies the rows is nearest in the box, hence nearest in the polytope. Tried with
        # no slack: otherwise points just outside would stay there.
        inside = np.append(np.clip(values[index], 0.0, problem.top[: rows.parts]), np.zeros(rows.auxiliary))
        if holds(problem, inside, atol=0.0):
            nearest[index] = inside[: rows.parts]
            continue
        p = solver.nearest(problem, values[index])
        if p is None:
            raise no_solution(index, batch)
        nearest[index] = p
    return torch.from_numpy(nearest).reshape(point.shape)


class _Solver:
    """Quadratic programs one after the other; neighbours that differ only in the point share their set-up."""

    problem: Problem | None = None
    solver = None
    unit = 1.0

    def nearest(self, problem: Problem, point: np.ndarray) -> np.ndarray | None:
        r"""$\arg\min_p \lVert p - v \rVert$ over the problem, or `None` if it is empty."""
        last = self.problem
        same = last is not None and last.matrix is problem.matrix and np.array_equal(last.upper, problem.upper)
        if last is None or not same or not np.array_equal(last.top, problem.top):
            self._set_up(problem, point.size)
        if self.contradiction:
            return None
        target = np.append(point, np.zeros(problem.top.size - point.size))[self.kept]
        scale = max(1.0, float(np.abs(target).max(initial=0.0)))
        x = self._run(target, scale)
        if x is None:
            if maximise(problem, np.zeros(problem.top.size)) is None:
                return None
            # Far-away points and a polytope without an inside are too much at once: in units of the distance it goes.
            x = self._run(target, scale, unit=scale)
        if x is None:
            raise RuntimeError("piqp could not project onto a polytope; divide each row of A by its largest entry.")
        p = np.zeros(problem.top.size)
        p[self.kept] = np.where(x < 1e-12, 0.0, np.minimum(x, 1.0))
        return p[: point.size]

    def _run(self, target: np.ndarray, scale: float, unit: float = 1.0) -> np.ndarray | None:
        """One call of the solver, the objective divided by `unit`, and the polish; `None` if it did not succeed."""
        if self.solver is None or unit != self.unit:
            self.solver, self.unit = _piqp().SparseSolver(), unit
            settings = self.solver.settings
            settings.eps_rel = settings.eps_duality_gap_rel = 0.0
            settings.max_iter = 60
            cost = scipy.sparse.csc_matrix(scipy.sparse.diags_array(self.weight / unit))
            self.solver.setup(cost, -target / unit, *self.equations, self.rows[0], None, self.rows[1], *self.box)
        else:
            self.solver.update(c=-target / unit)
        # Tight: an error of e in the objective is one of sqrt(2 e) in the point.
        settings = self.solver.settings
        settings.eps_abs = settings.eps_duality_gap_abs = 1e-13 * (scale / unit) ** 0.5
        solved, info = self.solver.solve().name == "PIQP_SOLVED", self.solver.result.info
        x = self._polish(target, scale)
        close = info.primal_res < 1e-8 and max(info.dual_res, info.duality_gap) < 1e-8 * scale / unit
        return np.asarray(self.solver.result.x) if x is None and (solved or close) else x

    def _set_up(self, problem: Problem, size: int) -> None:
        self.problem, self.solver = problem, None
        self.kept = np.flatnonzero(problem.top > 0)
        self.weight = (self.kept < size).astype(float)  # auxiliary variables cost nothing
        self.box = np.zeros(self.kept.size), np.ones(self.kept.size)
        matrix = scipy.sparse.csr_array(problem.matrix[:, self.kept])
        void = np.diff(matrix.indptr) == 0
        self.contradiction = bool((problem.excess(np.zeros(problem.top.size)) > 1e-6 * row_scale(problem))[void].any())
        equal = problem.lower == problem.upper
        limits = ~equal & np.isfinite(problem.upper) & ~void
        self.equations = _block(matrix, problem.upper, equal & ~void)
        self.rows = _block(matrix, problem.upper, limits)

    def _polish(self, target: np.ndarray, scale: float) -> np.ndarray | None:
        """Solve again with the active constraints as equations, until the answer is optimal beyond doubt.

        An interior point stops about 1e-7 short of constraints that hold with equality and have no multiplier, which is
        where the step of a network that has learnt its task often ends. A few exchanges settle which ones count.
        """
        found = self.solver.result  # pyright: ignore[reportOptionalMemberAccess]
        low, high = np.asarray(found.z_bl > found.s_bl), np.asarray(found.z_bu > found.s_bu)
        high &= ~low
        equations, b = self.equations
        rows, h = self.rows if self.rows[0] is not None else (scipy.sparse.csc_matrix((0, target.size)), np.zeros(0))
        tight = np.asarray(found.z_u > found.s_u) if h.size else np.zeros(0, dtype=bool)
        slack = 1e-9 * scale
        for _ in range(10):
            blocks = [rows.tocsr()[tight]] if equations is None else [equations, rows.tocsr()[tight]]
            active = scipy.sparse.csc_array(scipy.sparse.vstack(blocks))
            side = h[tight] if b is None else np.append(b, h[tight])
            start = np.where(low, 0.0, np.where(high, 1.0, found.x))
            solved = _on_face(target, self.weight, start, ~(low | high), active, side, 1e-12 * scale)
            if solved is None:
                return None
            x, multipliers = solved
            below, above, over = x < -1e-11, x > 1 + 1e-11, rows @ x - h > 1e-11
            if below.any() or above.any() or over.any():
                low, high, tight = low | below, high | above, tight | over
                continue
            slope = self.weight * (x - target) + active.T @ multipliers
            pulled = np.zeros(h.size, dtype=bool)
            pulled[tight] = multipliers[side.size - int(tight.sum()) :] < -slack
            off_low, off_high = low & (slope < -slack), high & (slope > slack)
            if not (pulled.any() or off_low.any() or off_high.any()):
                return x
            low, high, tight = low & ~off_low, high & ~off_high, tight & ~pulled
        return None


def _on_face(
    target: np.ndarray,
    weight: np.ndarray,
    start: np.ndarray,
    free: np.ndarray,
    active: "scipy.sparse.csc_array",
    side: np.ndarray,
    atol: float,
) -> tuple[np.ndarray, np.ndarray] | None:
    """The nearest point where some variables keep their value and the active rows hold, with their multipliers."""
    from scipy.sparse.linalg import splu

    inner, outer = int(free.sum()), side.size
    across = active[:, free]
    hollow = [
        [scipy.sparse.diags_array(weight[free], shape=(inner, inner)), across.T],
        [across, scipy.sparse.csc_array((outer, outer))],
    ]
    exact = (
        scipy.sparse.csc_array(scipy.sparse.block_array(hollow)) if inner + outer else scipy.sparse.csc_array((0, 0))
    )
    wanted = np.append(weight[free] * (target - start)[free], side - active @ start)
    solution = np.zeros_like(wanted)
    if wanted.size:
        # Slightly regularised, for redundant rows and auxiliary variables free to move; refinement removes the bias.
        nudge = scipy.sparse.diags_array(np.append(np.full(inner, 1e-8), np.full(outer, -1e-8)))
        factors = splu(scipy.sparse.csc_array(exact + nudge))
        for _ in range(8):
            solution += factors.solve(wanted - exact @ solution)
        if not np.abs(wanted - exact @ solution).max() <= atol:
            return None
    x = start.copy()
    x[free] += solution[:inner]
    return x, solution[inner:]


def _block(
    matrix: "scipy.sparse.csr_array", side: np.ndarray, which: np.ndarray
) -> "tuple[scipy.sparse.csc_matrix, np.ndarray] | tuple[None, None]":
    """Some rows and their right-hand sides, in the solver's layout."""
    return (scipy.sparse.csc_matrix(matrix[which]), side[which]) if which.any() else (None, None)


def _piqp() -> ModuleType:
    try:
        import piqp
    except ImportError:
        raise ImportError(
            "LinearPolytope.project needs the quadratic programming solver piqp, which is not installed: "
            'pip install "torch-spigot[piqp]". Or project onto the convex hull, which needs no solver: '
            "spigot.Spigot(polytope=spigot.ConvexHull(structure))."
        ) from None
    return piqp
