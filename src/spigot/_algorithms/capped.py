r"""The capped simplex: entries in [0, 1] whose sum is bounded. Its projection, and how a point of it mixes subsets."""

import torch
from torch import Tensor

from spigot._algorithms.kernel_calls import Fault, flatten, raise_fault
from spigot._runtime import native
from spigot._runtime.checks import too_few_error
from spigot._runtime.operators import batched, operator
from spigot._runtime.reduce import refuse_infinite, refuse_nan
from spigot._runtime.threads import kernel_threads
from spigot.interface.records import HullResult, PackedSupport


@operator("spigot::project_capped")
def project_capped(point: Tensor, mask: Tensor, minimum: int, maximum: int) -> Tensor:
    r"""Nearest point with entries in [0, 1] and a sum within bounds, along the last axis.

    Solves, for each row,
    $$\min_{p} \tfrac12 \lVert p - v \rVert_2^2 \quad\text{s.t.}\quad 0 \le p \le 1,\; a \le \mathbf 1^\top p \le b,$$
    over unmasked entries. The answer is $p = \operatorname{clip}(v - \tau, 0, 1)$ with one threshold for the row.

    Args:
        point: The vectors $v$; `-inf` stands for an entry that gets nothing.
        mask: Entries that exist. Rows without any are returned as zeros.
        minimum: The least sum, $a$, a whole number.
        maximum: The largest, $b$; any if negative.

    Example:
        >>> project_capped(torch.tensor([1.0, 0.5, 0.4, -1.0]), torch.ones(4, dtype=torch.bool), 2, 2)
        tensor([1.0000, 0.5500, 0.4500, 0.0000])

    References:
        Wang, Lu (2015), Projection onto the capped simplex.
    """
    if point.numel() == 0:
        return torch.zeros_like(point)
    if native.serves(point):
        source = flatten(point, 1)
        result = torch.empty_like(source)
        threads = kernel_threads()
        fault = native.kernels.project_capped(source, flatten(mask, 1), minimum, maximum, result, threads)
        raise_subset_fault(fault, point, minimum, "points")
        return result.reshape(point.shape)
    refuse_nan(point, mask, 1, "points")
    refuse_too_few(mask, minimum)
    refuse_infinite(point.isposinf() & mask, 1, "points")
    finite = mask & point.isfinite()
    refuse_infinite((finite.sum(-1, keepdim=True) < minimum) & mask, 1, "points")
    return capped_reference(point, finite, minimum, maximum)


@project_capped.register_fake
def _(point: Tensor, mask: Tensor, minimum: int, maximum: int) -> Tensor:
    return torch.empty_like(point, memory_format=torch.contiguous_format)


def _save(ctx, inputs, output) -> None:
    point, mask, ctx.minimum, ctx.maximum = inputs
    ctx.save_for_backward(point, mask, output)


def _backward(ctx, grad: Tensor):
    """Entries strictly between 0 and 1 move with their gradient, less its mean where a bound holds the sum."""
    point, mask, p = ctx.saved_tensors
    inside = mask & (p > 0) & (p < 1)
    total = point.masked_fill(~mask, 0).clamp(0, 1).sum(-1, keepdim=True, dtype=torch.float64)
    held = total < ctx.minimum
    held = held | (total > ctx.maximum) | (ctx.minimum == ctx.maximum) if ctx.maximum >= 0 else held
    along = grad.masked_fill(~inside, 0)
    mean = along.sum(-1, keepdim=True) / inside.sum(-1, keepdim=True).clamp(min=1)
    return (along - torch.where(held, mean, 0)).masked_fill(~inside, 0), None, None, None


project_capped.register_autograd(_backward, setup_context=_save)
batched(project_capped)


def capped_reference(point: Tensor, finite: Tensor, minimum: int, maximum: int) -> Tensor:
    r"""`project_capped` by a search among the $2k$ places where the sum has a kink, in plain torch."""
    v = point if point.device.type == "mps" else point.double()  # mps has no float64
    bottom = torch.where(finite, v, torch.inf).amin(-1, keepdim=True)
    v = torch.where(finite, v, torch.where(bottom.isfinite(), bottom, 0) - 4)  # below every threshold
    count = finite.sum(-1, keepdim=True)
    total = torch.where(finite, v, 0).clamp(0, 1).sum(-1, keepdim=True)
    least = count.clamp(max=minimum)
    most = count.clamp(max=maximum) if maximum >= 0 else count
    goal = torch.where(total > most, most, least).to(v.dtype)
    held = (total < least) | (total > most) | (least == most)
    # The sum at a kink is looked at, not added up on the way there, which would lose what is far from the rest.
    kinks = torch.cat((v, v - 1), -1).sort(dim=-1, descending=True).values
    last = kinks.shape[-1] - 1
    low, high = torch.zeros_like(count), torch.full_like(count, last)  # the sum is too small at low, not so at high
    for _ in range(last.bit_length()):
        middle = (low + high) // 2
        enough = (v - kinks.gather(-1, middle)).clamp(0, 1).sum(-1, keepdim=True) >= goal
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    threshold = (kinks.gather(-1, low) + kinks.gather(-1, high)) / 2
    above = v - threshold
    inside = ((above > 0) & (above < 1)).sum(-1, keepdim=True)
    over = above.clamp(0, 1).sum(-1, keepdim=True) - goal
    threshold = threshold + torch.where(inside > 0, over / inside.clamp(min=1), 0)
    p = (v - torch.where(held, threshold, 0)).clamp(0, 1).masked_fill(~finite, 0)
    return p.to(point.dtype)


