"""The experiment on hidden structures: its data, what is learnt, and what is said of gradients."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from math import comb
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

import pytest
import torch
from torch import Tensor

import spigot
from research.latent.contenders import BOUND, EXACT, UNBIASED, Contender, contender_of, contenders
from research.latent.data import CLUSTERS, HALF, KINDS, list_members, make_task
from research.latent.gradients import compare, exact_gradient, gradient
from research.latent.matching import match
from research.latent.methods import Through
from research.latent.paths import all_paths, best_paths
from research.latent.results import Outcome, Row, mean_and_spread, run, summarise
from research.latent.settings import TASKS, Settings
from research.latent.tables import overview, result_table
from research.latent.tasks import AbstractTask, Instances, Parameters
from research.latent.training import choose, train
from spigot import ESTIMATORS, AbstractSurrogate

TINY = Settings(tasks=("clusters",), seeds=2, steps=10, tuning_seeds=0, draws=20, train=64, test=50)
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def some(*names: str) -> list[Contender]:
    return [contender_of(name) for name in names]


# Data


@pytest.mark.parametrize("name", TASKS)
def test_hidden_structures_are_members_and_a_seed_does_not_depend_on_those_beside_it(name: str) -> None:
    few, many = make_task(name, TINY, range(2)), make_task(name, TINY, range(3))
    assert few.structure.contains(few.train.truth[:, :8]).all()
    for split in ("train", "test"):
        for field in ("features", "worth", "truth", "target"):
            first, second = (getattr(getattr(task, split), field) for task in (few, many))
            assert torch.equal(first, second[:2])
    for parameter, value in few.start.items():
        assert torch.equal(value, many.start[parameter][:2])
    assert not torch.equal(few.train.features[0], few.train.features[1])


@pytest.mark.parametrize("name", KINDS)
def test_the_answer_is_what_the_hidden_structure_is_worth(name: str) -> None:
    task = make_task(name, TINY, range(2))
    assert torch.equal(task.read(task.train.truth, task.train.worth), task.train.target)
    assert task.found(task.train.truth, task.train).tolist() == [1.0, 1.0]
    assert task.quality(task.train.target, task.train).tolist() == [1.0, 1.0]
    assert task.quality(task.train.target.mean(-1, keepdim=True), task.train).abs().max() < 1e-5


@pytest.mark.parametrize("name", TASKS)
def test_every_member_is_listed_once(name: str) -> None:
    task = make_task(name, TINY, [0])
    members = task.members
    assert members is not None
    assert len(members.flatten(1).unique(dim=0)) == len(members)
    assert task.structure.contains(members).all()
    counts = {"clusters": CLUSTERS, "chains": 3**5, "trees": 5**4, "subsets": comb(10, 3), "paths": comb(8, 4)}
    assert len(members) == {**counts, "matchings": 120}[name]


def test_what_nobody_can_list_is_not_listed() -> None:
    assert list_members(spigot.Oracle(best_paths, event_ndim=2, batched=True), (5, 5)) is None


def test_labels_of_points_follow_the_rule_of_their_cluster() -> None:
    task = make_task("clusters", replace(TINY, train=5000), [0])
    for cluster in range(CLUSTERS):
        here = task.train.truth[0, :, cluster] > 0
        content, y = task.train.features[0][here][:, HALF:-1], task.train.target[0][here]
        rule = (content * (2 * y - 1)[:, None]).mean(0)
        assert ((content @ rule > 0) == (y > 0)).double().mean() > 0.85


def test_the_best_path_is_that_of_a_dynamic_programme() -> None:
    scores = torch.randn(20, 5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    best = torch.full((20, 6, 6), -torch.inf, dtype=torch.float64)
    for i in range(5):
        for j in range(5):
            before = torch.maximum(best[:, i, j + 1], best[:, i + 1, j]) if i or j else torch.zeros(20).double()
            best[:, i + 1, j + 1] = before + scores[:, i, j]
    torch.testing.assert_close((best_paths(scores) * scores).sum((1, 2)), best[:, 5, 5])
    assert len(all_paths(5)) == comb(8, 4)


def test_match_is_the_best_permutation() -> None:
    chosen, true = torch.randint(4, (2, 60), generator=torch.Generator().manual_seed(0))
    best = max(int((torch.tensor(p)[chosen] == true).sum()) for p in permutations(range(4)))
    assert int((match(chosen, true, 4)[chosen] == true).sum()) == best


# Gradients


@pytest.mark.parametrize("name", ["clusters", "paths"])
def test_the_exact_gradient_is_that_of_the_enumerated_expectation(name: str) -> None:
    r"""$\sum_z p(z) (L(z) - \bar L) \nabla_\theta z^\top s$, member by member, instead of autograd."""
    task = make_task(name, TINY, range(2))
    batch, key = task.train[:8], "scorer" if name == "clusters" else "direction"
    assert task.members is not None
    scores, worth = task.scores(task.start, batch).double(), task.worth(task.start, batch).double()
    values = torch.stack([task.read(z, scores) for z in task.members.double()])
    losses = torch.stack([task.loss(task.read(z, worth), batch) for z in task.members.double()])
    p = (values - values.logsumexp(0)).exp()
    weights = p * (losses - (p * losses).sum(0))  # of the features of each member
    by_part = torch.einsum("zsi,z...->si...", weights, task.members.double())
    features = batch.features.double()
    if name == "clusters":
        expected = torch.einsum("sik,sid->sdk", by_part, features)
    else:
        expected = torch.einsum("sixy,sixyd->sd", by_part, features)
    found = exact_gradient(task, task.start, batch)
    torch.testing.assert_close(found, expected.flatten(1), rtol=1e-3, atol=1e-4)
    assert key in task.start


@dataclass(frozen=True)
class Linear(AbstractTask):
    """A loss that is linear in z, for which the gradient at the mean structure is the mean gradient."""

    def scores(self, parameters: Parameters, instances: Instances) -> Tensor:
        return instances.features @ parameters["scorer"]

    def worth(self, parameters: Parameters, instances: Instances) -> Tensor:
        return instances.worth

    def loss(self, answer: Tensor, instances: Instances) -> Tensor:
        return answer * instances.target

    def quality(self, answer: Tensor, instances: Instances) -> Tensor:
        return answer.mean(-1)


def linear_task(structure: spigot.AbstractStructure, parts: tuple[int, ...], members: Tensor) -> Linear:
    random = torch.Generator().manual_seed(0)
    size = torch.Size(parts).numel()
    data = Instances(
        torch.randn(2, 6, 3, generator=random),
        torch.randn(2, 6, size, generator=random),
        torch.zeros(2, 6, size),
        torch.randn(2, 6, generator=random),
    )
    start = {"scorer": torch.randn(2, 3, size, generator=random)}
    return Linear("linear", structure, data, data, start, None, members)


def test_marginals_are_exact_where_the_loss_is_linear() -> None:
    task = linear_task(spigot.OneOf(), (4,), torch.eye(4))
    lesson = Through(spigot.StructuredAttention()).begin(task)
    exact = exact_gradient(task, task.start, task.train)
    torch.testing.assert_close(gradient(task, lesson, task.start, task.train), exact, rtol=1e-4, atol=1e-5)
    compared = compare(task, Through(spigot.StructuredAttention()), task.start, task.train, draws=5)
    assert min(compared.cosine) > 0.9999
    assert compared.noise == (0.0, 0.0)
    assert max(compare(task, Through(spigot.StraightThrough()), task.start, task.train, draws=5).cosine) < 0.99


def test_the_score_function_is_unbiased() -> None:
    """Also where the loss is far from linear: the mean over many draws points where the exact gradient does."""
    task = make_task("clusters", TINY, [0])
    compared = compare(task, UNBIASED.usual, task.start, task.train[:4], draws=100)
    assert min(compared.cosine) > 0.9
    assert min(compared.noise) > 0.2


def test_noise_is_of_those_who_draw() -> None:
    task = make_task("paths", TINY, range(2))
    noisy, calm, silent = (
        compare(task, contender_of(name).usual, task.start, task.train[:8], draws=10)
        for name in ("imle", "ste", "pipeline")
    )
    assert min(noisy.noise) > 0.05
    assert calm.noise == (0.0, 0.0)
    assert silent.cosine == (0.0, 0.0)


def test_the_mean_of_draws_is_what_is_compared() -> None:
    """A perturbed argmax has a gradient of much noise; its mean has less, and a better direction."""
    task = make_task("paths", TINY, range(2))
    few, many = (compare(task, contender_of("perturbed").usual, task.start, task.train, draws) for draws in (2, 100))
    assert mean_and_spread(many.cosine)[0] > mean_and_spread(few.cosine)[0]


# Learning


def test_estimators_beat_the_floor_and_stay_below_the_bound() -> None:
    """By margins that other seeds keep too: which seeds succeed hangs on rounding."""
    settings = Settings(tasks=("clusters", "paths"), seeds=3, steps=120, tuning_seeds=0, draws=2, test=200)
    outcomes = run(settings, [BOUND, EXACT, *some("ste", "pipeline")])
    rows = {(row.task, row.contender): row for row in summarise(outcomes)}
    for task in settings.tasks:
        bound, exact, ste, floor = (
            rows[task, name] for name in ("true structure", "exact gradient", "StraightThrough", "Pipeline")
        )
        assert bound.found == (1.0, 0.0)
        found = {row.contender: row.found[0] for row in (exact, ste, floor) if row.found is not None}
        assert found["StraightThrough"] > found["Pipeline"] + 0.1
        assert found["exact gradient"] > found["Pipeline"] + 0.1
        qualities = [row.quality[0] for row in (ste, bound) if row.quality is not None]
        assert qualities[0] < qualities[1] + 0.02


def test_the_same_seed_gives_the_same_numbers_and_another_does_not() -> None:
    def numbers(settings: Settings) -> list[object]:
        return [(o.curve, o.start, o.near) for o in run(settings, some("ste", "imle"))]

    assert numbers(TINY) == numbers(TINY)
    assert numbers(TINY) != numbers(replace(TINY, seed=7))


def test_seeds_train_as_if_alone() -> None:
    both, alone = (train(make_task("paths", TINY, range(n)), contender_of("ste").usual, TINY) for n in (2, 1))
    assert both.curve[-1].found[0] == pytest.approx(alone.curve[-1].found[0], abs=0.03)


def test_the_floor_never_changes_its_choice() -> None:
    curve = train(make_task("clusters", TINY, range(2)), contender_of("pipeline").usual, TINY).curve
    assert len({measured.found for measured in curve}) == 1
    assert [measured.step for measured in curve] == list(range(11))


def test_tuning_takes_what_loses_least() -> None:
    never, once = Through(spigot.Pipeline(), "never"), Through(spigot.StraightThrough(), "once")
    task = make_task("paths", TINY, TINY.tuning() or range(2))
    settings = replace(TINY, steps=60)
    assert choose(task, Contender("one of them", (never, once, never)), settings) is once
    assert not set(replace(TINY, tuning_seeds=9).tuning()) & set(TINY.reported())


# Contenders


def test_every_estimator_takes_part_with_three_values() -> None:
    everyone = contenders()
    assert len({contender.name for contender in everyone}) == len(everyone)
    for contender in everyone:
        assert contender.aside or len({method.option for method in contender.methods}) == 3
    kinds = {type(m.estimator) for c in everyone for m in c.methods if isinstance(m, Through)}
    assert kinds >= set(ESTIMATORS.values())


def test_an_estimator_of_a_plugin_takes_part_by_being_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ESTIMATORS, "_kinds", dict(ESTIMATORS))

    @ESTIMATORS.register("tenth")
    @dataclass(frozen=True)
    class Tenth(AbstractSurrogate):
        share: float = 0.1
        max_norm: float | None = None
        hard: ClassVar[bool] = True

        def pullback(self, structure, scores, z, saved, grad, mask) -> Tensor:  # pyright: ignore
            return self.share * grad

    (mine,) = [contender for contender in contenders() if contender.name == "Tenth"]
    assert [method.option for method in mine.methods] == ["share = 0.01", "share = 0.1", "share = 1"]
    assert mine.refusal(make_task("paths", TINY, [0])) is None


def test_who_does_not_fit_is_shown_as_such() -> None:
    tiny = replace(TINY, tasks=("paths",), steps=1)
    (row,) = summarise(run(tiny, some("attention")))
    assert row.refusal is not None
    assert row.refusal.startswith("StructuredAttention needs marginals")
    assert row.found is None
    table = result_table("paths", [row])
    assert {cell.text for cell in table.rows[0].cells[1:]} == {"–"}
    assert table.note == f"Not taking part. StructuredAttention: {row.refusal}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps is 0; it must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; it must be positive"),
        ({"tasks": ("treees",)}, "there is no task 'treees'; there are clusters, chains"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
        ({"draws": 1}, "draws is 1; a spread needs at least 2"),
    ],
)
def test_impossible_settings_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(TINY, **change)  # pyright: ignore[reportArgumentType]


def test_gradients_are_compared_at_the_scores_as_they_are() -> None:
    """A temperature is a choice of what to learn from; the direction is judged without it."""
    task = make_task("clusters", TINY, range(2))
    first, second = (
        compare(task, method, task.start, task.train[:8], draws=2) for method in contender_of("attention").methods[:2]
    )
    assert first == second


def test_everyone_is_there_before_anyone_has_asked_for_an_estimator() -> None:
    """Estimators register when their modules are loaded, and nothing is loaded before it is asked for."""
    code = "from research.latent.contenders import contenders; print(len(contenders()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(contenders())


# What is shown


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    settings = replace(TINY, tasks=("clusters", "paths"), steps=2, draws=3)
    return list(run(settings, [BOUND, EXACT, *some("ste", "pipeline", "attention", "imle")]))


def test_tables_hold_what_was_measured(outcomes: list[Outcome]) -> None:
    rows = summarise(outcomes)
    (measured,) = [o for o in outcomes if (o.task, o.contender) == ("clusters", "IMLE")]
    (line,) = [row for row in result_table("clusters", rows).rows if row.name == "IMLE"]
    mean, spread = mean_and_spread(measured.curve[-1].found)
    assert (line.cells[2].text, line.cells[2].detail) == (f"{100 * mean:.1f}", f"± {100 * spread:.1f}")
    assert measured.start is not None
    assert line.cells[5].text == f"{mean_and_spread(measured.start.cosine)[0]:.2f}"
    (ste,) = [row for row in rows if (row.task, row.contender) == ("paths", "StraightThrough")]
    assert ste.ratio == 1.0
    best = max(row.found[0] for row in rows if row.task == "clusters" and not row.aside and row.found)
    assert {c.text for row in result_table("clusters", rows).rows for c in row.cells[2:3] if c.best} == {
        f"{100 * best:.1f}"
    }


def test_who_is_in_few_tasks_is_ranked_by_those() -> None:
    rows = [Row("trees", "a", False, found=(0.9, 0.0)), Row("paths", "a", False, found=(0.2, 0.0))]
    rows += [Row("trees", "b", False, found=(0.8, 0.0)), Row("paths", "b", False, refusal="It does not fit.")]
    rows += [Row("trees", "c", False, found=(0.2, 0.0)), Row("paths", "c", False, found=(0.1, 0.0))]
    names, tasks, shares = overview(rows)
    assert (tasks, shares[1]) == (["trees", "paths"], [0.9, 0.2])
    assert names == ["b", "a", "c"]  # ahead of the mean by 17 points, by 16 and behind by 24


def test_the_command_writes_results_and_a_picture(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "research.latent", "clusters", "--quick", "--seeds", "1", "--steps", "1"]
    files = ["--out", str(tmp_path / "found.json"), "--picture", str(tmp_path / "found.svg")]
    done = subprocess.run([*command, *files], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    assert "One of 5 clusters" in done.stdout
    assert {row["task"] for row in json.loads((tmp_path / "found.json").read_text())["rows"]} == {"clusters"}
    assert ElementTree.parse(tmp_path / "found.svg").getroot().tag.endswith("svg")
