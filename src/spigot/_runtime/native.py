"""Whether the compiled kernels are in use; `spigot.kernels` is what others see of it."""

import importlib
import os
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
