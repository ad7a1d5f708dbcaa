"""Compiled code, for packages that bring operators of their own.

Every operation exists twice: as a C++ kernel and in plain torch. The kernels serve when the extension was built, also
tensors on an accelerator where the algorithm goes step by step and a copy to the host is the quicker way; torch serves
everything else.

Example:
    >>> import spigot
    >>> isinstance(spigot.kernels.available, bool)
    True
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spigot._runtime import native
from spigot._runtime.native import kernel_threads, serves, status, use_kernel_threads

if TYPE_CHECKING:
    from torch._library.custom_ops import CustomOpDef

    available: bool
    """True if the C++ kernels were built and are not switched off by `SPIGOT_NATIVE=0`."""

    compiled: Any
    """The kernels by name, those of encoders and taggers among them; `None` where `available` is false.

    They take arrays that are contiguous, write into others, and check nothing that would cost time: whoever calls one
    answers for shapes, types and ranges, and has the same in torch for where there are none.
    """
else:

    def __getattr__(name: str) -> object:
        """What tests may switch."""
        if name == "available":
            return native.available
        if name == "compiled":
            return native.kernels
        raise AttributeError(f"module 'spigot.kernels' has no attribute {name!r}")


__all__ = ["available", "compiled", "kernel_threads", "operator", "serves", "status", "use_kernel_threads"]


def operator(name: str) -> "Callable[[Callable[..., object]], CustomOpDef]":
    """Register a function as an operator of torch, one that changes none of its arguments.

    As `torch.library.custom_op`, but torch's compiler is not imported, which takes seconds, before somebody compiles.

    Args:
        name: The operator, as `"namespace::name"`.

    Example:
        >>> import torch
        >>> @operator("spigot::doubled_here")
        ... def doubled(x: torch.Tensor) -> torch.Tensor:
        ...     return x + x
        >>> doubled(torch.ones(2))
        tensor([2., 2.])
    """
    from spigot._runtime.operators import operator as registered

    return registered(name)
