"""What a study's file says, and the trainings that follow from it."""

import hashlib
import itertools
import math
import os
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from spigot_nlp.config import (
    Config,
    Count,
    Positive,
    Values,
    check_useful,
    find_config,
    make_config,
    read_tables,
    systems,
)
from spigot_nlp.toml import brief, read_toml

STUDIES = Path(__file__).parents[1] / "studies"
"""The studies that come with the workshop."""

Table: TypeAlias = dict[str, Any]
Role: TypeAlias = Literal["shared", "tuning", "final"]

_NAME = re.compile(r"[\w.+-]+")
_REFERENCE = re.compile(r"\{(.+)\}")
_LONGEST = 120  # of a folder's name, in characters
_OURS = {"seed": "seeds", "training.tests": "--tests", "name": "the study's name"}


def flat(table: Mapping[str, Any], above: str = "") -> Table:
    """Nested tables as values by dotted name; a range of numbers, with `low` and `high`, is a value."""
    found: Table = {}
    for name, value in table.items():
        is_table = isinstance(value, Mapping) and value and not {"low", "high"} & value.keys()
        inside = flat(value, f"{above}{name}.") if is_table else {f"{above}{name}": value}
        if twice := found.keys() & inside.keys():
            raise ValueError(f"{min(twice)} is given twice; give it once")
        found.update(inside)
    return found


def _settings(table: Any) -> Any:
    if not isinstance(table, Mapping):
        return table
    found = flat(table)
    for name, instead in _OURS.items():
        if name in found:
            raise ValueError(f"{name} is for the study to say; leave it out, and use {instead}")
    return found


