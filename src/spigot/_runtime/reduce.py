"""Reductions that leave masked entries out, instead of scoring them with a large negative number."""

import torch
from torch import Tensor

from spigot._runtime.checks import first_part, infinite_error, nan_error, no_mass_error, overflow_error
from spigot._runtime.operators import operator
from spigot._runtime.sums import register_checked


@operator("spigot::checked")
def checked(parts: Tensor, mask: Tensor, event_ndim: int, limit: float = 1.7976931348623157e308) -> Tensor:
    """The parts with zeros outside the mask, after making sure that none inside is NaN, +inf or above the limit.

    An operator of its own, so that the check does not break a compiled graph.
    """
    refuse_nan(parts, mask, event_ndim)
    refuse_infinite(parts.isposinf() & mask, event_ndim, "scores")
    return summable(parts, mask, event_ndim, limit).masked_fill(~mask, 0)


register_checked(checked)


def refuse_nan(parts: Tensor, mask: Tensor, event_ndim: int, what: str = "scores") -> None:
    """Raise if a part that exists is NaN. Looks at values: only for use inside operators."""
    bad = parts.isnan()
    if bad.any() and (bad & mask).any():
        raise nan_error(*first_part(bad & mask, event_ndim), what)


def refuse_infinite(bad: Tensor, event_ndim: int, what: str) -> None:
    """Raise if a part is marked as infinite. Looks at values: only for use inside operators."""
    if bad.any():
        instance, batch, _ = first_part(bad, event_ndim)
        raise infinite_error(instance, batch, what)


def summable(parts: Tensor, mask: Tensor, event_ndim: int, limit: float = 1e290) -> Tensor:
    """Scores that can be added up without an overflow, as sums over all members need them.

    Finite scores above the limit are refused; those below its negative, which have no chance beside any others, count
    as that. Looks at values: only for use inside operators.
    """
    if torch.finfo(parts.dtype).max <= limit or bool((parts.abs() <= limit).all()):
        return parts
    giant = (parts > limit) & parts.isfinite() & mask
    if giant.any():
        instance, batch, part = first_part(giant, event_ndim)
        raise overflow_error(instance, batch, part, float(parts[giant][0]), limit)
    return torch.where((parts < -limit) & parts.isfinite(), -limit, parts)


def refuse_hopeless(bad: Tensor, structure: str) -> None:
    """Raise if an instance is marked as one in which every member scores -inf. Only for use inside operators."""
    if bad.any():
        raise no_mass_error(int(bad.flatten().nonzero()[0]), tuple(bad.shape), structure)


def masked_logsumexp(values: Tensor, mask: Tensor, dim: int) -> Tensor:
    r"""$\log \sum_i \exp v_i$ over unmasked entries; $-\infty$ where there are none.

    Derivatives of every order are finite, also where all entries are masked or $-\infty$, which is where
    `torch.logsumexp` gives NaN gradients.
    """
    values = values.masked_fill(~mask, -torch.inf)
    if values.shape[dim] == 0:
        return values.sum(dim) - torch.inf
    top = values.detach().amax(dim, keepdim=True)
    top = torch.where(top.isfinite(), top, torch.zeros_like(top))
    total = (values - top).exp().sum(dim)
    some = total > 0
    log = torch.where(some, total, torch.ones_like(total)).log() + top.squeeze(dim)
    return torch.where(some, log, torch.full_like(log, -torch.inf))


def centre(direction: Tensor, mask: Tensor, axes: int | tuple[int, ...]) -> Tensor:
    """The direction less its mean along an axis or several, which is what keeps sums along it as they are."""
    inside = torch.where(mask, direction, 0)
    if axes == ():  # a part that stands for itself has nothing to be compared with
        return inside
    mean = inside.sum(axes, keepdim=True) / mask.sum(axes, keepdim=True).clamp(min=1)
    return torch.where(mask, inside - mean, 0)
