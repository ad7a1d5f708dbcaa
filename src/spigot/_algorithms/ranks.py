"""What verbs that list the best members share: the scores of what was found, and combinations of independent lists."""

import torch
from torch import Tensor


def with_values(scores: Tensor, z: Tensor, found: Tensor, event_ndim: int) -> tuple[Tensor, Tensor]:
    r"""Members `(*batch, ranks, *parts)` with the ranks in front, and their scores, $-\infty$ where there are none.

    Args:
        scores: The part scores, with a gradient.
        z: The members.
        found: How many of them there are, `(*batch)`.
        event_ndim: How many trailing axes are parts.
    """
    z = z.movedim(-event_ndim - 1, 0)
    axes = tuple(range(-event_ndim, 0))
    values = torch.where(z != 0, scores * z, 0).sum(axes)
    rank = torch.arange(len(z), device=z.device).reshape(-1, *[1] * found.ndim)
    return z, values.masked_fill(rank >= found, -torch.inf)


def best_first(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of the last axis, the first of equals first; filled up with `-inf` where there are fewer."""
    values, place = values.sort(dim=-1, descending=True, stable=True)
    room = k - values.shape[-1]
    if room > 0:
        values = torch.nn.functional.pad(values, (0, room), value=-torch.inf)
        place = torch.nn.functional.pad(place, (0, room))
    return values[..., :k], place[..., :k]


def combine(values: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    r"""The best sums of one value from each list.

    Args:
        values: Lists `(*batch, lists, length)`, each descending; $-\infty$ is no value.
        ranks: How many sums are wanted.

    Returns:
        The sums `(*batch, found)`, descending, $-\infty$ beyond those there are; and for each list which of its values
        is in which sum, `(*batch, lists, found)`.

    Example:
        >>> sums, chosen = combine(torch.tensor([[0.0, -1.0], [5.0, 3.0]]), 3)
        >>> sums
        tensor([5., 4., 3.])
        >>> chosen
        tensor([[0, 1, 0],
                [0, 0, 1]])
    """
    lists = values.shape[-2]
    rooms = 1 << max(lists - 1, 0).bit_length()
    neutral = values.new_full((*values.shape[:-2], rooms - lists, values.shape[-1]), -torch.inf)
    neutral[..., :1] = 0
    values = torch.cat((values, neutral), -2)[..., :ranks]
    length = torch.arange(values.shape[-1], device=values.device)
    chosen = length.expand(values.shape).unsqueeze(-2)
    while values.shape[-2] > 1:
        left, right = values[..., 0::2, :], values[..., 1::2, :]
        size = values.shape[-1]
        # A sum of the a-th and the b-th value has at least a b - 1 sums before it.
        pairs = [(a, b) for a in range(size) for b in range(size) if (a + 1) * (b + 1) <= ranks]
        first = torch.tensor([a for a, _ in pairs], device=values.device)
        second = torch.tensor([b for _, b in pairs], device=values.device)
        sums = left[..., first] + right[..., second]
        values, order = sums.sort(dim=-1, descending=True, stable=True)
        values, order = values[..., :ranks], order[..., :ranks]
        halves = []
        for part, where in ((chosen[..., 0::2, :, :], first), (chosen[..., 1::2, :, :], second)):
            index = where[order].unsqueeze(-2)
            halves.append(part.gather(-1, index.expand(*part.shape[:-1], index.shape[-1])))
        chosen = torch.cat(halves, -2)
    return values.squeeze(-2), chosen.squeeze(-3)[..., :lists, :]
