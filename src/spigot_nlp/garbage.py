"""Python's garbage collector, told when there is none to be found."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """A block in which much is made and nothing thrown away, such as modules and models: nobody looks for garbage.

    To look through all that torch has made takes a tenth of a second, and it would be done again and again.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@contextmanager
def gc_frozen() -> Iterator[None]:
    """A block in which the collector looks at what is made in it, and not again and again at a loaded model."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
