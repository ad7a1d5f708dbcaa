"""Matchings of rows to columns: the best one, and the k best.

The best complete matching is an assignment problem, solved by shortest augmenting paths with prices. Without the duty
to be complete, a pair that gains nothing counts as a gain of nothing, and is left out afterwards.

References:
    Jonker, Volgenant (1987), A shortest augmenting path algorithm for dense and sparse linear assignment problems.
    Murty (1968), An algorithm for ranking all the assignments in order of increasing cost.
"""

import heapq
import itertools

import numpy as np
import scipy  # its parts load when they are used
import torch
from jaxtyping import Bool, Float, UInt8
from numpy.typing import NDArray
from torch import Tensor

from spigot._algorithms.kernel_calls import flatten, raise_fault
from spigot._runtime import native
from spigot._runtime.checks import impossible_error
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import refuse_nan
from spigot._runtime.threads import kernel_threads

ABSENT, OPEN, CHOSEN, BARRED = range(4)
"""What may become of a part. A mask says absent or open. The search for the k best also fixes some: a chosen part is in
every matching, a barred one in none, and its row and column exist all the same."""


@operator("spigot::matching_argmax")
@through_host
def matching_argmax(scores: Tensor, mask: Tensor, complete: bool) -> Tensor:
    """The best matching of each `(n, m)` instance; of those that match the whole shorter side, if it is `complete`."""
    if not native.serves(scores):  # kernels look for themselves
        refuse_nan(scores, mask, 2)
    z, found = _search(flatten(scores, 2), flatten(mask, 2).view(torch.uint8), complete, scores)
    _refuse_impossible(found, scores)
    return z.reshape(scores.shape)


@matching_argmax.register_fake
def _(scores: Tensor, mask: Tensor, complete: bool) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


batched(matching_argmax)


@operator("spigot::matching_k_best")
@through_host
def matching_k_best(scores: Tensor, mask: Tensor, k: int, complete: bool) -> tuple[Tensor, Tensor]:
    """The k best matchings, `(*batch, k, n, m)`, and which of them there are, `(*batch, k)`.

    All matchings but the best are split into sets without overlap, one for each of its parts: those that have all parts
    before it, but not this one. The best of each set is one search. The best of these is the second; its set is split
    again. All searches of a round are one call.
    """
    refuse_nan(scores, mask, 2)
    batch, (n, m) = scores.shape[:-2], scores.shape[-2:]
    values, parts = flatten(scores, 2), flatten(mask, 2).to(torch.uint8)
    if not complete:  # a column of its own for each row, to stay alone in: all matchings are then complete
        values = torch.cat((values, values.new_zeros(len(values), n, n)), -1)
        parts = torch.cat((parts, torch.diag_embed(parts.amax(-1)) if m else parts.new_zeros(len(parts), n, n)), -1)
    values = values.contiguous()
    best, found = _search(values, parts.contiguous(), True, scores)
    _refuse_impossible(found, scores)
    members = torch.zeros(len(values), k, n, m, dtype=scores.dtype, device=scores.device)
    exist = torch.zeros(len(values), k, dtype=torch.bool, device=scores.device)
    rank = _Ranking(values.double().cpu().numpy())
    rank.add(np.arange(len(values)), best.bool().cpu().numpy(), parts.cpu().numpy())
    for place in range(k):
        winners = rank.pop(k - place)
        for b, z, _ in winners:
            members[b, place] = torch.from_numpy(z[:, :m]).to(members)
            exist[b, place] = True
        owners, sets = _split(winners)
        if place + 1 == k or not len(owners):
            continue
        whose = torch.from_numpy(owners).to(values.device)
        z, found = _search(values[whose], torch.from_numpy(sets).to(values.device), True, scores)
        kept = found.cpu().numpy()
        rank.add(owners[kept], z.bool().cpu().numpy()[kept], sets[kept])
    return members.reshape(*batch, k, n, m), exist.reshape(*batch, k)


@matching_k_best.register_fake
def _(scores: Tensor, mask: Tensor, k: int, complete: bool) -> tuple[Tensor, Tensor]:
    batch, parts = scores.shape[:-2], scores.shape[-2:]
    return scores.new_empty(*batch, k, *parts), scores.new_empty(*batch, k, dtype=torch.bool)


batched(matching_k_best)

_Winner = tuple[int, NDArray[np.bool_], NDArray[np.uint8]]
"""An instance, its matching, and what was fixed when it was found."""


