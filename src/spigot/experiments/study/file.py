"""A study as a file says it: which systems, at which points, with which seeds, and what is tried to tune them."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from spigot.config import find_config, shipped_configs
from spigot.config.expansion import first_error
from spigot.values import Count, Positive, Texts, Values

_STUDIES = next(iter(shipped_configs().values())).parent / "studies"
_NAME = r"[\w.+-]+"

Value: TypeAlias = bool | int | float | str | list[str]
"""What a setting can be in a study."""


def flat(table: Any, above: str = "") -> Any:
    """A table of tables as values by dotted name; what is no table stays as it is.

    Example:
        >>> flat({"training": {"epochs": 8}, "syntax.mlp": 64})
        {'training.epochs': 8, 'syntax.mlp': 64}
    """
    if not isinstance(table, Mapping):
        return table
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping) and value:
            found.update(flat(value, f"{above}{name}."))
        else:
            found[f"{above}{name}"] = value
    return found


Settings = Annotated[dict[str, Any], BeforeValidator(flat)]
"""Settings of trainings by dotted name; nested tables will do."""


class Range(Values):
    """Numbers to draw from, for a search by chance or by Optuna.

    Attributes:
        low: The smallest.
        high: The largest.
        log: Whether 1 to 10 is as wide as 10 to 100.
        whole: Whether only whole numbers count.

    Example:
        >>> Range(low=0.01, high=10.0, log=True).high
        10.0
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    @model_validator(mode="after")
    def _is_wide(self) -> "Range":
        if self.low >= self.high or (self.log and self.low <= 0):
            raise ValueError(f"from {self.low} to {self.high} there is nothing to draw from")
        return self


def _tried(value: Any) -> Any:
    return flat(value) if not isinstance(value, Mapping) else _leaves(value)


