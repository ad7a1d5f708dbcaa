"""Tiny trainings take the steps that they took, and go on from where they were killed."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.golden import stored, trainings

Trained = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(stored.read_text(stored.FOLDER / "trainings.json.xz"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Each training once."""
    return cache(lambda name: trainings.train(name, tmp_path_factory.mktemp("runs") / "run"))


@pytest.mark.parametrize("name", trainings.TRAININGS)
def test_training(name: str, golden: dict[str, Any], trained: Trained) -> None:
    said = trainings.differences(trained(name), golden[name])
    assert not said, "\n".join(said)


@pytest.mark.slow
def test_a_training_that_is_killed(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Going on, it ends as one that was not: to the last bit, since both run on one processor."""
    found = trainings.train_with_a_kill("joint", tmp_path_factory.mktemp("killed") / "run", after=25)
    assert found == trained("joint")
