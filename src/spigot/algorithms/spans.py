r"""Binary trees over labelled spans: the best one, sums over all, draws and the k best, as operators.

Natively CKY runs in C++; elsewhere `spans_reference.py` does the same in plain torch, width by width.
"""

import torch
from torch import Tensor

from spigot import native
from spigot.algorithms import spans_reference as reference
from spigot.algorithms.kernels import flatten, raise_fault
from spigot.algorithms.operators import batched, operator, through_host
from spigot.algorithms.reduce import refuse_hopeless, refuse_infinite, refuse_nan, summable
from spigot.algorithms.sums import register_checked, register_sums
from spigot.checks import hopeless_error, impossible_error

WORDS = "binary tree"


def span_parts(mask: Tensor) -> Tensor:
    """The parts that can take part in a tree: spans from left to right, of words that exist, up to the last."""
    n = mask.shape[-2]
    word = mask.any(-1).diagonal(dim1=-2, dim2=-1)
    inside = word.flip(-1).cummax(-1).values.flip(-1)  # up to the last word that may have a label
    place = torch.arange(n, device=mask.device)
    return mask & (place[:, None] <= place).unsqueeze(-1) & inside[..., None, :, None]


@operator("spigot::span_argmax")
@through_host
def span_argmax(scores: Tensor, mask: Tensor) -> Tensor:
    """The best tree of each `(n, n, labels)` instance."""
    if scores.numel() == 0:
        return torch.zeros_like(scores)
    flat, exists = flatten(scores, 3), flatten(mask, 3)
    if native.serves(scores):
        z = torch.empty_like(flat)
        raise_fault(native.kernels.span_argmax(flat, exists, z, torch.get_num_threads()), scores, 3, "scores", WORDS)
        return z.reshape(scores.shape)
    refuse_nan(flat, exists, 3)
    z, value = reference.best(reference.finite(flat, exists), exists)
    _refuse_impossible(value, scores)
    return z.to(scores.dtype).reshape(scores.shape)


