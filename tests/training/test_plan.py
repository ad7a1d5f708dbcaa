"""What is trained, and in what order."""

from typing import Any

import pytest

from spigot.training.plan import MEASURES, Phase, phases
from tests.parsing import CLASSIFIERS, THROUGH, classification, experiment

TREES = {"classifier__structure": "trees"}


def names(system: str, **overrides: Any) -> list[str]:
    return [phase.name for phase in phases(classification(system, **overrides))]


@pytest.mark.parametrize("system", THROUGH)
def test_the_parser_is_pretrained_and_then_both_are_trained(system: str) -> None:
    assert phases(classification(system, training__pretrain=3, training__epochs=5)) == [
        Phase("pruner", ("pruner",), 1),
        Phase("semantics", ("semantics",), 3, "LF"),
        Phase("joint", ("semantics", "classifier"), 5, "accuracy"),
    ]
    assert phases(classification(system, **TREES)) == [
        Phase("syntax", ("syntax",), 1, "UAS"),
        Phase("joint", ("syntax", "classifier"), 2, "accuracy"),
    ]
    assert names(system, training__pretrain=0) == ["pruner", "joint"]


def test_a_pipeline_never_comes_back_to_its_parser() -> None:
    plan = phases(classification("pipeline"))
    assert [(phase.name, phase.tasks) for phase in plan] == [
        ("pruner", ("pruner",)),
        ("semantics", ("semantics",)),
        ("classifier", ("classifier",)),
    ]
    assert plan[-1].measure == "accuracy"


@pytest.mark.parametrize("structure", ["gold", "left", "right", "random"])
@pytest.mark.parametrize("system", CLASSIFIERS)
def test_without_a_parser_there_is_the_classifier_alone(system: str, structure: str) -> None:
    assert phases(classification(system, classifier__structure=structure)) == [
        Phase("classifier", ("classifier",), 2, "accuracy")
    ]
    assert names("bilstm") == ["classifier"]


@pytest.mark.parametrize("structure", ["graphs", "trees"])
@pytest.mark.parametrize("system", THROUGH)
def test_a_latent_parser_is_trained_by_the_labels_alone(system: str, structure: str) -> None:
    latent = classification(system, classifier__latent=True, classifier__structure=structure, training__pretrain=4)
    assert phases(latent) == [Phase("latent", ("classifier",), 2, "accuracy")]
    assert latent.is_joint


@pytest.mark.parametrize("system", ["pipeline", "spigot"])
def test_a_parser_from_another_run_brings_its_pruner_along(system: str) -> None:
    last = "classifier" if system == "pipeline" else "joint"
    assert names(system, training__semantics_from="run") == [last]
    assert names(system, training__semantics_from="run", training__pretrain=0) == [last]
    assert names(system, training__syntax_from="run", **TREES) == [last]
    # A parser of the other kind is of no use.
    assert names(system, training__syntax_from="run") == ["pruner", "semantics", last]
    assert names(system, training__semantics_from="run", **TREES) == ["syntax", last]


def test_without_a_learned_pruner_there_is_none_to_train() -> None:
    assert names("spigot", semantics__pruning__learned=False) == ["semantics", "joint"]
    assert names("spigot", **TREES, semantics__pruning__learned=True) == ["syntax", "joint"]


def test_the_other_task_is_planned_as_before() -> None:
    assert [phase.tasks for phase in phases(experiment("spigot"))] == [("pruner",), ("syntax", "semantics")]
    taken = phases(experiment("spigot", training__semantics_from="run"))
    assert [phase.name for phase in taken] == ["pruner", "joint"]  # its semantic parser is the end model


def test_each_task_has_its_measure() -> None:
    assert MEASURES == {"syntax": "UAS", "semantics": "LF", "classifier": "accuracy"}
