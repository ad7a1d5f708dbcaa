"""A search that learns from results: it keeps to its file, finds more than chance does, and can be gone on with."""

import json
import math
import statistics
import sys
from dataclasses import dataclass
from random import Random

import pytest

from spigot_nlp.experiments.study.file import make_study
from spigot_nlp.experiments.study.plan import Planner
from spigot_nlp.experiments.study.search import suggestion

optuna = pytest.importorskip("optuna", reason="needs Optuna: pip install 'torch-spigot[search]'")

TUNE = {
    "estimator.eta": {"low": 0.01, "high": 10.0, "log": True},
    "estimator.max_norm": {"low": 0.12346, "high": 0.98766},
    "training.batch_size": {"low": 1, "high": 64, "log": True, "whole": True},
    "syntax.mlp": {"low": 8, "high": 12, "whole": True},
    "training.shuffle": [True, False],
}


def study(tune, trials=8):
    given = {"config": "synthetic", "systems": {"spigot": {"tune": tune}}, "seeds": [5]}
    return make_study({**given, "tune": {"search": "bayes", "trials": trials}})


def tried(tune):
    return study(tune).systems["spigot"].tune


def test_suggestions_are_of_the_kinds_and_in_the_bounds_of_the_file():
    seen = []
    for k in range(12):
        values = suggestion(tried(TUNE), seen, seed=3)
        assert 0.01 <= values["estimator.eta"] <= 10
        assert 0.12346 <= values["estimator.max_norm"] <= 0.98766
        assert type(values["training.batch_size"]) is int
        assert 1 <= values["training.batch_size"] <= 64
        assert values["syntax.mlp"] in range(8, 13)
        assert type(values["training.shuffle"]) is bool
        # some are under way, or failed, when the next is asked for; the ends of the ranges were tried
        ends = {"estimator.eta": 10.0, "estimator.max_norm": 0.12346} if k == 3 else {}
        seen.append(({**values, **ends}, None if k % 3 == 1 else float(k)))


def test_a_seed_gives_the_same_suggestions_and_another_gives_others():
    seen = [({"estimator.eta": 0.1 * k}, float(k)) for k in range(1, 8)]
    tune = tried({"estimator.eta": TUNE["estimator.eta"]})
    assert suggestion(tune, seen, 0) == suggestion(tune, seen, 0)
    assert len({suggestion(tune, seen, seed)["estimator.eta"] for seed in range(4)}) > 1


def test_what_is_under_way_is_not_suggested_again():
    """Several at a time: without a word on those that are not finished, all would crowd where the best was."""
    tune = tried({"x": {"low": 0.0, "high": 1.0}})
    seen: list[tuple[dict[str, float], float | None]] = [({"x": k / 20}, -abs(k / 20 - 0.5)) for k in range(20)]
    for _ in range(8):
        seen.append((suggestion(tune, seen, 0), None))
    assert len({values["x"] for values, _ in seen[20:]}) == 8


def test_it_finds_more_than_chance_does():
    tune = tried({"x": {"low": 0.001, "high": 1000.0, "log": True}, "y": {"low": 0.0, "high": 1.0}, "c": list("abcd")})
    found, by_chance = [], []
    for instance in range(6):
        dice = Random(instance)
        x, y, c = dice.uniform(-6, 6), dice.random(), dice.choice("abcd")

        def score(values, x=x, y=y, c=c):
            return -abs(math.log(values["x"]) - x) / 6 - abs(values["y"] - y) - (values["c"] != c)

        seen = []
        for _ in range(30):
            values = suggestion(tune, seen, instance)
            seen.append((values, score(values)))
        found.append(max(score for _, score in seen))
        for repeat in range(20):
            dice = Random(1000 * instance + repeat)
            draws = [
                {"x": math.exp(dice.uniform(-6.9, 6.9)), "y": dice.random(), "c": dice.choice("abcd")}
                for _ in range(30)
            ]
            by_chance.append(max(map(score, draws)))
    # With 30 each, chance ends 0.38 below the best there is, on average, and this 0.10.
    assert statistics.fmean(found) > statistics.fmean(by_chance) + 0.1


@dataclass
class Ended:
    """A training that has ended."""

    score: float | None
    has_ended: bool = True


def gone_on(planner, known, parallel, until):
    """Let trainings end in the order they were started, until so many have."""
    while len(known) < until:
        waiting = [t for t in planner.trials(known, parallel) if t.role == "tuning" and t.name not in known]
        trial = waiting[0]
        # one of them fails
        score = None if len(known) == 2 else -abs(math.log(trial.values["estimator.eta"]))
        known[trial.name] = Ended(score)


@pytest.mark.parametrize("parallel", [1, 3])
def test_interrupted_and_gone_on_with_it_suggests_the_same(tmp_path, parallel):
    tune = {"estimator.eta": TUNE["estimator.eta"]}
    whole, known = Planner(study(tune), tmp_path), {}
    gone_on(whole, known, parallel, 8)
    first, before = Planner(study(tune), tmp_path), {}
    gone_on(first, before, parallel, 5)
    kept = json.loads(json.dumps(first.suggested))
    second = Planner(study(tune), tmp_path, suggested=kept)
    gone_on(second, before, parallel, 8)
    assert second.suggested == whole.suggested
    assert list(before) == list(known)
    choice = second.choice("spigot", "", before)
    assert choice.is_over
    best = max(score for _, score in choice.tried if score is not None)
    assert (choice.chosen, best) in choice.tried
    assert [t.name for t in second.trials(before) if t.role == "final"] == ["spigot-5"]


def test_few_values_are_each_tried_once(tmp_path):
    planner, known = Planner(study({"estimator.eta": [0.1, 1.0, 10.0]}, trials=3), tmp_path), {}
    gone_on(planner, known, 1, 3)
    assert sorted(values["estimator.eta"] for values in planner.suggested["spigot,"]) == [0.1, 1.0, 10.0]


def test_without_optuna_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'torch-spigot\[search\]'"):
        suggestion(tried(TUNE), [], 0)
