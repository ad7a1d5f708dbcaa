"""Memory that a training gives back only to take it again."""

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as mallopt(3) numbers them
_LARGE = 1 << 30
_CHOICES: tuple[str, ...] = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES", "LD_PRELOAD")
"""Variables by which a user chooses how memory is managed, or who manages it."""


def keep_freed_memory() -> bool:
    """Has this process keep what it frees, up to a gigabyte, where the C library is that of GNU.

    Every step of a training frees the large tensors of the one before, and takes as many. The C library hands such
    pieces back to the system, which must fill each page with zeros before it gives it out again: a seventh of a step.
    A user's own choice stands.

    Returns:
        Whether it does now.

    Example:
        >>> keep_freed_memory() in (True, False)
        True
    """
    if not sys.platform.startswith("linux") or any(os.environ.get(name) for name in _CHOICES):
        return False
    choose = getattr(ctypes.CDLL(None), "mallopt", None)
    return choose is not None and all(choose(which, _LARGE) for which in (_TRIM_THRESHOLD, _MMAP_THRESHOLD))