@span_argmax.register_fake
def _(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


def span_log_partition(scores: Tensor, mask: Tensor) -> Tensor:
    r"""$\log Z$ of each instance."""
    if native.available:
        return _span_sums(scores, mask, torch.is_grad_enabled() and scores.requires_grad)[0]
    return _log_partition(_checked_spans(scores, mask), mask)


def span_marginals(scores: Tensor, mask: Tensor) -> Tensor:
    r"""$\nabla \log Z$ of each instance, within $[0, 1]$."""
    if native.available:
        return _span_sums(scores, mask, True)[1]
    safe = _checked_spans(scores, mask)
    if scores.numel() == 0:
        return safe
    mu = torch.func.grad(lambda s: _log_partition(s, mask).sum())(safe).clamp(0, 1)
    some = _log_partition(safe.detach(), mask) > -torch.inf  # where nothing has weight, nothing is expected
    return torch.where(some[..., None, None, None], mu, 0)


def _log_partition(scores: Tensor, mask: Tensor) -> Tensor:
    value = reference.log_partition(flatten(scores, 3).double(), flatten(mask, 3))
    return value.to(scores.dtype).reshape(scores.shape[:-3])


@operator("spigot::checked_spans")
def _checked_spans(scores: Tensor, mask: Tensor) -> Tensor:
    """The scores with zeros outside, after making sure that a tree exists and that none inside is NaN or +inf."""
    refuse_nan(scores, mask, 3)
    refuse_infinite(scores.isposinf() & mask, 3, "scores")
    if scores.numel():
        _refuse_impossible(_log_partition(torch.zeros_like(scores), mask).flatten(), scores)
    return summable(scores, mask, 3).masked_fill(~mask, 0)


register_checked(_checked_spans)


@operator("spigot::span_sums")
@through_host
def _span_sums(scores: Tensor, mask: Tensor, marginals: bool) -> tuple[Tensor, Tensor]:
    r"""$\log Z$ and, if wanted, $\mu$ (otherwise an empty tensor), by the native kernels."""
    flat = flatten(summable(scores, mask, 3), 3)
    log_partition = flat.new_zeros(len(flat))
    mu = torch.zeros_like(flat) if marginals else flat.new_empty(0)
    if flat.numel():
        fault = native.kernels.span_sums(
            flat, flatten(mask, 3), log_partition, mu if marginals else None, torch.get_num_threads()
        )
        raise_fault(fault, scores, 3, "scores", WORDS)
    return log_partition.reshape(scores.shape[:-3]), mu.reshape(scores.shape) if marginals else mu


@operator("spigot::span_hessian")
@through_host
def _span_hessian(scores: Tensor, mask: Tensor, direction: Tensor) -> Tensor:
    r"""$\nabla^2 \log Z \cdot v$: the derivative of the marginals along a direction."""
    flat = flatten(summable(scores, mask, 3), 3)
    result = torch.zeros_like(flat)
    if flat.numel():
        fault = native.kernels.span_hessian(
            flat, flatten(mask, 3), flatten(direction, 3), result, torch.get_num_threads()
        )
        raise_fault(fault, scores, 3, "scores", WORDS)
    return result.reshape(scores.shape)


register_sums(_span_sums, _span_hessian, 3)


@operator("spigot::span_sample")
@through_host
def span_sample(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
    """Trees drawn top down, `(*batch, samples, n, n, labels)`, one for each of the seeds `(*batch, samples)`."""
    samples, parts = seeds.shape[-1], scores.shape[-3:]
    flat, exists, seed = flatten(summable(scores, mask, 3), 3), flatten(mask, 3), flatten(seeds, 1)
    z = flat.new_zeros(len(flat), samples, *parts)
    if flat.numel() == 0 or samples == 0:
        pass
    elif native.serves(scores):
        fault = native.kernels.span_sample(flat, exists, seed, z, torch.get_num_threads())
        if fault is not None and fault[0] == native.kernels.FAULT_INFINITE:
            refuse_infinite(scores.isposinf() & mask, 3, "scores")
            raise hopeless_error(fault[1], tuple(scores.shape[:-3]), WORDS)
        raise_fault(fault, scores, 3, "scores", WORDS)
    else:
        safe = _checked_spans(scores, mask).reshape(flat.shape)
        refuse_hopeless(_log_partition(safe.double(), exists).isneginf().reshape(scores.shape[:-3]), WORDS)
        z = reference.sample(safe.double(), exists, seed).to(scores.dtype)
    return z.reshape(*scores.shape[:-3], samples, *parts)


@span_sample.register_fake
def _(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
    return scores.new_empty(*scores.shape[:-3], seeds.shape[-1], *scores.shape[-3:])


@operator("spigot::span_k_best")
@through_host
def span_k_best(scores: Tensor, mask: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best trees, `(*batch, k, n, n, labels)`, and which of them there are, `(*batch, k)`."""
    batch, parts = scores.shape[:-3], scores.shape[-3:]
    flat, exists = flatten(scores, 3), flatten(mask, 3)
    z = flat.new_zeros(len(flat), k, *parts)
    count = torch.ones(len(flat), dtype=torch.int64, device=scores.device)
    if flat.numel() == 0 or k == 0:
        pass
    elif native.serves(scores):
        fault = native.kernels.span_k_best(flat, exists, z, count, torch.get_num_threads())
        raise_fault(fault, scores, 3, "scores", WORDS)
    else:
        refuse_nan(flat, exists, 3)
        found, values = reference.k_best(reference.finite(flat, exists), exists, k)
        _refuse_impossible(values[:, 0], scores)
        z, count = found.to(scores.dtype), values.isfinite().sum(1)
    there = torch.arange(k, device=scores.device) < count.unsqueeze(-1)
    return z.reshape(*batch, k, *parts), there.reshape(*batch, k)


@span_k_best.register_fake
def _(scores: Tensor, mask: Tensor, k: int) -> tuple[Tensor, Tensor]:
    batch = scores.shape[:-3]
    return scores.new_empty(*batch, k, *scores.shape[-3:]), scores.new_empty(*batch, k, dtype=torch.bool)


for _operator in (span_argmax, span_sample, span_k_best):
    batched(_operator)


def _refuse_impossible(values: Tensor, scores: Tensor) -> None:
    if values.isneginf().any():
        raise impossible_error(int(values.isneginf().nonzero()[0]), tuple(scores.shape[:-3]), WORDS)
