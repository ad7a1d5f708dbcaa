"""Python's collector of garbage, told when there is none to be found."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """A block in which much is made and nothing thrown away, such as modules and models: nobody looks for garbage.

    To look through all that torch has made takes a tenth of a second, and it would be done again and again.

    Example:
        >>> with uncollected():
        ...     gc.isenabled()
        False
        >>> gc.isenabled()
        True
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
