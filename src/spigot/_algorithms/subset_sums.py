r"""Sums over all subsets whose size is within bounds, with derivatives, and draws.

Entry i weighs $e^{s_i}$. With all weights divided by the same $e^\theta$, each entry is a coin that shows heads with
$p_i = \sigma(s_i - \theta)$, and the subsets of size j weigh, together, a known factor times the chance of j heads. For
a $\theta$ that makes sizes within the bounds likely, everything that matters is a number of ordinary size, whatever the
scores are. `native/subsets.hpp` and the functions below compute the chances coin by coin; the rows of chances are kept
for some coins only and worked out again in between, which takes $O(\sqrt k)$ of them at a time.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from spigot._algorithms.capped import raise_subset_fault, refuse_too_few
from spigot._algorithms.kernel_calls import flatten
from spigot._algorithms.sampling import uniforms
from spigot._runtime import native
from spigot._runtime.checks import hopeless_error
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import refuse_hopeless, refuse_infinite, refuse_nan
from spigot._runtime.sums import register_sums
from spigot._runtime.threads import kernel_threads


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
        coins = _coins(flat, exists, minimum, maximum)
        log_partition.copy_(coins.hopeless_or(coins.log_factor + _total(coins)[0].log(), exists))
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
        coins = _coins(flat, exists, minimum, maximum)
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
            raise hopeless_error(fault[1], tuple(scores.shape[:-1]), "subset")
        raise_subset_fault(fault, scores, minimum)
    else:
        _refuse(scores, mask, minimum)
        coins = _coins(flat, exists, minimum, maximum)
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


class _Coins(NamedTuple):
    """Rows of entries as coins: chances of heads and tails `(batch, k)`, what sizes are worth `(batch, sizes)`."""

    heads: Tensor
    tails: Tensor
    worth: Tensor
    log_factor: Tensor
    hopeless: Tensor

    def hopeless_or(self, values: Tensor, exists: Tensor) -> Tensor:
        """The values, with the sum of nothing where nothing can be summed."""
        return torch.where(exists.any(-1), values.masked_fill(self.hopeless, -torch.inf), 0.0)


def _coins(scores: Tensor, exists: Tensor, minimum: int, maximum: int) -> _Coins:
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
    return _Coins(
        torch.sigmoid(log_odds).masked_fill(~here, 0),
        torch.sigmoid(-log_odds).masked_fill(~here, 1),
        worth.masked_fill(~allowed, 0),
        (soft + torch.where(tilted, theta * (goal - likely.sum(-1, keepdim=True)), 0)).squeeze(-1),
        hopeless.squeeze(-1),
    )


class _Chances:
    """The chances of each number of heads after i coins, `(layers, batch, sizes)`; layer 1 holds derivatives."""

    def __init__(self, coins: _Coins, speed: Tensor | None) -> None:
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


def _total(coins: _Coins) -> Tensor:
    """The chance of sizes within the bounds, weighted by their worth; a second row for derivatives if there are any."""
    return (_Chances(coins, None).final * coins.worth).sum(-1)


def _inside(coins: _Coins, speed: Tensor | None) -> Tensor:
    """The chance of each entry to be in; with a speed of the scores, how it changes."""
    chances = _Chances(coins, speed)
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


def _draw(coins: _Coins, seeds: Tensor) -> Tensor:
    """`(draws, batch, k)` subsets for seeds `(draws, batch)`."""
    k = coins.heads.shape[-1]
    chances = _Chances(coins, None)
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
