r"""How sure one can be of a score, or of a difference between systems: over sentences, and over seeds besides.

Over sentences a resample draws as many as there are, with replacement, and the score is computed anew from the sums of
their counts. Anything that `Counts` holds works: F1 of graphs, UAS, accuracy, exact match.

The runs of a system, one a seed, judge the same sentences. Seeds and sentences are both samples, of the trainings that
might have been and of the texts that might have been chosen, and they are crossed: with $a_i$ what is peculiar to seed
$i$, $b_j$ to sentence $j$ and $c_{ij}$ to both, the mean score of $n$ runs on $m$ sentences (or the mean difference of
two systems) has the variance
$$\frac{\sigma_a^2}{n} + \frac{\sigma_b^2}{m} + \frac{\sigma_c^2}{nm}.$$

**Sentences** are drawn with replacement, the same ones for all seeds and systems. **Seeds** could be drawn in the same
way, but a handful of them has no tails: the spread of five values drawn with replacement is too small by
$\sqrt{4/5}$, the most extreme draw cannot leave their range, and no small $p$ is possible or to be trusted. So the mean
over seeds is moved by its standard error times a value of Student's $t$ with $n - 1$ degrees of freedom: the interval
over seeds alone is then the classical one of a mean. Each of the two parts also holds the third term of the sum; it is
taken out of the sentences' part once, since otherwise it would count twice (Owen 2007: three times, if drawn seeds meet
drawn sentences).

`docs/statistics.md` has the formulas, and how often such intervals hold the truth; `benchmarks/coverage.py` measured
it, beside what was not chosen.

References:
    Owen (2007), The pigeonhole bootstrap, section 3.
    Cameron, Gelbach and Miller (2011), Robust Inference with Multiway Clustering, section 2.2.
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapters 6, 12 and 16.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
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
    _check_level(level)


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


SAMPLES = 10_000
"""How many resamples are drawn unless told otherwise."""

_ROUNDING = 1e-12  # differences of means below this are none


@dataclass(frozen=True)
class SeedInterval:
    """The mean score of a system's runs, and how far it would vary with their seeds and the test sentences.

    Attributes:
        value: The mean over the seeds.
        low: Where the confidence interval begins.
        high: Where it ends.
        level: How much of the resamples the interval holds.
        samples: How many resamples were drawn.
        seeds: How many seeds.
        sentences: How many sentences; 0 if only the scores are known.

    Example:
        >>> SeedInterval(0.81, 0.8, 0.82, level=0.95, samples=10_000, seeds=1, sentences=500).over
        'sentences'
    """

    value: float
    low: float
    high: float
    level: float
    samples: int
    seeds: int
    sentences: int

    @property
    def over(self) -> str:
        """What the interval speaks of, in words: one seed says nothing about others."""
        return _over(self.seeds > 1, self.sentences > 0)


@dataclass(frozen=True)
class SeedComparison:
    """Two systems of several runs on the same sentences.

    Attributes:
        first: The mean score of the first system.
        second: The mean score of the second system.
        difference: `first - second`: positive if the first is better.
        low: Where the confidence interval of the difference begins.
        high: Where it ends.
        p: How easily a difference of this sign comes about by the choice of seeds and sentences; two-sided.
        level: How much of the resamples the interval holds.
        samples: How many resamples were drawn.
        seeds: How many seeds each system has.
        sentences: How many sentences; 0 if only the scores are known.
        paired: Whether both systems have the same seeds, so that runs of one seed were compared with each other.

    Example:
        >>> same = {0: Counts([1, 2], [2, 2], [2, 4]), 1: Counts([2, 2], [2, 2], [2, 4])}
        >>> result = seed_bootstrap(same, same, samples=10)
        >>> result.difference, result.low, result.high, result.p, result.over
        (0.0, 0.0, 0.0, 1.0, 'seeds and sentences')
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    p: float
    level: float
    samples: int
    seeds: tuple[int, int]
    sentences: int
    paired: bool

    @property
    def over(self) -> str:
        """What interval and p speak of, in words: one seed says nothing about others."""
        return _over(max(self.seeds) > 1, self.sentences > 0)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The scores of a system's runs, as they are and on resampled sentences.

    Attributes:
        seeds: The seeds of the runs, ascending.
        values: The score of each run on all sentences.
        draws: The scores on each resample (row) of each run (column).
        sentences: How many sentences; 0 if only the scores are known, which then are the same on every resample.

    Example:
        >>> drawn = Drawn.given({0: 0.5, 1: 0.7}, samples=3)
        >>> drawn.draws.tolist(), drawn.sentences
        ([[0.5, 0.7], [0.5, 0.7], [0.5, 0.7]], 0)
    """

    seeds: tuple[int, ...]
    values: NDArray[np.float64]
    draws: NDArray[np.float64]
    sentences: int

    @classmethod
    def given(cls, scores: Mapping[int, float], *, samples: int = SAMPLES) -> "Drawn":
        """Scores by seed, where it is not known what they were counted from.

        Args:
            scores: The score of each seed.
            samples: As many resamples as those have that it is compared with.
        """
        if not scores:
            raise ValueError("there are no scores; give one or more, by seed.")
        values = np.array([scores[seed] for seed in sorted(scores)], dtype=np.float64)
        return cls(tuple(sorted(scores)), values, np.broadcast_to(values, (samples, len(values))), 0)


def draw_scores(
    systems: Sequence[Mapping[int, Counts]], *, samples: int = SAMPLES, seed: int = 0, measure: Measure = "f1"
) -> list[Drawn]:
    """Score the runs of systems on resampled sentences: each resample draws once, for all of them.

    Args:
        systems: The counts of each system by seed, all on the same sentences.
        samples: How many resamples.
        seed: Where the random numbers start; the same seed draws the same sentences.
        measure: Which score.

    Returns:
        What `seed_interval` and `seed_bootstrap` take in place of counts: where many systems are compared, the
        sentences are drawn only once.

    Example:
        >>> drawn, = draw_scores([{0: Counts([1, 0], [1, 1], [1, 1]), 1: Counts([1, 1], [1, 1], [1, 1])}], samples=4)
        >>> drawn.values.tolist(), drawn.draws.shape
        ([0.5, 1.0], (4, 2))
    """
    every = [system[seed] for system in systems for seed in sorted(system)]
    if not every or not all(systems):
        raise ValueError("there are no runs to resample; give the counts of one or more for each system, by seed.")
    check_resampling(every[0], samples)
    for other in every[1:]:
        check_same_sentences(every[0], other, same_gold=False)
    columns: dict[bytes, int] = {}  # most runs share their gold counts, and trees all that is divided by
    kept: list[NDArray[np.int64]] = []

    def place(column: NDArray[np.int64]) -> int:
        found = columns.setdefault(column.tobytes(), len(kept))
        if found == len(kept):
            kept.append(column)
        return found

    places = np.array([[place(c.correct), place(c.predicted), place(c.gold)] for c in every]).T
    matrix = np.stack(kept, axis=1).astype(np.float64)
    draws = np.concatenate(
        [
            ratio(measure, *(weights @ matrix)[:, places].transpose(1, 0, 2))
            for weights in resamples(len(every[0]), samples, seed)
        ]
    )
    values = ratio(measure, *matrix.sum(axis=0)[places])
    found, start = [], 0
    for system in systems:
        end = start + len(system)
        found.append(Drawn(tuple(sorted(system)), values[start:end], draws[:, start:end], len(every[0])))
        start = end
    return found


def seed_interval(
    system: Mapping[int, Counts] | Drawn,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    level: float = 0.95,
    measure: Measure = "f1",
) -> SeedInterval:
    r"""The mean score of several runs, with an interval over seeds and sentences.

    With $\bar v$ the mean score, $\bar v_r$ that on the sentences of resample $r$, $s$ the standard deviation over the
    $n$ seeds and $t_r$ drawn from Student's distribution with $n - 1$ degrees of freedom, the interval holds the
    middle part of
    $$\bar v + \kappa\,(\bar v_r - \bar v) + t_r\, s / \sqrt n, \qquad
    \kappa^2 = \max\Bigl(0,\; 1 - \frac{\hat\sigma_c^2 / nm}{\operatorname{var}_r \bar v_r}\Bigr).$$
    $\hat\sigma_c^2 / m$ is how much the changes from resample to resample differ between seeds: the mean over $r$ of
    the variance over seeds of $v_{ir} - v_i$.

    With one seed this is the bootstrap over sentences, and the result says so.

    Args:
        system: The counts of each run by seed, or what `draw_scores` made of them.
        samples: How many resamples, where there are counts.
        seed: Where the random numbers start.
        level: How much of the resamples the interval holds.
        measure: Which score, where there are counts.

    Raises:
        ValueError: If there is one seed and nothing known but its score.

    Example:
        >>> runs = {0: Counts([1, 0] * 50, [1] * 100, [1] * 100), 1: Counts([1, 1] * 50, [1] * 100, [1] * 100)}
        >>> result = seed_interval(runs, samples=1000)
        >>> result.value, result.over, result.high - result.low > 1  # two seeds this far apart tell nothing
        (0.75, 'seeds and sentences', True)
    """
    drawn = (
        system if isinstance(system, Drawn) else draw_scores([system], samples=samples, seed=seed, measure=measure)[0]
    )
    _check_level(level)
    _check_known(len(drawn.seeds) > 1, drawn)
    moved = _sentence_part([(drawn, 1.0)]) + _seed_part(_spread(drawn), len(drawn.seeds), len(drawn.draws), (seed, 1))
    value = float(drawn.values.mean())
    low, high = middle(value + moved, level)
    return SeedInterval(value, low, high, level, len(moved), len(drawn.seeds), drawn.sentences)


def seed_bootstrap(
    system_a: Mapping[int, Counts] | Drawn,
    system_b: Mapping[int, Counts] | Drawn,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    level: float = 0.95,
    measure: Measure = "f1",
) -> SeedComparison:
    r"""How sure it is that one system is better than another, over seeds and sentences.

    The difference of the mean scores takes the place of the mean score in `seed_interval`. If both systems have the
    same seeds they are paired: $s$ is the standard deviation of the differences of runs with one seed. Otherwise each
    system has its own $s$, $n$ and $t_r$, drawn independently; of one that has a single run, the spread is taken to be
    that of the other. $p$ is computed as in `bootstrap`: twice the share of resamples in which the lead is lost.

    With one seed each this is the paired bootstrap over sentences, and the result says so.

    Args:
        system_a: The counts of the first system's runs by seed, or what `draw_scores` made of them.
        system_b: Those of the second, on the same sentences against the same gold data.
        samples: How many resamples, where there are counts.
        seed: Where the random numbers start.
        level: How much of the resamples the interval holds.
        measure: What to compare, where there are counts.

    Returns:
        The difference of the means, first minus second, its confidence interval and $p$.

    Example:
        >>> def runs(right: int) -> dict[int, Counts]:
        ...     return {k: Counts([1] * (right + k) + [0] * (100 - right - k), [1] * 100, [1] * 100) for k in range(5)}
        >>> result = seed_bootstrap(runs(80), runs(60), samples=1000)
        >>> round(result.difference, 3), result.low > 0, result.paired, result.over
        (0.2, True, True, 'seeds and sentences')
    """
    a, b = _both(system_a, system_b, samples, seed, measure)
    _check_level(level)
    if len(a.draws) != len(b.draws) or a.sentences != b.sentences:
        raise ValueError(
            f"the systems were drawn {len(a.draws)} and {len(b.draws)} times from {a.sentences} and {b.sentences} "
            "sentences; draw both in one call of draw_scores."
        )
    difference = float(a.values.mean() - b.values.mean())
    if abs(difference) < _ROUNDING:
        difference = 0.0
    # The better one first, so that the order of the systems changes signs and nothing else.
    one, other = (a, b) if difference >= 0 else (b, a)
    paired = set(a.seeds) == set(b.seeds)
    _check_known(len(a.seeds) > 1 or len(b.seeds) > 1, a)
    if paired:
        both = Drawn(one.seeds, one.values - other.values, one.draws - other.draws, one.sentences)
        lead = abs(difference) + _sentence_part([(both, 1.0)])
        lead = lead + _seed_part(_spread(both), len(both.seeds), len(lead), (seed, 1))
    else:
        lead = abs(difference) + _sentence_part([(one, 1.0), (other, -1.0)]) + _seed_parts(one, other, seed)
    lost = int(np.count_nonzero(lead <= 0)) if difference else len(lead)
    p = min(1.0, 2 * (1 + lost) / (1 + len(lead)))
    low, high = middle(lead if one is a else -lead, level)
    return SeedComparison(
        float(a.values.mean()),
        float(b.values.mean()),
        difference,
        low,
        high,
        p,
        level,
        len(lead),
        (len(a.seeds), len(b.seeds)),
        a.sentences,
        paired,
    )


def _both(
    system_a: Mapping[int, Counts] | Drawn,
    system_b: Mapping[int, Counts] | Drawn,
    samples: int,
    seed: int,
    measure: Measure,
) -> tuple[Drawn, Drawn]:
    if isinstance(system_a, Drawn) and isinstance(system_b, Drawn):
        return system_a, system_b
    if isinstance(system_a, Drawn) or isinstance(system_b, Drawn):
        raise TypeError("one system is drawn and the other is not; draw both in one call of draw_scores.")
    a, b = draw_scores([system_a, system_b], samples=samples, seed=seed, measure=measure)
    first, *others = (*system_a.values(), *system_b.values())
    for counts in others:
        check_same_sentences(first, counts)
    return a, b


def _sentence_part(sides: Sequence[tuple[Drawn, float]]) -> NDArray[np.float64]:
    """How far the mean score, or a difference of them, moves with the sentences, without what seeds account for."""
    changes = [(drawn.draws - drawn.values, sign) for drawn, sign in sides]
    moved = np.sum([sign * change.mean(axis=1) for change, sign in changes], axis=0)
    known = [change.var(axis=1, ddof=1).mean() for change, _ in changes if change.shape[1] > 1]
    if not known:
        return moved
    # A system with a single run is taken to be as the other one.
    own = sum(
        (change.var(axis=1, ddof=1).mean() if change.shape[1] > 1 else known[0]) / change.shape[1]
        for change, _ in changes
    )
    total = moved.var()
    return moved * np.sqrt(max(0.0, 1 - own / total)) if total > 0 else moved


def _seed_part(
    spread: float, seeds: int, samples: int, start: tuple[int, int], among: float = 0.0
) -> NDArray[np.float64]:
    """How far a mean over seeds moves: its standard error times values of Student's distribution, evenly drawn."""
    if seeds < 2:
        return np.zeros(samples)
    shares = (np.random.default_rng(start).permutation(samples) + 0.5) / samples
    return spread * np.sqrt(1 / seeds + among) * scipy.special.stdtrit(seeds - 1, shares)


