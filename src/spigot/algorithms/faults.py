"""What a kernel found wrong, turned into the library's errors."""

from torch import Tensor

from spigot import native
from spigot.algorithms.checks import headless_error, impossible_error, infinite_error, nan_error

Fault = tuple[int, int, int, int, int]
"""Kind, flat instance, and up to three indices of a part."""

TREES = {
    "projective": "projective tree",
    "projective-single": "projective tree with a single root",
    "nonprojective": "tree",
    "nonprojective-single": "tree with a single root",
}


def raise_fault(fault: Fault | None, parts: Tensor, event_ndim: int, what: str, structure: str = "structure") -> None:
    """Raise the error that a kernel reported, if any."""
    if fault is None:
        return
    kind, instance, *part = fault
    batch = tuple(parts.shape[: parts.ndim - event_ndim])
    assert native.kernels is not None
    if kind == native.kernels.FAULT_NAN:
        raise nan_error(instance, batch, tuple(part[:event_ndim]), what)
    if kind == native.kernels.FAULT_HEADLESS:
        raise headless_error(instance, batch, part[0])
    if kind == native.kernels.FAULT_INFINITE:
        raise infinite_error(instance, batch)
    raise impossible_error(instance, batch, structure)


def raise_tree_fault(fault: Fault | None, arcs: Tensor, kind: str) -> None:
    """As `raise_fault`, for trees."""
    raise_fault(fault, arcs, 2, "scores", TREES[kind])
