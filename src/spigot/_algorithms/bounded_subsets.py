r"""Subsets whose size is within bounds: the best and the k best, sums with derivatives, draws, and the capped simplex.

*Sums.* Entry i weighs $e^{s_i}$. With all weights divided by the same $e^\theta$, each entry is a coin that shows
heads with $p_i = \sigma(s_i - \theta)$, and the subsets of size j weigh, together, a known factor times the chance of j
heads. For a $\theta$ that makes sizes within the bounds likely, everything that matters is a number of ordinary size,
whatever the scores are. `native/subsets.hpp` and the functions below compute the chances coin by coin; the rows of
chances are kept for some coins only and worked out again in between, which takes $O(\sqrt k)$ of them at a time.

*The capped simplex* is their hull: entries in [0, 1] whose sum is bounded.
"""

import heapq
import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from spigot._algorithms.kernel_calls import Fault, flatten, raise_fault
from spigot._algorithms.sampling import uniforms
from spigot._runtime import native
from spigot._runtime.checks import no_mass_error, too_few_error
from spigot._runtime.native import kernel_threads
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import refuse_hopeless, refuse_infinite, refuse_nan
from spigot._runtime.sums import register_sums
from spigot.types import HullResult, PackedSupport


@operator("spigot::best_subset")
def best_subset(scores: Tensor, mask: Tensor, minimum: int, maximum: int) -> Tensor:
    """The best subset of each row. An entry that gains nothing is in only to reach the minimum; ties go to the first.

    Args:
        scores: `(*batch, k)`.
        mask: Entries that exist; a row without any gives zeros.
        minimum: The least size.
        maximum: The largest; any if negative.
    """
    if native.serves(scores):
        flat = flatten(scores, 1)
        chosen = torch.empty_like(flat)
        threads = kernel_threads()
        fault = native.kernels.best_subsets(flat, flatten(mask, 1), minimum, maximum, chosen, threads)
        raise_subset_fault(fault, scores, minimum)
        return chosen.reshape(scores.shape)
    refuse_nan(scores, mask, 1)
    refuse_too_few(mask, minimum)
    k = scores.shape[-1]
    gains = mask & (scores > 0)
    z = gains
    least, most = min(minimum, k), k if maximum < 0 else min(maximum, k)
    if scores.numel():
        size = gains.sum(-1, keepdim=True)
        for short, wanted in (((size < minimum) & mask.any(-1, keepdim=True), least), (size > most, most)):
            if short.any():
                z = torch.where(short, _largest(scores, mask, wanted), z)
    return z.to(scores.dtype, memory_format=torch.contiguous_format)


@best_subset.register_fake
def _(scores: Tensor, mask: Tensor, minimum: int, maximum: int) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


def _largest(scores: Tensor, mask: Tensor, count: int) -> Tensor:
    """The `count` largest entries that exist; of equal ones the first."""
    if count == 0:
        return torch.zeros_like(mask)
    values = scores.masked_fill(~mask, -torch.inf)
    cut = values.topk(count, -1).values[..., -1:]
    above = values > cut
    level = mask & (values == cut)
    room = count - above.sum(-1, keepdim=True)
    return above | (level & (level.cumsum(-1) <= room))


@operator("spigot::rank_subsets")
@through_host
def rank_subsets(scores: Tensor, mask: Tensor, ranks: int, minimum: int, maximum: int) -> tuple[Tensor, Tensor]:
    """The best subsets in order, `(*batch, ranks, k)`, zero where there are no more, and how many there are."""
    flat, exists = flatten(scores, 1), flatten(mask, 1)
    z = flat.new_zeros(ranks, *flat.shape)
    found = torch.zeros(len(flat), dtype=torch.int64)
    if native.serves(scores):
        threads = kernel_threads()
        fault = native.kernels.rank_subsets(flat, exists, minimum, maximum, z, found, threads)
        raise_subset_fault(fault, scores, minimum)
    else:
        refuse_nan(scores, mask, 1)
        refuse_infinite(scores.isposinf() & mask, 1, "scores")
        refuse_too_few(mask, minimum)
        for b, (row, there) in enumerate(zip(flat.tolist(), exists.tolist(), strict=True)):
            subsets = _ranked(row, there, ranks, minimum, maximum)
            found[b] = len(subsets)
            for rank, chosen in enumerate(subsets):
                z[rank, b, chosen] = 1
        found = found.to(scores.device)
    batch = scores.shape[:-1]
    return z.movedim(0, 1).reshape(*batch, ranks, scores.shape[-1]).contiguous(), found.reshape(batch)


