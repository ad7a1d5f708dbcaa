r"""What follows from $\log Z$ and $\mu$, whatever the structure: of $p(z) \propto \exp(z^\top s)$."""

from typing import Any

import torch
from torch import Generator, Tensor

from spigot._runtime.checks import check_parts
from spigot._runtime.precision import to_float64, upcast_half


@upcast_half
def log_prob(structure: Any, scores: Tensor, z: Tensor, mask: Tensor | None) -> Tensor:
    _check_same(z, scores, "z")
    return torch.where(z != 0, scores * z, 0).sum(_axes(structure)) - structure.log_partition(scores, mask)


@upcast_half
def entropy(structure: Any, scores: Tensor, mask: Tensor | None) -> Tensor:
    mask = check_parts(scores, mask, structure.event_ndim)
    wide = to_float64(scores)
    finite = torch.where(wide.isfinite(), wide, 0)  # -inf has no mass; NaN inside the mask is refused below
    value = structure.log_partition(wide, mask) - (structure.marginals(wide, mask) * finite).sum(_axes(structure))
    return value.clamp(min=0).to(scores.dtype)


@upcast_half
def kl(structure: Any, scores: Tensor, others: Tensor, mask: Tensor | None) -> Tensor:
    _check_same(others, scores, "others")
    mask = check_parts(scores, mask, structure.event_ndim)
    check_parts(others, mask, structure.event_ndim, "others")
    s, t = to_float64(scores), to_float64(others)
    mu = structure.marginals(s, mask)
    apart = torch.where(mu > 0, mu * torch.where(mu > 0, s - t, 0), 0).sum(_axes(structure))
    value = structure.log_partition(t, mask) - structure.log_partition(s, mask) + apart
    return value.clamp(min=0).to(scores.dtype)


def log_count(structure: Any, mask: Tensor) -> Tensor:
    if not isinstance(mask, Tensor):
        raise TypeError(
            f"mask is {mask!r}; to count members it must be a tensor that says which parts exist, such as "
            "structure.mask(lengths)."
        )
    return structure.log_partition(to_float64(torch.zeros(mask.shape, device=mask.device)), mask)


def random_seeds(structure: Any, scores: Tensor, samples: int, generator: Generator | None) -> Tensor:
    """A seed for each draw and instance, from a generator or torch's own."""
    if not isinstance(samples, int) or samples < 0:
        raise ValueError(f"samples is {samples!r}; it must be a whole number, zero or more.")
    limits = torch.iinfo(torch.int64)
    where = scores.device if generator is None else generator.device
    shape = (samples, *scores.shape[: scores.ndim - structure.event_ndim])
    if generator is None:  # the other form does not take sizes that a compiler leaves open
        seeds = torch.randint(limits.min, limits.max, shape, device=where)
    else:
        seeds = torch.randint(limits.min, limits.max, shape, generator=generator, device=where)
    return seeds.to(scores.device)


def _axes(structure: Any) -> tuple[int, ...]:
    return tuple(range(-structure.event_ndim, 0))


def _check_same(values: Tensor, scores: Tensor, what: str) -> None:
    if values.shape != scores.shape:
        shapes = f"{what} has shape {tuple(values.shape)} and scores {tuple(scores.shape)}"
        raise ValueError(f"{shapes}; they must be equal.")