def refuse_too_few(mask: Tensor, minimum: int) -> None:
    """Raise if an instance has entries, but fewer than a subset needs. Only for use inside operators."""
    count = mask.sum(-1)
    short = (count > 0) & (count < minimum)
    if short.any():
        instance = int(short.flatten().nonzero()[0])
        raise too_few_error(instance, tuple(mask.shape[:-1]), int(count.flatten()[instance]), minimum)


def raise_subset_fault(fault: Fault | None, parts: Tensor, minimum: int, what: str = "scores") -> None:
    """As `raise_fault`, for subsets of the last axis."""
    if fault is not None and fault[0] == native.kernels.FAULT_IMPOSSIBLE:
        raise too_few_error(fault[1], tuple(parts.shape[:-1]), fault[2], minimum)
    raise_fault(fault, parts, 1, what)


def project_subset_hull(point: Tensor, mask: Tensor, minimum: int, maximum: int) -> HullResult:
    """The projection of `(batch, k)` and subsets that mix to it: one more than it has entries between 0 and 1, at most.

    Lay the entries side by side as intervals as long as their values. A comb with teeth one apart touches an interval
    at most once; at each offset of the comb the touched entries are a subset of a size within the bounds, and over all
    offsets an entry is touched as often as its value says. The subset changes where a tooth leaves an interval, by a
    step to the next one. Those steps span the face that the point is inside of. Offsets at which several teeth leave
    together are passed one by one, with weight zero between, so that they do.
    """
    exact = point if point.device.type == "mps" else point.double()
    p = project_capped(exact, mask, minimum, maximum)
    batch = len(p)
    inside = (p > 0) & (p < 1)
    ones = p >= 1
    members = int(inside.sum(-1).max()) if p.numel() else 0
    where = (~inside).to(torch.int8).argsort(dim=-1, stable=True)[:, :members]
    here = inside.gather(1, where)
    ends = p.gather(1, where).masked_fill(~here, 0).cumsum(-1)
    count = here.sum(-1)
    last = torch.nn.functional.pad(ends, (1, 0)).gather(1, count.unsqueeze(1))
    whole = last.round()
    # A sum at one of its bounds is a whole number but for rounding, and no subset may be larger or smaller.
    size = whole + ones.sum(-1, keepdim=True)
    snapped = ((last - whole).abs() <= 1e-8) & ((size == minimum) | (size == maximum))
    last = torch.where(snapped, whole, last)
    place = torch.arange(members, device=p.device)
    final = place == count.unsqueeze(1) - 1
    ends = torch.where(final, last, torch.minimum(ends, last))
    tooth = ends.floor()
    offset = ends - tooth
    # Where the whole is a whole number, the last end is the first offset again and no step.
    step = here & ~(final & snapped)
    order = offset.masked_fill(~step, torch.inf).argsort(dim=-1, stable=True)
    steps = step.sum(-1)
    # A tooth exactly at the end of all is there or not; where the size may change, that is a step like the others.
    limit = torch.where(snapped, last, last.floor() + 1)
    teeth = int(limit.max()) if limit.numel() else 0
    # For each number of steps and each tooth: on which entry it stands.
    taken = torch.zeros(batch, members + 2, teeth + 1, dtype=torch.int64, device=p.device)
    stepped = step.gather(1, order)
    row = torch.where(stepped, place + 1, members + 1)
    moving = tooth.gather(1, order).long().clamp(max=teeth)
    taken[torch.arange(batch, device=p.device).unsqueeze(1), row, moving] = 1
    comb = torch.arange(teeth, device=p.device, dtype=ends.dtype).repeat(batch, 1)
    first = torch.searchsorted(ends.contiguous(), comb)  # on an end it has not left yet: that step is still to come
    stands = first.unsqueeze(1) + taken[:, : members + 1, :teeth].cumsum(1)
    exists = torch.arange(members + 1, device=p.device) <= steps.unsqueeze(1)
    on = (stands < count[:, None, None]) & (comb < limit).unsqueeze(1) & exists.unsqueeze(-1)
    bounds = torch.nn.functional.pad(offset.gather(1, order).masked_fill(~stepped, 1.0), (1, 0))
    weights = torch.nn.functional.pad(bounds, (0, 1), value=1.0).diff(dim=-1)[:, : members + 1]
    support = _pack(exists, weights, on, stands, where, ones)
    gap = torch.zeros(batch, dtype=point.dtype, device=point.device)
    return HullResult(p.to(point.dtype), gap, support)


def _pack(exists: Tensor, weights: Tensor, on: Tensor, stands: Tensor, where: Tensor, ones: Tensor) -> PackedSupport:
    """Ragged arrays from padded ones: each subset has the entries its teeth stand on, and those that are full."""
    offsets = torch.nn.functional.pad(exists.sum(-1).cumsum(0), (1, 0))
    owner = exists.nonzero()[:, 0]
    touched, full = on[exists], ones[owner]
    starts = torch.nn.functional.pad((touched.sum(-1) + full.sum(-1)).cumsum(0), (1, 0))
    if where.shape[1]:
        entries = where.gather(1, stands.clamp(max=where.shape[1] - 1).flatten(1)).reshape(stands.shape)[exists]
    else:
        entries = stands[exists]
    every = torch.arange(ones.shape[1], device=ones.device).expand(full.shape)
    indices = torch.cat((entries, every), -1)[torch.cat((touched, full), -1)]
    values = torch.ones(len(indices), dtype=torch.float64)
    parts = offsets, weights[exists].double(), starts, indices, values
    return PackedSupport(*(part.cpu() for part in parts))
