r"""Chains of states: the best one and the k best by Viterbi's recursion, sums by forward-backward, and draws.

Parts are `(*batch, n, 1 + k, k)`: row 0 of a position holds its states, row `1 + i` the transitions into it from state
i of the position before. The first position has no transitions into it.

Natively one operator gives $\log Z$ and $\mu = \nabla \log Z$, and a second one the product of the Hessian of $\log Z$
with a direction, which is the backward pass of $\mu$. Elsewhere plain torch computes $\log Z$ in log space and its
gradient is taken as is. Draws filter forward, then sample backward.

References:
    Viterbi (1967), Error bounds for convolutional codes and an asymptotically optimum decoding algorithm.
    Seshadri, Sundberg (1994), List Viterbi decoding algorithms with applications, §III.
    Rabiner (1989), A tutorial on hidden Markov models and selected applications in speech recognition, §III.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spigot._algorithms.active_set import search_in_kernel
from spigot._algorithms.kernel_calls import Fault, flatten, raise_fault
from spigot._algorithms.sampling import uniform
from spigot._runtime import native
from spigot._runtime.checks import NoStructureError, instance_name, no_mass_error
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import masked_logsumexp, refuse_infinite, refuse_nan, summable
from spigot._runtime.sums import register_checked, register_sums
from spigot._runtime.threads import kernel_threads
from spigot.types import HullResult


def chain_parts(mask: Bool[Tensor, "*batch n r k"]) -> Bool[Tensor, "*batch n r k"]:
    """The parts that can take part in a chain: a transition needs its two states, and a position before its own."""
    states = mask[..., 0, :]
    before = torch.nn.functional.pad(states[..., :-1, :], (0, 0, 1, 0)) if mask.shape[-3] else states
    transitions = mask[..., 1:, :] & before.unsqueeze(-1) & states.unsqueeze(-2)
    return torch.cat((states.unsqueeze(-2), transitions), -2)


def chain_lengths(parts: Bool[Tensor, "*batch n r k"]) -> Int[Tensor, "*batch"]:
    """Positions up to the last that has a state."""
    places = torch.arange(1, parts.shape[-3] + 1, device=parts.device)
    exists = parts[..., 0, :].any(-1)
    return torch.where(exists, places, 0).amax(-1) if len(places) else exists.sum(-1)


def refuse_broken(parts: Bool[Tensor, "*batch n r k"]) -> None:
    """Raise if a mask leaves no chain. Looks at values: only for use inside operators."""
    batch, n = tuple(parts.shape[:-3]), parts.shape[-3]
    flat = parts.reshape(parts.shape[:-3].numel(), *parts.shape[-3:])
    lengths = chain_lengths(flat)
    alive = flat[:, 0, 0] if n else flat.new_zeros(len(flat), 0)
    for t in range(n):
        inside = t < lengths
        gap = inside & ~flat[:, t, 0].any(-1)
        if gap.any():
            raise _stateless_error(int(gap.nonzero()[0]), batch, t)
    for t in range(1, n):
        alive = (flat[:, t, 1:] & alive.unsqueeze(-1)).any(-2)
        broken = (t < lengths) & ~alive.any(-1)
        if broken.any():
            raise _broken_error(int(broken.nonzero()[0]), batch, t)


def raise_chain_fault(fault: Fault | None, parts: Tensor, batch: tuple[int, ...] | None = None) -> None:
    """Raise the error that a kernel reported, if any."""
    if fault is None:
        return
    kind, instance, position, *_ = fault
    batch = tuple(parts.shape[:-3]) if batch is None else batch
    if kind == native.kernels.FAULT_HEADLESS:
        raise _stateless_error(instance, batch, position)
    if kind == native.kernels.FAULT_IMPOSSIBLE:
        raise _broken_error(instance, batch, position)
    raise_fault(fault, parts, 3, "scores")


def _stateless_error(index: int, batch: tuple[int, ...], position: int) -> NoStructureError:
    return NoStructureError(
        f"position {position} of {instance_name(index, batch)} has no state in the mask, but a later one has; unmask a "
        "state of it, or mask all positions after it if it is padding."
    )


def _broken_error(index: int, batch: tuple[int, ...], position: int) -> NoStructureError:
    return NoStructureError(
        f"the mask of {instance_name(index, batch)} leaves no chain: no transition that it allows leads on from "
        f"position {position - 1} to position {position}; unmask one."
    )


def within(states: Int[Tensor, "batch n"], lengths: Int[Tensor, "batch"]) -> Int[Tensor, "batch n"]:
    """The states with -1 beyond the end of each chain."""
    return states.masked_fill(torch.arange(states.shape[-1], device=states.device) >= lengths.unsqueeze(-1), -1)


def part_places(states: Int[Tensor, "*batch n"], k: int) -> Int[Tensor, "*batch parts"]:
    """Where the parts of chains stand in the flat `n * (1 + k) * k` parts, -1 for those that a chain does not have.

    First the states, then the transitions.
    """
    n = states.shape[-1]
    first = torch.arange(n, device=states.device) * (1 + k) * k
    own = torch.where(states < 0, -1, first + states)
    steps = torch.where(states[..., 1:] < 0, -1, own[..., 1:] + (1 + states[..., :-1]) * k)
    return torch.cat((own, steps), -1)


def write_chains(states: Int[Tensor, "*batch n"], like: Tensor) -> Tensor:
    """0/1 parts `(*batch, n, 1 + k, k)` in the dtype of `like`, from states, -1 where there is none.

    Looks at values: only for use inside operators.
    """
    k, n = like.shape[-1], states.shape[-1]
    size = n * (1 + k) * k
    places = part_places(states, k)
    places = places.reshape(places.shape[:-1].numel(), places.shape[-1])
    z = torch.zeros(*states.shape[:-1], n, 1 + k, k, dtype=like.dtype, device=like.device)
    offsets = torch.arange(len(places), device=places.device).unsqueeze(-1) * size
    z.view(-1)[(places + offsets)[places >= 0]] = 1
    return z


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


def chain_log_partition(scores: Tensor, mask: Tensor) -> Tensor:
    r"""$\log Z$ of each `(n, 1 + k, k)` instance."""
    if native.available:
        return _chain_sums(scores, mask, torch.is_grad_enabled() and scores.requires_grad)[0]
    parts = chain_parts(mask)
    return _reference(_checked_chains(scores, parts), parts)


def chain_marginals(scores: Tensor, mask: Tensor) -> Tensor:
    r"""$\nabla \log Z$ of each `(n, 1 + k, k)` instance, within $[0, 1]$."""
    if native.available:
        return _chain_sums(scores, mask, True)[1]
    parts = chain_parts(mask)
    safe = _checked_chains(scores, parts)
    if scores.numel() == 0:
        return safe
    mu = torch.func.grad(lambda s: _reference(s, parts).sum())(safe)
    return mu.clamp(0, 1)  # rounding may leave [0, 1]


def _reference(scores: Tensor, parts: Tensor) -> Tensor:
    log = forward_reference(flatten(scores, 3).double(), flatten(parts, 3))
    lengths = chain_lengths(flatten(parts, 3))
    value = log[-1] if log else scores.new_zeros(len(lengths), 1, dtype=torch.float64)
    total = masked_logsumexp(value, torch.ones_like(value, dtype=torch.bool), -1).masked_fill(lengths == 0, 0)
    return total.to(scores.dtype).reshape(scores.shape[:-3])


def forward_reference(
    scores: Float[Tensor, "batch n r k"], parts: Bool[Tensor, "batch n r k"]
) -> list[Float[Tensor, "batch k"]]:
    """For each position the log of the sum over the chains that end in each state; beyond the end, those of the end."""
    n, lengths = scores.shape[1], chain_lengths(parts)
    logs: list[Tensor] = []
    for t in range(n):
        own = scores[:, t, 0].masked_fill(~parts[:, t, 0], -torch.inf)
        if t:
            terms = logs[-1].unsqueeze(-1) + scores[:, t, 1:].masked_fill(~parts[:, t, 1:], -torch.inf)
            into = masked_logsumexp(terms, torch.ones_like(terms, dtype=torch.bool), 1)
            own = torch.where((t < lengths).unsqueeze(-1), own + into, logs[-1])
        logs.append(own)
    return logs


@operator("spigot::checked_chains")
def _checked_chains(scores: Tensor, parts: Tensor) -> Tensor:
    """The scores with zeros outside, after making sure that a chain exists and that none inside is NaN or +inf."""
    refuse_nan(scores, parts, 3)
    refuse_infinite(scores.isposinf() & parts, 3, "scores")
    refuse_broken(parts)
    return summable(scores, parts, 3).masked_fill(~parts, 0)


register_checked(_checked_chains)


@operator("spigot::chain_sums")
@through_host
def _chain_sums(scores: Tensor, mask: Tensor, marginals: bool) -> tuple[Tensor, Tensor]:
    r"""$\log Z$ and, if wanted, $\mu$ (otherwise an empty tensor), by the native kernels."""
    flat = flatten(summable(scores, chain_parts(mask), 3), 3)
    log_partition = flat.new_empty(len(flat))
    mu = torch.empty_like(flat) if marginals else flat.new_empty(0)
    fault = native.kernels.chain_sums(
        flat, flatten(mask, 3), log_partition, mu if marginals else None, kernel_threads()
    )
    raise_chain_fault(fault, scores)
    return log_partition.reshape(scores.shape[:-3]), mu.reshape(scores.shape) if marginals else mu


@operator("spigot::chain_hessian")
@through_host
def _chain_hessian(scores: Tensor, mask: Tensor, direction: Tensor) -> Tensor:
    r"""$\nabla^2 \log Z \cdot v$: the derivative of the marginals along a direction."""
    flat = flatten(summable(scores, chain_parts(mask), 3), 3)
    result = torch.empty_like(flat)
    fault = native.kernels.chain_hessian(flat, flatten(mask, 3), flatten(direction, 3), result, kernel_threads())
    raise_chain_fault(fault, scores)
    return result.reshape(scores.shape)


register_sums(_chain_sums, _chain_hessian, 3)


@operator("spigot::chain_sample")
@through_host
def chain_sample(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
    """Draws of each instance, `(*batch, samples, n, 1 + k, k)`, one for each seed of `(*batch, samples)`."""
    flat, draws = flatten(summable(scores, chain_parts(mask), 3), 3), flatten(seeds, 1)
    shape = (*scores.shape[:-3], seeds.shape[-1], *scores.shape[-3:])
    batch = tuple(scores.shape[:-3])
    if native.serves(scores):
        z = flat.new_empty(shape)
        fault = native.kernels.chain_sample(flat, flatten(mask, 3), draws, z, kernel_threads())
        if fault is not None and fault[0] == native.kernels.FAULT_INFINITE:
            refuse_infinite(scores.isposinf() & chain_parts(mask), 3, "scores")
            raise no_mass_error(fault[1], batch, "chain")
        raise_chain_fault(fault, scores)
        return z
    parts = chain_parts(mask)
    safe = flatten(_checked_chains(scores, parts), 3).double()
    exists = flatten(parts, 3)
    lengths = chain_lengths(exists)
    states = sample_reference(safe, exists, lengths, draws, batch)
    owner = lengths.repeat_interleave(draws.shape[-1])
    return write_chains(within(states.flatten(0, 1), owner), scores).reshape(shape)


@chain_sample.register_fake
def _(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
    return scores.new_empty(*scores.shape[:-3], seeds.shape[-1], *scores.shape[-3:])


def sample_reference(
    scores: Float[Tensor, "batch n r k"],
    parts: Bool[Tensor, "batch n r k"],
    lengths: Int[Tensor, "batch"],
    seeds: Int[Tensor, "batch samples"],
    batch: tuple[int, ...] = (),
) -> Int[Tensor, "batch samples n"]:
    """States drawn in plain torch: the last from the forward sums, then each given the one after it."""
    n, k = scores.shape[1], scores.shape[-1]
    logs = forward_reference(scores, parts)
    states = torch.zeros(*seeds.shape, n, dtype=torch.int64, device=scores.device)
    if n == 0:
        return states
    hopeless = (lengths > 0) & logs[-1].isneginf().all(-1)
    if hopeless.any():
        raise no_mass_error(int(hopeless.nonzero()[0]), batch, "chain")
    for t in range(n - 1, -1, -1):
        weights = logs[t].unsqueeze(1).expand(*seeds.shape, k)
        if t + 1 < n:
            into = scores[:, t + 1, 1:].masked_fill(~parts[:, t + 1, 1:], -torch.inf).mT  # (batch, next, previous)
            chosen = into.gather(1, states[..., t + 1].unsqueeze(-1).expand(-1, -1, k))
            weights = torch.where((t + 1 < lengths).reshape(-1, 1, 1), weights + chosen, weights)
        running = (weights - weights.amax(-1, keepdim=True)).exp().cumsum(-1)
        passed = running > (uniform(seeds, t).unsqueeze(-1) * running[..., -1:])
        states[..., t] = passed.to(torch.uint8).argmax(-1)
    return states


batched(chain_sample)
