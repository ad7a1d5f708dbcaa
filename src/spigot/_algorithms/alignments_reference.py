"""Monotone paths through a grid in plain torch, for a batch of grids at once, anti-diagonal by anti-diagonal.

The cells of an anti-diagonal do not depend on each other. `skew` lays them side by side: cell `[i, j]` is entry i of
row i + j. Three entries lead to it: i - 1 of the row two before (a diagonal step), i - 1 of the row before (down), and
i of that row (right).
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from spigot._algorithms.k_best import best_first
from spigot._algorithms.sampling import STRIDE, pick, shares, uniform
from spigot._runtime.reduce import masked_logsumexp


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


def finite(scores: Tensor, exists: Tensor) -> Tensor:
    """Scores in float64 with infinities replaced by numbers that no sum of the others outweighs."""
    exact = scores.double()
    top = torch.where(exists & exact.isfinite(), exact.abs(), 0).flatten(1).amax(1)[:, None, None]
    shrink = torch.where(top > 1e290, 2.0**-64, 1.0)
    limit = 1 + 2 * (scores.shape[-2] + scores.shape[-1]) * top * shrink
    return torch.where(exact.isinf(), exact.sign() * limit, exact * shrink).masked_fill(~exists, 0)


def log_partition(scores: Tensor, exists: Tensor) -> Tensor:
    """`(batch,)` from `(batch, n, m)`; zero where there are no cells."""
    if scores.numel() == 0:
        return scores.flatten(1).sum(1)
    return _whole(_sweep(scores, exists, lambda ways: masked_logsumexp(ways, ways > -torch.inf, -1)), exists)


def best(scores: Tensor, exists: Tensor) -> tuple[Tensor, Tensor]:
    """The best paths, and their scores: `-inf` where there is none."""
    chosen: list[Tensor] = []

    def settle(ways: Tensor) -> Tensor:
        value, way = ways.max(-1)
        chosen.append(way.unsqueeze(1))
        return value

    value = _whole(_sweep(scores, exists, settle), exists)
    return _follow(exists, chosen, 1)[:, 0], value


def sample(scores: Tensor, exists: Tensor, seeds: Tensor) -> Tensor:
    """Paths `(batch, samples, n, m)` for seeds `(batch, samples)`."""
    row = torch.arange(scores.shape[-2], device=scores.device)
    chosen: list[Tensor] = []

    def settle(ways: Tensor) -> Tensor:
        column = len(chosen) + 1 - row
        cut = uniform(seeds.unsqueeze(-1), row * STRIDE + column).unsqueeze(-1)
        chosen.append(pick(shares(ways).unsqueeze(1), cut))
        return masked_logsumexp(ways, ways > -torch.inf, -1)

    _sweep(scores, exists, settle)
    return _follow(exists, chosen, seeds.shape[-1])


def k_best(scores: Tensor, exists: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best paths `(batch, k, n, m)` and their scores `(batch, k)`, `-inf` where there are fewer."""
    origins: list[tuple[Tensor, Tensor]] = []  # the step into each of the best paths to a cell, and its rank before

    def settle(ways: Tensor) -> Tensor:
        values, place = best_first(ways.mT.flatten(-2), k)  # (batch, n, 3 k): ways, and the ranks of each
        origins.append((place // k, place % k))
        return values

    chart = _sweep(scores, exists, settle, ranks=k)
    values = torch.stack([_whole(chart[..., rank], exists, alone=rank == 0) for rank in range(k)], -1)
    batch, n = len(scores), scores.shape[-2]
    ranks = torch.full((batch, k, chart.shape[1], n), -1, device=scores.device)
    row, column = last_cell(exists)
    there = (row >= 0).unsqueeze(-1) & values.isfinite()
    everyone, at = torch.arange(batch, device=scores.device), (row + column).clamp(min=0)
    ranks[everyone, :, at, row.clamp(min=0)] = torch.where(there, torch.arange(k, device=scores.device), -1)
    for d in range(chart.shape[1] - 1, 0, -1):
        here = ranks[:, :, d]
        way, rank = (origin.mT.gather(1, here.clamp(min=0)) for origin in origins[d - 1])
        for step, target, shift in ((0, d - 2, 1), (1, d - 1, 1), (2, d - 1, 0)):
            taken = (here >= 0) & (way == step)
            if target >= 0:
                to = ranks[:, :, target, : n - shift]
                to.copy_(torch.where(taken[..., shift:], rank[..., shift:], to))
    return unskew((ranks >= 0).to(scores.dtype)), values


def _sweep(scores: Tensor, exists: Tensor, settle: Callable[[Tensor], Tensor], ranks: int | None = None) -> Tensor:
    """Values of all cells `(batch, n + m - 1, n)`; `settle` makes one of the three that lead to a cell, the last axis.

    With `ranks`, each cell has a list of values: another axis before the last of what `settle` is given.
    """
    rows = skew(scores.masked_fill(~exists, -torch.inf), -torch.inf)
    first = rows[:, 0]
    if ranks is not None:
        rows, first = rows.unsqueeze(-1), pad(first.unsqueeze(-1), (0, ranks - 1), value=-torch.inf)
    before, skipped = first, torch.full_like(first, -torch.inf)
    chart = [first]
    for d in range(1, rows.shape[1]):
        ways = torch.stack((_below(skipped), _below(before), before), -1)
        before, skipped = rows[:, d] + settle(ways), before
        chart.append(before)
    return torch.stack(chart, 1)


def _below(row: Tensor) -> Tensor:
    """Entry i - 1 in the place of entry i."""
    return torch.cat((torch.full_like(row[:, :1], -torch.inf), row[:, :-1]), 1)


def _whole(chart: Tensor, exists: Tensor, alone: bool = True) -> Tensor:
    """The entries of last cells; where there are no cells, zero for the empty path, and for no other."""
    row, column = last_cell(exists)
    value = chart[torch.arange(len(chart), device=chart.device), (row + column).clamp(min=0), row.clamp(min=0)]
    return torch.where(row < 0, 0.0 if alone else -torch.inf, value)


def _follow(exists: Tensor, chosen: list[Tensor], copies: int) -> Tensor:
    """The cells `(batch, copies, n, m)` of paths with these steps back: `chosen[d - 1]` is `(batch, copies, n)`."""
    row, column = last_cell(exists)
    batch, n, m = exists.shape
    on = torch.zeros(batch, copies, n + m - 1, n, dtype=torch.bool, device=exists.device)
    everyone, at = torch.arange(batch, device=exists.device), (row + column).clamp(min=0)
    on[everyone, :, at, row.clamp(min=0)] = (row >= 0).unsqueeze(-1)
    for d in range(n + m - 2, 0, -1):
        for step, target, shift in ((0, d - 2, 1), (1, d - 1, 1), (2, d - 1, 0)):
            taken = on[:, :, d] & (chosen[d - 1] == step)
            if target >= 0:
                on[:, :, target, : n - shift] |= taken[..., shift:]
    return unskew(on.double())
