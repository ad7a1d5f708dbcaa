"""The bootstrap over seeds and sentences: against closed forms, in degenerate cases, by its properties."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from spigot_nlp.evaluation import (
    Counts,
    Drawn,
    bootstrap,
    draw_scores,
    interval,
    seed_bootstrap,
    seed_interval,
)

MODULE = importlib.import_module("spigot_nlp.evaluation.bootstrap")  # whose name a function has, too
M = 300


def coins(chances: list[float] | np.ndarray, start: int, first: int = 0) -> dict[int, Counts]:
    """Runs with one answer a sentence, each run right as often as its chances say."""
    generator, ones = np.random.default_rng(start), np.ones(M, dtype=int)
    return {first + k: Counts(generator.random(M) < chance, ones, ones) for k, chance in enumerate(chances)}


def flat(shares: list[float], first: int = 0) -> dict[int, Counts]:
    """Runs for which all sentences are alike."""
    return {first + k: Counts([round(100 * share)] * 20, [100] * 20, [100] * 20) for k, share in enumerate(shares)}


def matrix(runs: dict[int, Counts]) -> np.ndarray:
    return np.stack([counts.correct for counts in runs.values()]).astype(float)


def two_way_error(scores: np.ndarray) -> tuple[float, float]:
    """Variance of the mean of a table of seeds by sentences: what seeds and what sentences alone account for."""
    n, m = scores.shape
    rows, columns = scores.mean(1), scores.mean(0)
    rest = scores - rows[:, None] - columns[None, :] + scores.mean()
    interaction = (rest**2).sum() / (n - 1) / m  # divided as the bootstrap does, which draws from the sentences it has
    return float(rows.var(ddof=1) / n), float(max(0.0, (columns.var() - interaction / n) / m))


def variance_of(runs: dict[int, Counts]) -> float:
    """By the width of an interval so narrow that Student's tails have no part in it: from the quartiles of a normal."""
    found = seed_interval(runs, samples=10_000, level=0.5)
    return ((found.high - found.low) / 2 / 0.6745) ** 2


@pytest.mark.parametrize(("skill", "taste"), [(0.0, 0.3), (0.1, 0.0), (0.05, 0.2), (0.0, 0.0)])
def test_is_the_analysis_of_variance_where_the_score_is_a_mean(skill: float, taste: float) -> None:
    generator = np.random.default_rng(1)
    likes = generator.normal(scale=taste, size=M)
    runs = coins(np.clip(0.6 + likes + generator.normal(scale=skill, size=(20, 1)), 0, 1), 2)
    assert variance_of(runs) == pytest.approx(sum(two_way_error(matrix(runs))), rel=0.1)


def test_seeds_that_agree_leave_the_bootstrap_over_sentences() -> None:
    a, b = coins([0.7], 0)[0], coins([0.6], 1)[0]
    known, found = (
        bootstrap(a, b, samples=500),
        seed_bootstrap(dict.fromkeys(range(4), a), dict.fromkeys(range(4), b), samples=500),
    )
    assert [found.difference, found.low, found.high, found.p] == pytest.approx(
        [known.difference, known.low, known.high, known.p]
    )
    alone, known = seed_interval(dict.fromkeys(range(3), a), samples=500), interval(a, samples=500)
    assert (alone.value, alone.low, alone.high) == pytest.approx((known.value, known.low, known.high))


def test_one_seed_is_the_bootstrap_over_sentences_and_says_so() -> None:
    a, b = coins([0.7], 0), coins([0.6], 1, first=5)
    known, found = bootstrap(a[0], b[5], samples=500), seed_bootstrap(a, b, samples=500)
    assert [found.low, found.high, found.p] == pytest.approx([known.low, known.high, known.p])
    assert (found.over, found.seeds, found.sentences) == ("sentences", (1, 1), M)
    assert seed_interval(a, samples=50).over == "sentences"


def test_sentences_that_are_alike_leave_students_interval_over_seeds() -> None:
    shares = [0.50, 0.56, 0.53, 0.61, 0.55]
    for runs in (flat(shares), Drawn.given(dict(enumerate(shares)), samples=40_000)):
        found = seed_interval(runs, samples=40_000)
        half = t.ppf(0.975, 4) * np.std(shares, ddof=1) / 5**0.5
        assert (found.low, found.high) == pytest.approx((0.55 - half, 0.55 + half), abs=1e-4)


def test_pairs_have_the_p_of_students_test() -> None:
    from scipy.stats import ttest_rel

    one, other = [0.50, 0.56, 0.53, 0.61, 0.55], [0.49, 0.52, 0.52, 0.55, 0.56]
    found = seed_bootstrap(flat(one), flat(other), samples=40_000)
    assert found.paired
    assert found.p == pytest.approx(ttest_rel(one, other).pvalue, abs=1e-4)
    apart = seed_bootstrap(flat(one), flat(other, first=9), samples=40_000)
    assert not apart.paired
    assert apart.p > found.p  # what the seeds have in common is not made use of
    assert apart.difference == found.difference


