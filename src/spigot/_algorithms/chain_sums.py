r"""Log-partition and marginals of chains, with derivatives, and draws: forward filtering, then backward.

Natively one operator gives $\log Z$ and $\mu = \nabla \log Z$, and a second one the product of the Hessian of $\log Z$
with a direction, which is the backward pass of $\mu$. Elsewhere plain torch computes $\log Z$ in log space and its
gradient is taken as is.

References:
    Rabiner (1989), A tutorial on hidden Markov models and selected applications in speech recognition, §III.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spigot._algorithms.chains import (
    chain_lengths,
    chain_parts,
    raise_chain_fault,
    refuse_broken,
    within,
    write_chains,
)
from spigot._algorithms.kernel_calls import flatten
from spigot._algorithms.sampling import uniform
from spigot._runtime import native
from spigot._runtime.checks import hopeless_error
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import masked_logsumexp, refuse_infinite, refuse_nan, summable
from spigot._runtime.sums import register_checked, register_sums
from spigot._runtime.threads import kernel_threads


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
            raise hopeless_error(fault[1], batch, "chain")
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
        raise hopeless_error(int(hopeless.nonzero()[0]), batch, "chain")
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
