r"""The k best members: what the verbs that list them share.

`k_best_choices` needs nothing but an argmax, of a structure that makes one choice in each of several groups. The best
member is known. All others differ from it somewhere; sorted by the first group in which they do, they fall into as many
sets as there are groups: the choices before that group are kept, its own is forbidden, the rest is free. Each set is a
smaller problem of the same kind, so its best member is one more argmax, and the best of all these is the second best
member. Its set is split in the same way, and so on. One round is one call of the argmax for all sets of all instances,
less those that a bound rules out.

References:
    Murty (1968), An algorithm for ranking all the assignments in order of increasing cost.
    Lawler (1972), A procedure for computing the K best solutions to discrete optimization problems.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Choose = Callable[[Tensor, Tensor], Tensor]
"""From scores `(count, choices, groups)`, with `-inf` where a choice is forbidden, and the instance that each belongs
to, to the choices `(count, groups)` of the best member; if none avoids the forbidden, to those of any member."""

ROOM = 2**21
"""How many scores the subproblems of one round may hold; beyond it, a batch is done in slices."""


def k_best_choices(
    scores: Float[Tensor, "batch choices groups"], allowed: Bool[Tensor, "batch choices groups"], k: int, argmax: Choose
) -> tuple[Int[Tensor, "batch k groups"], Bool[Tensor, "batch k"]]:
    """The k best members of each instance, best first.

    Args:
        scores: Finite where allowed, in float64. What a member is worth is the sum over its choices.
        allowed: Choices that exist. Groups without any are left alone; in the others exactly one is taken.
        k: How many.
        argmax: The best member under scores; at least one must exist.

    Returns:
        The choices of each member, -1 in groups without any, and which of the k exist.
    """
    batch, choices, groups = scores.shape
    step = max(1, ROOM // max(1, groups * groups * choices))
    if batch > step:
        slices = [slice(i, i + step) for i in range(0, batch, step)]
        parts = [
            k_best_choices(scores[s], allowed[s], k, lambda x, owner, s=s: argmax(x, owner + s.start)) for s in slices
        ]
        return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
    used = allowed.any(1)
    everyone = torch.arange(batch, device=scores.device)
    order, options = torch.arange(groups, device=scores.device), torch.arange(choices, device=scores.device)[:, None]
    best = scores.new_full((batch, k, groups), -1, dtype=torch.int64)
    found = torch.zeros(batch, k, dtype=torch.bool, device=scores.device)

    def solve(free: Tensor, owner: Tensor) -> tuple[Tensor, Tensor]:
        """The best member of each set, and its value: -inf if the set is empty."""
        masked = scores[owner].masked_fill(~free, -torch.inf)
        chosen = argmax(masked, owner)
        value = masked.gather(1, chosen.unsqueeze(1)).squeeze(1)
        return chosen, torch.where(used[owner], value, 0).sum(-1)

    first, top_value = solve(allowed, everyone)
    # The best member without each of the first one's choices bounds all members without it, in every set. Where it
    # keeps the choices before that group, it is also the best of the set that the first split makes there.
    rivals, ceiling = (
        first.unsqueeze(1).expand(-1, groups, -1).clone(),
        top_value[:, None].expand(-1, groups) - torch.inf,
    )
    if k > 1:
        owner, group = (allowed.sum(1) > 1).nonzero(as_tuple=True)
        rest = allowed[owner] & ~((first[owner].unsqueeze(1) == options) & (order == group[:, None, None]))
        rivals[owner, group], ceiling[owner, group] = solve(rest, owner)
    settled = ((rivals == first.unsqueeze(1)) | (order >= order[:, None])).all(-1)
    # The sets that wait, of each instance: what is free in them, their best member and its value.
    free, chosen, value = allowed.unsqueeze(1), first.unsqueeze(1), top_value.unsqueeze(1)
    for rank in range(k):
        top = value.argmax(1)
        found[:, rank] = value[everyone, top] > -torch.inf
        if not found[:, rank].any():
            break
        members, inside = chosen[everyone, top], free[everyone, top]
        best[:, rank] = torch.where(used & found[:, rank, None], members, -1)
        value[everyone, top] = -torch.inf
        left = k - rank - 1
        if left == 0:
            break
        # Split it at each group in which something else can be chosen, unless what comes out cannot be among the best.
        bound = torch.where(members == first, ceiling, torch.inf)
        known = settled & (rank == 0)
        rivalled = torch.cat((value, torch.where(known, ceiling, -torch.inf)), 1)
        least = rivalled.topk(left, 1).values[:, -1:] if rivalled.shape[1] >= left else value.new_tensor(-torch.inf)
        splits = (inside.sum(1) > 1) & found[:, rank, None] & (known | (bound > least))
        owner, group = splits.nonzero(as_tuple=True)
        taken = members.unsqueeze(1) == options
        at = group[:, None, None]
        rest = torch.where(order < at, (inside & taken)[owner], inside[owner])
        rest &= ~(taken[owner] & (order == at))
        new_chosen, new_value = rivals[owner, group], ceiling[owner, group]
        unsolved = (~known[owner, group]).nonzero()[:, 0]
        new_chosen[unsolved], new_value[unsolved] = solve(rest[unsolved], owner[unsolved])
        waiting = value
        row = torch.zeros_like(splits, dtype=torch.int64)
        row[owner, group] = waiting.numel() + torch.arange(len(owner), device=scores.device)
        values = torch.cat((waiting, scores.new_full((batch, groups), -torch.inf)), 1)
        values[owner, waiting.shape[1] + group] = new_value
        value, kept = values.topk(min(left, values.shape[1]), 1)  # no more sets than there are ranks left
        index = torch.cat((torch.arange(waiting.numel(), device=scores.device).reshape(waiting.shape), row), 1)
        index = index.gather(1, kept)
        chosen = torch.cat((chosen.flatten(0, 1), new_chosen))[index]
        free = torch.cat((free.flatten(0, 1), rest))[index]
    return best, found


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
