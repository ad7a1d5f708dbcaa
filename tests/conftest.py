"""Settings shared by all tests: seeds and hypothesis."""

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("spigot", deadline=None, derandomize=True, max_examples=30, database=None)
hypothesis.settings.load_profile("spigot")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
