r"""Monotone paths through a grid of cells: the best one, sums over all, draws and the k best, as operators.

Natively the recursion runs in C++; elsewhere `alignments_reference.py` does the same in plain torch.
"""

import torch
from torch import Tensor

from spigot import native
from spigot.algorithms import alignments_reference as reference
from spigot.algorithms.kernels import Fault, flatten, raise_fault
from spigot.algorithms.operators import batched, operator, through_host
from spigot.algorithms.reduce import refuse_hopeless, refuse_infinite, refuse_nan, summable
from spigot.algorithms.sums import register_checked, register_sums
from spigot.checks import hopeless_error, impossible_error

WORDS = "path"


@operator("spigot::align_argmax")
@through_host
def align_argmax(scores: Tensor, mask: Tensor) -> Tensor:
    """The best path of each `(n, m)` instance."""
    if scores.numel() == 0:
        return torch.zeros_like(scores)
    flat, exists = flatten(scores, 2), flatten(mask, 2)
    if native.serves(scores):
        z = torch.empty_like(flat)
        _raise_fault(native.kernels.align_argmax(flat, exists, z, torch.get_num_threads()), scores)
        return z.reshape(scores.shape)
    refuse_nan(flat, exists, 2)
    z, value = reference.best(reference.finite(flat, exists), exists)
    _refuse_impossible(value, scores)
    return z.to(scores.dtype).reshape(scores.shape)


