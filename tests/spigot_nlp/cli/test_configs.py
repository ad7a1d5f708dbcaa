"""The experiments that come with the project."""

from pathlib import Path

import pytest

from spigot_nlp.config import load_config, shipped_configs, systems
from spigot_nlp.config.presets import UNWIRED, multitask_name
from spigot_nlp.data.formats import FORMATS, guess
from spigot_nlp.stages.graphs import GraphSettings
from spigot_nlp.training.plan import phases

CONFIGS = list(shipped_configs().values())


def test_there_are_all():
    names = {path.stem for path in CONFIGS}
    assert names >= {"synthetic", "synthetic-sentiment", "english", "english-joint", "english-sentiment"}
    assert names >= {"synthetic-tags", "synthetic-three-stages", "synthetic-two-graphs", "synthetic-multitask"}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_each_loads(path):
    config = load_config(path)
    assert config.name == path.stem
    assert phases(config)
    if config.data.source == "files":
        assert config.data.obtain.endswith(".")
        assert "\n" not in config.data.obtain
        for files in config.data.sets.values():
            for file in filter(None, (*files.train, files.dev, *files.tests.values())):
                assert not Path(file).is_absolute()
                assert (files.format or guess(file)) in FORMATS


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
@pytest.mark.parametrize("system", systems())
def test_each_stands_for_every_system_of_its_task(path, system):
    config = load_config(path)
    overrides = {"system": system, **({"training.pretrain": 1} if system == "pipeline" else {})}
    refused = ""
    if system == "attention" and any(type(config.stages[wire.stage]) is GraphSettings for _, wire in config.wires):
        refused = "needs marginals"
    if system == "pipeline" and any(stage.latent for stage in config.stages.values()):
        refused = "never trains (a|the) latent"
    if multitask_name({name: stage.model_dump() for name, stage in config.stages.items()}) and system not in UNWIRED:
        refused = "says what stands on wires"
    if system not in systems(config.task):
        refused = "is none of task"
    if refused:
        with pytest.raises(ValueError, match=refused):
            load_config(path, overrides)
    else:
        chosen = load_config(path, overrides)
        assert chosen.system == system
        assert {wire.estimator.name for _, wire in chosen.wires} <= {system}
