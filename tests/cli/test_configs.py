"""The experiments that come with the project."""

from pathlib import Path

import pytest

from spigot.config import SYSTEMS, System, load_config, shipped_configs
from spigot.data.formats import FORMATS, guess
from spigot.training.loop import phases

CONFIGS = list(shipped_configs().values())


def test_there_are_all():
    names = {path.stem for path in CONFIGS}
    assert names >= {"synthetic", "open-propbank", "open-dm", "open-dm-ewt", "dm", "psd"}
    assert names >= {"synthetic-sentiment", "sst", "latent-sst", "listops"}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_each_loads(path):
    config = load_config(path)
    assert config.name == path.stem
    assert phases(config)
    if config.data.source == "files":
        assert config.data.obtain.endswith(".")
        assert "\n" not in config.data.obtain
        for files in (config.data.trees, config.data.graphs, config.data.labels):
            for file in filter(None, (*files.train, files.dev, *files.tests.values())):
                assert not Path(file).is_absolute()
                assert (files.format or guess(file)) in FORMATS


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
@pytest.mark.parametrize("system", System.__args__)
def test_each_stands_for_every_system_of_its_task(path, system):
    task = load_config(path).task
    overrides = {"system": system, **({"training.pretrain": 1} if system == "pipeline" else {})}
    refused = {"sst": "needs marginals", "synthetic-sentiment": "needs marginals"} if system == "attention" else {}
    if system == "pipeline" and load_config(path).is_latent:
        refused = {path.stem: "never trains a latent parser"}
    if system not in SYSTEMS[task]:
        refused = {path.stem: "is none of task"}
    if path.stem in refused:
        with pytest.raises(ValueError, match=refused[path.stem]):
            load_config(path, overrides)
    else:
        assert load_config(path, overrides).system == system


@pytest.mark.parametrize("name", ["dm", "psd"])
def test_the_papers_hyper_parameters(name):
    config = load_config(name)
    assert (config.preset, config.training.batch, config.training.epochs) == ("paper", 1, 30)
    assert (config.semantics.loss, config.semantics.false_positive, config.semantics.false_negative) == (
        "hinge",
        0.4,
        0.6,
    )
    assert (config.estimator.eta, config.estimator.max_norm) == (1.0, None)
    for encoder in (config.syntax.encoder, config.semantics.encoder):
        assert (encoder.word_dim, encoder.lemma_dim, encoder.tag_dim) == (100, 50, 50)
        assert (encoder.layers, encoder.hidden, encoder.word_dropout) == (2, 200, 0.25)
    assert config.syntax.optimiser.anneal_every == 5
    assert set(config.data.graphs.tests) == {"id", "ood"}
