"""The latent-cluster experiment: it learns, it repeats, and it measures what it says."""

import math
from dataclasses import replace

import pytest
import torch
from spigot.experiments.clusters import CONTENDERS, Contender, Settings, make_task, match, run, summarise, train
from spigot.experiments.clusters_page import cluster_page

import spigot
from spigot.experiments import clusters
from spigot.report.page import render

TINY = Settings(clusters=(3,), seeds=2, epochs=2, train=200, test=100)


def named(*names: str) -> list[Contender]:
    return [contender for contender in CONTENDERS if contender.name in names]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_estimators_beat_the_floor_and_stay_below_gold():
    """By margins that other seeds keep too: which seeds succeed hangs on rounding."""
    settings = Settings(clusters=(3,), seeds=3, epochs=6)
    names = ("gold clusters", "StructuredAttention", "StraightThrough", "Spigot η = 0.1", "Pipeline")
    accuracy = {row.contender: row.accuracy[0] for row in summarise(run(settings, named(*names)))}
    floor, gold = accuracy.pop("Pipeline"), accuracy.pop("gold clusters")
    assert accuracy["StraightThrough"] > floor + 0.1
    assert accuracy["StructuredAttention"] > floor + 0.1
    assert accuracy["Spigot η = 0.1"] > floor
    assert max(accuracy.values()) < gold + 0.02


def test_the_same_seed_gives_the_same_records():
    chosen = named("StraightThrough", "Spigot η = 1")
    assert list(run(TINY, chosen)) == list(run(TINY, chosen))


def test_another_seed_gives_other_records():
    chosen = named("StraightThrough")
    assert list(run(TINY, chosen)) != list(run(replace(TINY, seed=7), chosen))


def test_a_seed_does_not_depend_on_those_beside_it():
    few, many = make_task(TINY, 3), make_task(replace(TINY, seeds=4), 3)
    assert torch.equal(few.train.x, many.train.x[:2])
    assert torch.equal(few.test.y, many.test.y[:2])


def test_seeds_train_as_if_alone():
    both = list(train(make_task(TINY, 3), named("Spigot η = 1")[0], TINY))[-1]
    alone = replace(TINY, seeds=1)
    first = list(train(make_task(alone, 3), named("Spigot η = 1")[0], alone))[-1]
    assert both.accuracy[0] == pytest.approx(first.accuracy[0], abs=0.03)


def test_pipeline_never_changes_its_choice():
    epochs = list(train(make_task(TINY, 3), named("Pipeline")[0], TINY))
    assert len({epoch.choices for epoch in epochs}) == 1


def test_every_estimator_of_the_library_takes_part():
    classes = {type(contender.estimator) for contender in CONTENDERS}
    assert {
        spigot.Pipeline,
        spigot.StraightThrough,
        spigot.Spigot,
        spigot.StructuredAttention,
        spigot.SparseMAP,
    } <= classes


def test_labels_follow_the_rule_of_the_cluster():
    task = make_task(replace(TINY, train=4000), 3)
    for cluster in range(3):
        here = task.train.cluster[0] == cluster
        content, y = task.train.x[0][here][:, TINY.half :], task.train.y[0][here]
        rule = (content * (2 * y - 1)[:, None]).mean(0)
        assert ((content @ rule > 0) == (y > 0)).double().mean() > 0.9


def test_noise_flips_its_share_of_the_labels():
    clean, noisy = make_task(replace(TINY, train=4000), 3), make_task(replace(TINY, train=4000, noise=0.1), 3)
    flipped = (clean.train.y != noisy.train.y).double().mean().item()
    assert flipped == pytest.approx(0.1, abs=0.02)


def test_match_is_the_best_permutation():
    from itertools import permutations

    chosen, true = torch.randint(4, (2, 60))
    best = max(int((torch.tensor(p)[chosen] == true).sum()) for p in permutations(range(4)))
    assert int((match(chosen, true, 4)[chosen] == true).sum()) == best


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs is 0; it must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; it must be positive"),
        ({"clusters": (1,)}, "each 2 or more"),
        ({"seed": -1}, "seed is -1"),
        ({"noise": 0.5}, "noise is 0.5"),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **change)


def test_spread_of_one_seed_is_zero():
    assert clusters.mean_and_spread([0.25]) == (0.25, 0.0)
    assert clusters.mean_and_spread([0.0, 1.0])[1] == pytest.approx(math.sqrt(0.5))


def test_the_page_tells_what_came_out():
    settings = replace(TINY, clusters=(3, 4), epochs=1, train=60, test=40)
    page = cluster_page(settings, list(run(settings)))
    titles = [section.title for section in page.sections]
    assert titles == ["K = 3 clusters", "K = 4 clusters", "Who chose what", "How to read this"]
    table = page.sections[0].table
    assert table is not None
    assert [row.name for row in table.rows] == [contender.name for contender in CONTENDERS]
    html = render(page)
    for contender in CONTENDERS:
        assert contender.name in html
    assert html.count("<svg") == 4 + len(CONTENDERS)
