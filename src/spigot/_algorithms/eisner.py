r"""Projective trees: Eisner's recursion for the best tree and for the sum over all trees.

Spans are either *complete* (a head with all its words on one side) or *incomplete* (an arc with everything under it).
With a single root the chart covers the words only and the root takes one of them; with many roots it is the leftmost
token of the chart.

References:
    Eisner (1996), Three new probabilistic models for dependency parsing.
    Eisner (2016), Inside-outside and forward-backward algorithms are just backprop.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spigot._algorithms.sampling import STRIDE, gumbel
from spigot._runtime.reduce import masked_logsumexp

Reduce = Callable[[Tensor], Tensor]
Choose = Callable[[Tensor, Tensor, int, Tensor], Tensor]


class Chart:
    """Inside values by width: `right[w][:, i]` is the complete span from head i to i + w, and so on."""

    def __init__(self, scores: Float[Tensor, "batch n n"], reduce: Reduce) -> None:
        n = scores.shape[-1]
        zero = torch.zeros_like(scores[:, 0])
        self.right, self.left = [zero], [zero]
        self.arc_right, self.arc_left = [zero], [zero]
        for w in range(1, n):
            inside = reduce(torch.stack(self.splits(w, n), -1))
            self.arc_right.append(inside + scores.diagonal(w, 1, 2))
            self.arc_left.append(inside + scores.diagonal(-w, 1, 2))
            self.right.append(reduce(torch.stack(self.completions_right(w, n), -1)))
            self.left.append(reduce(torch.stack(self.completions_left(w, n), -1)))

    def splits(self, w: int, n: int) -> list[Tensor]:
        m = n - w
        return [self.right[k][:, :m] + self.left[w - 1 - k][:, k + 1 : k + 1 + m] for k in range(w)]

    def completions_right(self, w: int, n: int) -> list[Tensor]:
        m = n - w
        return [self.arc_right[k][:, :m] + self.right[w - k][:, k : k + m] for k in range(1, w + 1)]

    def completions_left(self, w: int, n: int) -> list[Tensor]:
        m = n - w
        return [self.left[k][:, :m] + self.arc_left[w - k][:, k : k + m] for k in range(w)]

    def roots(self, root_scores: Tensor, lengths: Tensor) -> Tensor:
        """Value of each word as the single root, over a chart of words only, `(batch, words)`."""
        words = torch.arange(root_scores.shape[-1], device=lengths.device)
        left = torch.stack([values[:, 0] for values in self.left], -1)
        rows = torch.stack([torch.nn.functional.pad(v, (0, w)) for w, v in enumerate(self.right)], 1)
        width = (lengths.unsqueeze(-1) - 1 - words).clamp(min=0)
        right = rows.gather(1, width.unsqueeze(1)).squeeze(1)
        value = left + right + root_scores
        return value.masked_fill(words >= lengths.unsqueeze(-1), -torch.inf)

    def whole(self, lengths: Tensor) -> Tensor:
        """Value of the tree under token 0, over a chart that includes the root, `(batch,)`."""
        return torch.stack([values[:, 0] for values in self.right], -1).gather(1, lengths.unsqueeze(-1)).squeeze(-1)


def eisner_reference(
    scores: Float[Tensor, "batch n n"],
    arcs: Bool[Tensor, "batch n n"],
    lengths: Int[Tensor, "batch"],
    single_root: bool,
) -> tuple[Int[Tensor, "batch n"], Float[Tensor, "batch"]]:
    """Heads and value of the best tree over compacted words, in plain torch; `-inf` where there is none."""
    batch, n, _ = scores.shape
    heads = torch.zeros(batch, n, dtype=torch.int64, device=scores.device)
    if n == 1 or batch == 0:
        return heads, scores.new_zeros(batch)
    scores = scores.masked_fill(~arcs, -torch.inf)
    first = 1 if single_root else 0
    chart = Chart(scores[:, first:, first:], lambda values: values.amax(-1))
    size = n - first
    wanted = {kind: torch.zeros(batch, size, size, dtype=torch.bool, device=scores.device) for kind in "rlRL"}
    everyone = torch.arange(batch, device=scores.device)
    if single_root:
        value, root = chart.roots(scores[:, 0, 1:], lengths).max(-1)
        wanted["l"][everyone, 0, root] = True
        wanted["r"][everyone, root, (lengths - 1).clamp(min=0)] = True
    else:
        value = chart.whole(lengths)
        wanted["r"][everyone, 0, lengths] = True
    value = value.masked_fill(lengths == 0, 0)
    for w in range(size - 1, 0, -1):
        follow(chart, wanted, heads, w, size, first, _best_split)
    return heads, value


def _best_split(values: Tensor, batch: Tensor, which: int, i: Tensor) -> Tensor:
    """The best of the splits of each span, the leftmost of equals."""
    del which
    return values[batch, i].argmax(-1)


def follow(
    chart: Chart, wanted: dict[str, Tensor], heads: Tensor, w: int, size: int, first: int, choose: Choose
) -> None:
    """Trace every wanted span of width w back to one of its splits.

    Args:
        chart: The values of all spans.
        wanted: Which spans are part of the answer, by kind: complete `r` and `l`, incomplete `R` and `L`.
        heads: Takes the head of each word that a split decides.
        w: The width.
        size: Positions of the chart.
        first: What a position of the chart is less than its token.
        choose: From the values of the splits, `(batch, spans, splits)`, rows of `wanted`, a number that is different
            for each call, and first positions, to the split of each of these spans.
    """
    for kind, values in (("r", chart.completions_right(w, size)), ("l", chart.completions_left(w, size))):
        batch, i = wanted[kind].diagonal(w, 1, 2).nonzero(as_tuple=True)
        k = choose(torch.stack(values, -1), batch, 4 * w + (kind == "r"), i) + i + (kind == "r")
        if kind == "r":
            wanted["R"][batch, i, k] = True
            wanted["r"][batch, k, i + w] = True
        else:
            wanted["l"][batch, i, k] = True
            wanted["L"][batch, k, i + w] = True
    splits = torch.stack(chart.splits(w, size), -1)
    for kind in "RL":
        batch, i = wanted[kind].diagonal(w, 1, 2).nonzero(as_tuple=True)
        j = i + w
        head, modifier = (i, j) if kind == "R" else (j, i)
        heads[batch, modifier + first] = head + first
        k = choose(splits, batch, 4 * w + 2 + (kind == "R"), i) + i
        wanted["r"][batch, i, k] = True
        wanted["l"][batch, k + 1, j] = True


def inside_reference(
    scores: Float[Tensor, "batch n n"],
    arcs: Bool[Tensor, "batch n n"],
    lengths: Int[Tensor, "batch"],
    single_root: bool,
) -> Float[Tensor, "batch"]:
    """Log-partition over compacted words, in plain torch, in log space; differentiable as often as one likes."""
    if scores.shape[-1] == 1:
        return scores.sum((-2, -1)) * 0
    scores = scores.masked_fill(~arcs, -torch.inf)

    def total(values: Tensor) -> Tensor:
        return masked_logsumexp(values, torch.ones_like(values, dtype=torch.bool), -1)

    if single_root:
        value = total(Chart(scores[:, 1:, 1:], total).roots(scores[:, 0, 1:], lengths))
    else:
        value = Chart(scores, total).whole(lengths)
    return value.masked_fill(lengths == 0, 0)


def projective_draws(
    logs: Float[Tensor, "batch n n"],
    arcs: Bool[Tensor, "batch n n"],
    lengths: Int[Tensor, "batch"],
    single_root: bool,
    seeds: Int[Tensor, "batch samples"],
) -> Int[Tensor, "draws n"]:
    """Heads of each draw, the draws of an instance one after another."""
    n, samples = logs.shape[-1], seeds.shape[-1]
    seed = seeds.flatten()
    heads = torch.zeros(len(seed), n, dtype=torch.int64, device=logs.device)
    if n == 1 or len(seed) == 0:
        return heads
    owner = torch.arange(len(logs), device=logs.device).repeat_interleave(samples)
    logs = logs.masked_fill(~arcs, -torch.inf)
    first = 1 if single_root else 0
    chart = Chart(logs[:, first:, first:], lambda v: masked_logsumexp(v, torch.ones_like(v, dtype=torch.bool), -1))
    places = torch.arange(n, device=logs.device)

    def choose(values: Tensor, draw: Tensor, which: int, i: Tensor) -> Tensor:
        """A split of each span in proportion to its exponentiated value."""
        index = (which * STRIDE + i).unsqueeze(-1) * STRIDE + places[: values.shape[-1]]
        return (values[owner[draw], i] + gumbel(seed[draw].unsqueeze(-1), index)).argmax(-1)

    size = n - first
    wanted = {kind: torch.zeros(len(seed), size, size, dtype=torch.bool, device=logs.device) for kind in "rlRL"}
    everyone = torch.arange(len(seed), device=logs.device)
    last = (lengths[owner] - first).clamp(min=0)
    if single_root:
        roots = chart.roots(logs[:, 0, 1:], lengths)
        root = choose(roots.unsqueeze(1), everyone, 0, torch.zeros_like(everyone))
        root = torch.where(lengths[owner] > 0, root, 0)
        wanted["l"][everyone, 0, root] = True
        wanted["r"][everyone, root, last] = True
    else:
        wanted["r"][everyone, 0, last] = True
    for w in range(size - 1, 0, -1):
        follow(chart, wanted, heads, w, size, first, choose)
    return heads
