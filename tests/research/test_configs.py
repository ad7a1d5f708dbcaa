"""The configurations of experiments."""

from pathlib import Path

import pytest

from spigot_nlp.config import load_config
from spigot_nlp.data import FORMATS
from spigot_nlp.data.formats import guess
from spigot_nlp.training.loop import phases

FOLDER = Path(__file__).parents[2] / "research" / "configs"
CONFIGS = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_each_loads(path: Path) -> None:
    config = load_config(path)
    assert config.name == path.stem
    assert phases(config)
    assert config.data.obtain.endswith(".")
    assert "\n" not in config.data.obtain
    for files in config.data.sets.values():
        for file in filter(None, (*files.train, files.dev, *files.tests.values())):
            assert not Path(file).is_absolute()
            assert (files.format or guess(file)) in FORMATS


@pytest.mark.parametrize("name", ["dm", "psd"])
def test_the_papers_hyper_parameters(name: str) -> None:
    config = load_config(FOLDER / f"{name}.toml")
    assert (config.preset, config.training.batch, config.training.epochs) == ("paper", 1, 30)
    hinge = [config.value(f"semantics.{field}") for field in ("loss", "false_positive", "false_negative")]
    assert hinge == ["hinge", 0.4, 0.6]
    assert (config.value("estimator.eta"), config.value("estimator.max_norm")) == (1.0, None)
    for stage in ("syntax", "semantics"):
        sizes = {"word_dim": 100, "lemma_dim": 50, "tag_dim": 50, "layers": 2, "hidden": 200, "word_dropout": 0.25}
        for field, value in sizes.items():
            assert config.value(f"{stage}.encoder.{field}") == value
    assert config.value("syntax.optimiser.anneal_every") == 5
    assert set(config.data.sets["graphs"].tests) == {"id", "ood"}