def test_runs_are_paired_by_seed_and_not_by_place() -> None:
    one, other = flat([0.50, 0.60, 0.70]), flat([0.45, 0.55, 0.65])
    turned = dict(reversed(other.items()))
    assert seed_bootstrap(one, turned, samples=200) == seed_bootstrap(one, other, samples=200)
    assert seed_bootstrap(one, other, samples=200).p < 0.02


def test_a_single_run_is_taken_to_vary_as_the_others_do() -> None:
    shares = [0.50, 0.56, 0.53, 0.61, 0.55]
    found = seed_bootstrap(flat(shares), flat([0.4], first=9), samples=40_000)
    half = t.ppf(0.975, 4) * np.std(shares, ddof=1) * (1 / 5 + 1) ** 0.5
    assert (found.low, found.high) == pytest.approx((0.15 - half, 0.15 + half), abs=1e-4)
    assert found.seeds == (5, 1)


@given(st.integers(0, 100), st.integers(1, 4), st.integers(1, 4), st.integers(0, 3))
def test_the_order_of_the_systems_is_a_sign(start: int, n: int, k: int, first: int) -> None:
    a, b = coins([0.6] * n, start), coins([0.6] * k, start + 1000, first)
    there, back = seed_bootstrap(a, b, samples=100), seed_bootstrap(b, a, samples=100)
    assert there.p == back.p
    assert [there.difference, there.low, there.high] == pytest.approx([-back.difference, -back.high, -back.low])


def test_a_system_does_not_differ_from_itself() -> None:
    runs = coins([0.6, 0.7, 0.5], 0)
    found = seed_bootstrap(runs, runs, samples=50)
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_drawing_once_or_twice_is_the_same() -> None:
    a, b = coins([0.6, 0.7, 0.5], 0), coins([0.7, 0.7, 0.8], 1)
    drawn = draw_scores([a, b], samples=300, seed=3)
    assert seed_bootstrap(*drawn, seed=3) == seed_bootstrap(a, b, samples=300, seed=3)
    assert seed_interval(drawn[1], seed=3) == seed_interval(b, samples=300, seed=3)


def test_draws_equal_a_loop_and_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counts([1, 0, 3], [2, 1, 3], [2, 2, 4]), Counts([0, 1, 2], [2, 1, 3], [2, 2, 4])
    (drawn,) = draw_scores([dict(enumerate(counts))], samples=20, seed=5, measure="recall")
    generator = np.random.default_rng(5)
    for row in drawn.draws:
        picked = generator.integers(3, size=3)
        assert row.tolist() == pytest.approx([each.correct[picked].sum() / each.gold[picked].sum() for each in counts])
    monkeypatch.setattr(MODULE, "_CHUNK", 7)
    (again,) = draw_scores([dict(enumerate(counts))], samples=20, seed=5, measure="recall")
    assert np.array_equal(again.draws, drawn.draws)


@pytest.mark.parametrize(("skill", "taste"), [(0.0, 0.0), (0.08, 0.0), (0.03, 0.2)])
def test_finds_nothing_where_nothing_is(skill: float, taste: float) -> None:
    """Equal systems of three seeds are told apart about one time in twenty."""
    generator, found = np.random.default_rng(0), 0
    for trial in range(100):
        sides = [
            coins(
                np.clip(0.6 + generator.normal(scale=taste, size=M) + generator.normal(scale=skill, size=(3, 1)), 0, 1),
                k,
            )
            for k in (2 * trial, 2 * trial + 1)
        ]
        found += seed_bootstrap(sides[0], sides[1], samples=200).p < 0.05
    assert found / 100 <= 0.12


def test_bad_arguments() -> None:
    one = coins([0.5, 0.5], 0)
    with pytest.raises(ValueError, match="level is 95; it must lie between 0 and 1"):
        seed_bootstrap(one, one, samples=5, level=95)
    with pytest.raises(ValueError, match="samples is 0; it must be at least 1"):
        seed_interval(one, samples=0)
    with pytest.raises(ValueError, match="there are no runs to resample"):
        seed_bootstrap(one, {})
    with pytest.raises(ValueError, match="scored on 300 and 20 sentences"):
        seed_bootstrap(one, flat([0.5]))
    with pytest.raises(ValueError, match="sentence 1 has 2 gold answers in the counts of the first"):
        seed_bootstrap({0: Counts([1], [1], [2])}, {0: Counts([1], [1], [1])})
    with pytest.raises(ValueError, match="a single score does not say how sure it is"):
        seed_interval(Drawn.given({0: 0.5}))
    with pytest.raises(ValueError, match="there are no scores"):
        Drawn.given({})
    with pytest.raises(TypeError, match="one system is drawn and the other is not"):
        seed_bootstrap(one, Drawn.given({0: 0.5}))
    with pytest.raises(ValueError, match="draw both in one call of draw_scores"):
        seed_bootstrap(draw_scores([one], samples=10)[0], Drawn.given({0: 0.5}, samples=10))