@rank_subsets.register_fake
def _(scores: Tensor, mask: Tensor, ranks: int, minimum: int, maximum: int) -> tuple[Tensor, Tensor]:
    batch = scores.shape[:-1]
    return scores.new_empty(*batch, ranks, scores.shape[-1]), scores.new_empty(batch, dtype=torch.int64)


batched(best_subset)
batched(rank_subsets)


class _State(NamedTuple):
    """A subset of the sorted row. Of equal losses the state found first comes first, which the numbers see to.

    Its first entries are in their places, entry number `slot` was moved down to `at`, those after it to the places
    `moved`, the first of them at `limit`.
    """

    loss: float
    number: int
    size: int
    slot: int
    at: int
    limit: int
    moved: tuple[int, ...] = ()


def _ranked(row: list[float], exists: list[bool], ranks: int, minimum: int, maximum: int) -> list[list[int]]:
    """The best-first search of `native/subset_ranks.cpp`: each subset of a size is reached in one way from its best."""
    order = sorted((i for i, there in enumerate(exists) if there and row[i] != -math.inf), key=lambda i: -row[i])
    ordered = [row[i] for i in order]
    n = len(order)
    least, most = minimum if any(exists) else 0, n if maximum < 0 else min(maximum, n)
    sums = [0.0, *itertools.accumulate(ordered)]
    sizes = range(least, most + 1)
    heap = [_State(-sums[size], number, size, size - 1, size - 1, n) for number, size in enumerate(sizes)]
    heapq.heapify(heap)
    numbers = itertools.count(len(heap))
    found: list[list[int]] = []
    while heap and len(found) < ranks:
        loss, _, size, slot, at, limit, moved = heapq.heappop(heap)
        found.append([order[t] for t in (*range(slot), *([at] if size else []), *moved)])
        if size and at + 1 < limit:
            further = loss + ordered[at] - ordered[at + 1]
            heapq.heappush(heap, _State(further, next(numbers), size, slot, at + 1, limit, moved))
        if slot > 0 and at > slot:
            further = loss + ordered[slot - 1] - ordered[slot]
            heapq.heappush(heap, _State(further, next(numbers), size, slot - 1, slot, at, (at, *moved)))
    return found


def subset_log_partition(scores: Tensor, mask: Tensor, minimum: int, maximum: int) -> Tensor:
    r"""$\log Z$ of each row; 0 where there is no entry, $-\infty$ where every subset has a part of $-\infty$."""
    return _subset_sums(scores, mask, minimum, maximum, torch.is_grad_enabled() and scores.requires_grad)[0]


def subset_marginals(scores: Tensor, mask: Tensor, minimum: int, maximum: int) -> Tensor:
    r"""$\nabla \log Z$ of each row, within $[0, 1]$."""
    return _subset_sums(scores, mask, minimum, maximum, True)[1]


