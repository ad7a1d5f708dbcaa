"""A training goes on in the precision it was begun in, unless another is asked for."""

from pathlib import Path

import pytest
from safetensors.torch import load_file

from spigot_nlp.config import make_config
from spigot_nlp.encoders import Precision
from spigot_nlp.models import checkpoint
from spigot_nlp.training import resume, train
from spigot_nlp.training.state import saved_precision
from tests.spigot_nlp.training.test_run import finished
from tests.spigot_nlp.training.trainings import begin, go_on

CONFIG = make_config(
    {
        "data": {"source": "synthetic", "tags": "columns", "synthetic": {"train": 8, "dev": 2, "test": 2}},
        "stages": {"syntax": {"annotation": "trees", "mlp": 8, "encoder": {"hidden": 8, "layers": 1, "word_dim": 8}}},
        "training": {"epochs": 2, "batch": 2, "save_seconds": 0.0},
    }
)
HALF: Precision = "bfloat16"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training in half precision that nobody interrupted."""
    run = tmp_path_factory.mktemp("half") / "run"
    train(CONFIG, run, precision=HALF)
    return run


def cut(run: Path, precision: Precision, steps: int = 3) -> None:
    begin(CONFIG, run, steps, precision=precision)


def test_a_training_goes_on_as_it_was_begun(whole: Path, tmp_path: Path) -> None:
    cut(tmp_path, HALF)
    assert saved_precision(tmp_path) == HALF
    resume(tmp_path)
    assert finished(tmp_path) == finished(whole)
    assert finished(whole)["about"]["precision"] == HALF


def test_another_precision_can_be_asked_for_and_is_then_its_own(whole: Path, tmp_path: Path) -> None:
    cut(tmp_path, HALF)
    go_on(tmp_path, 1, precision="float32")
    assert saved_precision(tmp_path) == "float32"
    resume(tmp_path)
    one, other = (load_file(run / checkpoint.MODEL) for run in (tmp_path, whole))
    assert not all((one[name] == value).all() for name, value in other.items())


def test_a_state_that_says_nonsense_is_damaged(tmp_path: Path) -> None:
    checkpoint.write_tensors(tmp_path / checkpoint.STATE, {})
    with pytest.raises(ValueError, match="does not say the precision"):
        saved_precision(tmp_path)
    checkpoint.write_tensors(tmp_path / checkpoint.STATE, {}, [3])  # pyright: ignore[reportArgumentType] (on purpose)
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors is not a whole checkpoint"):
        saved_precision(tmp_path)