@align_argmax.register_fake
def _(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


def _raise_fault(fault: Fault | None, scores: Tensor) -> None:
    if fault is not None and fault[0] == native.kernels.FAULT_IMPOSSIBLE:
        raise impossible_error(fault[1], tuple(scores.shape[:-2]), WORDS, "cells")
    raise_fault(fault, scores, 2, "scores")


def align_log_partition(scores: Tensor, mask: Tensor) -> Tensor:
    r"""$\log Z$ of each instance."""
    if native.available:
        return _align_sums(scores, mask, torch.is_grad_enabled() and scores.requires_grad)[0]
    return _log_partition(_checked_cells(scores, mask), mask)


def align_marginals(scores: Tensor, mask: Tensor) -> Tensor:
    r"""$\nabla \log Z$ of each instance, within $[0, 1]$."""
    if native.available:
        return _align_sums(scores, mask, True)[1]
    safe = _checked_cells(scores, mask)
    if scores.numel() == 0:
        return safe
    mu = torch.func.grad(lambda s: _log_partition(s, mask).sum())(safe).clamp(0, 1)
    some = _log_partition(safe.detach(), mask) > -torch.inf  # where nothing has weight, nothing is expected
    return torch.where(some[..., None, None], mu, 0)


def _log_partition(scores: Tensor, mask: Tensor) -> Tensor:
    flat = flatten(scores, 2).double()
    value = reference.log_partition(flat, flatten(mask, 2)) if flat.numel() else flat.flatten(1).sum(1)
    return value.to(scores.dtype).reshape(scores.shape[:-2])


@operator("spigot::checked_cells")
def _checked_cells(scores: Tensor, mask: Tensor) -> Tensor:
    """The scores with zeros outside, after making sure that a path exists and that none inside is NaN or +inf."""
    refuse_nan(scores, mask, 2)
    refuse_infinite(scores.isposinf() & mask, 2, "scores")
    if scores.numel():
        _refuse_impossible(_log_partition(torch.zeros_like(scores), mask).flatten(), scores)
    return summable(scores, mask, 2).masked_fill(~mask, 0)


register_checked(_checked_cells)


@operator("spigot::align_sums")
@through_host
def _align_sums(scores: Tensor, mask: Tensor, marginals: bool) -> tuple[Tensor, Tensor]:
    r"""$\log Z$ and, if wanted, $\mu$ (otherwise an empty tensor), by the native kernels."""
    flat = flatten(summable(scores, mask, 2), 2)
    log_partition = flat.new_zeros(len(flat))
    mu = torch.zeros_like(flat) if marginals else flat.new_empty(0)
    if flat.numel():
        fault = native.kernels.align_sums(
            flat, flatten(mask, 2), log_partition, mu if marginals else None, torch.get_num_threads()
        )
        _raise_fault(fault, scores)
    return log_partition.reshape(scores.shape[:-2]), mu.reshape(scores.shape) if marginals else mu


@operator("spigot::align_hessian")
@through_host
def _align_hessian(scores: Tensor, mask: Tensor, direction: Tensor) -> Tensor:
    r"""$\nabla^2 \log Z \cdot v$: the derivative of the marginals along a direction."""
    flat = flatten(summable(scores, mask, 2), 2)
    result = torch.zeros_like(flat)
    if flat.numel():
        fault = native.kernels.align_hessian(
            flat, flatten(mask, 2), flatten(direction, 2), result, torch.get_num_threads()
        )
        _raise_fault(fault, scores)
    return result.reshape(scores.shape)


register_sums(_align_sums, _align_hessian, 2)


@operator("spigot::align_sample")
@through_host
def align_sample(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
    """Paths drawn from the last cell back, `(*batch, samples, n, m)`, one for each of the seeds `(*batch, samples)`."""
    samples, parts = seeds.shape[-1], scores.shape[-2:]
    flat, exists, seed = flatten(summable(scores, mask, 2), 2), flatten(mask, 2), flatten(seeds, 1)
    z = flat.new_zeros(len(flat), samples, *parts)
    if flat.numel() == 0 or samples == 0:
        pass
    elif native.serves(scores):
        fault = native.kernels.align_sample(flat, exists, seed, z, torch.get_num_threads())
        if fault is not None and fault[0] == native.kernels.FAULT_INFINITE:
            refuse_infinite(scores.isposinf() & mask, 2, "scores")
            raise hopeless_error(fault[1], tuple(scores.shape[:-2]), WORDS)
        _raise_fault(fault, scores)
    else:
        safe = _checked_cells(scores, mask).reshape(flat.shape)
        refuse_hopeless(_log_partition(safe.double(), exists).isneginf().reshape(scores.shape[:-2]), WORDS)
        z = reference.sample(safe.double(), exists, seed).to(scores.dtype)
    return z.reshape(*scores.shape[:-2], samples, *parts)


@align_sample.register_fake
def _(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
    return scores.new_empty(*scores.shape[:-2], seeds.shape[-1], *scores.shape[-2:])


@operator("spigot::align_k_best")
@through_host
def align_k_best(scores: Tensor, mask: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best paths, `(*batch, k, n, m)`, and which of them there are, `(*batch, k)`."""
    batch, parts = scores.shape[:-2], scores.shape[-2:]
    flat, exists = flatten(scores, 2), flatten(mask, 2)
    z = flat.new_zeros(len(flat), k, *parts)
    count = torch.ones(len(flat), dtype=torch.int64, device=scores.device)
    if flat.numel() == 0 or k == 0:
        pass
    elif native.serves(scores):
        fault = native.kernels.align_k_best(flat, exists, z, count, torch.get_num_threads())
        _raise_fault(fault, scores)
    else:
        refuse_nan(flat, exists, 2)
        found, values = reference.k_best(reference.finite(flat, exists), exists, k)
        _refuse_impossible(values[:, 0], scores)
        z, count = found.to(scores.dtype), values.isfinite().sum(1)
    there = torch.arange(k, device=scores.device) < count.unsqueeze(-1)
    return z.reshape(*batch, k, *parts), there.reshape(*batch, k)


@align_k_best.register_fake
def _(scores: Tensor, mask: Tensor, k: int) -> tuple[Tensor, Tensor]:
    batch = scores.shape[:-2]
    return scores.new_empty(*batch, k, *scores.shape[-2:]), scores.new_empty(*batch, k, dtype=torch.bool)


for _operator in (align_argmax, align_sample, align_k_best):
    batched(_operator)


def _refuse_impossible(values: Tensor, scores: Tensor) -> None:
    if values.isneginf().any():
        raise impossible_error(int(values.isneginf().nonzero()[0]), tuple(scores.shape[:-2]), WORDS, "cells")
