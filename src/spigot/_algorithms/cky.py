"""Binary trees over labelled spans: the best one, sums over all, draws and the k best.

Natively CKY runs in C++; elsewhere in plain torch, for a batch of sentences at once, width by width.
"""

import torch
from torch import Tensor

from spigot._algorithms.recursions import Recursion
from spigot._algorithms.sampling import STRIDE
from spigot._algorithms.semirings import AbstractSemiring, SpanChart


def span_parts(mask: Tensor) -> Tensor:
    """The parts that can take part in a tree: spans from left to right, of words that exist, up to the last."""
    n = mask.shape[-2]
    word = mask.any(-1).diagonal(dim1=-2, dim2=-1)
    inside = word.flip(-1).cummax(-1).values.flip(-1)  # up to the last word that may have a label
    place = torch.arange(n, device=mask.device)
    return mask & (place[:, None] <= place).unsqueeze(-1) & inside[..., None, :, None]


def binary_trees(scores: Tensor, exists: Tensor, semiring: AbstractSemiring) -> Tensor:
    """All binary trees over the words up to the last; where there are no words, the empty tree."""
    n = scores.shape[-2]
    word = torch.arange(n, device=scores.device)
    place = 2 * (STRIDE * word.unsqueeze(-1) + word)
    spans = semiring.plus(semiring.lift(scores.masked_fill(~exists, -torch.inf)), place + 1)  # a label for each
    chart = SpanChart(spans.diagonal(0, -2, -1))
    for width in range(1, n):
        halves = semiring.times(chart.begin[..., :-1, :], chart.end[..., 1:, :].flip(-1))
        split = semiring.plus(halves, place.diagonal(width))
        chart.grow(semiring.times(split, spans.diagonal(width, -2, -1)))
    existing = exists.any(-1).diagonal(dim1=-2, dim2=-1)
    last = torch.where(existing, word, -1).amax(-1)
    value = torch.where(word == last.unsqueeze(-1), chart.table()[..., 0, :], 0).sum(-1)
    return torch.where(last < 0, semiring.lift(torch.zeros_like(scores[..., 0, 0, 0])), value)


BINARY_TREES = Recursion("span", binary_trees, 3, member="binary tree", parts="spans")