@operator("spigot::subset_sums")
@through_host
def _subset_sums(scores: Tensor, mask: Tensor, minimum: int, maximum: int, marginals: bool) -> tuple[Tensor, Tensor]:
    r"""$\log Z$ and, if wanted, $\mu$ (otherwise an empty tensor)."""
    flat, exists = flatten(scores, 1), flatten(mask, 1)
    log_partition = flat.new_empty(len(flat))
    mu = torch.empty_like(flat) if marginals else flat.new_empty(0)
    if native.serves(scores):
        given = mu if marginals else None
        threads = kernel_threads()
        fault = native.kernels.subset_sums(flat, exists, minimum, maximum, log_partition, given, threads)
        raise_subset_fault(fault, scores, minimum)
    else:
        _refuse(scores, mask, minimum)
        coins = _conditional_bernoulli(flat, exists, minimum, maximum)
        log_partition.copy_(coins.or_nothing(coins.log_factor + _total(coins)[0].log(), exists))
        if marginals:
            mu.copy_(_inside(coins, None).masked_fill(coins.hopeless.unsqueeze(-1), 0).clamp(0, 1)[:, : mu.shape[-1]])
    return log_partition.reshape(scores.shape[:-1]), mu.reshape(scores.shape) if marginals else mu


@operator("spigot::subset_hessian")
@through_host
def _subset_hessian(scores: Tensor, mask: Tensor, direction: Tensor, minimum: int, maximum: int) -> Tensor:
    r"""$\nabla^2 \log Z \cdot v$: the derivative of the marginals along a direction."""
    flat, exists, along = flatten(scores, 1), flatten(mask, 1), flatten(direction, 1)
    result = torch.empty_like(flat)
    if native.serves(scores):
        threads = kernel_threads()
        fault = native.kernels.subset_hessian(flat, exists, along, minimum, maximum, result, threads)
        raise_subset_fault(fault, scores, minimum)
    else:
        if flat.shape[-1] == 0:
            return torch.zeros_like(scores)
        coins = _conditional_bernoulli(flat, exists, minimum, maximum)
        speed = along.double().masked_fill(~exists, 0)
        result.copy_(_inside(coins, speed).masked_fill(~exists | coins.hopeless.unsqueeze(-1), 0))
    return result.reshape(scores.shape)


register_sums(_subset_sums, _subset_hessian, 1)


@operator("spigot::sample_subsets")
@through_host
def sample_subsets(scores: Tensor, mask: Tensor, seeds: Tensor, minimum: int, maximum: int) -> Tensor:
    """Subsets drawn with the chances they have, one for each seed: `(*batch, samples)` seeds, `(*batch, samples, k)`.

    The size is drawn first, then entry by entry from the last whether it is in, given how many are still to place.
    """
    draws = seeds.shape[-1]
    flat, exists = flatten(scores, 1), flatten(mask, 1)
    ours = seeds.reshape(len(flat), draws).T.contiguous()
    if native.serves(scores):
        z = flat.new_empty(draws, *flat.shape)
        threads = kernel_threads()
        fault = native.kernels.sample_subsets(flat, exists, ours, minimum, maximum, z, threads)
        if fault is not None and fault[0] == native.kernels.FAULT_INFINITE:
            refuse_infinite(scores.isposinf() & mask, 1, "scores")
            raise no_mass_error(fault[1], tuple(scores.shape[:-1]), "subset")
        raise_subset_fault(fault, scores, minimum)
    else:
        _refuse(scores, mask, minimum)
        coins = _conditional_bernoulli(flat, exists, minimum, maximum)
        refuse_hopeless((coins.hopeless & exists.any(-1)).reshape(scores.shape[:-1]), "subset")
        z = _draw(coins, ours).to(scores.dtype)[..., : scores.shape[-1]]
    return z.movedim(0, 1).reshape(*scores.shape[:-1], draws, scores.shape[-1]).contiguous()


@sample_subsets.register_fake
def _(scores: Tensor, mask: Tensor, seeds: Tensor, minimum: int, maximum: int) -> Tensor:
    return scores.new_empty(*scores.shape[:-1], seeds.shape[-1], scores.shape[-1])


batched(sample_subsets)


