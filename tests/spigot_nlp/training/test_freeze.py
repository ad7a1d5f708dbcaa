"""A pipeline whose parser goes on learning: as many passes as in joint training, and nothing through the wire."""

from typing import Any

import pytest
import torch

from spigot_nlp.config import make_config
from spigot_nlp.training.plan import phases
from tests.spigot_nlp.parsing import corpus, parser
from tests.spigot_nlp.training.trainings import Training

DATA = corpus(train=8, dev=3)


def trained(system: str, **overrides: Any) -> Training:
    settings = {"semantics__pruning__learned": False, "training__pretrain": 0, **overrides}
    training = Training(parser(system, DATA, **settings), DATA)
    training.steps()
    return training


def test_it_is_joint_training_without_a_gradient_on_the_wire() -> None:
    learning = trained("pipeline", syntax__freeze=False)
    joint = trained("spigot", training__warm_up=99)
    assert learning.run.history == joint.run.history
    for one, other in zip(learning.parser.model.parameters(), joint.parser.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_stage_that_gradients_reach_is_never_frozen() -> None:
    plain, told = trained("ste"), trained("ste", syntax__freeze=False)
    assert plain.run.history == told.run.history


def test_the_plan() -> None:
    pipeline = {"system": "pipeline", "training": {"epochs": 4}, "semantics": {"pruning": {"learned": False}}}

    def plan(**settings: Any) -> list[tuple[str, int]]:
        return [(phase.name, phase.epochs) for phase in phases(make_config({**pipeline, **settings}))]

    assert plan() == plan(syntax={"freeze": True}) == [("syntax", 4), ("semantics", 4)]
    assert plan(syntax={"freeze": False}) == plan(stages={"syntax": {"freeze": False}}) == [("joint", 4)]
    longer = {"epochs": 4, "pretrain": 2}
    assert plan(syntax={"freeze": False}, training=longer) == [("syntax", 2), ("joint", 4)]
    with pytest.raises(ValueError, match=r"or let it learn on with syntax\.freeze = false"):
        plan(training={"epochs": 4, "pretrain": 0})


def test_a_shared_encoder_needs_no_frozen_stage() -> None:
    stages = {
        "syntax": {"annotation": "trees", "encoder": "words", "freeze": False},
        "semantics": {
            "annotation": "graphs",
            "encoder": "words",
            "reads": {"stage": "syntax", "as": "heads", "estimator": "pipeline"},
        },
    }
    config = make_config({"encoders": {"words": {}}, "stages": stages})
    assert config.trained == ["syntax", "semantics"]
    assert (config.reached("semantics"), config.reached("syntax")) == (["semantics"], ["syntax"])