class Range(Values):
    """Numbers to draw from; with `log`, 1 to 10 is as wide as 10 to 100."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    @model_validator(mode="after")
    def _is_wide(self) -> "Range":
        if self.low >= self.high or (self.log and self.low <= 0):
            raise ValueError(
                f"there is nothing to draw from {self.low:g} to {self.high:g}; give low < high, above 0 for log"
            )
        return self


Settings = Annotated[Table, BeforeValidator(_settings)]
"""Settings of trainings by dotted name; nested tables will do."""

Tried = Annotated[dict[str, Range | Annotated[list[Any], Field(min_length=1)]], BeforeValidator(_settings)]
"""Values to try, by dotted name: a list, or a range."""


class System(Values):
    """A row of the tables: what is particular to it, and values to try of which the best are taken."""

    settings: Settings = Field(default={})
    tune: Tried = Field(default={})


class Shared(Values):
    """A training that systems start from: done once for each seed, and no row of any table."""

    settings: Settings = Field(default={})


class Tuning(Values):
    """How values are chosen: tried with which seeds and at which point, searched how, and in how many trials."""

    seeds: tuple[Count, ...] = Field(default=(0,), min_length=1)
    point: str = ""
    search: Literal["grid", "random", "tpe"] = "grid"
    trials: Positive | None = None
    seed: Count = 0
    settings: Settings = Field(default={})

    @model_validator(mode="after")
    def _has_an_end(self) -> "Tuning":
        if (self.search == "grid") != (self.trials is None):
            raise ValueError(
                "trials says how many values search = 'random' or 'tpe' tries, and only that; a grid is tried whole"
            )
        return self


class Study(Values):
    """A study as its file says it.

    Attributes:
        name: Names its folder; by default as the file is called.
        title: The question it asks.
        config: The configuration that all trainings vary: a file, or the name of one that comes with spigot.
        seeds: The seeds of every system at every point.
        settings: What all trainings have.
        shared: Trainings that others start from: `"{name}"` in a setting stands for the run folder of the same seed.
        systems: What is compared, in the order of the tables. A name that spigot knows is that system.
        points: Where it is compared: settings that all systems have there, by name.
        vary: The same from values by dotted name: every combination is a point.
        tune: How values are chosen.
        against: The systems that the others are compared with.
        retries: How often a training that failed is tried again.
    """

    name: str = ""
    title: str = ""
    config: str
    seeds: tuple[Count, ...] = Field(default=(0,), min_length=1)
    settings: Settings = Field(default={})
    shared: dict[str, Shared] = Field(default={})
    systems: dict[str, System] = Field(min_length=1)
    points: dict[str, Settings] = Field(default={})
    vary: Tried = Field(default={})
    tune: Tuning = Tuning()
    against: tuple[str, ...] = ()
    retries: Count = 1

    @model_validator(mode="after")
    def _fits_together(self) -> "Study":
        for name in (*self.shared, *self.systems, *self.points):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot be a name in a study: folders are called so")
        if both := self.shared.keys() & self.systems.keys():
            raise ValueError(f"{min(both)} is a system and a shared training; call one of them otherwise")
        for name in self.against:
            if name not in self.systems:
                raise ValueError(f"against names {name!r}, and the systems are {', '.join(self.systems)}")
        for seeds in (self.seeds, self.tune.seeds):
            if len(set(seeds)) < len(seeds):
                raise ValueError(f"the seeds are {list(seeds)}; give each once")
        if self.points and self.vary:
            raise ValueError("points and vary both say where systems are compared; give one of them")
        if self.tune.point and self.tune.point not in self.places:
            raise ValueError(f"tune.point is {self.tune.point!r}, and the points are {', '.join(self.places)}")
        for name, system in self.systems.items():
            for setting, values in system.tune.items():
                if isinstance(values, Range) and self.tune.search == "grid":
                    raise ValueError(f"systems.{name}.tune.{setting} is a range, and a grid needs values")
                if any(setting in settings for settings in self.places.values()):
                    raise ValueError(f"systems.{name}.tune.{setting} differs from point to point already")
        return self

    @cached_property
    def places(self) -> dict[str, Table]:
        """The points by name; one without a name if there are none."""
        found = dict(self.points)
        short = short_names(self.vary)
        for picked in itertools.product(*(values for values in self.vary.values() if isinstance(values, list))):
            settings = dict(zip(self.vary, picked, strict=True))
            found[",".join(f"{short[name]}={shown(value)}" for name, value in settings.items())] = settings
        found.pop("", None)
        return found or {"": {}}


def load_study(given: str | Path) -> Study:
    """Read a study: a TOML file, or the name of one that comes with the workshop.

    A file may say `extends = "other"` and then only what is different; an empty table takes away what stood there.
    """
    path = _find(Path(given))
    return make_study(_read(path, ()), str(path))


def make_study(given: Mapping[str, Any], where: str = "the study") -> Study:
    """A study from the values of a file; messages say where they stand."""
    try:
        study = Study.model_validate(_flattened(given))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(
            f"{where}: {place + ': ' if place else ''}{first['msg'].removeprefix('Value error, ')}."
        ) from None
    find_config(study.config)
    return study


def _find(given: Path) -> Path:
    known = {path.stem: path for path in sorted(STUDIES.glob("*.toml"))}
    if os.path.isfile(given):  # of which a name can be too long
        return given
    if str(given) in known:
        return known[str(given)]
    raise FileNotFoundError(f"{brief(given)} is no study; give a TOML file, or one of {', '.join(known)}.")


def _read(path: Path, above: tuple[Path, ...]) -> Table:
    """What a file says over the study that it extends, with all settings by their dotted names."""
    if path.resolve() in above:
        raise ValueError(f"{path} extends itself; leave out one extends.")
    table = read_toml(path)
    try:
        given = _flattened(table)
    except ValueError as error:
        raise ValueError(f"{path}: {error}.") from None
    if os.path.isfile(beside := path.parent / str(given.get("config", ""))):
        given["config"] = str(beside)
    given.setdefault("name", path.stem)
    if (extended := given.pop("extends", None)) is None:
        return given
    near = path.parent / str(extended)
    return _over(_read(near if os.path.isfile(near) else _find(Path(str(extended))), (*above, path.resolve())), given)


def _flattened(given: Any, inside: Sequence[str] = ()) -> Any:
    """A file with its settings, and the values to try, by their dotted names, wherever they stand."""
    if not isinstance(given, Mapping):
        return given
    of_settings = (
        inside in (["settings"], ["vary"])
        or inside[-1:] == ["settings"]
        or (len(inside) == 2 and inside[0] == "points")
    )
    if of_settings or (len(inside) == 3 and inside[-1] == "tune"):
        return flat(given)
    return {name: _flattened(value, [*inside, name]) for name, value in given.items()}


def _over(below: Table, above: Table) -> Table:
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        both = isinstance(value, dict) and isinstance(under, dict) and value
        merged[name] = _over(under, value) if both and isinstance(under, dict) else value
    return merged


@dataclass(frozen=True)
class Training:
    """One training of a study.

    Attributes:
        name: Names its folder, and depends on nothing but what is particular to it, so that a study can grow.
        system: The system, or the shared training.
        point: Where it is compared.
        seed: Where its random numbers start.
        role: Whether others start from it, values are tried by it, or it counts.
        values: The values that are tried by it, or were chosen.
        needs: The trainings that it starts from.
        config: The whole experiment.
    """

    name: str
    system: str
    point: str
    seed: int
    role: Role
    values: Mapping[str, Any]
    needs: "tuple[Training, ...]" = field(repr=False)
    config: Config = field(repr=False)


class Plan:
    """The trainings of a study.

    Args:
        study: The study.
        out: The folder for its runs.
        overrides: Settings that all trainings have, above those of the file.
        only_systems: The systems to train; all if empty. What these start from is trained, too.
        only_points: The points to train them at; all if empty.
    """

    def __init__(
        self,
        study: Study,
        out: Path,
        overrides: Mapping[str, Any] | None = None,
        only_systems: Sequence[str] = (),
        only_points: Sequence[str] = (),
    ) -> None:
        self.study, self.out, self.overrides = study, out, dict(overrides or {})
        self.systems: list[str] = _chosen("system", study.systems, only_systems)
        self.points: list[str] = _chosen("point", study.places, only_points)
        self._file = read_tables(find_config(study.config))
        self._made: dict[str, Training] = {}
        self._begun: list[str] = []
        self._check()

    def finals(self, system: str, point: str, values: Mapping[str, Any]) -> list[Training]:
        """The trainings that count."""
        return [self.training(system, point, seed, "final", values) for seed in self.study.seeds]

    def tried(self, system: str, point: str, values: Mapping[str, Any]) -> list[Training]:
        """The trainings that values are tried by."""
        return [self.training(system, point, seed, "tuning", values) for seed in self.study.tune.seeds]

    def combinations(self, system: str) -> list[Table] | None:
        """The values that a system is tried with; `None` if Optuna says."""
        tune, values = self.study.tune, self.study.systems[system].tune
        if not values:
            return []
        lists = [some for some in values.values() if isinstance(some, list)]
        if len(lists) < len(values) or tune.search == "tpe":
            return None
        every = [dict(zip(values, picked, strict=True)) for picked in itertools.product(*lists)]
        chance = random.Random(tune.seed)
        return every if tune.trials is None else chance.sample(every, min(tune.trials, len(every)))

    def trials(self, system: str) -> int:
        """How many combinations a system is tried with at a point."""
        found = self.combinations(system)
        return len(found) if found is not None else self.study.tune.trials or 0

    def tuned_at(self, point: str) -> str:
        """The point whose choice of values holds at another."""
        return self.study.tune.point or point

    @property
    def budget(self) -> dict[str, int]:
        """How many trainings each system is tuned by: a fair study gives all the same."""
        places = len({self.tuned_at(point) for point in self.points})
        return {name: self.trials(name) * places * len(self.study.tune.seeds) for name in self.systems}

    def named(self) -> list[Training]:
        """All trainings that can be named before any is trained, and what they start from; sources first."""
        found: dict[str, Training] = {}

        def add(training: Training) -> None:
            for source in training.needs:
                add(source)
            found.setdefault(training.name, training)

        for point in dict.fromkeys(map(self.tuned_at, self.points)):
            for system in self.systems:
                for values in self.combinations(system) or ():
                    for training in self.tried(system, point, values):
                        add(training)
        for system, point in itertools.product(self.systems, self.points):
            for training in self.finals(system, point, self._example(system)):
                add(training)
        return list(found.values())

    def training(self, system: str, point: str, seed: int, role: Role, values: Mapping[str, Any]) -> Training:
        """A training, made once; trained with other values than before it would be another one."""
        short = short_names(values) if role == "tuning" else {}
        parts = [system, point, *(f"{short[name]}={shown(values[name])}" for name in short)]
        name = folder_name([part for part in parts if part], seed)
        made = self._made.get(name)
        if made is None or made.values != values:
            if name in self._begun:
                raise ValueError(f"{system} starts from itself; start it from another training.")
            self._begun.append(name)
            made = self._made[name] = self._new(name, system, point, seed, role, values)
            self._begun.remove(name)
        return made

    def _new(self, name: str, system: str, point: str, seed: int, role: Role, values: Mapping[str, Any]) -> Training:
        study = self.study
        own = study.shared[system].settings if role == "shared" else study.systems[system].settings
        named = {"system": system} if role != "shared" and system in systems(several=True) else {}
        tuning = study.tune.settings if role == "tuning" else {}
        given = {**study.settings, **study.places.get(point, {}), **named, **own, **tuning}
        # No training reads its test sets: they are scored once, when nothing is left to choose.
        given = {**given, "training.tests": False, **self.overrides, **values, "seed": seed}
        needs: dict[str, Training] = {}
        for setting, value in given.items():
            if isinstance(value, str) and (reference := _REFERENCE.fullmatch(value)):
                needs[setting] = self._source(reference[1], point, seed, f"{system}: {setting}")
        given |= {setting: str(self.out / source.name) for setting, source in needs.items()}
        where = f"{study.name}, {'shared training' if role == 'shared' else 'system'} {system}"
        config = make_config(self._file, given, f"{where}{f' at {point}' if point else ''}")
        config = config.model_copy(update={"name": config.name or find_config(study.config).stem})
        return Training(name, system, point, seed, role, dict(values), tuple(needs.values()), config)

    def _source(self, name: str, point: str, seed: int, where: str) -> Training:
        study = self.study
        if name in study.shared:
            return self.training(name, "", seed, "shared", {})
        if name not in study.systems or study.systems[name].tune:
            known = [*study.shared, *(one for one, system in study.systems.items() if not system.tune)]
            raise ValueError(f"{where} starts from {{{name}}}; it can start from {', '.join(known) or 'nothing'}.")
        return self.training(name, point, seed, "final", {})

    def _example(self, system: str) -> Table:
        """Some values that may be chosen for a system."""
        tried = self.study.systems[system].tune
        combined = self.combinations(system)
        if combined is not None:
            return combined[0] if combined else {}
        first = {name: values.low if isinstance(values, Range) else values[0] for name, values in tried.items()}
        whole = {n for n, values in tried.items() if isinstance(values, Range) and values.whole}
        return {name: math.ceil(value) if name in whole else value for name, value in first.items()}

    def _check(self) -> None:
        """Refuse before anything is trained what would be no valid experiment, or would change nothing."""
        for name in self.overrides:
            if name in (*_OURS, "system"):
                raise ValueError(f"{name} is for the study to say; leave out --{name}.")
            if name in self.study.vary or any(name in self.study.systems[s].tune for s in self.systems):
                raise ValueError(f"{name} is varied by the study; leave out --{name}.")
        known = {*systems(several=True)}
        own_system = {"system", "stages"} & {*self._file, *self.study.settings}
        for name in self.systems:
            system = self.study.systems[name]
            if name not in known and not own_system and not system.settings and not system.tune:
                raise ValueError(
                    f"{name} has no settings, and is no system that spigot knows: {', '.join(sorted(known))}."
                )
        trainings = self.named()
        by_system = {name: [t.config for t in trainings if t.system == name] for name in self.systems}
        for name, configs in by_system.items():
            system = self.study.systems[name]
            check_useful(configs, (*system.settings, *system.tune), f"systems.{name}")
        every = [config for configs in by_system.values() for config in configs]
        for settings in (self.study.settings, self.overrides):
            check_useful(every, settings, self.study.name)


def _chosen(noun: str, known: Iterable[str], wanted: Sequence[str]) -> list[str]:
    names = list(known)
    for name in wanted:
        if name not in names:
            raise ValueError(f"there is no {noun} {name!r}; the study has {', '.join(filter(None, names)) or 'none'}.")
    return [name for name in names if not wanted or name in wanted]


def short_names(names: Iterable[str]) -> dict[str, str]:
    """The shortest ends of dotted names that still tell them apart."""
    ends = {name: [name.split(".", k)[k] for k in range(name.count(".") + 1)] for name in names}
    uses = [end for some in ends.values() for end in some]
    return {name: next(end for end in (*reversed(some), name) if uses.count(end) == 1) for name, some in ends.items()}


def shown(value: object) -> str:
    """A value as a reader would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else str(value)
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def folder_name(parts: Sequence[str], seed: int) -> str:
    """What the folder of a training is called; a hash tells those apart whose names cannot be folders."""
    full = f"{','.join(parts)}-{seed}"
    plain = re.sub(r"[^\w.+=,-]", "_", full, flags=re.ASCII)
    if plain == full and len(full) <= _LONGEST:
        return full
    return f"{plain[: _LONGEST - 20]},{hashlib.sha256(full.encode()).hexdigest()[:12]}-{seed}"
