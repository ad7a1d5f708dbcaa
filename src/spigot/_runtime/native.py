"""Whether the compiled kernels are in use, and how many threads they may use; `spigot.kernels` shows both."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

kernels: Any  # the extension module, or None where it was not built
try:
    kernels = importlib.import_module("spigot._native")
except ImportError:
    kernels = None

if os.environ.get("SPIGOT_NATIVE", "1") == "0":
    kernels = None

available: bool = kernels is not None
"""True if the C++ kernels were built and are not switched off by `SPIGOT_NATIVE=0`."""


def status() -> str:
    """One line for people: which implementation runs, and what to do about it."""
    if kernels is not None:
        return f"native kernels in use ({kernels.instruction_set()})"
    if os.environ.get("SPIGOT_NATIVE", "1") == "0":
        return "native kernels switched off by SPIGOT_NATIVE=0; everything runs through torch"
    return (
        "native kernels not built (no C++ compiler, or no headers of Python, when it was installed); everything runs "
        "through torch, more slowly. Install a C++17 compiler and the headers, and reinstall torch-spigot to get them."
    )


def serves(*tensors: "torch.Tensor") -> bool:
    """Whether the kernels take these tensors."""
    return available and all(tensor.device.type == "cpu" for tensor in tensors)


def prefers_host(device: "torch.device") -> bool:
    """Whether tensors on this device had better visit the kernels on the host than stay where they are."""
    return available and device.type != "cpu"


_of_kernels = ContextVar[int]("threads of kernels", default=0)


def kernel_threads() -> int:
    """How many threads a kernel may use: as many as torch, unless kernels have them for themselves.

    Example:
        >>> with use_kernel_threads(2):
        ...     kernel_threads()
        2
    """
    import torch

    return _of_kernels.get() or torch.get_num_threads()


@contextmanager
def use_kernel_threads(threads: int) -> Iterator[None]:
    """Let kernels use so many threads in this block, whatever torch uses.

    Args:
        threads: How many. It holds for the thread of Python that is in the block, and no other.

    Example:
        >>> with use_kernel_threads(3), use_kernel_threads(2):
        ...     kernel_threads()
        2
    """
    token = _of_kernels.set(threads)
    try:
        yield
    finally:
        _of_kernels.reset(token)