class _Ranking:
    """For each instance the matchings that were found and not yet handed out, best first."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.values = values
        self.heaps: list[list[tuple[int, float, int, _Winner]]] = [[] for _ in values]
        self.numbers = itertools.count()  # among equals the earlier; arrays are not compared

    def add(self, owners: NDArray[np.int64], z: NDArray[np.bool_], parts: NDArray[np.uint8]) -> None:
        for b, matching, fixed in zip(owners.tolist(), z, parts, strict=True):
            scores = self.values[b][matching]
            infinite = np.isinf(scores)
            # An infinity outweighs every finite number, and one of each kind cancels.
            worth = int(np.sign(scores[infinite]).sum()), float(scores[~infinite].sum())
            heapq.heappush(self.heaps[b], (-worth[0], -worth[1], next(self.numbers), (b, matching, fixed)))

    def pop(self, wanted: int) -> list[_Winner]:
        """The best of each instance that has any; of the rest, those are kept that can still be wanted."""
        self.heaps = [heapq.nsmallest(wanted, heap) for heap in self.heaps]
        return [heapq.heappop(heap)[-1] for heap in self.heaps if heap]


def _split(winners: list[_Winner]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The sets that are left when each winner is taken out of its own, and whose they are."""
    owners, sets = [], []
    for b, z, parts in winners:
        before = parts.copy()
        for place in zip(*np.nonzero(z & (parts == OPEN)), strict=True):
            without = before.copy()
            without[place] = BARRED
            before[place] = CHOSEN
            owners.append(b)
            sets.append(without)
    return np.array(owners, dtype=np.int64), np.stack(sets) if sets else np.zeros((0, 0, 0), dtype=np.uint8)


def _refuse_impossible(found: Tensor, parts: Tensor) -> None:
    if not found.all():
        first = int((~found).nonzero()[0])
        raise impossible_error(first, tuple(parts.shape[:-2]), "complete matching", "parts")


def _search(
    scores: Float[Tensor, "batch n m"], parts: UInt8[Tensor, "batch n m"], complete: bool, given: Tensor
) -> tuple[Float[Tensor, "batch n m"], Bool[Tensor, "batch"]]:
    """The best matchings that agree with what is fixed, and whether there is one; `given` names instances in errors."""
    if native.serves(scores):
        z, found = torch.empty_like(scores), torch.ones(len(scores), dtype=torch.bool)
        if z.numel():
            fault = native.kernels.match(scores, parts, complete, z, found, kernel_threads())
            raise_fault(fault, given, 2, "scores")
        return z, found
    pairs = zip(scores.double().cpu().numpy(), parts.cpu().numpy(), strict=True)
    answers = [best_matching(s, p, complete) for s, p in pairs]
    z = (
        np.stack([np.zeros(scores.shape[1:]) if z is None else z for z in answers])
        if answers
        else np.zeros(scores.shape)
    )
    found = torch.tensor([z is not None for z in answers], dtype=torch.bool, device=scores.device)
    return torch.from_numpy(z).to(scores), found


def best_matching(scores: NDArray[np.float64], parts: NDArray[np.uint8], complete: bool) -> NDArray[np.float64] | None:
    """One instance, through scipy; `None` if there is no complete matching."""
    chosen = parts == CHOSEN
    rows = np.flatnonzero(parts.any(1) & ~chosen.any(1))
    columns = np.flatnonzero(parts.any(0) & ~chosen.any(0))
    inside = np.ix_(rows, columns)
    may = parts[inside] == OPEN
    s = np.where(may, scores[inside], 0.0)
    finite = np.where(np.isinf(s), 0.0, s)
    shrink = 2.0**-64 if np.abs(finite).max(initial=0.0) > 1e290 else 1.0
    # As few -inf and as many +inf as possible, then the best finite sum.
    limit = 1 + 2 * np.abs(finite * shrink).max(1, initial=0.0).sum()
    tame = np.where(np.isinf(s), limit * np.sign(s), finite * shrink)
    attempts = [np.where(may & (s > -np.inf), tame, -np.inf), np.where(may, tame, -np.inf)]
    if not complete:
        attempts = [np.where(may, tame, 0.0).clip(min=0)]
    for gain in attempts:
        try:
            taken = scipy.optimize.linear_sum_assignment(gain, maximize=True)
        except ValueError:  # what it calls infeasible
            continue
        z = chosen.astype(np.float64)
        kept = slice(None) if complete else gain[taken] > 0
        z[rows[taken[0][kept]], columns[taken[1][kept]]] = 1
        return z
    return None
