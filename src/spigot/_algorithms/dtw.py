"""Monotone paths through a grid of cells: the best one, sums over all, draws and the k best.

Natively the recursion runs in C++; elsewhere in plain torch, for a batch of grids at once, anti-diagonal by
anti-diagonal. The cells of an anti-diagonal do not depend on each other. `skew` lays them side by side: cell `[i, j]`
is entry i of row i + j. Three entries lead to it: i - 1 of the row two before (a diagonal step), i - 1 of the row
before (down), and i of that row (right).
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from spigot._algorithms.recursions import Recursion
from spigot._algorithms.sampling import STRIDE
from spigot._algorithms.semirings import AbstractSemiring


def skew(cells: Tensor, empty: float = 0) -> Tensor:
    """The anti-diagonals `(..., n + m - 1, n)` of cells `(..., n, m)`, neither of which is zero.

    Example:
        >>> skew(torch.tensor([[1, 2, 3], [4, 5, 6]]))
        tensor([[1, 0],
                [2, 4],
                [3, 5],
                [0, 6]])
    """
    n, m = cells.shape[-2:]
    flat = pad(cells, (0, n), value=empty).flatten(-2)
    return flat[..., : n * (n + m - 1)].unflatten(-1, (n, n + m - 1)).mT


def unskew(rows: Tensor) -> Tensor:
    """The way back from `skew`.

    Example:
        >>> cells = torch.tensor([[1, 2, 3], [4, 5, 6]])
        >>> torch.equal(unskew(skew(cells)), cells)
        True
    """
    n, m = rows.shape[-1], rows.shape[-2] - rows.shape[-1] + 1
    return pad(rows.mT.flatten(-2), (0, n)).unflatten(-1, (n, n + m))[..., :m]


def last_cell(exists: Tensor) -> tuple[Tensor, Tensor]:
    """The last row and the last column that have a cell, `(...)` from `(..., n, m)`; -1 where there is none."""
    down, across = exists.any(-1), exists.any(-2)
    return tuple(
        torch.where(line, torch.arange(line.shape[-1], device=exists.device), -1).amax(-1) for line in (down, across)
    )  # pyright: ignore[reportReturnType]


def paths(scores: Tensor, exists: Tensor, semiring: AbstractSemiring) -> Tensor:
    """All paths from the first to the last cell; where there are no cells, the empty path."""
    first, *later = skew(scores.masked_fill(~exists, -torch.inf), -torch.inf).unbind(-2)
    row = torch.arange(first.shape[-1], device=first.device)
    chart = [semiring.lift(first)]
    nothing = torch.full_like(chart[0], -torch.inf)
    for d, cells in enumerate(later, 1):
        before = chart[-2] if d > 1 else nothing
        ways = torch.stack((_below(before), _below(chart[-1]), chart[-1]), -1)
        chart.append(cells + semiring.plus(ways, row * STRIDE + d - row))
    last_row, last_column = last_cell(exists)
    place = torch.arange(len(chart), device=row.device)
    end = (row == last_row.unsqueeze(-1)).unsqueeze(-2) & (place == (last_row + last_column).unsqueeze(-1)).unsqueeze(
        -1
    )
    value = torch.where(end, torch.stack(chart, -2), 0).sum((-2, -1))
    return torch.where(last_row < 0, semiring.lift(torch.zeros_like(scores[..., 0, 0])), value)


def _below(row: Tensor) -> Tensor:
    """Entry i - 1 in the place of entry i."""
    return pad(row[..., :-1], (1, 0), value=-torch.inf)


PATHS = Recursion("align", paths, 2, member="path", parts="cells")
