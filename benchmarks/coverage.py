"""How often intervals over seeds and sentences hold the truth: `python -m benchmarks.coverage [--trials N]` (Markdown).

Two systems without any difference in the mean are simulated again and again: seeds that vary in skill, sentences that
suit one system or the other, and the chance of every single answer. For each, 95 % intervals of the difference of mean
F1 are computed in several ways, and the share that holds 0 is printed, with their mean width in points.
"""

import argparse
from collections.abc import Callable
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from spigot_nlp.evaluation import Counts, Drawn, draw_scores, seed_bootstrap
from spigot_nlp.evaluation.bootstrap import middle

LEVEL, SAMPLES, SENTENCES = 0.95, 1000, 300
WORLDS = {  # spread of seeds, of what suits a system in a sentence; in logits of an answer being right
    "chance of answers only": (0.0, 0.0),
    "seeds": (0.2, 0.0),
    "sentences": (0.0, 1.0),
    "seeds and sentences": (0.1, 1.0),
}
Way = Callable[[Drawn, Drawn, np.random.Generator], tuple[float, float]]


def world(seeds: tuple[int, int], skill: float, taste: float, chance: np.random.Generator) -> list[dict[int, Counts]]:
    """Runs of two systems on the same sentences; neither is better by design."""
    wanted = 1 + chance.poisson(9, SENTENCES)
    hard = 1.0 + chance.normal(size=SENTENCES)
    systems = []
    for several in seeds:
        likes = chance.normal(scale=taste, size=SENTENCES) if taste else np.zeros(SENTENCES)
        runs = {}
        for k in range(several):
            right = chance.binomial(wanted, 1 / (1 + np.exp(-(hard + likes + chance.normal() * skill))))
            runs[k] = Counts(right, right + chance.binomial(wanted, 0.2), wanted)
        systems.append(runs)
    return systems


def sentences_only(a: Drawn, b: Drawn, chance: np.random.Generator) -> tuple[float, float]:
    """The seeds as they are."""
    return middle(a.draws.mean(axis=1) - b.draws.mean(axis=1), LEVEL)


def replaced(scale: Callable[[int], float], paired: bool) -> Way:
    """Seeds drawn with replacement, deviations from their mean times a factor."""

    def around(drawn: Drawn, picks: NDArray[np.int64]) -> NDArray[np.float64]:
        mean = drawn.draws.mean(axis=1)
        picked = np.take_along_axis(drawn.draws, picks, axis=1).mean(axis=1)
        return mean + scale(len(drawn.seeds)) * (picked - mean)

    def way(a: Drawn, b: Drawn, chance: np.random.Generator) -> tuple[float, float]:
        picks = [chance.integers(each.draws.shape[1], size=each.draws.shape) for each in (a, b)]
        return middle(around(a, picks[0]) - around(b, picks[0 if paired else 1]), LEVEL)

    return way


def chosen(paired: bool) -> Way:
    """What `seed_bootstrap` does."""

    def way(a: Drawn, b: Drawn, chance: np.random.Generator) -> tuple[float, float]:
        apart = b if paired else Drawn(tuple(100 + k for k in b.seeds), b.values, b.draws, b.sentences)
        found = seed_bootstrap(a, apart, seed=int(chance.integers(2**31)), level=LEVEL)
        return found.low, found.high

    return way


def seeds_only(a: Drawn, b: Drawn, chance: np.random.Generator) -> tuple[float, float]:
    """Student's interval of the differences, whatever the sentences."""
    found = a.values - b.values
    half = t.ppf((1 + LEVEL) / 2, len(found) - 1) * found.std(ddof=1) / len(found) ** 0.5
    return found.mean() - half, found.mean() + half


def ways(paired: bool) -> dict[str, Way]:
    few = {"seeds only, Student": seeds_only} if paired else {}
    return {
        "sentences only": sentences_only,
        **few,
        "seeds drawn": replaced(lambda n: 1.0, paired),
        "drawn, √(n/(n−1))": replaced(lambda n: (n / (n - 1)) ** 0.5, paired),
        "drawn, Student's factor": replaced(
            lambda n: (n / (n - 1)) ** 0.5 * t.ppf((1 + LEVEL) / 2, n - 1) / norm.ppf((1 + LEVEL) / 2), paired
        ),
        "`seed_bootstrap`": chosen(paired),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--apart", action="store_true", help="the systems have no seeds in common")
    arguments = parser.parse_args()
    names = list(ways(not arguments.apart))
    print("| what varies | seeds | " + " | ".join(names) + " |\n|---|---|" + "---|" * len(names))
    for about, (skill, taste) in WORLDS.items():
        for seeds in arguments.seeds:
            chance = np.random.default_rng([seeds, int(arguments.apart)])
            held: dict[str, list[tuple[bool, float]]] = {name: [] for name in names}
            for trial in range(arguments.trials):
                systems = world((seeds, seeds), skill, taste, chance)
                a, b = draw_scores(systems, samples=SAMPLES, seed=trial)
                for name, way in ways(not arguments.apart).items():
                    low, high = way(a, b, chance)
                    held[name].append((low <= 0 <= high, 100 * (high - low)))
            cells = [
                f"{100 * fmean(hit for hit, _ in found):.1f} ({fmean(width for _, width in found):.1f})"
                for found in held.values()
            ]
            print(f"| {about} | {seeds} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
