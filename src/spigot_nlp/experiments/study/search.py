"""Which combinations of values a system is tried with: all, some by chance, or by what was seen so far."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from spigot_nlp.experiments.study.file import Tuning
from spigot_nlp.experiments.study.values import Range

Combination = dict[str, Any]
Tried = Mapping[str, Range | tuple[Any, ...]]
_DIGITS = 4  # of the numbers that are tried


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
    total = how_many(tried)
    if tuning.search == "grid":
        if ranges:
            raise ValueError(f"tune.{ranges[0]} is a range, and a grid needs values; set tune.search = 'random'.")
        return [dict(zip(tried, picked, strict=True)) for picked in itertools.product(*_lists(tried))]
    if total is None:
        return list(itertools.islice(_draws(tried, tuning.seed), tuning.trials or 1))
    places = shuffled(total, min(tuning.trials or total, total), tuning.seed)
    return [_picked(tried, place) for place in places]


def how_many(tried: Tried) -> int | None:
    """How many combinations of these values there are; `None` if numbers between two others are among them.

    Example:
        >>> how_many({"a": (1, 2), "b": Range(low=1, high=5, whole=True)}), how_many({"a": Range(low=0, high=1)})
        (10, None)
    """
    if any(isinstance(values, Range) and not values.whole for values in tried.values()):
        return None
    return math.prod(map(len, _lists(tried)))


def unseen(tried: Tried, seen: Sequence[Combination], seed: int) -> Combination | None:
    """A combination that was not tried yet; `None` if there is none.

    Args:
        tried: Values to try.
        seen: The combinations that were.
        seed: Where chance starts, where it has to choose.

    Example:
        >>> unseen({"a": (1, 2)}, [{"a": 1}], seed=0), unseen({"a": (1, 2)}, [{"a": 1}, {"a": 2}], seed=0)
        ({'a': 2}, None)
    """
    total = how_many(tried)
    found = _draws(tried, seed) if total is None else (_picked(tried, place) for place in range(total))
    return next((values for values in found if values not in seen), None)


def _lists(tried: Tried) -> list[Sequence[Any]]:
    """The values of each setting, where they can be counted."""
    return [_whole_numbers(values) if isinstance(values, Range) else values for values in tried.values()]


def _whole_numbers(values: Range) -> range:
    return range(math.ceil(values.low), math.floor(values.high) + 1)


def _picked(tried: Tried, place: int) -> Combination:
    """A combination by its place in the order of all, in which the last setting varies fastest."""
    picked: list[Any] = []
    for each in reversed(_lists(tried)):
        place, k = divmod(place, len(each))
        picked.append(each[k])
    return dict(zip(tried, picked[::-1], strict=True))


def _draws(tried: Tried, seed: int) -> Iterator[Combination]:
    """Combinations by chance, each once, without an end."""
    dice, seen, digits = Random(seed), list[Combination](), _DIGITS
    while True:
        values = {name: _drawn(each, dice, digits) for name, each in tried.items()}
        if values in seen:
            digits += 1  # in a narrow range, few digits make few numbers
        else:
            seen.append(values)
            yield values


def _drawn(values: Range | tuple[Any, ...], dice: Random, digits: int) -> Any:
    if not isinstance(values, Range):
        return dice.choice(values)
    if values.log:
        number = math.exp(dice.uniform(math.log(values.low), math.log(values.high)))
    else:
        number = dice.uniform(values.low, values.high)
    if values.whole:
        numbers = _whole_numbers(values)
        return min(max(round(number), numbers[0]), numbers[-1])
    return _shortened(number, values, digits)


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
        params = {name: _as_asked(values[name], each) for name, each in tried.items()}
        state = optuna.trial.TrialState.RUNNING if score is None else optuna.trial.TrialState.COMPLETE
        study.add_trial(optuna.trial.create_trial(params=params, distributions=space, value=score, state=state))
    asked = study.ask(space).params
    return {name: _as_tried(asked[name], each) for name, each in tried.items()}


def fits(values: Mapping[str, Any], tried: Tried) -> bool:
    """Whether a combination is one of those that are to be tried.

    Example:
        >>> fits({"a": 0.5}, {"a": Range(low=0, high=1)}), fits({"a": 3}, {"a": (1, 2)}), fits({}, {"a": (1, 2)})
        (True, False, False)
    """
    if set(values) != set(tried):
        return False
    return all(
        each.low <= values[name] <= each.high if isinstance(each, Range) else values[name] in each
        for name, each in tried.items()
    )


def _distribution(values: Range | tuple[Any, ...]) -> Any:
    """What Optuna calls such values; those of a list by their places in it, for it knows no lists of lists."""
    from optuna import distributions

    if not isinstance(values, Range):
        return distributions.CategoricalDistribution(range(len(values)))
    if values.whole:
        numbers = _whole_numbers(values)
        return distributions.IntDistribution(numbers[0], numbers[-1], log=values.log)
    return distributions.FloatDistribution(values.low, values.high, log=values.log)


def _as_asked(value: Any, values: Range | tuple[Any, ...]) -> Any:
    return value if isinstance(values, Range) else values.index(value)


def _as_tried(asked: Any, values: Range | tuple[Any, ...]) -> Any:
    if not isinstance(values, Range):
        return values[asked]
    return asked if values.whole else _shortened(asked, values)


def _shortened(number: float, values: Range, digits: int = _DIGITS) -> float:
    """A number with few digits, for folders are called by it."""
    return min(max(float(f"{number:.{digits}g}"), values.low), values.high)
