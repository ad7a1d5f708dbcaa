"""The best chain by Viterbi's recursion, and the k best.

References:
    Viterbi (1967), Error bounds for convolutional codes and an asymptotically optimum decoding algorithm.
    Seshadri, Sundberg (1994), List Viterbi decoding algorithms with applications, §III.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spigot._algorithms.active_set import search_in_kernel
from spigot._algorithms.chains import chain_lengths, chain_parts, raise_chain_fault, refuse_broken, within, write_chains
from spigot._algorithms.kernel_calls import Fault, flatten
from spigot._runtime import native
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import refuse_nan
from spigot._runtime.threads import kernel_threads
from spigot.interface.records import HullResult


@operator("spigot::chain_argmax")
@through_host
def chain_argmax(scores: Tensor, mask: Tensor) -> Tensor:
    """The best chain of each `(n, 1 + k, k)` instance; ties go to the first state, from the last position back."""
    flat = flatten(scores, 3)
    if native.serves(scores):
        z = torch.empty_like(flat)
        fault = native.kernels.chain_argmax(flat, flatten(mask, 3), z, kernel_threads())
        raise_chain_fault(fault, scores)
        return z.reshape(scores.shape)
    states, lengths, _ = _ranked(flat, mask, scores, 1)
    return write_chains(within(states[0], lengths), scores).reshape(scores.shape)


@chain_argmax.register_fake
def _(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


batched(chain_argmax)


@operator("spigot::chain_k_best")
@through_host
def chain_k_best(scores: Tensor, mask: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best chains of each instance, best first.

    Returns:
        The chains, `(*batch, count, n, 1 + k, k)`; their states, `(*batch, count, n)`, -1 where there is no position or
        no chain left; and whether there are so many chains, `(*batch, count)`.
    """
    flat = flatten(scores, 3)
    batch, n = scores.shape[:-3], scores.shape[-3]
    if native.serves(scores):
        states = torch.empty(len(flat), count, n, dtype=torch.int64)
        found = torch.empty(len(flat), dtype=torch.int64)
        fault = native.kernels.chain_k_best(flat, flatten(mask, 3), states, found, kernel_threads())
        raise_chain_fault(fault, scores)
    else:
        states, lengths, found = _ranked(flat, mask, scores, count)
        outside = torch.arange(n, device=flat.device) >= lengths.unsqueeze(-1)
        late = torch.arange(count, device=flat.device) >= found.unsqueeze(-1)
        states = states.movedim(0, 1).masked_fill(outside.unsqueeze(1) | late.unsqueeze(-1), -1)
    there = torch.arange(count, device=flat.device) < found.unsqueeze(-1)
    states = states.reshape(*batch, count, n)
    return write_chains(states, scores), states, there.reshape(*batch, count)


@chain_k_best.register_fake
def _(scores: Tensor, mask: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    batch, parts = scores.shape[:-3], scores.shape[-3:]
    states = scores.new_empty(*batch, count, parts[0], dtype=torch.int64)
    return scores.new_empty(*batch, count, *parts), states, scores.new_empty(*batch, count, dtype=torch.bool)


batched(chain_k_best)


def _ranked(flat: Tensor, mask: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """States of the best chains in plain torch, after the checks that the kernels make."""
    parts = chain_parts(mask)
    refuse_nan(scores, parts, 3)
    refuse_broken(parts)
    exists = flatten(parts, 3)
    lengths = chain_lengths(exists)
    states, found = k_best_reference(_finite(flat.double(), exists), exists, lengths, count)
    return states, lengths, found


def _finite(scores: Float[Tensor, "batch n r k"], parts: Bool[Tensor, "batch n r k"]) -> Float[Tensor, "batch n r k"]:
    """Scores with infinities replaced by numbers that no sum of the others outweighs, zero where there is no part."""
    scores = scores.masked_fill(~parts, 0)
    if scores.numel() == 0:
        return scores
    infinite = scores.isinf()
    finite = scores.masked_fill(infinite, 0)
    top = finite.abs().amax((-3, -2, -1), keepdim=True)
    finite = torch.where(top > 1e290, finite * 2.0**-64, finite)
    each = finite.abs()
    most = each[:, :, 0].amax(-1).sum(-1) + each[:, :, 1:].amax((-2, -1)).sum(-1)
    return torch.where(infinite, (1 + 2 * most).reshape(-1, 1, 1, 1) * scores.sign(), finite)


def k_best_reference(
    scores: Float[Tensor, "batch n r k"], parts: Bool[Tensor, "batch n r k"], lengths: Int[Tensor, "batch"], count: int
) -> tuple[Int[Tensor, "count batch n"], Int[Tensor, "batch"]]:
    """States of the `count` best chains in plain torch, and how many there are; finite scores, a chain in each mask.

    Each state of a position keeps a sorted list of the best chains that end in it, with the rank in the list of the
    previous state that each continues. Sorting is stable, so that ties go to the first.
    """
    batch, n, _, k = scores.shape
    states = torch.zeros(count, batch, n, dtype=torch.int64, device=scores.device)
    if n == 0 or batch == 0 or count == 0:
        return states, torch.full((batch,), min(count, 1), device=scores.device)
    scores = scores.masked_fill(~parts, -torch.inf)
    best = scores[:, 0, 0].unsqueeze(-1)  # (batch, state, rank)
    origins = []
    for t in range(1, n):
        ranks = best.shape[-1]
        into = (best.unsqueeze(-1) + scores[:, t, 1:].unsqueeze(-2)).reshape(batch, k * ranks, k).mT
        values, order = _first(into, count)
        origins.append((order // ranks, order % ranks))
        inside = (t < lengths).reshape(-1, 1, 1)
        grown = torch.nn.functional.pad(best, (0, values.shape[-1] - ranks), value=-torch.inf)
        best = torch.where(inside, values + scores[:, t, 0].unsqueeze(-1), grown)
    ranks = best.shape[-1]
    values, order = _first(best.reshape(batch, k * ranks), count)
    state, rank = order // ranks, order % ranks
    kept = values.shape[-1]
    some = torch.arange(batch, device=scores.device).unsqueeze(-1)
    states[:kept, :, n - 1] = state.T
    for t in range(n - 1, 0, -1):
        previous, place = (origin[some, state, rank.clamp(max=origin.shape[-1] - 1)] for origin in origins[t - 1])
        inside = (t < lengths).unsqueeze(-1)
        state, rank = torch.where(inside, previous, state), torch.where(inside, place, rank)
        states[:kept, :, t - 1] = state.T
    found = torch.where(lengths > 0, values.isfinite().sum(-1), min(count, 1))
    return states, found


def _first(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best entries of the last axis, best first, the first of equals first."""
    if count == 1:
        best = values.argmax(-1, keepdim=True)
        return values.gather(-1, best), best
    ordered, order = values.sort(dim=-1, descending=True, stable=True)
    return ordered[..., :count], order[..., :count]


def project_chain_hull(point: Tensor, mask: Tensor, start: Tensor | None, *, support: bool = True) -> HullResult:
    """Nearest points of the hull of chains.

    Args:
        point: `(*batch, n, 1 + k, k)`; from an accelerator it goes by way of the host.
        mask: Parts that exist.
        start: A chain for each instance to begin with; the best for `point` if omitted.
        support: Whether to hand over the chains whose mixture is the answer.
    """

    def refuse(fault: Fault | None) -> None:
        raise_chain_fault(fault, point)

    return search_in_kernel(native.kernels.project_chain_hull, point, mask, start, 3, (), support, refuse)
