"""Training step by step."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from spigot_nlp.annotations.trees import is_projective
from spigot_nlp.corpora.corpus import Corpus, Split
from spigot_nlp.data.sentence import Graph, Sentence
from spigot_nlp.models.parser import Parser
from spigot_nlp.training import Diverged, Step, loop
from spigot_nlp.training.development import judging_measure
from spigot_nlp.training.plan import Phase
from tests.spigot import brute
from tests.spigot_nlp.parsing import ALL_SYSTEMS, corpus, experiment, parser, semantics, syntax
from tests.spigot_nlp.training.trainings import Training, check_resumes

DATA = corpus(train=8, dev=3)


def trainer(system: str = "spigot", data: Any = DATA, **overrides: Any) -> Training:
    return Training(parser(system, data, **overrides), data)


def with_trees(trees: list[Sentence]) -> Corpus:
    """The same with other trees to train on, and none to judge by."""
    return Corpus({**DATA.sets, "trees": Split(trees)})


def values(module: torch.nn.Module | None) -> list[Tensor]:
    assert module is not None
    return [parameter.detach().clone() for parameter in module.parameters()]


def same(before: list[Tensor], module: torch.nn.Module | None) -> bool:
    return equal(before, values(module))


def equal(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(*pair) for pair in zip(one, other, strict=True))


def state(training: Training) -> dict[str, list[Tensor]]:
    """The parameters that each part has for itself."""
    found = {}
    for name, (model, _, without) in training.parser.model.parts().items():
        inner = {id(parameter) for other in without for parameter in other.parameters()}
        found[name] = [p.detach().clone() for p in model.parameters() if id(p) not in inner]
    return found


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.integers(0, n), min_size=n, max_size=n)))
def test_projectivity_is_the_absence_of_crossing_arcs(heads: list[int]) -> None:
    if all(head != word for word, head in enumerate(heads, 1)):
        assert is_projective(heads) == (not brute.crossings(dict(enumerate(heads, 1))))


def test_nested_arcs_that_begin_together_do_not_cross() -> None:
    assert is_projective((0, 1, 1, 1))


@pytest.mark.parametrize("system", ALL_SYSTEMS)
def test_an_epoch_sees_every_sentence_once(system: str) -> None:
    training = trainer(system, training__epochs=2)
    steps = training.steps()
    for (_, epoch), group in itertools.groupby(steps, lambda step: (step.phase, step.epoch)):
        taken = list(group)
        tasks = Counter(dict.fromkeys({step.task for step in taken}, 8))
        assert sum((Counter({step.task: step.sentences}) for step in taken), Counter()) == tasks
        assert [step.step for step in taken] == list(range(1, taken[0].of + 1))
        assert [step.dev is not None for step in taken] == [False] * (len(taken) - 1) + [True]
        assert epoch in (1, 2)
        if "semantics" in tasks:
            words = {name: sum(map(len, DATA[name].train)) for name in ("trees", "graphs")}
            assert sum(step.tokens for step in taken) == words["graphs"] + ("syntax" in tasks) * words["trees"]
    assert training.state.progress.done
    assert next(step.phase for step in steps if step.dev) == "semantics.pruner"
    assert {"LF", "UF"} <= (steps[-1].dev or {}).keys()
    assert ("UAS" in (steps[-1].dev or {})) == (system != "neurboparser")


@pytest.mark.parametrize("system", ["pipeline", "spigot"])
def test_a_task_trains_its_own_models(system: str) -> None:
    training = trainer(system)
    before = state(training)
    assert set(before) == {"syntax", "semantics", "semantics.pruner"}

    def look(step: Step) -> None:
        after = state(training)
        changed = {name for name in before if not equal(before[name], after[name])}
        if step.task == "semantics" and system == "spigot":
            assert {step.task} <= changed <= {"semantics", "syntax"}
        elif step.dev is None:
            assert changed == {step.task}
        before.update(after)

    training.steps(look)


def test_the_pipelines_parser_is_the_best_of_its_own_training_and_stays() -> None:
    training = trainer("pipeline", training__pretrain=3)
    best: list[Tensor] = []

    def look(step: Step) -> None:
        if step.phase == "syntax" and step.is_best:
            best[:] = values(syntax(training.parser))
        if step.phase == "semantics":
            assert same(best, syntax(training.parser))

    training.steps(look)


@pytest.mark.parametrize("warm_up", [0, 1])
def test_the_end_task_reaches_syntax_after_the_warm_up(warm_up: int) -> None:
    training = trainer("ste", training__warm_up=warm_up, training__epochs=2, semantics__pruning__learned=False)
    before = values(syntax(training.parser))
    reached = {1: False, 2: False}

    def look(step: Step) -> None:
        if step.task == "semantics":
            reached[step.epoch] |= not same(before, syntax(training.parser))
        before[:] = values(syntax(training.parser))

    training.steps(look)
    assert reached == {1: warm_up == 0, 2: True}


def test_each_model_is_annealed_by_its_own_schedule() -> None:
    """Learning rates follow the epoch of the phase; the pretrained parser's goes on where it was."""
    schedule: dict[str, Any] = {
        "syntax__optimiser__anneal_every": 1,
        "syntax__optimiser__learning_rate": 0.8,
        "semantics__optimiser__anneal_every": 2,
        "semantics__optimiser__learning_rate": 0.4,
    }
    training = trainer("ste", training__pretrain=2, training__epochs=3, semantics__pruning__learned=False, **schedule)

    def look(step: Step) -> None:
        before = 2 if step.phase == "joint" else 0
        for name, expected in (
            ("syntax", 0.8 / 2 ** (step.epoch - 1 + before)),
            ("semantics", 0.4 / 2 ** ((step.epoch - 1) // 2)),
        ):
            assert training.state.optimisers[name].rate == expected

    training.steps(look)


def test_losses_are_weighted_when_asked() -> None:
    plain = trainer("ste", semantics__pruning__learned=False)
    weighted = trainer("ste", semantics__pruning__learned=False, training__end_weight=0.3)
    one, other = plain.steps()[0], weighted.steps()[0]
    share = 0.3 if one.task == "semantics" else 0.7
    assert other.loss == pytest.approx(share * one.loss)


def test_seeds_decide_everything() -> None:
    first, second, other = (trainer(seed=seed).steps() for seed in (1, 1, 2))
    assert first == second
    assert first != other


@pytest.mark.parametrize("system", ["pipeline", "spigot", "attention"])
def test_interrupted_at_any_step_it_goes_on_as_if_nothing_had_happened(system: str) -> None:
    check_resumes(experiment(system), DATA, every=1 if system == "spigot" else 3)


def scripted(script: dict[str, Iterator[float]]) -> Callable[..., tuple[dict[str, float], dict[str, list[Any]]]]:
    """Dev scores that are given, by the measure of the phase."""

    def scores(whole: Parser, _: Corpus, phase: Phase, before: Any) -> tuple[dict[str, float], dict[str, list[Any]]]:
        if phase.judge is None:
            return {}, {}
        measure = judging_measure(whole, phase.judge)
        return {measure: next(script[measure])}, {}

    return scores


@pytest.mark.parametrize(("patience", "epochs"), [(1, 3), (2, 6), (0, 8)])
def test_training_stops_when_dev_gets_no_better(patience: int, epochs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    system = parser("neurboparser", DATA, training__epochs=8, training__patience=patience)
    training, script = Training(system, DATA), iter([1.0, 2.0, 2.0, 3.0, 1.0, 2.9, 1.0, 1.0])
    monkeypatch.setattr(loop, "development_scores", scripted({"LF": script}))
    ends = [step for step in training.steps() if step.phase == "semantics" and step.dev]
    assert len(ends) == epochs
    assert [step.is_best for step in ends] == [True, True, False, True, False, False, False, False][:epochs]
    assert training.run.history[-1]["epoch"] == epochs


def test_without_dev_data_the_last_parameters_are_kept() -> None:
    data = DATA.apply(lambda _, split: replace(split, dev=[]))
    training = trainer("pipeline", data, training__patience=1, training__epochs=3)
    ends = [step for step in training.steps() if step.dev is not None and step.phase != "semantics.pruner"]
    assert [step.is_best for step in ends] == [True] * 4
    for name, value in training.parser.model.state_dict().items():
        assert torch.equal(value, training.state.best[name])


def test_trees_the_parser_cannot_give_are_left_out() -> None:
    crossing = Sentence(("cat", "dog", "gate", "stone"), heads=(3, 4, 0, 3))
    two_roots = Sentence(("cat", "dog"), heads=(0, 0))
    data = with_trees([*DATA["trees"].train, crossing, two_roots])

    def count(**overrides: Any) -> int:
        steps = trainer("ste", data, semantics__pruning__learned=False, training__epochs=1, **overrides).steps()
        return sum(step.sentences for step in steps if step.task == "syntax")

    assert count() == 8
    assert count(syntax__single_root=False) == 9
    assert count(syntax__trees="nonprojective") == 9
    assert count(syntax__trees="nonprojective", syntax__single_root=False) == 10


def test_what_cannot_be_trained_is_said_at_once() -> None:
    with pytest.raises(ValueError, match=r"syntax has no trees to train on; set data\.trees\.train"):
        trainer("spigot", with_trees([])).steps()
    crossing = Sentence(("cat", "dog", "gate", "stone"), heads=(3, 4, 0, 3))
    with pytest.raises(ValueError, match=r"None of the 1 training sentences of data\.trees has trees .*projective"):
        trainer("pipeline", with_trees([crossing])).steps()
    assert trainer("neurboparser", with_trees([])).steps()
    with pytest.raises(ValueError, match=r"no graphs to train on; set data\.graphs\.train"):
        Training(parser("neurboparser", DATA), Corpus({"trees": DATA["trees"]})).steps()
    with pytest.raises(ValueError, match="no arcs and no tops"):
        trainer("neurboparser", Corpus({"graphs": Split([Sentence(("cat",), graph=Graph())])})).steps()


def test_a_loss_that_is_no_number_stops_before_anything_moves() -> None:
    training = trainer("neurboparser", semantics__pruning__learned=False, semantics__loss="log")
    stage: Any = semantics(training.parser)
    with torch.no_grad():
        stage.predicates.out.bias.fill_(math.nan)
    before = values(training.parser.model)
    with pytest.raises(Diverged, match=r"semantics loss is nan at step 1 of epoch 1 .*learning rate"):
        training.steps()
    for one, other in zip(before, values(training.parser.model), strict=True):
        torch.testing.assert_close(one, other, equal_nan=True, atol=0, rtol=0)


def test_a_gradient_that_is_no_number_stops_it_too() -> None:
    training = trainer("neurboparser", semantics__pruning__learned=False)
    stage: Any = semantics(training.parser)
    stage.predicates.out.weight.register_hook(lambda gradient: gradient * math.nan)
    with pytest.raises(Diverged, match=r"gradient of semantics is nan"):
        training.steps()


@pytest.mark.parametrize("system", ALL_SYSTEMS)
def test_every_system_learns_a_tiny_corpus(system: str) -> None:
    """What is asked for is far from what comes out: at the best epoch losses are at most about a half of the first.

    Noise depends on the last bit of the scores, and so on the processor; the bounds hold for other seeds as well. The
    likelihood of trees is less at the mercy of single steps than the hinge.
    """
    settings: dict[str, Any] = {f"{model}__optimiser__learning_rate": 0.02 for model in ("syntax", "semantics")}
    settings |= {"training__epochs": 6, "training__pretrain": 6 if system == "pipeline" else 0, "syntax__loss": "crf"}
    training = trainer(system, estimator__samples=5, semantics__pruning__learned=False, **settings)
    steps = training.steps()
    for task in {step.task for step in steps}:
        losses = [sum(step.loss for step in steps if (step.task, step.epoch) == (task, k)) for k in range(1, 7)]
        assert min(losses) < 0.8 * losses[0], task
    assert max(step.dev["LF"] for step in steps if step.dev and "LF" in step.dev) > 50


def test_dropout_differs_between_epochs_and_seeds_but_not_between_batches() -> None:
    """A sentence's seed is made of the experiment's seed, phase, epoch and its own number."""
    seen: dict[tuple[int, int], set[int]] = {}
    for batch_size in (2, 4):
        training = trainer("neurboparser", semantics__pruning__learned=False, training__batch=batch_size)
        loss = training.parser.model.loss

        def spy(
            batch: Any, task: str, *, through: bool = True, training: Training = training, loss: Any = loss
        ) -> Tensor:
            seen.setdefault((batch_size, training.state.progress.epoch), set()).update(batch.seeds.tolist())  # noqa: B023
            return loss(batch, task, through=through)

        training.parser.model.loss = spy  # pyright: ignore[reportAttributeAccessIssue]
        training.steps()
    assert seen[2, 0] == seen[4, 0]
    assert len(seen[2, 0]) == 8
    assert not seen[2, 0] & seen[2, 1]


def test_a_step_says_what_it_was() -> None:
    step = trainer("neurboparser").steps()[0]
    assert step == Step("semantics.pruner", 1, 1, 2, "semantics.pruner", step.loss, 4, step.tokens)
    assert step.loss > 0
