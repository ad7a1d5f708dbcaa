"""Matchings of rows to columns."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from spigot._algorithms.assignment import matching_argmax, matching_k_best
from spigot._runtime.checks import check_parts, check_rank, zero_one
from spigot.interface import AbstractRankedStructure
from spigot.polytopes.birkhoff import Birkhoff
from spigot.structures.lengths import grid_mask
from spigot.types import Flags, Mask, Members, MemberValues, Parts


@final
@dataclass(frozen=True)
class Matchings(AbstractRankedStructure):
    r"""Rows matched to columns, each row and each column at most once.

    $$\mathcal Z = \{z \in \{0, 1\}^{n \times m} \mid \sum_j z_{ij} \le 1,\ \sum_i z_{ij} \le 1\}$$

    Parts are `(*batch, n, m)`, indexed `[row, column]`; a row or a column exists if it has a part that does. A
    *complete* matching leaves none of the shorter side alone: with as many rows as columns it is a permutation.
    Otherwise a pair that gains nothing is left out.

    The argmax is an assignment problem, solved by the algorithm of Jonker and Volgenant, and the k best follow from it
    by Murty's partition. The relaxation is the convex hull itself, the Birkhoff polytope. Sums over matchings are
    permanents, which nobody can compute, so that there are no marginals.

    Attributes:
        complete: Whether all of the shorter side is matched.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, 0.0], [2.0, 0.0, -1.0]])
        >>> Matchings().argmax(scores)
        tensor([[0., 1., 0.],
                [1., 0., 0.]])
        >>> z, values = Matchings().k_best(scores, 3)
        >>> values
        tensor([3., 2., 2.])
        >>> Matchings().violations(torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
        [['column 0 is matched 2 times: rows 0, 1']]

    References:
        Jonker, Volgenant (1987), A shortest augmenting path algorithm for dense and sparse linear assignment problems.
        Murty (1968), An algorithm for ranking all the assignments in order of increasing cost.
    """

    complete: bool = True

    event_ndim: ClassVar[int] = 2

    def latex_constraints(self) -> str:
        return r"\sum_{ij} z_{ij} = \min(n, m)" if self.complete else ""

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        """As `AbstractStructure.argmax`. A score of $-\\infty$ is taken only where nothing else is left."""
        return matching_argmax(scores.detach(), check_parts(scores, mask, 2), self.complete)

    def k_best(self, scores: Parts, k: int, mask: Mask | None = None) -> tuple[Members, MemberValues]:
        """As `AbstractRankedStructure.k_best`; each further one costs a search for each part of the one before."""
        check_rank(k)
        mask = check_parts(scores, mask, 2)
        z, exist = matching_k_best(scores.detach(), mask, k, self.complete)
        z, exist = z.movedim(-3, 0), exist.movedim(-1, 0)
        values = torch.where(z != 0, scores, 0).sum((-2, -1))
        return z, values.masked_fill(~exist, -torch.inf)

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        mask = check_parts(z, mask, 2, "z")
        fine, on = zero_one(z, mask, 2), z != 0
        rows, columns = mask.any(-1), mask.any(-2)
        down, across = rows.sum(-1, keepdim=True), columns.sum(-1, keepdim=True)
        for count, exist, short in ((on.sum(-1), rows, down <= across), (on.sum(-2), columns, across <= down)):
            least = (exist & short).to(count) if self.complete else 0
            fine = fine & ((count <= 1) & (count >= least)).all(-1)
        return fine

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        mask = check_parts(z, mask, 2, "z")
        shape = (z.shape[:-2].numel(), *z.shape[-2:])
        pairs = zip(z.reshape(shape), mask.reshape(shape), strict=True)
        return [self._violations(values, exists) for values, exists in pairs]

    def mask(
        self, lengths: Tensor, size: int | tuple[int, int] | None = None, *, columns: Tensor | None = None
    ) -> Mask:
        """The parts of instances with so many rows and columns.

        Numbers of columns are an argument of their own, not a last axis of `lengths`: two lengths could be the rows of
        two instances, or the rows and columns of one.

        Args:
            lengths: The rows of each instance; and its columns, if they are not given.
            size: The padded size, of both axes or `(rows, columns)`; the longest instance decides if omitted.
            columns: The columns of each instance, of the shape of `lengths`.
        """
        return grid_mask(lengths, size, columns)

    def full_mask(self, parts: Parts) -> Mask:
        return torch.ones_like(parts, dtype=torch.bool)

    @property
    def relaxation(self) -> Birkhoff:
        """The Birkhoff polytope, which is the convex hull."""
        return Birkhoff(self.complete)

    def _why_intractable(self) -> str:
        return "sums over matchings are permanents, which are intractable"

    def _violations(self, z: Tensor, exists: Tensor) -> list[str]:
        found = []
        for i, j in ((z != 0) & ((z != 1) | ~exists)).nonzero().tolist():
            value = float(z[i, j])
            found.append(f"part [{i}, {j}] is " + (f"{value:g}, not 0 or 1" if exists[i, j] else "not in the mask"))
        down, across = int(exists.any(1).sum()), int(exists.any(0).sum())
        sides = (("row", "columns", 1, down <= across), ("column", "rows", 0, across <= down))
        for line, others, axis, short in sides:
            count, there = (z != 0).sum(axis), exists.any(axis)
            for i in (count > 1).nonzero().flatten().tolist():
                names = ", ".join(map(str, (z[i] if axis else z[:, i]).nonzero().flatten().tolist()))
                found.append(f"{line} {i} is matched {int(count[i])} times: {others} {names}")
            if self.complete and short:
                found += [f"{line} {i} is not matched" for i in ((count == 0) & there).nonzero().flatten().tolist()]
        return found