def _seed_parts(one: Drawn, other: Drawn, seed: int) -> NDArray[np.float64]:
    """How far the difference of means over seeds that have nothing to do with each other moves."""
    sizes, samples = (len(one.seeds), len(other.seeds)), len(one.draws)
    if min(sizes) == 1:
        several = one if sizes[0] > 1 else other
        return _seed_part(_spread(several), max(sizes), samples, (seed, 1), among=1.0)
    return _seed_part(_spread(one), sizes[0], samples, (seed, 1)) + _seed_part(
        _spread(other), sizes[1], samples, (seed, 2)
    )


def _spread(drawn: Drawn) -> float:
    return float(drawn.values.std(ddof=1)) if len(drawn.seeds) > 1 else 0.0


def _over(seeds: bool, sentences: bool) -> str:
    return " and ".join(name for name, known in (("seeds", seeds), ("sentences", sentences)) if known)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it must lie between 0 and 1, for example 0.95.")


def _check_known(several: bool, drawn: Drawn) -> None:
    if not several and not drawn.sentences:
        raise ValueError("a single score does not say how sure it is; give several seeds, or counts of the sentences.")


def holm(p_values: Sequence[float]) -> list[float]:
    r"""Holm's adjusted p values: who is below $\alpha$ there is so with a chance of error of $\alpha$ in all.

    With the values in ascending order $p_{(1)} \le \dots \le p_{(k)}$,
    $$\tilde p_{(i)} = \max_{j \le i} \min\bigl(1,\; (k - j + 1)\, p_{(j)}\bigr):$$
    the smallest is multiplied by how many there are, the next by one less, and none is smaller than the one before. The
    chance that any true null hypothesis among them is rejected at $\alpha$ is at most $\alpha$, whatever ties the
    comparisons have with each other, such as one baseline for all.

    Args:
        p_values: One for each comparison, in any order.

    Returns:
        The adjusted values, in the same order.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
        >>> holm([])
        []

    References:
        Holm (1979), A Simple Sequentially Rejective Multiple Test Procedure, section 3.
    """
    values = np.asarray(p_values, dtype=np.float64)
    wrong = [value for value in values.tolist() if not 0 <= value <= 1]
    if wrong:
        raise ValueError(f"{wrong[0]} is no p value; they lie between 0 and 1.")
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, values[order] * np.arange(len(values), 0, -1)))
    return adjusted.tolist()
