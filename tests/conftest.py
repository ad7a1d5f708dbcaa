"""Settings shared by all tests: seeds and hypothesis."""

import getpass
import os
import tempfile
from pathlib import Path

import hypothesis
import pytest
import torch

# What torch.compile builds for one instruction set is not valid for another, and its own folder mixes them.
_COMPILED = f"torchinductor_{getpass.getuser()}_{torch.backends.cpu.get_cpu_capability()}"
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(Path(tempfile.gettempdir()) / _COMPILED))

hypothesis.settings.register_profile("spigot", deadline=None, derandomize=True, max_examples=30, database=None)
hypothesis.settings.load_profile("spigot")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first: one that begins last would keep one core busy and leave the other idle."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
