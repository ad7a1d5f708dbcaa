"""What is trained, and in what order."""

from typing import Any

import pytest

from spigot_nlp.config import Config, make_config
from spigot_nlp.corpora.corpus import Corpus
from spigot_nlp.training.plan import Phase, phases
from tests.spigot_nlp.parsing import ALL_SYSTEMS, CLASSIFIERS, THROUGH, classification, experiment, review_corpus

DATA = review_corpus(4, 2)
TREES = {"classifier__structure": "trees"}
PRUNER = Phase("semantics.pruner", ("semantics.pruner",), 1)


def plan(config: Config, data: Corpus = DATA) -> list[Phase]:
    return phases(config)


def names(system: str, **overrides: Any) -> list[str]:
    return [phase.name for phase in plan(classification(system, **overrides))]


@pytest.mark.parametrize("system", THROUGH)
def test_the_parser_is_pretrained_and_then_both_are_trained(system: str) -> None:
    assert plan(classification(system, training__pretrain=3, training__epochs=5)) == [
        PRUNER,
        Phase("semantics", ("semantics",), 3, "semantics", through=False),
        Phase("joint", ("semantics", "classifier"), 5, "classifier"),
    ]
    assert plan(classification(system, **TREES)) == [
        Phase("syntax", ("syntax",), 1, "syntax", through=False),
        Phase("joint", ("syntax", "classifier"), 2, "classifier"),
    ]
    assert names(system, training__pretrain=0) == ["semantics.pruner", "joint"]


def test_a_pipeline_never_comes_back_to_its_parser() -> None:
    found = plan(classification("pipeline"))
    assert [(phase.name, phase.tasks) for phase in found] == [
        ("semantics.pruner", ("semantics.pruner",)),
        ("semantics", ("semantics",)),
        ("classifier", ("classifier",)),
    ]
    assert found[-1].judge == "classifier"


@pytest.mark.parametrize("structure", ["gold", "left", "right", "random"])
@pytest.mark.parametrize("system", CLASSIFIERS)
def test_without_a_parser_there_is_the_classifier_alone(system: str, structure: str) -> None:
    assert plan(classification(system, classifier__structure=structure)) == [
        Phase("classifier", ("classifier",), 2, "classifier")
    ]
    assert names("bilstm") == ["classifier"]


@pytest.mark.parametrize("structure", ["graphs", "trees"])
@pytest.mark.parametrize("system", THROUGH)
def test_a_latent_parser_is_trained_by_the_labels_alone(system: str, structure: str) -> None:
    latent = classification(system, classifier__latent=True, classifier__structure=structure, training__pretrain=4)
    assert plan(latent) == [Phase("latent", ("classifier",), 2, "classifier")]
    assert latent.reached("classifier") == list(latent.stages)


@pytest.mark.parametrize("system", ["pipeline", "spigot"])
def test_a_parser_from_another_run_brings_its_pruner_along(system: str) -> None:
    last = "classifier" if system == "pipeline" else "joint"
    assert names(system, semantics__start="run") == [last]
    assert names(system, semantics__start="run", training__pretrain=0) == [last]
    assert names(system, syntax__start="run", **TREES) == [last]
    # A parser of the other kind is of no use.
    assert names(system, syntax__start="run") == ["semantics.pruner", "semantics", last]
    assert names(system, semantics__start="run", **TREES) == ["syntax", last]


def test_without_a_learned_pruner_there_is_none_to_train() -> None:
    assert names("spigot", semantics__pruning__learned=False) == ["semantics", "joint"]
    assert names("spigot", **TREES, semantics__pruning__learned=True) == ["syntax", "joint"]


