"""How many threads the kernels may use."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