def _refuse(scores: Tensor, mask: Tensor, minimum: int) -> None:
    refuse_nan(scores, mask, 1)
    refuse_infinite(scores.isposinf() & mask, 1, "scores")
    refuse_too_few(mask, minimum)


class _ConditionalBernoulli(NamedTuple):
    """Rows of entries as coins: chances of heads and tails `(batch, k)`, what sizes are worth `(batch, sizes)`."""

    heads: Tensor
    tails: Tensor
    worth: Tensor
    log_factor: Tensor
    hopeless: Tensor

    def or_nothing(self, values: Tensor, exists: Tensor) -> Tensor:
        """The values, with the sum of nothing where nothing can be summed."""
        return torch.where(exists.any(-1), values.masked_fill(self.hopeless, -torch.inf), 0.0)


def _conditional_bernoulli(scores: Tensor, exists: Tensor, minimum: int, maximum: int) -> _ConditionalBernoulli:
    s = scores.double()
    here = exists & s.isfinite()
    s = s.masked_fill(~here, 0)
    if s.shape[-1] == 0:  # one entry that does not exist is as good as none
        s, here, exists = (torch.nn.functional.pad(x, (0, 1)) for x in (s, here, exists))
    count = here.sum(-1, keepdim=True)
    most = count.clamp(max=maximum) if maximum >= 0 else count
    least = torch.full_like(count, minimum).masked_fill(~exists.any(-1, keepdim=True), 0)
    hopeless = count < least
    least = torch.minimum(least, count)

    def toss(theta: Tensor) -> Tensor:
        return torch.sigmoid((s - reference) - theta).masked_fill(~here, 0)

    reference = torch.zeros_like(s[:, :1])
    mean = toss(reference).sum(-1, keepdim=True)
    tilted = (mean < least) | (mean > most) | (least == most) & (least > 0)
    goal = torch.where(mean > most, most, least)
    ranked = s.masked_fill(~here, -torch.inf).sort(-1, descending=True).values
    at_goal = ranked.gather(-1, (goal - 1).clamp(min=0))
    reference = torch.where(tilted & at_goal.isfinite(), at_goal, 0)
    low, high = torch.full_like(reference, -40.0), torch.full_like(reference, 40.0)
    for _ in range(60):
        middle = (low + high) / 2
        over = toss(middle).sum(-1, keepdim=True) > goal
        low, high = torch.where(over, middle, low), torch.where(over, high, middle)
    shift = torch.where(tilted, (low + high) / 2, 0)
    log_odds = (s - reference) - shift
    theta = reference + shift
    size = torch.arange(int(most.max()) + 1 if len(most) else 1, device=s.device)
    allowed = (size >= least) & (size <= most)
    worth = torch.where(tilted & (size != goal), theta * (size - goal), 0).clamp(max=0).exp()
    # sum softplus(s - theta) + theta * goal, with what cancels in it left out
    likely = here & (log_odds > 0)
    soft = torch.log1p((-log_odds.abs()).exp()).masked_fill(~here, 0).sum(-1, keepdim=True)
    soft = soft + s.masked_fill(~likely, 0).sum(-1, keepdim=True)
    return _ConditionalBernoulli(
        torch.sigmoid(log_odds).masked_fill(~here, 0),
        torch.sigmoid(-log_odds).masked_fill(~here, 1),
        worth.masked_fill(~allowed, 0),
        (soft + torch.where(tilted, theta * (goal - likely.sum(-1, keepdim=True)), 0)).squeeze(-1),
        hopeless.squeeze(-1),
    )