@pytest.mark.parametrize("system", ALL_SYSTEMS)
def test_the_other_task_has_a_plan_for_every_system(system: str) -> None:
    found = plan(experiment(system))
    joint = Phase("joint", ("syntax", "semantics"), 2, "semantics")
    alone = Phase("semantics", ("semantics",), 2, "semantics")
    pretrained = Phase("syntax", ("syntax",), 1, "syntax", through=False)
    expected = {"neurboparser": [PRUNER, alone], "pipeline": [PRUNER, pretrained, alone]}
    assert found == expected.get(system, [PRUNER, joint])


def test_stages_from_other_runs_are_not_trained_before() -> None:
    taken = experiment("spigot", syntax__start="run", training__pretrain=2)
    assert [phase.name for phase in plan(taken)] == ["semantics.pruner", "joint"]
    both = experiment("spigot", syntax__start="run", semantics__start="run")
    assert [phase.name for phase in plan(both)] == ["joint"]


def three(**tables: Any) -> Config:
    """Trees inside graphs inside classes."""
    return make_config(
        {
            "stages": {
                "syntax": {"annotation": "trees"},
                "semantics": {"annotation": "graphs", "reads": {"stage": "syntax", "as": "heads"}},
                "mood": {"annotation": "label", "reads": {"stage": "semantics", "as": "roles"}},
            },
            **tables,
        }
    )


def test_three_stages_are_pretrained_one_by_one_and_then_trained_together() -> None:
    found = plan(three(training={"pretrain": 2, "epochs": 3}))
    assert [(phase.name, phase.epochs, phase.judge) for phase in found] == [
        ("semantics.pruner", 3, None),
        ("syntax", 2, "syntax"),
        ("semantics", 2, "semantics"),
        ("joint", 3, "mood"),
    ]
    assert found[-1].tasks == ("syntax", "semantics", "mood")
    assert [phase.through for phase in found[1:]] == [False, False, True]


def test_a_frozen_stage_trains_what_it_reads_before_it_is_frozen() -> None:
    wire = {"stage": "semantics", "as": "roles", "estimator": "pipeline"}
    found = plan(three(training={"pretrain": 2}, mood={"reads": wire}))
    assert [(phase.name, phase.tasks) for phase in found[1:]] == [
        ("syntax", ("syntax",)),
        ("semantics", ("syntax", "semantics")),
        ("mood", ("mood",)),
    ]
    assert found[2].through


def test_latent_stages_are_trained_by_those_behind_them() -> None:
    found = plan(three(syntax={"latent": True}, training={"pretrain": 2}))
    assert [(phase.name, phase.tasks) for phase in found] == [
        ("semantics.pruner", ("semantics.pruner",)),
        ("semantics", ("semantics",)),
        ("joint", ("semantics", "mood")),
    ]
    both = plan(three(syntax={"latent": True}, semantics={"latent": True}, training={"pretrain": 2}))
    assert [(phase.name, phase.tasks) for phase in both] == [("latent", ("mood",))]


def test_a_stage_with_another_beside_it_is_not_latent() -> None:
    stages = {"tags": {"annotation": "tags", "data": "trees", "beside": "syntax"}, "syntax": {"annotation": "trees"}}
    assert [(phase.name, phase.tasks) for phase in plan(make_config({"stages": stages}))] == [("syntax", ("syntax",))]


@pytest.mark.parametrize("annotation", ["trees", "graphs", "label", "tags"])
def test_one_stage_has_one_phase(annotation: str) -> None:
    settings = {"annotation": annotation, **({"pruning": {"learned": False}} if annotation == "graphs" else {})}
    config = make_config({"stages": {"only": settings}, "training": {"pretrain": 2}})
    assert plan(config) == [Phase("only", ("only",), 30, "only")]


def test_stages_that_nothing_joins_are_trained_together() -> None:
    settings = {"annotation": "graphs", "encoder": "words", "pruning": {"learned": False}}
    config = make_config(
        {"encoders": {"words": {}}, "stages": {"one": {**settings, "field": "one"}, "other": settings}}
    )
    assert plan(config) == [Phase("joint", ("one", "other"), 30, "other")]
