"""Monotone alignments of two sequences: paths through the grid of their pairs."""

import itertools
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from spigot._algorithms.dtw import PATHS, last_cell
from spigot._algorithms.kernel_calls import flatten
from spigot._runtime.checks import check_parts, check_rank, zero_one
from spigot.interface import AbstractRankedStructure, AbstractSamplingStructure
from spigot.polytopes.diagonals import DiagonalSimplex
from spigot.structures.lengths import grid_mask
from spigot.types import Flags, Mask, Members, MemberValues, Parts, Values


@final
@dataclass(frozen=True)
class Alignments(AbstractRankedStructure, AbstractSamplingStructure):
    r"""Two sequences aligned without crossing: paths of cells `(*batch, n, m)`, indexed `[row, column]`.

    $$\mathcal Z = \{z \in \{0, 1\}^{n \times m} \mid z \text{ is a path from } (1, 1) \text{ to } (n, m)
      \text{ by steps } (1, 0),\ (0, 1),\ (1, 1)\}$$

    A path begins at the first cell, `[0, 0]`, ends at the last, and goes one down, one to the right, or both at once
    with each step. Its parts are the cells that it goes through, and nothing else: they tell the steps. So each row and
    each column has at least one cell, a score is a sum over cells, and with scores that are minus a distance the
    best path is that of dynamic time warping. (Where scores are positive, longer paths are better ones.)

    The last cell is where the last row meets the last column that has any cell, so that padding is masked at the end. A
    cell that is left out elsewhere cannot be gone through: a band around the diagonal, say, is a mask.

    The best path and sums over all of them, whose numbers are Delannoy's, take $O(nm)$. Ties are broken from the last
    cell back: a diagonal step first, then one down. An unmasked score of `-inf` is worse than any finite sum, and still
    better than a cell that does not exist.

    Example:
        >>> alignments = Alignments()
        >>> a, b = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([0.1, 0.9, 1.1, 2.8])
        >>> alignments.argmax(-(a[:, None] - b).abs())
        tensor([[1., 0., 0., 0.],
                [0., 1., 1., 0.],
                [0., 0., 0., 1.]])
        >>> round(alignments.log_count(alignments.mask(torch.tensor(4))).exp().item())          # Delannoy's D(3, 3)
        63

    References:
        Sakoe, Chiba (1978), Dynamic programming algorithm optimization for spoken word recognition. Cuturi, Blondel
        (2017), Soft-DTW: A differentiable loss function for time-series.
    """

    event_ndim: ClassVar[int] = 2

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return PATHS.argmax(scores.detach(), check_parts(scores, mask, 2))

    def k_best(self, scores: Parts, k: int, mask: Mask | None = None) -> tuple[Members, MemberValues]:
        mask = check_parts(scores, mask, 2)
        z, found = (x.movedim(scores.ndim - 2, 0) for x in PATHS.k_best(scores.detach(), mask, check_rank(k)))
        values = torch.where(z != 0, scores, 0).sum((-2, -1))
        return z, values.masked_fill(~found, -torch.inf)

    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        return PATHS.log_partition(scores, check_parts(scores, mask, 2))

    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return PATHS.marginals(scores, check_parts(scores, mask, 2))

    def sample_from_seeds(self, scores: Parts, seeds: Tensor, mask: Mask | None = None) -> Members:
        mask = check_parts(scores, mask, 2)
        return PATHS.sample(scores.detach(), mask, seeds.movedim(0, -1)).movedim(scores.ndim - 2, 0)

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        """A path has an unbroken run of cells in each row, which begins where the one above ends, or one further."""
        mask = check_parts(z, mask, 2, "z")
        fine, some = zero_one(z, mask, 2), mask.flatten(-2).any(-1)
        if z.shape[-1] == 0 or z.shape[-2] == 0:
            return fine
        on = (z != 0).to(torch.uint8)
        count, first = on.sum(-1), on.argmax(-1)
        last = z.shape[-1] - 1 - on.flip(-1).argmax(-1)
        row, column = (end.unsqueeze(-1) for end in last_cell(mask))
        place = torch.arange(z.shape[-2], device=z.device)
        step = first[..., 1:] - last[..., :-1]
        goes_on = ((step == 0) | (step == 1)) | (place[1:] > row)
        run = torch.where(place <= row, last - first + 1, 0) == count
        ends = (first[..., 0] == 0) & (last.gather(-1, row.clamp(min=0)) == column).squeeze(-1)
        return fine & (run.all(-1) & goes_on.all(-1) & ends | ~some)

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        mask = check_parts(z, mask, 2, "z")
        pairs = zip(flatten(z.detach(), 2), flatten(mask, 2), strict=True)
        return [_violations(values, exists) for values, exists in pairs]

    def mask(
        self, lengths: Tensor, size: int | tuple[int, int] | None = None, *, columns: Tensor | None = None
    ) -> Mask:
        """The cells of grids with so many rows and columns.

        Args:
            lengths: The rows of each instance; and its columns, if they are not given.
            size: The padded size, of both axes or `(rows, columns)`; the longest instance decides if omitted.
            columns: The columns of each instance, of the shape of `lengths`.
        """
        return grid_mask(lengths, size, columns)

    def full_mask(self, parts: Parts) -> Mask:
        return torch.ones_like(parts, dtype=torch.bool)

    @property
    def relaxation(self) -> DiagonalSimplex:
        """At most one cell of each anti-diagonal.

        The hull is known, too (a unit of flow from the first cell to the last), but has no closed form to project by in
        terms of cells; `ConvexHull(alignments)` is exact. This one knows which cells exclude each other.
        """
        return DiagonalSimplex()


def _violations(z: Tensor, exists: Tensor) -> list[str]:
    found = []
    for i, j in ((z != 0) & ((z != 1) | ~exists)).nonzero().tolist():
        value = float(z[i, j])
        found.append(f"cell [{i}, {j}] is " + (f"{value:g}, not 0 or 1" if exists[i, j] else "not in the mask"))
    if not exists.any():
        return found
    end = tuple(int(x) for x in last_cell(exists))
    path = sorted(map(tuple, (z != 0).nonzero().tolist()), key=lambda cell: (sum(cell), cell))
    if not path:
        return [*found, "the path has no cells"]
    for what, cell, wanted in (("begins", path[0], (0, 0)), ("ends", path[-1], end)):
        if cell != wanted:
            found.append(f"the path {what} at {list(cell)}, not at {list(wanted)}")
    for (i, j), (down, right) in itertools.pairwise(path):
        if (down - i, right - j) not in ((0, 1), (1, 0), (1, 1)):
            found.append(f"no step leads from [{i}, {j}] to [{down}, {right}]")
    return found
