"""Hyper-parameter search: which trials it has. `sweep_trials` runs them, `sweep_results` compares them."""

import hashlib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from spigot.config import Config, as_options, find_config, load_config, make_config

Value: TypeAlias = bool | int | float | str | list[str]
"""What a setting can be in a search."""

_LONGEST = 120  # of a folder's name, in characters


@dataclass(frozen=True)
class Trial:
    """One training of a search.

    Attributes:
        name: Names its folder, and says what is particular to it.
        settings: The values of the settings that vary.
        seed: Where its random numbers start.
        config: The whole experiment.

    Example:
        >>> Trial("eta=0.1,seed=0", {"estimator.eta": 0.1}, 0, Config())
        Trial(name='eta=0.1,seed=0', settings={'estimator.eta': 0.1}, seed=0)
    """

    name: str
    settings: Mapping[str, Value]
    seed: int
    config: Config = field(repr=False)


@dataclass(frozen=True)
class Sweep:
    """A search: all its trials, those of the first seed first.

    Attributes:
        names: The settings that vary.
        seeds: The seeds that every combination is tried with.
        trials: What to train.

    Example:
        >>> trials = [Trial(f"eta=0.1,seed={seed}", {"estimator.eta": 0.1}, seed, Config()) for seed in (0, 1)]
        >>> Sweep(("estimator.eta",), (0, 1), tuple(trials)).combinations
        [{'estimator.eta': 0.1}]
    """

    names: tuple[str, ...]
    seeds: tuple[int, ...]
    trials: tuple[Trial, ...]

    @property
    def combinations(self) -> list[Mapping[str, Value]]:
        """The combinations of values, each once."""
        return [trial.settings for trial in self.trials if trial.seed == self.seeds[0]]


def plan_sweep(
    path: str | Path,
    *,
    over: Mapping[str, Sequence[Value]] | None = None,
    overrides: Mapping[str, Any] | None = None,
    seeds: Sequence[int] | None = None,
    random: int | None = None,
    sweep_seed: int = 0,
) -> Sweep:
    """Work out the trials of a search, and check every one of them.

    Args:
        path: The configuration, a file or a name; see `find_config`. Its table `[sweep]` says which values to try.
        over: Values to try by dotted name; they replace those of the file.
        overrides: Values that all trials have. A setting given here is not varied, even if the file would.
        seeds: The seeds to train every combination with; those of the file, or its one seed, if omitted.
        random: How many combinations to draw, all different; all of them if omitted.
        sweep_seed: Where the drawing starts. A larger `random` keeps the combinations of a smaller one.

    Raises:
        ValueError: If nothing varies, or some trial is no valid experiment; it says which setting is at fault.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "mine.toml"
        >>> _ = file.write_text('[sweep]\\n"semantics.mlp" = [100, 150]')
        >>> [trial.name for trial in plan_sweep(file, over={"estimator.eta": [0.1, 1]}, seeds=[3]).trials]
        ['mlp=100,eta=0.1,seed=3', 'mlp=100,eta=1,seed=3', 'mlp=150,eta=0.1,seed=3', 'mlp=150,eta=1,seed=3']
        >>> plan_sweep(file, over={"training.epochs": [0]})
        Traceback (most recent call last):
        ValueError: --over training.epochs=0: it should be greater than 0.
    """
    path, over, overrides = find_config(path), dict(over or {}), dict(overrides or {})
    if both := sorted(over.keys() & overrides.keys()):
        raise ValueError(f"{both[0]} is to vary and to be fixed; give one of --over {both[0]}=... and --{both[0]}.")
    base = load_config(path, overrides)
    given = tomllib.loads(path.read_text(encoding="utf-8"))
    name = base.name or path.stem
    values: dict[str, Sequence[Value]] = {n: list(v) for n, v in base.sweep.items() if n not in overrides}
    values.update(over)
    listed = values.pop("seed", None)
    chosen = _seeds(seeds if seeds is not None else listed if listed is not None else [base.seed])
    for setting, options in values.items():
        if setting == "name" or setting.partition(".")[0] == "sweep":
            raise ValueError(f"{path}: a sweep over {setting!r} changes no result; leave it out.")
        if not options:
            raise ValueError(f"{path}: there is no value of {setting} to try; give some, or leave it out.")
    if not values and len(chosen) < 2:
        raise ValueError(
            f"{path} has nothing to vary; give values by --over, e.g. --over estimator.eta=0.1,1, several --seeds, "
            "or a table [sweep] in the file."
        )
    if random is not None and random < 1:
        raise ValueError(f"random is {random}; it must be at least 1.")
    names, labels = tuple(values), short_names(list(values))
    drawn = [dict(zip(names, picked, strict=True)) for picked in _combinations(values.values(), random, sweep_seed)]
    trials: list[Trial] = []
    seen: set[str] = set()
    for seed, settings in itertools.product(chosen, drawn):
        options = as_options(overrides) | {n: f"--over {n}={value}" for n, value in settings.items() if n in over}
        config = make_config(given, {**overrides, **settings, "seed": seed}, where=str(path), options=options)
        config = config.model_copy(update={"name": name, "sweep": {}})
        # As the experiment has them: 1 and 1.0 are the same step size.
        resolved = {setting: config.by_name().get(setting, value) for setting, value in settings.items()}
        trial = Trial(_trial_name(resolved, labels, seed), resolved, seed, config)
        if trial.name in seen:
            raise ValueError(f"{path}: the trial {trial.name} would be made twice; give each value once.")
        seen.add(trial.name)
        trials.append(trial)
    return Sweep(names, chosen, tuple(trials))


