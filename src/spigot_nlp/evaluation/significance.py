"""How sure one can be of a score, or of a difference between two systems: the bootstrap over sentences.

A resample draws as many sentences as there are, with replacement, and the score is computed anew from the sums of
their counts. Anything that `Counts` holds works: F1 of graphs, UAS, accuracy, exact match.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spigot_nlp.evaluation.counts import Counts, Measure, ratio

_CHUNK = 1_000_000  # sentences drawn at a time, so that memory does not grow with the number of resamples


@dataclass(frozen=True)
class Interval:
    """A score and how far it would vary with the choice of test sentences.

    Attributes:
        value: The score of the corpus as it is.
        low: Where the confidence interval begins.
        high: Where it ends.
        level: The share of resamples that the interval holds.
        samples: How many resamples were drawn.

    Example:
        >>> Interval(value=0.81, low=0.8, high=0.82, level=0.95, samples=10_000).high
        0.82
    """

    value: float
    low: float
    high: float
    level: float
    samples: int


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same sentences.

    Attributes:
        first: The score of the first system.
        second: The score of the second system.
        difference: `first - second`: positive if the first is better.
        low: Where the confidence interval of the difference begins.
        high: Where it ends.
        p: How easily a difference of this sign comes about by the choice of sentences alone, from 0 to 1; two-sided.
        level: The share of resamples that the interval holds.
        samples: How many resamples were drawn.

    Example:
        >>> same = Counts([1, 2], [2, 2], [2, 4])
        >>> bootstrap(same, same, samples=10)
        Comparison(first=0.6, second=0.6, difference=0.0, low=0.0, high=0.0, p=1.0, level=0.95, samples=10)
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    p: float
    level: float
    samples: int


def bootstrap(
    counts_a: Counts,
    counts_b: Counts,
    *,
    samples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    measure: Measure = "f1",
) -> Comparison:
    r"""Paired bootstrap: how sure it is that one system is better than another.

    Both systems are scored on the same resampled sentences, $R$ times. With $\delta$ the difference on the corpus and
    $\delta_r$ that on resample $r$,
    $$p = \min\Bigl(1,\; 2\,\frac{1 + \#\{r : \delta_r\,\operatorname{sign}\delta \le 0\}}{1 + R}\Bigr),$$
    twice the share of resamples in which the lead is lost, and 1 if there is no lead ($\delta = 0$). The added ones
    keep $p$ above 0, which no finite number of resamples can show. The interval holds the middle part of the
    $\delta_r$ (percentile interval), so it excludes 0 about when $p < 1 - \text{level}$.

    Args:
        counts_a: Counts of the first system.
        counts_b: Counts of the second, on the same sentences against the same gold data.
        samples: How many resamples $R$.
        seed: Where the random numbers start; the same seed draws the same sentences.
        level: The share of resamples that the interval holds.
        measure: What to compare; F1 of counts with one answer an item is their accuracy.

    Returns:
        The difference, first minus second, its confidence interval and $p$.

    Example:
        >>> better, worse = Counts([3, 2] * 50, [4] * 100, [4] * 100), Counts([2, 2] * 50, [4] * 100, [4] * 100)
        >>> result = bootstrap(better, worse, samples=1000)
        >>> result.difference, result.low > 0, round(result.p, 3)
        (0.125, True, 0.002)

    References:
        Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapters 13 and 16.
        Koehn (2004), Statistical Significance Tests for Machine Translation Evaluation, section 4.
    """
    check_resampling(counts_a, samples, level)
    check_same_sentences(counts_a, counts_b)
    first, second = _value(counts_a, measure), _value(counts_b, measure)
    difference = first - second
    deltas = np.concatenate(
        [
            ratio(measure, *(weights @ _matrix(counts_a)).T) - ratio(measure, *(weights @ _matrix(counts_b)).T)
            for weights in resamples(len(counts_a), samples, seed)
        ]
    )
    lost = int(np.count_nonzero(deltas * np.sign(difference) <= 0))
    p = min(1.0, 2 * (1 + lost) / (1 + samples))
    low, high = middle(deltas, level)
    return Comparison(first, second, difference, low, high, p, level, samples)


def interval(
    counts: Counts, *, samples: int = 10_000, seed: int = 0, level: float = 0.95, measure: Measure = "f1"
) -> Interval:
    """Percentile bootstrap interval of one system's score.

    Args:
        counts: Its counts.
        samples: How many resamples.
        seed: Where the random numbers start.
        level: The share of resamples that the interval holds.
        measure: Which score.

    Example:
        >>> result = interval(Counts([1, 0] * 50, [1] * 100, [1] * 100), samples=1000)
        >>> result.value, result.low < 0.45, result.high > 0.55
        (0.5, True, True)
    """
    check_resampling(counts, samples, level)
    values = np.concatenate(
        [ratio(measure, *(weights @ _matrix(counts)).T) for weights in resamples(len(counts), samples, seed)]
    )
    return Interval(_value(counts, measure), *middle(values, level), level, samples)


def resamples(sentences: int, samples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """How often each resample (row) draws each sentence (column), some rows at a time."""
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK // sentences)
    for start in range(0, samples, rows):
        now = min(rows, samples - start)
        drawn = generator.integers(sentences, size=(now, sentences))
        drawn += sentences * np.arange(now)[:, None]
        yield np.bincount(drawn.ravel(), minlength=now * sentences).reshape(now, sentences).astype(np.float64)


def _matrix(counts: Counts) -> NDArray[np.float64]:
    return np.stack([counts.correct, counts.predicted, counts.gold], axis=1).astype(np.float64)


def _value(counts: Counts, measure: Measure) -> float:
    return float(ratio(measure, counts.correct.sum(), counts.predicted.sum(), counts.gold.sum()))


def middle(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def check_resampling(counts: Counts, samples: int, level: float = 0.5) -> None:
    """Complain if there is nothing to draw, or too little is asked for."""
    if len(counts) == 0:
        raise ValueError("there are no sentences to resample; give counts of at least one.")
    if samples < 1:
        raise ValueError(f"samples is {samples}; it must be at least 1.")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it must lie between 0 and 1, for example 0.95.")


def check_same_sentences(first: Counts, second: Counts, *, same_gold: bool = True) -> None:
    """Complain if two systems were not judged by the same sentences, as far as counts can tell."""
    if len(first) != len(second):
        raise ValueError(
            f"the systems were scored on {len(first)} and {len(second)} sentences; compare them on the same ones."
        )
    if same_gold and not np.array_equal(first.gold, second.gold):
        i = int((first.gold != second.gold).argmax())
        raise ValueError(
            f"sentence {i + 1} has {first.gold[i]} gold answers in the counts of the first system and "
            f"{second.gold[i]} in those of the second; score both against the same gold data."
        )
