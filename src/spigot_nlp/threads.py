"""Where torch computes, and with how many threads; torch itself is loaded when it is asked for."""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from spigot.kernels import kernel_threads, use_kernel_threads

if TYPE_CHECKING:
    import torch


def find_device(name: "str | torch.device", called: str = "device") -> "torch.device":
    """The device of this name, if this machine has it.

    Args:
        name: As torch calls it, or `auto` for the best there is. What is a device already is taken as it is.
        called: What an error calls the name.

    Raises:
        ValueError: If there is no such device.

    Example:
        >>> find_device("cpu")
        device(type='cpu')
        >>> find_device("abacus", "--device")
        Traceback (most recent call last):
        ValueError: --device is abacus; it must be cpu, cuda, cuda:1, mps or auto.
    """
    import torch

    if isinstance(name, torch.device):
        return name
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if not isinstance(name, str):
        raise TypeError(f"{called} is {name!r}; it must be a name, such as cpu or cuda, or a device of torch.")
    if name == "auto":
        return torch.device(next(kind for kind, found in there.items() if found))
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in there:
        raise ValueError(f"{called} is {name}; it must be cpu, cuda, cuda:1, mps or auto.")
    if not there[device.type]:
        raise ValueError(f"{called} is {name}, and torch finds none here; use cpu.")
    count = torch.cuda.device_count() if device.type == "cuda" else 1
    if (device.index or 0) >= count:
        raise ValueError(f"{called} is {name}, and torch finds {count} here, counted from 0; use {device.type}.")
    return device


_LOADED_BY = os.getpid()


def cores() -> int:
    """How many cores this process may use.

    Example:
        >>> cores() >= 1
        True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_forked() -> bool:
    """Whether this process was forked off one that had loaded this: threads of torch were not forked with it."""
    return os.getpid() != _LOADED_BY


@contextmanager
def use_threads(threads: int | None) -> Iterator[None]:
    """Let torch use so many threads, and afterwards as many as before.

    Args:
        threads: How many. By default as many as there are cores, but no more than four: most tensors are too small to
            be worth dividing further. Processes on one machine divide its cores between them.

    Example:
        >>> import torch
        >>> with use_threads(1):
        ...     torch.get_num_threads()
        1
    """
    import torch

    if threads is None:
        threads = max(1, min(4, cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))
    if threads < 1:
        raise ValueError(f"threads is {threads}; it must be at least 1.")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def own_threads(threads: int) -> Iterator[None]:
    """Let torch use so many threads for whoever is in this block: one thread of Python, and no other.

    What `use_threads` says holds for all of them, so that those which begin in such a block keep its number for good.
    Where the threads of torch cannot be had (they are not those of OpenMP), nothing changes.

    Args:
        threads: How many.

    Example:
        >>> import torch
        >>> with use_threads(2), own_threads(1):
        ...     torch.get_num_threads() in (1, 2)
        True
    """
    import torch

    before, openmp = torch.get_num_threads(), _openmp()  # in this order: torch sets the number when it is first asked
    if openmp is None:
        yield
        return
    openmp(threads)
    products = _products()
    held = products(threads)
    try:
        yield
    finally:
        openmp(before)
        products(held)


@contextmanager
def kernels_alone() -> Iterator[None]:
    """Give kernels the threads that torch has here, and torch one.

    Where kernels do all that is worth dividing, the threads of torch gain nothing: after each of its small steps they
    spin for a while in wait of the next, and those of the kernels have to wait for a core.

    Example:
        >>> with use_threads(2), kernels_alone():
        ...     kernel_threads()
        2
    """
    with use_kernel_threads(kernel_threads()), own_threads(1):
        yield


@cache
def _openmp() -> Callable[[int], object] | None:
    """What tells OpenMP, if torch divides its work by that, how many threads the caller may use."""
    try:
        found = ctypes.CDLL(None).omp_set_num_threads
    except (AttributeError, OSError, TypeError):  # elsewhere there is no such name, or no way to ask for one
        return None
    found.argtypes, found.restype = [ctypes.c_int], None
    return found


@cache
def _products() -> Callable[[int], int]:
    """The same for products of matrices where torch has MKL, whose number is its own; it gives the one before."""
    import torch

    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        return library.MKL_Set_Num_Threads_Local
    except (AttributeError, OSError):
        return lambda threads: threads
