"""A study as a file says it: which systems, at which points, with which seeds, and what is tried to tune them."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from spigot_nlp.config import find_config, shipped_configs
from spigot_nlp.config import systems as known_systems
from spigot_nlp.config.expansion import first_error
from spigot_nlp.experiments.study.values import Range, Settings, Tried, flat, leaves
from spigot_nlp.values import Count, Positive, Texts, Values, brief

_STUDIES = next(iter(shipped_configs().values())).parent / "studies"
_NAME = r"[\w.+-]+"


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
        if self.search != "grid" and self.trials is None:
            raise ValueError(f"search = {self.search!r} has no end of its own; say how many trials")
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
        along: What the points count, for the axes of pictures: "training graphs".
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
    along: str = ""
    vary: Tried = Field(default={})
    tune: Tuning = Tuning()
    against: Texts = ()
    retries: Count = 1

    @model_validator(mode="after")
    def _fits_together(self) -> "Study":
        for name in (*self.shared, *self.systems, *self.points):
            if name and not re.fullmatch(_NAME, name):
                raise ValueError(f"{name!r} cannot be a name in a study: folders are called so")
        if "/" in self.name or self.name in (".", ".."):
            raise ValueError(f"name is {self.name!r}, and a folder is called so; choose another, without a /")
        rows = self.systems or self.points  # what the folders of the trainings that count begin with
        if both := self.shared.keys() & rows.keys():
            kind = "system" if self.systems else "point"
            raise ValueError(f"{min(both)} is a {kind} and a shared training; call one of them otherwise")
        for name, system in self.systems.items():
            near = difflib.get_close_matches(name.lower(), known_systems(several=True), 1, 0.8)
            if near and near[0] != name and not system.settings and not system.tune:
                raise ValueError(f"{name} has no settings, and is no system; did you mean {near[0]}?")
        for name in self.against:
            if name not in self.systems:
                raise ValueError(f"against names {name!r}, and the systems are {', '.join(self.systems) or 'none'}")
        for seeds in (self.seeds, self.tune.seeds):
            if twice := [seed for seed in seeds if seeds.count(seed) > 1]:
                raise ValueError(f"the seed {twice[0]} is given twice; give each once")
        if not self.seeds and not any(system.tune for system in self.systems.values()):
            raise ValueError("seeds is empty, so there is nothing to train; give one or more")
        self._compares_somewhere()
        self._can_be_searched()
        return self

    def _compares_somewhere(self) -> None:
        if self.points and self.vary:
            raise ValueError("points and vary both say where systems are compared; give one of them")
        if ranges := [name for name, values in self.vary.items() if isinstance(values, Range)]:
            raise ValueError(f"vary.{ranges[0]} must be a list of values")
        if self.along and len(self.vary) > 1:
            raise ValueError(f"along is {self.along!r}, and vary has several settings; leave along out")
        if self.tune.point and not self.vary and self.tune.point not in self.points:
            raise ValueError(
                f"tune.point is {self.tune.point!r}, and the points are {', '.join(self.points) or 'none'}"
            )

    def _can_be_searched(self) -> None:
        for name, system in self.systems.items():
            for setting, values in system.tune.items():
                at = f"systems.{name}.tune.{setting}" if name else setting
                if isinstance(values, Range) and self.tune.search == "grid":
                    raise ValueError(f"{at} is a range, and a grid needs values; set tune.search = 'random'")
                if setting in self.vary:
                    raise ValueError(f"{at} varies from point to point already; leave out one of them")


def load_study(path: str | Path) -> Study:
    """Read a study from a TOML file.

    A file may say `extends = "other"` and then only what is different from that study; an empty table, such as
    `points = {}` or the `tune = {}` of a system, takes away what stood there.

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
    if file.resolve() in above:
        raise ValueError(f"{file} extends itself; leave out one extends.")
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is not valid TOML: {brief(error)}.") from None
    beside = file.parent / str(given.get("config", ""))
    if beside.is_file():
        given["config"] = str(beside)
    below: dict[str, Any] = {}
    if extended := given.pop("extends", None):
        near = file.parent / str(extended)
        try:
            source = near if near.is_file() else _find(str(extended))
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{file} extends {error}") from None
        below = _read(source, (*above, file.resolve()))
    return {**_over(below, given, file), "name": given.get("name", file.stem)}


def _over(below: Mapping[str, Any], given: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """A study over the one that it extends: settings and values to try by their dotted names, however written."""
    whole = dict(below)
    for name, value in given.items():
        under = whole.get(name)
        if not value or not isinstance(value, Mapping) or not isinstance(under, Mapping):
            whole[name] = value
        elif name in ("systems", "shared", "points"):
            whole[name] = {**under, **{k: _part(under.get(k), table, file) for k, table in value.items()}}
        elif name == "tune":
            whole[name] = _part(under, value, file)
        else:
            whole[name] = _laid(under, value, name, file)
    return whole


def _part(under: Any, table: Any, file: Path) -> Any:
    """A system, a point, a shared training or the tuning, over what it was."""
    if not isinstance(under, Mapping) or not isinstance(table, Mapping):
        return table
    return {**under, **{key: _laid(under.get(key), value, key, file) for key, value in table.items()}}


def _laid(under: Any, value: Any, name: str, file: Path) -> Any:
    if not value or not isinstance(value, Mapping) or not isinstance(under, Mapping):
        return value
    by_name = flat if name == "settings" else lambda table: dict(leaves(table))
    try:
        return {**by_name(under), **by_name(value)}
    except ValueError as error:
        raise ValueError(f"{file}: {brief(name)}: {brief(error)}.") from None


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
        for theirs, ours in _PLAINER:
            reason = re.sub(theirs, ours, reason)
        end = "" if reason.endswith("?") else "."
        raise ValueError(f"{where}: {brief(name) + ': ' if name else ''}{brief(reason)}{end}") from None
    find_config(study.config)
    return study


_PLAINER = (
    (r"^Input should be a valid dictionary.*", "it should be a table"),
    (r"^Input should be a valid tuple", "it should be a list"),
    (r"^Input should", "it should"),
)


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
