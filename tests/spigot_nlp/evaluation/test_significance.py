"""The bootstrap: against a loop, by its properties, and where the answer is known."""

import importlib
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.evaluation import Comparison, Counts, bootstrap, interval

MODULE = importlib.import_module("spigot_nlp.evaluation.bootstrap")  # whose name a function has, too


@st.composite
def two_systems(draw: st.DrawFn) -> tuple[Counts, Counts]:
    """Counts of two systems on the same gold data."""
    n = draw(st.integers(1, 8))
    gold = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    systems = []
    for _ in range(2):
        predicted = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
        correct = [draw(st.integers(0, min(a, b))) for a, b in zip(gold, predicted, strict=True)]
        systems.append(Counts(correct, predicted, gold))
    return systems[0], systems[1]


def coin(n: int, chance: float, seed: int) -> Counts:
    """One answer a sentence, right with this probability."""
    return Counts(np.random.default_rng(seed).random(n) < chance, np.ones(n), np.ones(n))


def f1_of(counts: Counts, indices: list[int]) -> float:
    right = sum(int(counts.correct[i]) for i in indices)
    both = sum(int(counts.predicted[i]) + int(counts.gold[i]) for i in indices)
    return 2 * right / both if both else 0.0


def looped(a: Counts, b: Counts, samples: int, seed: int, level: float) -> Comparison:
    """The definition, one resample and one sentence at a time."""
    generator = np.random.default_rng(seed)
    everyone = list(range(len(a)))
    difference = f1_of(a, everyone) - f1_of(b, everyone)
    deltas, lost = [], 0
    for _ in range(samples):
        drawn = generator.integers(len(a), size=len(a)).tolist()
        delta = f1_of(a, drawn) - f1_of(b, drawn)
        deltas.append(delta)
        lost += difference == 0 or delta == 0 or (delta > 0) != (difference > 0)
    deltas.sort()

    def quantile(q: float) -> float:
        place = q * (samples - 1)
        below = int(place)
        above = min(below + 1, samples - 1)
        return deltas[below] + (place - below) * (deltas[above] - deltas[below])

    p = min(1.0, 2 * (lost + 1) / (samples + 1))
    low, high = quantile((1 - level) / 2), quantile((1 + level) / 2)
    return Comparison(f1_of(a, everyone), f1_of(b, everyone), difference, low, high, p, level, samples)


def numbers(result: Comparison) -> list[float]:
    return [result.first, result.second, result.difference, result.low, result.high, result.p]


@given(two_systems(), st.sampled_from([0.5, 0.95]))
def test_equals_a_loop(systems: tuple[Counts, Counts], level: float):
    a, b = systems
    fast = bootstrap(a, b, samples=60, seed=3, level=level)
    assert numbers(fast) == pytest.approx(numbers(looped(a, b, 60, 3, level)), abs=1e-12)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch):
    a, b = coin(7, 0.5, 0), coin(7, 0.6, 1)
    whole = bootstrap(a, b, samples=101)
    monkeypatch.setattr(MODULE, "_CHUNK", 33)
    assert bootstrap(a, b, samples=101) == whole
    monkeypatch.setattr(MODULE, "_CHUNK", 1)  # fewer than one resample: still one at a time
    assert bootstrap(a, b, samples=101) == whole


@given(two_systems())
def test_the_order_of_the_systems_is_a_sign(systems: tuple[Counts, Counts]):
    a, b = systems
    there, back = bootstrap(a, b, samples=200), bootstrap(b, a, samples=200)
    assert there.p == back.p
    assert [there.difference, there.low, there.high] == pytest.approx([-back.difference, -back.high, -back.low])


@given(two_systems())
def test_a_system_does_not_differ_from_itself(systems: tuple[Counts, Counts]):
    a, _ = systems
    result = bootstrap(a, a, samples=50)
    assert (result.difference, result.low, result.high, result.p) == (0.0, 0.0, 0.0, 1.0)


def test_the_interval_holds_the_score_and_shrinks_with_the_data():
    widths = []
    for n in (50, 200, 800, 3200):
        result = interval(coin(n, 0.8, n), samples=2000)
        assert result.low < result.value < result.high
        widths.append(result.high - result.low)
    # As the square root of the number of sentences: half as wide with four times as many.
    assert [a / b for a, b in pairwise(widths)] == pytest.approx([2.0] * 3, rel=0.25)