def _seeds(given: Sequence[Value]) -> tuple[int, ...]:
    found: list[int] = []
    for seed in given:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ValueError(f"{seed!r} is no seed; seeds are whole numbers from 0, such as 0,1,2.")
        if seed in found:
            raise ValueError(f"the seed {seed} is given twice; give each once.")
        found.append(seed)
    if not found:
        raise ValueError("there is no seed; give some, such as 0,1,2.")
    return tuple(found)


def _combinations(values: Iterable[Sequence[Value]], count: int | None, seed: int) -> Iterator[list[Value]]:
    """All combinations in order, or so many of them in an order of chance."""
    options = [list(each) for each in values]
    total = math.prod(map(len, options))
    places = range(total) if count is None else shuffled(total, min(count, total), seed)
    for place in places:
        picked: list[Value] = []
        for each in reversed(options):  # the last setting varies fastest
            place, k = divmod(place, len(each))
            picked.append(each[k])
        yield picked[::-1]


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


def short_names(names: Sequence[str]) -> dict[str, str]:
    """The shortest ends of dotted names that still tell them apart.

    Example:
        >>> list(short_names(["estimator.eta", "semantics.mlp", "syntax.mlp"]).values())
        ['eta', 'semantics.mlp', 'syntax.mlp']
    """

    def ends(name: str) -> list[str]:
        words = name.split(".")
        return [".".join(words[k:]) for k in range(len(words))]

    # An end is longer than it need be if another name merely contains it, but "seed" is taken.
    uses = [end for name in names for end in ends(name)] + ["seed"]
    return {name: next((end for end in reversed(ends(name)) if uses.count(end) == 1), name) for name in names}


def show_value(value: Value) -> str:
    """A value as a reader would write it.

    Example:
        >>> show_value(True), show_value(1.0), show_value(["a.conllu", "b.conllu"])
        ('true', '1', 'a.conllu+b.conllu')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return "+".join(value) if isinstance(value, list) else str(value)


def _trial_name(settings: dict[str, Value], labels: Mapping[str, str], seed: int) -> str:
    """A folder's name from the settings. It depends on nothing else, so that a search can grow."""
    parts = [f"{labels[name]}={show_value(value)}" for name, value in settings.items()]
    full = ",".join([*parts, f"seed={seed}"])
    texts = [text for value in settings.values() for text in (value if isinstance(value, list) else [value])]
    is_plain = all(re.fullmatch(r"[\w.-]*", text, re.ASCII) for text in texts if isinstance(text, str))
    if is_plain and len(full) <= _LONGEST:
        return full
    kept = re.sub(r"[^\w.+=,-]", "_", full, flags=re.ASCII)[: _LONGEST - 20]
    # The settings themselves, as the shown text of two may be the same.
    return f"{kept},{hashlib.sha256(json.dumps([settings, seed]).encode()).hexdigest()[:12]}"