def _leaves(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested tables by dotted name, but for ranges, which are values."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping) and not {"low", "high"} <= set(value):
            found.update(_leaves(value, f"{above}{name}."))
        else:
            found[f"{above}{name}"] = value
    return found


Tried = Annotated[dict[str, Range | tuple[bool | int | float | str, ...]], BeforeValidator(_tried)]
"""Values to try, by dotted name."""


class Point(Values):
    """One of the places that every system is compared at: some settings that all systems have there.

    Attributes:
        settings: These settings.
        x: Where it stands in a chart; by default what its name says, if that is a number.

    Example:
        >>> Point.model_validate({"settings": {"data": {"graphs": {"limit": 500}}}}).settings
        {'data.graphs.limit': 500}
    """

    settings: Settings = Field(default={})
    x: float | None = None


class Contestant(Values):
    """A system of a study: a row of its tables.

    Attributes:
        settings: What is particular to it. One with the name of a system that spigot knows is that system, unless
            `system` is among them. A text such as `"{parser}"` stands for the run of that shared training, or of that
            system, with the same seed.
        tune: Values to try; those with the best dev score are taken.

    Example:
        >>> Contestant.model_validate({"tune": {"estimator.max_norm": [0.1, 1.0]}}).tune
        {'estimator.max_norm': (0.1, 1.0)}
    """

    settings: Settings = Field(default={})
    tune: Tried = Field(default={})


class Shared(Values):
    """A training that systems start from: done once for each seed, and no row of any table.

    Attributes:
        settings: What is particular to it.
        each_point: Whether every point needs one of its own.

    Example:
        >>> Shared.model_validate({"settings": {"only": "syntax"}}).each_point
        False
    """

    settings: Settings = Field(default={})
    each_point: bool = False


class Tuning(Values):
    """How values are chosen.

    Attributes:
        seeds: The seeds that every value is tried with. Others than those of the study, unless that is meant.
        point: The point they are tried at, and then taken everywhere; by default each point has its own choice.
        search: All combinations, some by chance, or by what was seen so far (Optuna, the extra `search`).
        trials: How many combinations, where not all are tried.
        seed: Where chance starts.
        settings: What trainings have that values are tried by, such as fewer epochs.

    Example:
        >>> Tuning(search="random", trials=20).seeds
        (0,)
    """

    seeds: tuple[Count, ...] = Field(default=(0,), min_length=1)
    point: str = ""
    search: Literal["grid", "random", "bayes"] = "grid"
    trials: Positive | None = None
    seed: Count = 0
    settings: Settings = Field(default={})

    @model_validator(mode="after")
    def _has_an_end(self) -> "Tuning":
        if self.search == "bayes" and self.trials is None:
            raise ValueError("search = 'bayes' goes on for ever; say how many trials")
        if self.search == "grid" and self.trials is not None:
            raise ValueError("a grid is tried whole; leave out trials, or set search = 'random'")
        return self


class Study(Values):
    """One study.

    Attributes:
        name: Names its folder.
        title: The question it asks.
        config: The experiment that all trainings vary: a file, or a name.
        seeds: The seeds of every training.
        settings: What all trainings have.
        shared: Trainings that others start from, by name.
        systems: What is compared, in the order of the tables; one without a name if there is none.
        points: Where it is compared, by name.
        vary: The same from values by dotted name: every combination is a point.
        tune: How values are chosen.
        against: The systems that the others are compared with.
        retries: How often a training that failed is tried again.

    Example:
        >>> study = make_study({"config": "synthetic", "systems": {"ste": {}, "spigot": {}}, "seeds": [0, 1]})
        >>> list(study.systems), study.seeds
        (['ste', 'spigot'], (0, 1))
    """

    name: str = ""
    title: str = ""
    config: str
    seeds: tuple[Count, ...] = (0,)
    settings: Settings = Field(default={})
    shared: dict[str, Shared] = Field(default={})
    systems: dict[str, Contestant] = Field(default={})
    points: dict[str, Point] = Field(default={})
    vary: Tried = Field(default={})
    tune: Tuning = Tuning()
    against: Texts = ()
    retries: Count = 1

    @model_validator(mode="after")
    def _fits_together(self) -> "Study":
        for name in (*self.shared, *self.systems, *self.points):
            if name and not re.fullmatch(_NAME, name):
                raise ValueError(f"{name!r} cannot be a name in a study: folders are called so")
        if both := self.shared.keys() & self.systems.keys():
            raise ValueError(f"{min(both)} is a system and a shared training; call one of them otherwise")
        for name in self.against:
            if name not in self.systems:
                raise ValueError(f"against names {name!r}, and the systems are {', '.join(self.systems) or 'none'}")
        if self.tune.point and self.tune.point not in self.points:
            raise ValueError(
                f"tune.point is {self.tune.point!r}, and the points are {', '.join(self.points) or 'none'}"
            )
        for seeds in (self.seeds, self.tune.seeds):
            if twice := [seed for seed in seeds if seeds.count(seed) > 1]:
                raise ValueError(f"the seed {twice[0]} is given twice; give each once")
        if self.points and self.vary:
            raise ValueError("points and vary both say where systems are compared; give one of them")
        if ranges := [name for name, values in self.vary.items() if isinstance(values, Range)]:
            raise ValueError(f"vary.{ranges[0]} must be a list of values")
        return self


def load_study(path: str | Path) -> Study:
    """Read a study from a TOML file.

    A file may say `extends = "other"` and then only what is different from that study.

    Args:
        path: The file, or the name of a study that comes with spigot.

    Raises:
        ValueError: If it says something impossible.

    Example:
        >>> load_study("demo").against
        ('pipeline',)
    """
    file = _find(path)
    return make_study(_read(file, ()), str(file))


def _read(file: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """The values of a file, over those of the study that it extends."""
    if file in above:
        raise ValueError(f"{file} extends itself; leave out one extends.")
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is not valid TOML: {error}.") from None
    beside = file.parent / str(given.get("config", ""))
    if beside.is_file():
        given["config"] = str(beside)
    below: dict[str, Any] = {}
    if extended := given.pop("extends", None):
        near = file.parent / str(extended)
        below = _read(near if near.is_file() else _find(str(extended)), (*above, file))
    return {**_over(below, given), "name": given.get("name", file.stem)}


def _over(below: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Tables over tables; settings by their dotted names, however they are written."""
    whole = dict(below)
    for name, value in given.items():
        under = whole.get(name)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            value = {**flat(under), **flat(value)} if name in ("settings", "tune", "vary") else _over(under, value)
        whole[name] = value
    return whole


def make_study(given: Mapping[str, Any], where: str = "the study") -> Study:
    """A study from nested values.

    Args:
        given: The values of a file.
        where: What messages call the file.

    Example:
        >>> make_study({"seeds": [0]})
        Traceback (most recent call last):
        ValueError: the study: config: Field required.
    """
    try:
        study = Study.model_validate(dict(given))
    except ValidationError as error:
        place, reason = first_error(error)
        name = ".".join(map(str, place))
        reason = "is not a known setting" if reason == "extra_forbidden" else reason.rstrip(".")
        raise ValueError(f"{where}: {name + ': ' if name else ''}{reason}.") from None
    find_config(study.config)
    return study


def shipped_studies() -> dict[str, Path]:
    """The studies that come with spigot, by name.

    Example:
        >>> "demo" in shipped_studies()
        True
    """
    return {path.stem: path for path in sorted(_STUDIES.glob("*.toml"))}


def _find(given: str | Path) -> Path:
    path = Path(given)
    if path.is_file():
        return path
    known = shipped_studies()
    name = path.name.removesuffix(".toml")
    if name in known and path.parent in (Path(), Path("studies"), Path("configs/studies")):
        return known[name]
    kind = "is a folder, not a study" if path.is_dir() else "is no study"
    raise FileNotFoundError(f"{given} {kind}; give a TOML file, or one of {', '.join(known)}.")
