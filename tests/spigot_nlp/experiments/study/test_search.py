"""Which combinations are tried."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.experiments.study.file import Tuning
from spigot_nlp.experiments.study.search import Combination, combinations, fits, how_many, shuffled, suggestion, unseen
from spigot_nlp.experiments.study.values import Range

TRIED = {"a": (1, 2, 3), "b": ("x", "y")}
MIXED = {"a": Range(low=0.1, high=10.0, log=True), "b": ("x", "y"), "c": Range(low=1, high=9, whole=True)}


@given(total=st.integers(1, 10**9), count=st.integers(0, 40), more=st.integers(0, 20), seed=st.integers(0, 2**32))
def test_a_longer_draw_begins_with_the_shorter(total, count, more, seed):
    longer = list(shuffled(total, min(count + more, total), seed))
    assert longer[: min(count, total)] == list(shuffled(total, min(count, total), seed))
    assert len(set(longer)) == len(longer)
    assert all(0 <= number < total for number in longer)


def test_every_order_is_drawn_equally_often():
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(1200):
        order = tuple(shuffled(3, 3, seed))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(150 < count < 250 for count in counts.values())


@pytest.mark.parametrize("tried", [TRIED, MIXED, {"c": Range(low=1, high=9, whole=True)}])
def test_random_combinations_grow_and_never_repeat(tried):
    few, more, other = (
        combinations(tried, Tuning(search="random", trials=n, seed=seed)) for n, seed in ((3, 0), (5, 0), (5, 1))
    )
    assert few == more[:3]
    assert more != other
    assert all(fits(values, tried) for values in more)
    assert all(values not in more[:k] for k, values in enumerate(more))


def test_no_more_than_there_are():
    everything = combinations(TRIED, Tuning())
    assert len(everything) == how_many(TRIED) == 6
    drawn = combinations(TRIED, Tuning(search="random", trials=100))
    assert sorted(map(str, drawn)) == sorted(map(str, everything))
    whole = {"c": Range(low=0.5, high=3.5, whole=True)}
    assert sorted(values["c"] for values in combinations(whole, Tuning(search="random", trials=9))) == [1, 2, 3]


def test_a_grid_has_no_ranges():
    with pytest.raises(ValueError, match=r"tune\.a is a range, and a grid needs values"):
        combinations(MIXED, Tuning())


def test_what_was_not_seen():
    seen = combinations(TRIED, Tuning())
    missing = seen.pop(3)
    assert unseen(TRIED, seen, seed=0) == missing
    assert unseen(TRIED, [*seen, missing], seed=0) is None
    first = unseen(MIXED, [], seed=4)
    assert first is not None
    assert unseen(MIXED, [first], seed=4) not in (None, first)


def test_numbers_are_short_and_inside():
    for values in combinations({"a": Range(low=0.123456, high=0.123459)}, Tuning(search="random", trials=2)):
        assert 0.123456 <= values["a"] <= 0.123459
    for values in combinations(MIXED, Tuning(search="random", trials=20)):
        assert re.fullmatch(r"[\d.e-]{1,7}", str(values["a"]))


def test_optuna_learns():
    pytest.importorskip("optuna")
    tried = {"a": Range(low=0.0, high=1.0), "b": ([1], [2])}  # lists are values, too
    seen: list[tuple[Combination, float | None]] = []
    for _ in range(25):
        values = suggestion(tried, seen, seed=0)
        assert fits(values, tried)
        assert values == suggestion(tried, seen, seed=0)  # as after an interruption
        seen.append((values, -abs(values["a"] - 0.7) - (values["b"] == [1])))
    late = [values for values, _ in seen[15:]]
    assert sum(abs(values["a"] - 0.7) < 0.2 for values in late) >= 6
    seen[-1] = (seen[-1][0], None)  # under way, or failed
    assert fits(suggestion(tried, seen, seed=0), tried)


def test_without_optuna(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"needs Optuna; install it with: pip install 'torch-spigot\[search\]'"
    ):
        suggestion(TRIED, [], seed=0)
