"""A small experiment, and a run of it, for all commands."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from spigot_nlp import cli

TINY = """
name = "tiny"
[data]
source = "synthetic"
tags = "columns"
synthetic = { train = 30, dev = 8, test = 8 }
[syntax]
mlp = 8
encoder = { word_dim = 8, lemma_dim = 4, tag_dim = 4, hidden = 8 }
[semantics]
mlp = 8
loss = "log"
encoder = { word_dim = 8, lemma_dim = 4, tag_dim = 4, hidden = 8 }
[semantics.pruning]
epochs = 1
rare_role = 1
encoder = { word_dim = 8, lemma_dim = 4, tag_dim = 4, hidden = 8 }
[classifier]
mlp = 8
encoder = { word_dim = 8, lemma_dim = 4, tag_dim = 4, hidden = 8, input_dropout = 0.0 }
[training]
batch = 4
epochs = 2
"""


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Nothing here is worth dividing, and threads that wait for each other on a busy machine take very long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration that trains in about a second."""
    path = tmp_path_factory.mktemp("configs") / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def trained(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with both parsers. Tests may read it, not change it."""
    return _train(tiny, tmp_path_factory, "spigot")


@pytest.fixture(scope="session")
def trained_without_syntax(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with a semantic parser only."""
    return _train(tiny, tmp_path_factory, "neurboparser")


@pytest.fixture(scope="session")
def classifier(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a classifier that reads the graphs of a parser, with a tagger."""
    settings = ["--data.tags", "predicted", "--training.pretrain", "4", "--training.epochs", "1"]
    return _train(tiny, tmp_path_factory, "spigot", "--task", "classification", *settings)


@pytest.fixture(scope="session")
def latent(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a classifier with latent trees."""
    settings = ["--classifier.structure", "trees", "--classifier.latent", "true", "--training.epochs", "3"]
    return _train(tiny, tmp_path_factory, "ste", "--task", "classification", *settings)


@pytest.fixture(scope="session")
def bilstm(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a classifier that reads no structure."""
    return _train(tiny, tmp_path_factory, "bilstm", "--task", "classification", "--training.epochs", "1")


@pytest.fixture(scope="session")
def chains(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a classifier that reads chains, which nobody learns."""
    settings = ["--classifier.structure", "right", "--training.epochs", "1"]
    return _train(tiny, tmp_path_factory, "pipeline", "--task", "classification", *settings)


@pytest.fixture(scope="session")
def gold_reader(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a classifier that reads the right trees."""
    settings = ["--classifier.structure", "gold", "--training.epochs", "1"]
    return _train(tiny, tmp_path_factory, "pipeline", "--task", "classification", *settings)


def _train(config: Path, factory: pytest.TempPathFactory, system: str, *settings: str) -> Path:
    out = factory.mktemp("runs") / system
    rates = ["--syntax.optimiser.learning_rate", "0.02", "--semantics.optimiser.learning_rate", "0.02"]
    rates += ["--semantics.pruning.optimiser.learning_rate", "0.02"]
    if "--training.epochs" not in settings:
        settings = (*settings, "--training.epochs", "5")  # enough to find arcs
    words = ["train", str(config), "--out", str(out), "--system", system, *rates, *settings, "--threads", "1"]
    assert cli.main(words) == 0
    return out
