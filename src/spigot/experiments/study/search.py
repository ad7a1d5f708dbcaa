"""Which combinations of values a system is tried with: all, some by chance, or by what was seen so far."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from spigot.experiments.study.file import Range, Tried, Tuning

Combination = dict[str, Any]


def combinations(tried: Tried, tuning: Tuning) -> list[Combination]:
    """The combinations of a search that does not depend on results.

    Args:
        tried: Values to try.
        tuning: All of them, or how many by chance. A larger number keeps the combinations of a smaller one.

    Raises:
        ValueError: If a grid has a range in it.

    Example:
        >>> combinations({"a": (1, 2), "b": (True,)}, Tuning())
        [{'a': 1, 'b': True}, {'a': 2, 'b': True}]
    """
    ranges = [name for name, values in tried.items() if isinstance(values, Range)]
    if tuning.search == "grid":
        if ranges:
            raise ValueError(f"tune.{ranges[0]} is a range, and a grid needs values; set tune.search = 'random'")
        return [dict(zip(tried, picked, strict=True)) for picked in itertools.product(*_lists(tried))]
    if ranges:
        dice = Random(tuning.seed)
        return [{name: _drawn(values, dice) for name, values in tried.items()} for _ in range(tuning.trials or 1)]
    options = _lists(tried)
    total = math.prod(map(len, options))
    places = shuffled(total, min(tuning.trials or total, total), tuning.seed)
    return [dict(zip(tried, _picked(options, place), strict=True)) for place in places]


def _lists(tried: Tried) -> list[Sequence[Any]]:
    return [values for values in tried.values() if not isinstance(values, Range)]


def _picked(options: Sequence[Sequence[Any]], place: int) -> list[Any]:
    """A combination by its place in the order of all, in which the last setting varies fastest."""
    picked: list[Any] = []
    for each in reversed(options):
        place, k = divmod(place, len(each))
        picked.append(each[k])
    return picked[::-1]


def _drawn(values: Range | tuple[Any, ...], dice: Random) -> Any:
    if not isinstance(values, Range):
        return dice.choice(values)
    if values.log:
        number = math.exp(dice.uniform(math.log(values.low), math.log(values.high)))
    else:
        number = dice.uniform(values.low, values.high)
    return round(number) if values.whole else float(f"{number:.4g}")


def shuffled(total: int, count: int, seed: int) -> Iterator[int]:
    """The first so many of the numbers below `total`, in an order that depends on the seed alone.

    Args:
        total: How many numbers there are; they are never all written down.
        count: How many to give.
        seed: Which order.

    Example:
        >>> list(shuffled(10**12, 5, seed=0))[:3] == list(shuffled(10**12, 3, seed=0))
        True
        >>> sorted(shuffled(4, 4, seed=1))
        [0, 1, 2, 3]
    """
    dice, moved = Random(seed), dict[int, int]()
    for k in range(count):  # Fisher and Yates, where only what has moved is kept
        other = dice.randrange(k, total)
        yield moved.get(other, other)
        moved[other] = moved.get(k, k)


def suggestion(tried: Tried, seen: Sequence[tuple[Mapping[str, Any], float | None]], seed: int) -> Combination:
    """What Optuna would try next.

    Args:
        tried: Values to try.
        seen: What was tried so far, and the score it had; `None` while it is not known, or if the training failed.
        seed: Where chance starts.

    Raises:
        ModuleNotFoundError: If Optuna is not installed; it says how to.
    """
    try:
        import optuna
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "search = 'bayes' needs Optuna; install it with: pip install 'torch-spigot[search]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {name: _distribution(values) for name, values in tried.items()}
    # A seed of its own for each suggestion, so that going on after an interruption gives what would have come.
    sampler = optuna.samplers.TPESampler(seed=seed * 1009 + len(seen), constant_liar=True, n_startup_trials=5)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for values, score in seen:
        if score is None:
            known = optuna.trial.create_trial(
                params=dict(values), distributions=space, state=optuna.trial.TrialState.RUNNING
            )
        else:
            known = optuna.trial.create_trial(params=dict(values), distributions=space, value=score)
        study.add_trial(known)
    asked = study.ask(space).params
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in asked.items()}


def _distribution(values: Range | tuple[Any, ...]) -> Any:
    from optuna import distributions

    if not isinstance(values, Range):
        return distributions.CategoricalDistribution(values)
    if values.whole:
        return distributions.IntDistribution(round(values.low), round(values.high), log=values.log)
    return distributions.FloatDistribution(values.low, values.high, log=values.log)
