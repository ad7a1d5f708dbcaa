"""A stage that learns in the steps of another: both losses of the same sentences, read once."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from spigot_nlp.config import Config
from spigot_nlp.models.build import fresh
from spigot_nlp.training.plan import phases
from tests.spigot_nlp.parsing import batch_of, corpus
from tests.spigot_nlp.training.stages import ENCODER, PRUNING, experiment
from tests.spigot_nlp.training.trainings import Training

DATA = corpus(train=8, dev=3)


def tagged(estimator: str = "spigot", **settings: Any) -> Config:
    """Tags beside trees, which graphs read, on one encoder."""
    stages = {
        "tags": {"annotation": "tags", "encoder": "words", "mlp": 8, "data": "trees", "beside": "syntax"} | settings,
        "syntax": {"annotation": "trees", "encoder": "words", "mlp": 8, "freeze": estimator != "pipeline"},
        "semantics": {
            "annotation": "graphs",
            "encoder": "words",
            "mlp": 8,
            "pruning": PRUNING,
            "reads": {"stage": "syntax", "as": "heads", "estimator": estimator},
        },
    }
    return experiment({"encoders": {"words": {"encoder": ENCODER}}, "stages": stages})


def test_the_losses_of_both_are_added_up() -> None:
    parser = fresh(tagged(), DATA.train)
    batch = batch_of(DATA["trees"].train, parser)
    stages = parser.model.stages
    alone = stages["syntax"].loss(batch), stages["tags"].loss(batch)
    torch.testing.assert_close(parser.model.loss(batch, "syntax"), alone[0] + alone[1])
    without = replace(batch, gold={"syntax": batch.gold["syntax"]})
    torch.testing.assert_close(parser.model.loss(without, "syntax"), stages["syntax"].loss(without))


def test_it_has_no_steps_of_its_own_and_learns_all_the_same() -> None:
    config = tagged()
    assert [phase.tasks for phase in phases(config)] == [("syntax", "semantics")]
    assert config.trained == ["tags", "syntax", "semantics"]
    training = Training(fresh(config, DATA.train), DATA)
    before = [p.clone() for p in training.parser.model.stages["tags"].scorer.parameters()]  # pyright: ignore
    steps = training.steps()
    assert {step.task for step in steps} == {"syntax", "semantics"}
    after = training.parser.model.stages["tags"].scorer.parameters()  # pyright: ignore
    assert all(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
    assert "tagging" in steps[-1].dev  # pyright: ignore


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"beside": "syntacs"}, "tags.beside is 'syntacs', which is no other stage; there are syntax, semantics"),
        ({"beside": "tags"}, "which is no other stage"),
        ({"beside": "semantics"}, "both must have data, the same"),
        ({"data": "graphs"}, "both must have data, the same"),
    ],
)
def test_what_cannot_be(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        tagged(**settings)
