"""Paths through a grid, from the first cell to the last, right or down at every step."""

from functools import cache
from itertools import combinations

import torch
from torch import Tensor


def best_paths(scores: Tensor) -> Tensor:
    """The path of most score through each square grid; ties go to the first of `all_paths`.

    A grid of 5 x 5 has 70 paths. To look at all of them takes two operations on a batch, a dynamic programme a hundred.

    Args:
        scores: A score for each cell, `(batch, n, n)`.

    Returns:
        1 for the cells on the path, 0 elsewhere.

    Example:
        >>> best_paths(torch.tensor([[[0.0, 0.0, 0.0], [9.0, 0.0, 5.0], [0.0, 9.0, 0.0]]]))
        tensor([[[1., 0., 0.],
                 [1., 0., 0.],
                 [1., 1., 1.]]])
    """
    paths = all_paths(scores.shape[-1]).to(scores)
    return paths[(scores.flatten(1) @ paths.flatten(1).T).argmax(-1)]


@cache
def all_paths(n: int) -> Tensor:
    """Every path through a square grid, `(paths, n, n)`.

    Example:
        >>> all_paths(2)
        tensor([[[1., 0.],
                 [1., 1.]],
        <BLANKLINE>
                [[1., 1.],
                 [0., 1.]]])
    """
    length = 2 * (n - 1)
    drawn = []
    for steps_down in combinations(range(length), n - 1):
        z, i, j = torch.zeros(n, n), 0, 0
        z[0, 0] = 1
        for step in range(length):
            i, j = (i + 1, j) if step in steps_down else (i, j + 1)
            z[i, j] = 1
        drawn.append(z)
    return torch.stack(drawn)
