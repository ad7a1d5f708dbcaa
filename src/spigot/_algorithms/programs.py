r"""Linear rows $A [z; \psi] \le b$ over variables between 0 and 1: the best point, and which rows a point breaks.

Everything here is numpy and scipy on one instance at a time, except the two functions at the end, which walk over a
batch. The solver is HiGHS, through `scipy.optimize.milp`, which is also an LP solver when nothing has to be integral.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy  # its parts load when they are used: they take longer than all of spigot
import torch
from torch import Tensor

from spigot._runtime.checks import instance_name

Matrix: TypeAlias = "Tensor | np.ndarray | scipy.sparse.sparray | scipy.sparse.spmatrix | Sequence"
"""The rows of a program, `(*batch, m, variables)`; sparse if there is one for all instances."""

Vector: TypeAlias = Tensor | np.ndarray | Sequence
"""A number for each row, `(*batch, m)`."""

_COST_BITS = 13  # costs reach 2^13: HiGHS stops at an absolute gap of 1e-6, which is then 1e-10 of the largest score
_RANGE = 1e-6  # scores further apart than this are compared digit by digit, see `_finite`


@dataclass(frozen=True, eq=False)
class Rows:
    r"""$A [z; \psi] \le b$, with equality in some rows, for all instances or one each; made by `read_rows`."""

    matrix: "np.ndarray | scipy.sparse.csr_array"
    shape: tuple[int, ...]
    bound: np.ndarray
    auxiliary: int
    equality: tuple[int, ...]

    @property
    def parts(self) -> int:
        """How many variables are parts; the rest are auxiliary."""
        return self.shape[-1] - self.auxiliary

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch axes; none if there is one system for all instances."""
        return np.broadcast_shapes(self.shape[:-2], self.bound.shape[:-1])

    def key(self) -> tuple:
        """Equal for equal systems, and hashable."""
        if isinstance(self.matrix, np.ndarray):
            matrix = (self.shape, self.matrix.tobytes())
        else:
            # scipy picks the width of the indices; it says nothing about their value.
            indices = (self.matrix.indptr.astype(np.int64), self.matrix.indices.astype(np.int64))
            matrix = (self.shape, *(array.tobytes() for array in (*indices, self.matrix.data)))
        return matrix, self.bound.shape, self.bound.tobytes(), self.auxiliary, self.equality

    def __str__(self) -> str:
        each = f"one each for {self.batch}, " if self.batch else ""
        auxiliary = f", {self.auxiliary} auxiliary" if self.auxiliary else ""
        equality = f" ({len(self.equality)} equalities)" if self.equality else ""
        return f"{each}{self.shape[-2]} rows{equality}, {self.parts} parts{auxiliary}"


@dataclass(frozen=True, eq=False)
class Problem:
    r"""One instance: $l \le A x \le u$, $0 \le x \le t$, where $x = [z; \psi]$ and some entries are integral."""

    matrix: "scipy.sparse.csr_array"
    lower: np.ndarray
    upper: np.ndarray
    top: np.ndarray
    integral: np.ndarray

    def with_row(self, row: np.ndarray, lower: float, upper: float) -> "Problem":
        """The problem with one constraint more."""
        matrix = scipy.sparse.csr_array(scipy.sparse.vstack([self.matrix, scipy.sparse.csr_array(row[None])]))
        return dataclasses.replace(
            self, matrix=matrix, lower=np.append(self.lower, lower), upper=np.append(self.upper, upper)
        )

    def excess(self, x: np.ndarray) -> np.ndarray:
        """By how much each row is broken; negative where it holds with room to spare."""
        value = self.matrix @ x
        return np.maximum(value - self.upper, self.lower - value)


