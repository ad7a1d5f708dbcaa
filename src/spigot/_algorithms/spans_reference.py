"""CKY in plain torch, for a batch of sentences at once, width by width.

A chart is a list: entry w holds the spans of w + 1 words, `(batch, n - w, ...)`, by their first word. The halves of a
span are then slices of two narrower entries, moved against each other.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from spigot._algorithms.k_best import best_first
from spigot._algorithms.sampling import STRIDE, pick, shares, uniform
from spigot._runtime.reduce import masked_logsumexp


def finite(scores: Tensor, exists: Tensor) -> Tensor:
    """Scores in float64 with infinities replaced by numbers that no sum of the others outweighs."""
    exact = scores.double()
    inside = torch.where(exists & exact.isfinite(), exact.abs(), 0)
    top = inside.flatten(1).amax(1)
    shrink = torch.where(top > 1e290, 2.0**-64, 1.0)
    limit = (1 + 4 * scores.shape[-2] * top * shrink)[:, None, None, None]
    exact = exact * shrink[:, None, None, None]
    return torch.where(exact.isinf(), exact.sign() * limit, exact).masked_fill(~exists, 0)


def log_partition(scores: Tensor, exists: Tensor) -> Tensor:
    """`(batch,)` from `(batch, n, n, labels)`; zero where there are no words."""
    if scores.shape[1] == 0:
        return scores.flatten(1).sum(1)
    own = masked_logsumexp(scores, exists, -1)
    chart = _chart(own, lambda sums: masked_logsumexp(sums, sums > -torch.inf, -1))
    return _whole(chart, exists)


def best(scores: Tensor, exists: Tensor) -> tuple[Tensor, Tensor]:
    """The best trees, and their scores: `-inf` where there is none."""
    own, label = scores.masked_fill(~exists, -torch.inf).max(-1)
    splits: list[Tensor] = []

    def settle(sums: Tensor) -> Tensor:
        value, split = sums.max(-1)
        splits.append(split)
        return value

    value = _whole(_chart(own, settle), exists)
    chosen = _descend(exists, splits, 1)[:, 0]
    return torch.nn.functional.one_hot(label, scores.shape[-1]) * chosen.unsqueeze(-1), value


def sample(scores: Tensor, exists: Tensor, seeds: Tensor) -> Tensor:
    """Trees `(batch, samples, n, n, labels)` for seeds `(batch, samples)`."""
    n = scores.shape[1]
    own = masked_logsumexp(scores, exists, -1)
    stacked: list[Tensor] = []

    def settle(sums: Tensor) -> Tensor:
        stacked.append(sums)
        return masked_logsumexp(sums, sums > -torch.inf, -1)

    _chart(own, settle)
    place = torch.arange(n, device=scores.device)
    place = 2 * (STRIDE * place.unsqueeze(-1) + place)
    splits = []
    for width, sums in enumerate(stacked, 1):
        chance = shares(sums).unsqueeze(1)
        cut = uniform(seeds.unsqueeze(-1), place.diagonal(width)).unsqueeze(-1)
        splits.append(pick(chance, cut))
    chosen = _descend(exists, splits, seeds.shape[-1])
    each = shares(scores.masked_fill(~exists, -torch.inf)).unsqueeze(1)
    label = pick(each, uniform(seeds[..., None, None], place + 1).unsqueeze(-1))
    return torch.nn.functional.one_hot(label, scores.shape[-1]) * chosen.unsqueeze(-1)


def k_best(scores: Tensor, exists: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best trees `(batch, k, n, n, labels)` and their scores `(batch, k)`, `-inf` where there are fewer."""
    batch, n, _, labels = scores.shape
    own, order = scores.masked_fill(~exists, -torch.inf).sort(dim=-1, descending=True, stable=True)
    chart: list[Tensor] = []  # (batch, n - width, k): the values of each span, best first
    rules: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []  # split, rank of the halves and of the label
    for width in range(n):
        mine = own.diagonal(width, 1, 2).transpose(1, 2)  # (batch, n - width, labels)
        if width:
            pairs = torch.stack(
                [left.unsqueeze(-1) + right.unsqueeze(-2) for left, right in _halves(chart, width, n)], 2
            ).flatten(2)
            pairs, place = best_first(pairs, k)
        else:
            pairs = torch.nn.functional.pad(mine.new_zeros(batch, n, 1), (0, k - 1), value=-torch.inf)
            place = torch.zeros_like(pairs, dtype=torch.int64)
        values, which = best_first((pairs.unsqueeze(-1) + mine.unsqueeze(-2)).flatten(2), k)
        here = place.gather(-1, which // labels)
        rules.append((here // (k * k), here // k % k, here % k, which % labels))
        chart.append(values)
    values = _whole(chart, exists)
    ranks = [torch.full((batch, k, n - width), -1, dtype=torch.int64, device=scores.device) for width in range(n)]
    _crown(ranks, exists, torch.arange(k, device=scores.device).where(values.isfinite(), torch.tensor(-1)))
    z = torch.zeros(batch, k, n, n, labels, dtype=scores.dtype, device=scores.device)
    for width in range(n - 1, -1, -1):
        on = ranks[width] >= 0
        split, left, right, label = (rule.transpose(1, 2).gather(1, ranks[width].clamp(min=0)) for rule in rules[width])
        names = order.diagonal(width, 1, 2).transpose(1, 2).unsqueeze(1).expand(-1, k, -1, -1)
        label = names.gather(-1, label.unsqueeze(-1)).squeeze(-1)
        one = torch.nn.functional.one_hot(label, labels).to(z) * on.unsqueeze(-1)
        z.diagonal(width, 2, 3).copy_(one.transpose(2, 3))
        for at in range(width):
            here = on & (split == at)
            _mark(ranks[at][..., : n - width], here, left)
            _mark(ranks[width - 1 - at][..., at + 1 : at + 1 + n - width], here, right)
    return z, values


def _chart(own: Tensor, settle: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Values of all spans from those of their labels; `settle` makes one value of a span's splits, the last axis."""
    n = own.shape[-1]
    chart: list[Tensor] = []
    for width in range(n):
        here = own.diagonal(width, 1, 2)
        if width:
            here = here + settle(torch.stack([left + right for left, right in _halves(chart, width, n)], -1))
        chart.append(here)
    return chart


def _halves(chart: list[Tensor], width: int, n: int) -> list[tuple[Tensor, Tensor]]:
    """The two halves of every span of this width, split after 0, 1, ... words more than one."""
    return [(chart[at][:, : n - width], chart[width - 1 - at][:, at + 1 : at + 1 + n - width]) for at in range(width)]


def _lengths(exists: Tensor) -> Tensor:
    word = exists.any(-1).diagonal(dim1=1, dim2=2)
    return (word * torch.arange(1, word.shape[1] + 1, device=word.device)).amax(1)


def _whole(chart: list[Tensor], exists: Tensor) -> Tensor:
    """The entries of whole sentences; zero where there are no words."""
    lengths = _lengths(exists)
    first = torch.stack([entry[:, 0] for entry in chart], 1)
    at = (lengths - 1).clamp(min=0).reshape(-1, *[1] * (first.ndim - 1)).expand(-1, 1, *first.shape[2:])
    value = first.gather(1, at).squeeze(1)
    none = (lengths == 0).reshape(-1, *[1] * (value.ndim - 1))
    if value.ndim == 1:
        return torch.where(none, 0.0, value)
    alone = torch.nn.functional.pad(value.new_zeros(len(value), 1), (0, value.shape[1] - 1), value=-torch.inf)
    return torch.where(none, alone, value)  # the empty tree, and no other


def _crown(marks: list[Tensor], exists: Tensor, value: Tensor) -> None:
    """Mark the whole sentence of each instance."""
    lengths = _lengths(exists)
    for width, entry in enumerate(marks):
        entry[:, :, 0] = torch.where((lengths == width + 1).unsqueeze(1), value, entry[:, :, 0])


def _mark(entry: Tensor, here: Tensor, value: Tensor) -> None:
    entry.copy_(torch.where(here, value, entry))


def _descend(exists: Tensor, splits: list[Tensor], copies: int) -> Tensor:
    """The spans `(batch, copies, n, n)` of trees that split as told: `splits[w - 1]` is `(batch, [copies,] n - w)`."""
    batch, n = exists.shape[:2]
    on = [torch.zeros(batch, copies, n - width, dtype=torch.bool, device=exists.device) for width in range(n)]
    _crown(on, exists, torch.ones(batch, copies, dtype=torch.bool, device=exists.device))
    chosen = torch.zeros(batch, copies, n, n, dtype=torch.float64, device=exists.device)
    for width in range(n - 1, -1, -1):
        chosen.diagonal(width, 2, 3).copy_(on[width])
        for at in range(width):
            split = splits[width - 1]
            here = on[width] & ((split.unsqueeze(1) if split.ndim == 2 else split) == at)
            on[at][..., : n - width] |= here
            on[width - 1 - at][..., at + 1 : at + 1 + n - width] |= here
    return chosen
