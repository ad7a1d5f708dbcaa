"""How many threads torch and the kernels may use, and for how long."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_of_kernels = ContextVar[int]("threads of kernels", default=0)


def cores() -> int:
    """How many cores this process may use.

    Example:
        >>> cores() >= 1
        True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def kernel_threads() -> int:
    """How many threads a kernel may use: as many as torch, unless kernels have them for themselves.

    Example:
        >>> with use_threads(2):
        ...     kernel_threads()
        2
    """
    import torch

    return _of_kernels.get() or torch.get_num_threads()


@contextmanager
def kernels_alone() -> Iterator[None]:
    """Give kernels the threads that torch has, and torch one.

    Where kernels do all that is worth dividing, the threads of torch gain nothing: after each of its small steps they
    spin for a while in wait of the next, and those of the kernels have to wait for a core.

    Example:
        >>> import torch
        >>> with use_threads(2), kernels_alone():
        ...     kernel_threads(), torch.get_num_threads()
        (2, 1)
    """
    token = _of_kernels.set(kernel_threads())
    try:
        with use_threads(1):
            yield
    finally:
        _of_kernels.reset(token)
