r"""Projective trees in plain torch: Eisner's recursion for the best tree, the sum over all trees, and draws.

Spans are either *complete* (a head with all its words on one side) or *incomplete* (an arc with everything under it).
With a single root the chart covers the words only and the root takes one of them; with many roots it is the leftmost
token of the chart. All functions are about compacted words: the root, then the words that exist, then padding.

References:
    Eisner (1996), Three new probabilistic models for dependency parsing.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spigot._algorithms.sampling import STRIDE, gumbel
from spigot._algorithms.semirings import AbstractSemiring, LogSum, SpanChart, best_member, draw_members


def best_projective(
    scores: Float[Tensor, "batch n n"],
    arcs: Bool[Tensor, "batch n n"],
    lengths: Int[Tensor, "batch"],
    single_root: bool,
) -> tuple[Int[Tensor, "batch n"], Float[Tensor, "batch"]]:
    """Heads and value of the best tree; `-inf` where there is none. Ties go to the leftmost split."""
    z, value = best_member(_over(arcs, lengths, single_root), scores)
    return z.argmax(-2), value


def projective_log_partition(
    scores: Float[Tensor, "batch n n"],
    arcs: Bool[Tensor, "batch n n"],
    lengths: Int[Tensor, "batch"],
    single_root: bool,
) -> Float[Tensor, "batch"]:
    """Log-partition in log space; differentiable as often as one likes."""
    return _over(arcs, lengths, single_root)(scores, LogSum())


def projective_draws(
    logs: Float[Tensor, "batch n n"],
    arcs: Bool[Tensor, "batch n n"],
    lengths: Int[Tensor, "batch"],
    single_root: bool,
    seeds: Int[Tensor, "batch samples"],
) -> Int[Tensor, "draws n"]:
    """Heads of each draw, the draws of an instance one after another."""
    return draw_members(_over(arcs, lengths, single_root), logs, seeds, _by_gumbel).argmax(-2).flatten(0, 1)


def _over(arcs: Tensor, lengths: Tensor, single_root: bool) -> Callable[[Tensor, AbstractSemiring], Tensor]:
    """The recursion over arcs that exist."""
    return lambda scores, semiring: _total(scores.masked_fill(~arcs, -torch.inf), lengths, single_root, semiring)


def _total(scores: Tensor, lengths: Tensor, single_root: bool, semiring: AbstractSemiring) -> Tensor:
    """All projective trees; where there are no words, the empty tree."""
    empty = semiring.lift(scores[..., 0, 0].masked_fill(lengths >= 0, 0))
    if scores.shape[-1] == 1:
        return empty
    inner = scores[..., 1:, 1:] if single_root else scores
    n = inner.shape[-1]
    one = semiring.lift(torch.zeros_like(inner[..., 0]))
    right, left, arc_right, arc_left = (SpanChart(one) for _ in range(4))

    def joined(first: Tensor, second: Tensor, which: int) -> Tensor:
        place = torch.arange(first.shape[-2], device=scores.device)
        return semiring.plus(semiring.times(first, second.flip(-1)), (4 * w + which) * STRIDE + place)

    for w in range(1, n):
        inside = right.begin[..., :-1, :], left.end[..., 1:, :]
        arc_right.grow(joined(*inside, 3) + inner.diagonal(w, -2, -1))
        arc_left.grow(joined(*inside, 2) + inner.diagonal(-w, -2, -1))
        left.grow(joined(left.begin[..., :-1, :], arc_left.end[..., 1:], 0))
        right.grow(joined(arc_right.begin[..., 1:], right.end[..., 1:, :], 1))
    words, rights = torch.arange(n, device=scores.device), right.table()
    if not single_root:
        return torch.where(words == lengths.unsqueeze(-1), rights[..., 0, :], 0).sum(-1)
    width = lengths.unsqueeze(-1) - 1 - words  # of what is right of each word
    to_end = torch.where(words == width.unsqueeze(-1), rights, 0).sum(-1)
    roots = semiring.times(left.table()[..., 0, :], to_end) + scores[..., 0, 1:]
    value = semiring.plus(roots.masked_fill(width < 0, -torch.inf), 0)
    return torch.where(lengths == 0, empty, value)


def _by_gumbel(ways: Tensor, seeds: Tensor, place: Tensor | int) -> Tensor:
    """One of the ways, in proportion: the best with noise of its own for each."""
    way = torch.arange(ways.shape[-1], device=ways.device)
    index = torch.as_tensor(place, device=ways.device).unsqueeze(-1) * STRIDE + way
    return (ways + gumbel(seeds.unsqueeze(-1), index)).argmax(-1)