def test_the_interval_is_that_of_a_proportion():
    n = 2500
    counts = coin(n, 0.8, 0)
    share = counts.accuracy()
    error = (share * (1 - share) / n) ** 0.5
    result = interval(counts)
    assert result.low == pytest.approx(share - 1.96 * error, abs=0.002)
    assert result.high == pytest.approx(share + 1.96 * error, abs=0.002)


def test_a_wider_level_is_a_wider_interval():
    counts = coin(100, 0.5, 0)
    narrow, wide = interval(counts, level=0.5, samples=2000), interval(counts, level=0.99, samples=2000)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_covers_the_truth_as_often_as_it_says():
    """Two hundred test sets with a true accuracy of 0.7: about 95 of 100 intervals hold it."""
    hits = 0
    for seed in range(200):
        result = interval(coin(200, 0.7, seed), samples=300, seed=seed)
        hits += result.low <= 0.7 <= result.high
    assert 0.90 <= hits / 200 <= 0.99


def test_finds_what_is_there_and_nothing_else():
    """Equal systems are told apart about one time in twenty at p < 0.05; a clear lead is always found."""
    found = sum(bootstrap(coin(150, 0.7, s), coin(150, 0.7, s + 1000), samples=300).p < 0.05 for s in range(200))
    assert found / 200 <= 0.10
    assert all(bootstrap(coin(300, 0.9, s), coin(300, 0.6, s + 1000), samples=300).p < 0.05 for s in range(20))


def test_p_is_never_zero_and_agrees_with_the_interval():
    sure = bootstrap(coin(400, 0.99, 0), coin(400, 0.01, 1), samples=999)
    assert sure.p == 2 / 1000
    for seed in range(10):
        result = bootstrap(coin(200, 0.7, seed), coin(200, 0.78, seed + 50), samples=3000)
        if abs(result.p - 0.05) > 0.01:
            assert (result.low > 0 or result.high < 0) == (result.p < 0.05)


def test_pairing_matters():
    """Two systems that fail on the same sentences differ surely by a little; independent ones do not."""
    base = np.random.default_rng(0).random(400)
    ones = np.ones(400)
    good, slightly_worse = (Counts(base < chance, ones, ones) for chance in (0.70, 0.68))
    assert bootstrap(good, slightly_worse, samples=2000).p < 0.05
    shuffled = Counts(np.random.default_rng(1).permutation(slightly_worse.correct), ones, ones)
    assert bootstrap(good, shuffled, samples=2000).p > 0.05


def test_precision_and_recall():
    a = Counts([2, 2, 2], [2, 2, 2], [4, 4, 4])
    b = Counts([2, 2, 2], [4, 4, 4], [4, 4, 4])
    assert bootstrap(a, b, samples=20, measure="precision").difference == 0.5
    assert bootstrap(a, b, samples=20, measure="recall").difference == 0.0
    assert interval(a, samples=20, measure="recall").value == 0.5


def test_memory_stays_flat():
    counts = coin(2000, 0.5, 0)
    tracemalloc.start()
    try:
        interval(counts, samples=6000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60_000_000  # 12 million draws at once would take hundreds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 0}, "samples is 0; it must be at least 1"),
        ({"level": 95}, "level is 95; it must lie between 0 and 1"),
        ({"measure": "uas"}, "measure is 'uas'; it must be 'f1', 'precision' or 'recall'"),
    ],
)
def test_bad_arguments(arguments, message):
    counts = Counts([1], [1], [1])
    with pytest.raises(ValueError, match=message):
        bootstrap(counts, counts, **arguments)
    with pytest.raises(ValueError, match=message):
        interval(counts, **arguments)


def test_other_sentences_are_refused():
    with pytest.raises(ValueError, match="scored on 1 and 2 sentences"):
        bootstrap(Counts([1], [1], [1]), Counts([1, 1], [1, 1], [1, 1]))
    with pytest.raises(ValueError, match="sentence 2 has 1 gold answers in the counts of the first"):
        bootstrap(Counts([1, 1], [1, 1], [1, 1]), Counts([1, 1], [1, 1], [1, 2]))
    with pytest.raises(ValueError, match="no sentences to resample"):
        interval(Counts([], [], []))
