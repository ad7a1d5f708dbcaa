"""How many threads torch and the kernels may use, and for how long."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock


@dataclass
class _Alone:
    """The blocks in which kernels are alone: how many there are now, and the threads that the first of them found."""

    lock: Lock = field(default_factory=Lock)
    blocks: int = 0
    usual: int = 1

    def forget(self) -> None:
        """What a copy of the process does, in which no other thread is left to end a block."""
        self.lock, self.blocks, self.usual = Lock(), 0, 1


_alone = _Alone()
_of_kernels = ContextVar[int]("threads of kernels", default=0)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone.forget)


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

    Several threads of Python may be in such blocks at once. One that begins meanwhile finds that torch has one thread,
    and would take that for how it is meant to be.

    Example:
        >>> import torch
        >>> with use_threads(2), kernels_alone():
        ...     kernel_threads(), torch.get_num_threads()
        (2, 1)
    """
    import torch

    with _alone.lock:
        found = kernel_threads()
        if not _alone.blocks:
            _alone.usual = found
        usual = found if found > 1 else _alone.usual
        _alone.blocks += 1
    token = _of_kernels.set(usual)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        _of_kernels.reset(token)
        with _alone.lock:
            _alone.blocks -= 1
            torch.set_num_threads(1 if _of_kernels.get() else usual)  # it may be a block inside another
