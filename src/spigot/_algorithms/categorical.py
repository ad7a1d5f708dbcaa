"""One of k: the best entry of the last axis, the best few, draws, and the hull."""

import torch
from torch import Tensor

from spigot._algorithms.sampling import uniforms
from spigot._algorithms.simplex import project_simplex
from spigot._runtime.operators import batched, operator
from spigot._runtime.reduce import refuse_hopeless, refuse_infinite, refuse_nan
from spigot.types import HullResult, PackedSupport


@operator("spigot::one_of")
def one_of(scores: Tensor, mask: Tensor) -> Tensor:
    """One-hot of the first best unmasked entry of each row; zeros where there is none."""
    refuse_nan(scores, mask, 1)
    if scores.numel() == 0:
        return torch.zeros_like(scores)
    values = scores.masked_fill(~mask, -torch.inf)
    best = mask & (values == values.amax(-1, keepdim=True))
    first = best.to(torch.uint8).argmax(-1, keepdim=True)
    return torch.zeros_like(scores, memory_format=torch.contiguous_format).scatter(
        -1, first, best.any(-1, keepdim=True).to(scores.dtype)
    )


@one_of.register_fake
def _(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


batched(one_of)


@operator("spigot::rank_choices")
def rank_choices(scores: Tensor, mask: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    """One-hot rows of the best entries in order, `(*batch, ranks, k)`, and how many there are above `-inf`."""
    refuse_nan(scores, mask, 1)
    refuse_infinite(scores.isposinf() & mask, 1, "scores")
    values, order = scores.masked_fill(~mask, -torch.inf).sort(dim=-1, descending=True, stable=True)
    found = values.isfinite().sum(-1)
    order = order[..., :ranks]
    z = scores.new_zeros(*scores.shape[:-1], ranks, scores.shape[-1])
    z[..., : order.shape[-1], :].scatter_(-1, order.unsqueeze(-1), values[..., :ranks, None].isfinite().to(z.dtype))
    nothing = ~mask.any(-1)  # the empty choice is the only one
    return z, torch.where(nothing, 1, found)


@rank_choices.register_fake
def _(scores: Tensor, mask: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    batch = scores.shape[:-1]
    return scores.new_empty(*batch, ranks, scores.shape[-1]), scores.new_empty(batch, dtype=torch.int64)


@operator("spigot::draw_choices")
def draw_choices(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
    """One-hot rows drawn by their softmax, one for each seed: `(*batch, samples)` seeds, `(*batch, samples, k)`."""
    refuse_nan(scores, mask, 1)
    refuse_infinite(scores.isposinf() & mask, 1, "scores")
    here = mask & scores.isfinite()
    some = here.any(-1, keepdim=True)
    refuse_hopeless(mask.any(-1) & ~some.squeeze(-1), "choice")
    z = scores.new_zeros(*scores.shape[:-1], seeds.shape[-1], scores.shape[-1])
    if z.numel() == 0:
        return z
    weights = scores.double().masked_fill(~here, -torch.inf).softmax(-1).masked_fill(~here, 0)
    sums = weights.cumsum(-1)
    cut = (uniforms(seeds, 1).squeeze(-1) * sums[..., -1:]).contiguous()
    last = here.shape[-1] - 1 - here.flip(-1).to(torch.uint8).argmax(-1, keepdim=True)
    chosen = torch.minimum(torch.searchsorted(sums, cut, right=True), last)  # rounding may pass the last one
    return z.scatter_(-1, chosen.unsqueeze(-1), some.unsqueeze(-1).expand(*chosen.shape, 1).to(z.dtype))


@draw_choices.register_fake
def _(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
    return scores.new_empty(*scores.shape[:-1], seeds.shape[-1], scores.shape[-1])


batched(rank_choices)
batched(draw_choices)


def project_simplex_hull(point: Tensor, mask: Tensor) -> HullResult:
    """`project_hull` for one of k, whose hull is the simplex: a closed form, with the chosen entries as support."""
    projected = project_simplex(point, mask)
    chosen = projected > 0
    empty = ~chosen.any(-1)
    counts = chosen.sum(-1) + empty  # an instance with nothing in it has the empty structure for its support
    owner, index = chosen.nonzero(as_tuple=True)
    offsets = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    slot = offsets[:-1].repeat_interleave(counts - empty.long()) + _rank_within(owner)
    total = int(offsets[-1])
    weights = torch.ones(total, dtype=torch.float64, device=point.device)
    weights[slot] = projected[chosen].double()
    filled = torch.zeros(total, dtype=torch.int64, device=point.device)
    filled[slot] = 1
    starts = torch.nn.functional.pad(filled.cumsum(0), (1, 0))
    support = PackedSupport(offsets, weights, starts, index, torch.ones(len(index), dtype=torch.float64))
    gap = torch.zeros(len(point), dtype=point.dtype, device=point.device)
    return HullResult(projected, gap, PackedSupport(*(part.cpu() for part in support)))


def _rank_within(owner: Tensor) -> Tensor:
    """The position of each entry among those of the same owner, in a sorted list of owners."""
    places = torch.arange(len(owner), device=owner.device)
    first = torch.searchsorted(owner, owner)
    return places - first
