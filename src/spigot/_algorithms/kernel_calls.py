"""Calling the native kernels: batch axes flattened on the way in, faults turned into errors on the way out."""

from torch import Tensor

from spigot._runtime import native
from spigot._runtime.checks import headless_error, impossible_error, infinite_error, nan_error

Fault = tuple[int, int, int, int, int]
"""What a kernel found wrong: its kind, the flat instance, and up to three indices of a part."""


def flatten(parts: Tensor, event_ndim: int) -> Tensor:
    """The tensor as kernels take it: one batch axis, contiguous."""
    shape = parts.shape[parts.ndim - event_ndim :]
    batch = parts.shape[: parts.ndim - event_ndim].numel()
    return parts.reshape(batch, *shape).contiguous()


def raise_fault(fault: Fault | None, parts: Tensor, event_ndim: int, what: str, structure: str = "structure") -> None:
    """Raise the error that a kernel reported, if any."""
    if fault is None:
        return
    kind, instance, *part = fault
    batch = tuple(parts.shape[: parts.ndim - event_ndim])
    if kind == native.kernels.FAULT_NAN:
        raise nan_error(instance, batch, tuple(part[:event_ndim]), what)
    if kind == native.kernels.FAULT_HEADLESS:
        raise headless_error(instance, batch, part[0])
    if kind == native.kernels.FAULT_INFINITE:
        raise infinite_error(instance, batch, what)
    raise impossible_error(instance, batch, structure)