class _PoissonBinomial:
    """The chances of each number of heads after i coins, `(layers, batch, sizes)`; layer 1 holds derivatives."""

    def __init__(self, coins: _ConditionalBernoulli, speed: Tensor | None) -> None:
        self.coins = coins
        self.moves = None if speed is None else coins.heads * coins.tails * speed
        self.count = coins.heads.shape[-1]
        self.block = max(1, math.isqrt(self.count))
        row = coins.worth.new_zeros(1 if speed is None else 2, *coins.worth.shape)
        row[0, :, 0] = 1
        self.kept = [row]
        for i in range(self.count):
            row = self._step(i, row)
            if (i + 1) % self.block == 0:
                self.kept.append(row)
        self.final = row

    def walk(self) -> Iterator[tuple[int, Tensor]]:
        """Each coin from the last to the first, with the row before it."""
        for number in reversed(range(len(self.kept))):
            row, first = self.kept[number], number * self.block
            rows = []
            for i in range(first, min(first + self.block, self.count)):
                rows.append(row)
                row = self._step(i, row)
            for i in reversed(range(len(rows))):
                yield first + i, rows[i]

    def _step(self, i: int, row: Tensor) -> Tensor:
        heads, tails = self.coins.heads[:, i : i + 1], self.coins.tails[:, i : i + 1]
        fewer = torch.nn.functional.pad(row[..., :-1], (1, 0))
        after = tails * row + heads * fewer
        if self.moves is not None:
            after[1] += self.moves[:, i : i + 1] * (fewer[0] - row[0])
        return after


def _total(coins: _ConditionalBernoulli) -> Tensor:
    """The chance of sizes within the bounds, weighted by their worth; a second row for derivatives if there are any."""
    return (_PoissonBinomial(coins, None).final * coins.worth).sum(-1)


def _inside(coins: _ConditionalBernoulli, speed: Tensor | None) -> Tensor:
    """The chance of each entry to be in; with a speed of the scores, how it changes."""
    chances = _PoissonBinomial(coins, speed)
    total = (chances.final * coins.worth).sum(-1, keepdim=True)
    total[0].masked_fill_(total[0] == 0, 1)  # rows without a subset
    ahead, drift = coins.worth, torch.zeros_like(coins.worth)
    result = torch.zeros_like(coins.heads)
    for i, row in chances.walk():
        heads, tails = coins.heads[:, i : i + 1], coins.tails[:, i : i + 1]
        rise = torch.nn.functional.pad(ahead[:, 1:], (0, 1))
        inside = (row[0] * rise).sum(-1, keepdim=True) / total[0]
        if chances.moves is None:
            result[:, i : i + 1] = heads * inside
        else:
            moves = chances.moves[:, i : i + 1]
            climb = torch.nn.functional.pad(drift[:, 1:], (0, 1))
            change = (row[1] * rise + row[0] * climb).sum(-1, keepdim=True) / total[0]
            result[:, i : i + 1] = moves * inside + heads * (change - inside * (total[1] / total[0]))
            drift = tails * drift + heads * climb + moves * (rise - ahead)
        ahead = tails * ahead + heads * rise
    return result


def _draw(coins: _ConditionalBernoulli, seeds: Tensor) -> Tensor:
    """`(draws, batch, k)` subsets for seeds `(draws, batch)`."""
    k = coins.heads.shape[-1]
    chances = _PoissonBinomial(coins, None)
    sums = (chances.final[0] * coins.worth).cumsum(-1)
    cut = uniforms(seeds, 1) * sums[:, -1:]  # by position, not by size: padding changes nothing
    left = (sums <= cut).sum(-1).clamp(max=coins.worth.shape[-1] - 1)
    chosen = uniforms(seeds, k, first=1)
    z = torch.zeros_like(chosen)
    for i, row in chances.walk():
        spread = row[0].expand(len(left), *row[0].shape)
        stay = coins.tails[:, i] * spread.gather(-1, left.unsqueeze(-1)).squeeze(-1)
        fewer = spread.gather(-1, (left - 1).clamp(min=0).unsqueeze(-1)).squeeze(-1)
        enter = coins.heads[:, i] * fewer.masked_fill(left == 0, 0)
        inside = chosen[..., i] * (enter + stay) < enter
        z[..., i] = inside.double()
        left = left - inside.long()
    return z


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
