"""The best subsets whose size is within bounds: the best one, and the k best in order."""

import heapq
import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from spigot._algorithms.capped import raise_subset_fault, refuse_too_few
from spigot._algorithms.kernel_calls import flatten
from spigot._runtime import native
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import refuse_infinite, refuse_nan
from spigot._runtime.threads import kernel_threads


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
