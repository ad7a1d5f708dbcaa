r"""Any set of 0/1 vectors that linear constraints describe."""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, final

import torch
from torch import Tensor

from spigot._algorithms.programs import Matrix, Vector, decode
from spigot._runtime.checks import check_parts
from spigot._runtime.host import HostFunction
from spigot.interface import AbstractStructure
from spigot.polytopes.linear import LinearPolytope, broken_rows, check_size, rows_hold
from spigot.types import Flags, Mask, Parts


@dataclass(frozen=True, eq=False, repr=False)
class AbstractProgram(AbstractStructure):
    """What a 0/1 program and its relaxation share: everything but whether the parts must be whole."""

    A: Matrix
    b: Vector
    auxiliary: int = 0
    integral_auxiliary: bool = True
    equality: Vector = ()
    _polytope: LinearPolytope = field(init=False)
    _solver: HostFunction = field(init=False)

    event_ndim: ClassVar[int] = 1
    integral: ClassVar[bool]
    """Whether the parts are 0 or 1, or anything between."""

    def __post_init__(self) -> None:
        # Made once: a compiled model may read `relaxation`, but could not build it.
        polytope = LinearPolytope(self.A, self.b, self.auxiliary, self.equality)
        solve = partial(decode, rows=polytope._rows, integral=self.integral, integral_auxiliary=self.integral_auxiliary)
        object.__setattr__(self, "A", polytope.A)
        object.__setattr__(self, "b", polytope.b)
        object.__setattr__(self, "equality", polytope.equality)
        object.__setattr__(self, "_polytope", polytope)
        object.__setattr__(self, "_solver", HostFunction(solve, 1))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AbstractProgram)
            and type(self) is type(other)
            and self.integral_auxiliary == other.integral_auxiliary
            and self._polytope == other._polytope
        )

    def __hash__(self) -> int:
        return hash((type(self), self.integral_auxiliary, self._polytope))

    def __repr__(self) -> str:
        real = self.auxiliary and not self.integral_auxiliary
        return f"{type(self).__name__}({self._polytope._rows}{' (real)' if real else ''})"

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        mask = check_parts(scores, mask, 1)
        check_size(scores, self._polytope._rows, "scores")
        return self._solver(scores.detach(), mask)

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        mask = check_parts(z, mask, 1, "z")
        rows, whole = self._polytope._rows, self.integral
        return rows_hold(z, mask, rows, integral=whole, integral_auxiliary=self.integral_auxiliary, atol=self._atol)

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        """Rows that do not hold ("row 3: 2 > 1"), masked parts in use, values that are not allowed."""
        mask = check_parts(z, mask, 1, "z")
        check_size(z, self._polytope._rows, "z")
        return broken_rows(
            z,
            mask,
            self._polytope._rows,
            integral=self.integral,
            integral_auxiliary=self.integral_auxiliary,
            atol=self._atol,
        )

    @property
    def _atol(self) -> float | None:
        return None if self.integral else 1e-5

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        """True for the first `lengths` parts; the size is that of the program."""
        parts = self._polytope._rows.parts
        if size is not None and size != parts:
            raise ValueError(f"size is {size}; the program has {parts} parts, and so must its mask.")
        if lengths.numel() and int(lengths.max()) > parts:
            raise ValueError(f"a length is {int(lengths.max())}; the program has {parts} parts.")
        return torch.arange(parts, device=lengths.device) < lengths.unsqueeze(-1)

    def full_mask(self, parts: Parts) -> Mask:
        return torch.ones_like(parts, dtype=torch.bool)

    @property
    def relaxation(self) -> LinearPolytope:
        """The same rows without integrality. Projecting onto it needs the `piqp` extra; `ConvexHull` does not."""
        return self._polytope


@final
@dataclass(frozen=True, eq=False, repr=False)
class ZeroOneProgram(AbstractProgram):
    r"""All 0/1 vectors that satisfy linear constraints (Eq. 1 and 2; line 3 of Algorithm 1).

    $$\mathcal Z = \big\{z \in \{0,1\}^d \;\big|\; \exists \psi :\ A [z; \psi] \le b \big\}, \qquad
      \hat z = \arg\max_{z \in \mathcal Z} z^\top s.$$

    The argmax is exact: one mixed integer program for each instance, solved on the CPU by HiGHS, through
    `scipy.optimize.milp`, without a gap. Ties are broken by the solver, the same way each time. A part scored
    $-\infty$ is used only if no member does without it; scores may differ by any factor.

    Args:
        A: The rows, `(m, d + auxiliary)`, columns of auxiliary variables last: a tensor, an array or a scipy sparse
            matrix. With leading batch axes, one program for each instance: they must broadcast to those of the scores.
        b: The right-hand sides, `(m,)` or `(*batch, m)`; infinity switches a row off.
        auxiliary: How many of the columns are auxiliary variables $\psi$. They lie between 0 and 1 like the parts, so
            that the relaxation is bounded: write a variable of another range $[l, u]$ as $l + (u - l) \psi$.
        integral_auxiliary: Whether auxiliary variables are 0 or 1 as well, or anything between.
        equality: The rows that are equations: their indices, or a truth value for each row.

    Masked parts are fixed at 0; auxiliary variables always exist. An instance without any parts is $z = 0$.

    Example:
        A knapsack: items of weight 3, 4 and 5, room for 8.

        >>> knapsack = ZeroOneProgram(torch.tensor([[3.0, 4.0, 5.0]]), torch.tensor([8.0]))
        >>> knapsack
        ZeroOneProgram(1 rows, 3 parts)
        >>> knapsack.argmax(torch.tensor([2.0, 2.5, 2.8]))
        tensor([1., 0., 1.])
        >>> knapsack.violations(torch.tensor([0.0, 1.0, 1.0]))
        [['row 0: 9 > 8']]
        >>> knapsack.relaxation.project(torch.tensor([1.0, 0.5, 1.5]))
        tensor([0.7600, 0.1800, 1.0000])
    """

    integral: ClassVar[bool] = True


@final
@dataclass(frozen=True, eq=False, repr=False)
class RelaxedProgram(AbstractProgram):
    r"""A 0/1 program without its integrality: the argmax of the linear relaxation.

    $$\hat z = \arg\max_{z \in [0,1]^d} z^\top s \quad\text{s.t.}\quad \exists \psi \in [0,1]^a :\ A [z; \psi] \le b.$$

    **The result may be fractional.** It is a vertex of `relaxation`, which is integral where the rows describe the
    convex hull (assignments, flows), and not in general. `contains` and `violations` ask about that polytope, to within
    1e-5, and not about 0/1 vectors. A linear program takes a fraction of the time of a mixed integer one.

    The arguments are those of `ZeroOneProgram`, to take its place; `integral_auxiliary` has no effect.

    Example:
        The knapsack of `ZeroOneProgram` cuts an item to fill the bag.

        >>> knapsack = RelaxedProgram(torch.tensor([[3.0, 4.0, 5.0]]), torch.tensor([8.0]))
        >>> knapsack.argmax(torch.tensor([2.0, 2.5, 2.8]))
        tensor([1.0000, 1.0000, 0.2000])
        >>> knapsack.violations(torch.tensor([1.0, 0.5, 1.0]))
        [['row 0: 10 > 8']]
    """

    integral: ClassVar[bool] = False
