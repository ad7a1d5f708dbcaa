"""The plain torch behind the kernels, asked for by public verbs."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def without_kernels() -> Iterator[None]:
    """As if the extension had not been built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spigot._runtime.native.available", False)
        yield