def read_rows(A: Matrix, b: Vector, auxiliary: int, equality: Vector) -> Rows:
    """Check what a user gave, and copy it into one canonical form."""
    if scipy.sparse.issparse(A):
        matrix = scipy.sparse.csr_array(A, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        entries = matrix.data
    else:
        matrix = entries = _array(A, "A")
    shape: tuple[int, ...] = matrix.shape  # pyright: ignore[reportAssignmentType]
    if len(shape) < 2:
        raise ValueError(f"A has shape {shape}; it must be (*batch, rows, variables).")
    bound = _array(b, "b")
    rows, variables = shape[-2:]
    if bound.ndim < 1 or bound.shape[-1] != rows:
        raise ValueError(f"b has shape {bound.shape} and A {shape}; b needs one entry for each of {rows} rows.")
    try:
        np.broadcast_shapes(shape[:-2], bound.shape[:-1])
    except ValueError:
        raise ValueError(
            f"A has batch axes {shape[:-2]} and b {bound.shape[:-1]}; they must be equal, or one has none."
        ) from None
    if not 0 <= auxiliary < max(variables, 1):
        raise ValueError(f"auxiliary is {auxiliary}; A has {variables} columns, and at least one must be a part.")
    equal = _row_numbers(equality, rows)
    if not np.isfinite(entries).all():
        raise ValueError("A has an entry that is not finite; leave a constraint out by setting its b to infinity.")
    if np.isnan(bound).any() or (bound == -np.inf).any() or not np.isfinite(bound[..., list(equal)]).all():
        raise ValueError("b has an entry that is NaN or -inf, or inf in an equality row; nothing can satisfy that row.")
    if isinstance(matrix, np.ndarray) and len(shape) == 2:
        matrix = scipy.sparse.csr_array(matrix)
    return Rows(matrix, shape, bound, auxiliary, equal)


def _array(values: "Matrix | Vector", what: str) -> np.ndarray:
    """A private read-only copy in float64."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    try:
        array = np.array(values, dtype=np.float64) + 0.0  # -0.0 becomes 0.0: equal systems must hash alike
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be numbers: a tensor, an array or nested lists ({error}).") from None
    array.setflags(write=False)
    return array


def _row_numbers(equality: Vector, rows: int) -> tuple[int, ...]:
    """Row indices, or a truth value for each row, as sorted indices."""
    chosen = np.asarray(equality.detach().cpu() if isinstance(equality, Tensor) else equality)
    if chosen.dtype == bool:
        if chosen.shape != (rows,):
            raise ValueError(f"equality is a mask of shape {chosen.shape}; A has {rows} rows.")
        return tuple(np.flatnonzero(chosen).tolist())
    if chosen.size == 0:
        return ()
    if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
        raise TypeError(f"equality is {equality!r}; it must be row indices, or a truth value for each row.")
    for row in chosen.tolist():
        if not 0 <= row < rows:
            raise ValueError(f"equality names row {row}; A has rows 0 to {rows - 1}.")
    return tuple(sorted(set(chosen.tolist())))


def maximise(problem: Problem, scores: np.ndarray) -> np.ndarray | None:
    r"""$\arg\max_x s^\top x$, or `None` if there is no feasible $x$.

    Infinite scores come first: as few as possible of those at $-\infty$, then as many as possible of those at
    $+\infty$, then the finite ones.
    """
    wanted = ((scores > 0) & (problem.top > 0)).astype(float)
    if holds(problem, wanted):  # nothing can beat having every positive score and no negative one
        return wanted
    never, always = scores == -np.inf, scores == np.inf
    finite = np.where(never | always, 0.0, scores)
    if never.any():
        without = dataclasses.replace(problem, top=np.where(never, 0.0, problem.top))
        found = maximise(without, np.where(never, 0.0, scores))
        if found is not None:
            return found
        pinned = _pin(problem, -never.astype(float))
        return None if pinned is None else maximise(pinned, np.where(never, 0.0, scores))
    if always.any():
        pinned = _pin(problem, always.astype(float))
        return None if pinned is None else maximise(pinned, finite)
    size = np.abs(finite).max(initial=0.0)
    # A power of two changes no comparison, and keeps sums of the largest floats from overflowing.
    return _finite(problem, np.ldexp(finite, -math.frexp(size)[1]))


def _pin(problem: Problem, gain: np.ndarray) -> Problem | None:
    """The problem restricted to the best value of an integral gain."""
    x = _solve(problem, gain)
    if x is None:
        return None
    slack = 0.5 if problem.integral[gain != 0].all() else 1e-9
    return problem.with_row(gain, float(gain @ x) - slack, np.inf)


def _finite(problem: Problem, scores: np.ndarray) -> np.ndarray | None:
    r"""As `maximise`, for finite scores of any range.

    A solver in floating point cannot tell 1e8 from 1e8 + 1: its tolerances are absolute. Scores of too wide a range
    are written $s = u w + r$ with whole numbers $w$ and a small rest; for each value that $w^\top z$ can take, best
    first, the rest is maximised by itself, until no rest can make up for the next step down.
    """
    size = np.abs(scores).max(initial=0.0)
    if size == 0 or np.abs(scores[scores != 0]).min() >= _RANGE * size or not problem.integral[scores != 0].all():
        return _solve(problem, scores)
    unit = math.ldexp(1.0, math.frexp(size)[1] - _COST_BITS)
    whole = np.round(scores / unit)
    rest = scores - whole * unit
    headroom = float(rest[(problem.top > 0) & (rest > 0)].sum())
    best, value = None, -math.inf
    below = problem
    while (top := _solve(below, whole)) is not None:
        level = round(float(whole @ top))
        if level * unit + headroom <= value:
            break
        x = _finite(problem.with_row(whole, level - 0.5, level + 0.5), rest)
        reached = -math.inf if x is None else math.fsum(scores[np.round(x) > 0])
        if reached > value:
            best, value = x, reached
        below = problem.with_row(whole, -np.inf, level - 0.5)
    return best


def _solve(problem: Problem, scores: np.ndarray) -> np.ndarray | None:
    """One call of HiGHS; integral variables come back as whole numbers that satisfy the rows."""
    size = np.abs(scores).max(initial=0.0)
    cost = -np.ldexp(scores, _COST_BITS - math.frexp(size)[1])
    # The relaxation first: it takes a fifth of the time, and where its answer is whole, as often, it is the answer.
    answer = _highs(dataclasses.replace(problem, integral=np.zeros_like(problem.integral)), cost)
    if answer.status == 0 and (np.abs(answer.x - np.round(answer.x)) > 1e-9)[problem.integral].any():
        answer = _highs(problem, cost)
    if answer.status == 0:
        return _round(problem, np.asarray(answer.x))
    if answer.status == 2:
        return None
    raise RuntimeError(f"the solver gave up on a program: {answer.message}")


def _highs(problem: Problem, cost: np.ndarray):
    """The minimum of a cost, as scipy gives it."""
    rows = scipy.optimize.LinearConstraint(problem.matrix, problem.lower, problem.upper)  # pyright: ignore[reportArgumentType]
    # Presolve is sometimes wrong about small infeasible programs; only "solved" is believed without asking again.
    for presolve in (True, False):
        answer = scipy.optimize.milp(
            cost,
            integrality=problem.integral.astype(int),
            bounds=scipy.optimize.Bounds(0.0, problem.top),  # pyright: ignore[reportArgumentType]
            constraints=rows if problem.lower.size else (),
            options={"mip_rel_gap": 0.0, "presolve": presolve},
        )
        if answer.status == 0:
            break
    return answer


def _round(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Whole numbers where they must be, zeros and ones where they nearly are, and the rows still satisfied."""
    nearest = np.round(x)
    snapped = np.where(problem.integral | (np.abs(x - nearest) < 1e-9), nearest, np.clip(x, 0.0, 1.0))
    if holds(problem, snapped) or not problem.integral.any():
        return snapped
    if not problem.integral.all():  # the continuous variables leant on the rounding error: ask for them again
        fixed = problem.integral.astype(float)
        at = scipy.sparse.csr_array(scipy.sparse.diags_array(fixed))
        again = dataclasses.replace(
            problem,
            matrix=scipy.sparse.csr_array(problem.matrix @ scipy.sparse.diags_array(1 - fixed)),
            lower=problem.lower - problem.matrix @ (at @ snapped),
            upper=problem.upper - problem.matrix @ (at @ snapped),
            integral=np.zeros_like(problem.integral),
        )
        found = _solve(again, np.zeros_like(x))
        if found is not None:
            return np.where(problem.integral, snapped, found)
    worst = int(np.argmax(problem.excess(snapped)))
    raise ValueError(
        f"the solver's answer breaks row {worst} by {problem.excess(snapped)[worst]:g} when rounded to 0 and 1; its "
        "coefficients differ too much in size. Divide the row by its largest coefficient, or use a smaller big-M."
    )


def holds(problem: Problem, x: np.ndarray, atol: float = 1e-6) -> bool:
    """Whether every row holds, to within `atol` of the largest number in it."""
    return bool((problem.excess(x) <= atol * row_scale(problem)).all())


def row_scale(problem: Problem) -> np.ndarray:
    """The largest number in each row, or 1."""
    size = abs(problem.matrix).max(axis=1)
    size = np.maximum(size.toarray().ravel() if scipy.sparse.issparse(size) else size, 1.0)
    bound = np.where(np.isfinite(problem.upper), np.abs(problem.upper), 0.0)
    return np.maximum(size, bound)


def broken(problem: Problem, z: np.ndarray, exists: np.ndarray, atol: float | None = None) -> list[str]:
    """In words, what keeps the parts `z` out of the set.

    Args:
        problem: The instance.
        z: Values of the parts, without auxiliary variables: some must exist that satisfy the rows.
        exists: Parts that exist.
        atol: How far a point of the relaxation may be outside; `None` asks for a 0/1 point.
    """
    found = [f"part {i} is {z[i]:g} but masked" for i in np.flatnonzero((z != 0) & ~exists)]
    if atol is None:
        found += [f"part {i} is {z[i]:g}, not 0 or 1" for i in np.flatnonzero(exists & (z != 0) & (z != 1))]
    else:
        outside = exists & ~((z >= -atol) & (z <= 1 + atol))
        found += [f"part {i} is {z[i]:g}, outside [0, 1]" for i in np.flatnonzero(outside)]
    if not exists.any() or not np.isfinite(z).all():
        return found
    size = z.size
    x, suffix = z, ""
    if size < problem.top.size:
        x = np.append(z, _best_auxiliary(problem, z))
        suffix = " with the best auxiliary variables"
    limit = 1e-6 * row_scale(problem) if atol is None else atol
    value = problem.matrix @ x
    for row in np.flatnonzero(problem.excess(x) > limit):
        lower, upper = problem.lower[row], problem.upper[row]
        sign = "!=" if lower == upper else ">"
        auxiliary = suffix if problem.matrix[[row], size:].nnz else ""
        found.append(f"row {row}: {value[row]:g} {sign} {upper:g}{auxiliary}")
    return found


def _best_auxiliary(problem: Problem, z: np.ndarray) -> np.ndarray:
    """Auxiliary variables that break the rows as little as possible in total, the parts being given."""
    rows, size = problem.lower.size, z.size
    auxiliary = problem.top.size - size
    given = problem.matrix[:, :size] @ z
    spare, identity = problem.matrix[:, size:], scipy.sparse.eye_array(rows)
    # Row by row, a slack t >= 0 stretches both sides: lower - t <= A psi <= upper + t.
    stretched = scipy.sparse.vstack([scipy.sparse.hstack([spare, -identity]), scipy.sparse.hstack([spare, identity])])
    free = np.full(rows, np.inf)
    elastic = Problem(
        matrix=scipy.sparse.csr_array(stretched),
        lower=np.append(-free, problem.lower - given),
        upper=np.append(problem.upper - given, free),
        top=np.append(problem.top[size:], free),
        integral=np.append(problem.integral[size:], np.zeros(rows, dtype=bool)),
    )
    answer = _highs(elastic, np.append(np.zeros(auxiliary), np.ones(rows)))
    if answer.x is None:
        raise RuntimeError(f"the solver gave up on the auxiliary variables of a program: {answer.message}")
    psi = np.asarray(answer.x)[:auxiliary]
    return np.where(problem.integral[size:], np.round(psi), np.clip(psi, 0.0, 1.0))


def problems(rows: Rows, mask: Tensor, integral: bool, integral_auxiliary: bool):
    """For each instance of a batch, its `Problem` and which of its parts exist."""
    batch, size = tuple(mask.shape[:-1]), rows.parts
    if mask.shape[-1] != size:
        raise ValueError(f"the last axis has {mask.shape[-1]} parts; the program has {size}.")
    try:
        fits = np.broadcast_shapes(rows.batch, batch) == batch
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"the batch axes are {batch}; A and b hold one program for each instance of {rows.batch}.")
    shared = rows.matrix if isinstance(rows.matrix, scipy.sparse.csr_array) else None
    each = np.broadcast_to(rows.matrix, (*batch, *rows.shape[-2:])) if isinstance(rows.matrix, np.ndarray) else None
    bounds = np.broadcast_to(rows.bound, (*batch, rows.shape[-2]))
    whole = np.append(np.full(size, integral), np.full(rows.auxiliary, integral and integral_auxiliary))
    for where in np.ndindex(*batch):
        exists = mask[where].numpy()
        upper = bounds[where]
        lower = np.full_like(upper, -np.inf)
        lower[list(rows.equality)] = upper[list(rows.equality)]
        matrix = shared if each is None else scipy.sparse.csr_array(each[where])
        assert matrix is not None
        yield Problem(matrix, lower, upper, np.append(exists.astype(float), np.ones(rows.auxiliary)), whole), exists


def decode(scores: Tensor, mask: Tensor, rows: Rows, integral: bool, integral_auxiliary: bool) -> Tensor:
    """The best point of each instance; zeros where no part exists."""
    batch, size = tuple(scores.shape[:-1]), rows.parts
    values = scores.double().reshape(-1, scores.shape[-1]).numpy()
    z = np.zeros_like(values)
    for index, (problem, exists) in enumerate(problems(rows, mask, integral, integral_auxiliary)):
        if not exists.any():
            continue
        x = maximise(problem, np.append(values[index], np.zeros(rows.auxiliary)))
        if x is None:
            raise no_solution(index, batch)
        z[index] = x[:size] + 0.0  # -0.0 becomes 0.0
    return torch.from_numpy(z).reshape(scores.shape)


def no_solution(index: int, batch: tuple[int, ...]) -> ValueError:
    """A program without feasible points."""
    return ValueError(
        f"the program of {instance_name(index, batch)} has no solution among the parts that exist; loosen A and b, or "
        "unmask more parts."
    )
