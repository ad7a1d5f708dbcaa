"""From a study to its trainings: which there are, what each starts from, and what tuning has chosen."""

import contextlib
import itertools
import re
import statistics
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from spigot_nlp.config import Config, as_options, check_useful, find_config, make_config
from spigot_nlp.config import systems as known_systems
from spigot_nlp.config.expansion import names_stages
from spigot_nlp.experiments.study.file import Contestant, Point, Study
from spigot_nlp.experiments.study.points import points_of
from spigot_nlp.experiments.study.refusals import check_named, check_overrides
from spigot_nlp.experiments.study.search import Combination, combinations, fits, how_many, suggestion, unseen
from spigot_nlp.experiments.study.trials import Role, Trial, short_names, show_value, trial_name

_EXAMPLES = 64  # combinations that are looked at before any is tried
_REFERENCE = re.compile(r"\{(.+)\}")


class Known(Protocol):
    """What a plan has to know of a training that has been run."""

    @property
    def score(self) -> float | None: ...

    @property
    def has_ended(self) -> bool: ...


@dataclass(frozen=True)
class Choice:
    """What tuning came to for a system at a point.

    Attributes:
        tried: Each combination with its mean dev score; `None` if some training of it failed.
        chosen: The best of them; `None` while some are under way, or if none ended well.
        is_over: Whether all of them have ended.
    """

    tried: list[tuple[Combination, float | None]]
    chosen: Combination | None
    is_over: bool


@dataclass
class Planner:
    """Knows the trainings of a study, as far as they can be known.

    Args:
        study: The study.
        out: The folder for its runs.
        overrides: Settings that all trainings have, above those of the file.
        suggested: What Optuna has suggested so far, by system and point; it grows.
        only_systems: The systems to train; all of them if empty. What these start from is trained, too.
        only_points: The points to train them at; all of them if empty.

    Raises:
        ValueError: If there is no such system or point, or a setting is to vary and to be the same everywhere.

    Example:
        >>> from spigot_nlp.experiments.study.file import make_study
        >>> study = {"config": "synthetic", "systems": {"ste": {}, "spigot": {}}, "seeds": [0, 1]}
        >>> [trial.name for trial in Planner(make_study(study), Path("runs/x")).trials({})]
        ['ste-0', 'spigot-0', 'ste-1', 'spigot-1']
    """

    study: Study
    out: Path
    overrides: Mapping[str, Any] = field(default_factory=dict)
    suggested: dict[str, list[Combination]] = field(default_factory=dict)
    only_systems: Sequence[str] = ()
    only_points: Sequence[str] = ()

    def __post_init__(self) -> None:
        path = find_config(self.study.config)
        try:
            self._file = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not valid TOML: {error}.") from None
        self._name = str(self._file.get("name") or path.stem)
        self._where = str(path)
        self._made: dict[str, Trial] = {}
        self._begun: list[str] = []
        self._contestants = dict(self.study.systems) or {"": Contestant()}
        self._places = points_of(self.study) or {"": Point()}
        self.systems: dict[str, Contestant] = _only("system", self._contestants, self.only_systems)
        self.points: dict[str, Point] = _only("point", self._places, self.only_points)
        if (at := self.study.tune.point) and at not in self._places:
            raise ValueError(f"tune.point is {at!r}, and the points are {', '.join(self._places)}.")
        check_overrides(self.overrides, self.study, self.points)
        if "system" not in {**self._file, **self.study.settings} and not names_stages(self._file):
            check_named(self._contestants)

    def trials(self, known: Mapping[str, Known], parallel: int = 1) -> list[Trial]:
        """All trainings that can be named by now, in the order they are to be started.

        Args:
            known: What is known of trainings, by name.
            parallel: How many run at a time; a search that learns from results looks no further ahead.

        Raises:
            ValueError: If some training is no valid experiment; it says which setting is at fault.
        """
        tuning = [trial for system in self.systems for trial in self._tuning(system, known, parallel)]
        chosen = {
            (system, point): self.choice(system, point, known) for point in self.points for system in self.systems
        }
        final = [
            self._trial(system, point, seed, "final", choice.chosen)
            for seed in self.study.seeds
            for (system, point), choice in chosen.items()
            if choice.chosen is not None
        ]
        wanted = [*tuning, *final]
        return [*self._needed(wanted), *wanted]

    def check(self) -> None:
        """Complain of trainings that cannot be named yet and would be no valid experiments.

        Raises:
            ValueError: One would not; it says which setting is at fault.
        """
        for point, system in itertools.product(self.points, self.systems):
            for values in self._combinations(system, self._tuned_for(point))[:1]:
                for seed in self.study.seeds[:1]:
                    self._new_trial(system, point, seed, "final", values)
        self._check_options()

    def _check_options(self) -> None:
        """Complain of options of estimators that nothing has that they are given to."""
        configs = list[Config]()
        for name, contestant in self._contestants.items():
            own = self._examples(name)
            configs += own
            if own:
                where = f"systems.{name}" if name else ""
                check_useful(own, (*contestant.settings, *contestant.tune), where)
        wide = {"settings": self.study.settings, "": self.overrides}
        wide |= {f"points.{name}.settings": point.settings for name, point in self._places.items()}
        for where, settings in wide.items():
            check_useful(configs, settings, where)

    def _examples(self, system: str) -> list[Config]:
        """Experiments of a system, one for each of the first combinations to try that are valid ones."""
        point, found = next(iter(self.points)), list[Config]()
        for values in self._combinations(system, self._tuned_for(point))[:_EXAMPLES] or [{}]:
            with contextlib.suppress(ValueError):  # such a combination is reported when it is tried, and never chosen
                found.append(self._new_trial(system, point, 0, "final", values).config)
        return found

    @property
    def size(self) -> int:
        """How many trainings there will be in the end, if values are found for every system."""
        final = list(itertools.product(self.systems, self.points, self.study.seeds))
        tuned = [s for s in self.systems if self.systems[s].tune]
        tuning = list(itertools.product(tuned, self.tuned_at, self.study.tune.seeds))
        sources = list[Trial]()
        for system, point, seed in [*tuning, *final]:
            values = next(iter(self._combinations(system, self._tuned_for(point))), {})
            given = self._given(system, point, seed, "final", values)
            sources += self._sources(given, system, point, seed).values()
        counted = {trial_name([system, point], {}, {}, seed) for system, point, seed in final}
        needed = {trial.name for trial in [*self._needed(sources), *sources]}
        return len(final) + sum(self.budget().values()) + len(needed - counted)

    def budget(self) -> dict[str, int]:
        """How many trainings each system is tuned by: fair studies give all the same."""
        each = len(self.study.tune.seeds) * len(self.tuned_at)
        return {system: self._how_many(system) * each for system in self.systems}

    @property
    def tuned_at(self) -> list[str]:
        """The points that values are tried at."""
        return [self.study.tune.point] if self.study.tune.point else list(self.points)

    def choice(self, system: str, point: str, known: Mapping[str, Known]) -> Choice:
        """What tuning has come to, for a system at a point."""
        if not self._contestants[system].tune:
            return Choice([], {}, is_over=True)
        at = self._tuned_for(point)
        tried: list[tuple[Combination, float | None]] = []
        combined = self._combinations(system, at)
        is_over = len(combined) >= self._how_many(system)
        for values in combined:
            runs = self._runs(system, at, values, known)
            is_over = is_over and len(runs) == len(self.study.tune.seeds)
            scores = [run.score for run in runs if run.score is not None]
            tried.append((values, statistics.fmean(scores) if len(scores) == len(self.study.tune.seeds) else None))
        good = [(score, -k) for k, (_, score) in enumerate(tried) if score is not None]
        best = tried[-max(good)[1]][0] if good and is_over else None
        return Choice(tried, best, is_over)

    def _runs(self, system: str, point: str, values: Combination, known: Mapping[str, Known]) -> list[Known]:
        """The trainings of a combination that have ended."""
        names = [self._trial(system, point, seed, "tuning", values).name for seed in self.study.tune.seeds]
        return [run for name in names if (run := known.get(name)) is not None and run.has_ended]

    def _tuned_for(self, point: str) -> str:
        return self.study.tune.point or point

    def _how_many(self, system: str) -> int:
        """How many combinations a system is tried with."""
        tried, tuning = self._contestants[system].tune, self.study.tune
        if not tried:
            return 0
        if tuning.search == "bayes":
            total = how_many(tried)
            return (tuning.trials or 0) if total is None else min(tuning.trials or 0, total)
        return len(combinations(tried, tuning))

    def _combinations(self, system: str, point: str) -> list[Combination]:
        tried, tuning = self._contestants[system].tune, self.study.tune
        if not tried:
            return []
        if tuning.search == "bayes":
            # A study may have other values to try than when it was begun.
            return [values for values in self.suggested.get(f"{system},{point}", []) if fits(values, tried)]
        return combinations(tried, tuning)

    def _tuning(self, system: str, known: Mapping[str, Known], parallel: int) -> Iterator[Trial]:
        if not self.systems[system].tune:
            return
        for point in self.tuned_at:
            if self.study.tune.search == "bayes":
                self._suggest(system, point, known, parallel)
            for seed, values in itertools.product(self.study.tune.seeds, self._combinations(system, point)):
                yield self._trial(system, point, seed, "tuning", values)

    def _suggest(self, system: str, point: str, known: Mapping[str, Known], parallel: int) -> None:
        """Ask for as many combinations as can be tried now."""
        tuning, tried = self.study.tune, self.systems[system].tune
        while len(made := self._combinations(system, point)) < self._how_many(system):
            ended = sum(len(self._runs(system, point, values, known)) == len(tuning.seeds) for values in made)
            if len(made) - ended >= parallel:
                return
            values = suggestion(tried, self.choice(system, point, known).tried, tuning.seed)
            if values in made:  # it would be one folder
                values = unseen(tried, made, tuning.seed + len(made))
            if values is None:
                return
            self.suggested.setdefault(f"{system},{point}", []).append(values)

    def _needed(self, wanted: Sequence[Trial]) -> list[Trial]:
        """What these start from and is not among them, each once, and after what it starts from itself."""
        listed, found = {trial.name for trial in wanted}, dict[str, Trial]()

        def add(trial: Trial) -> None:
            for name in trial.needs:
                if name not in listed and name not in found:
                    add(self._made[name])
                    found[name] = self._made[name]

        for trial in wanted:
            add(trial)
        return list(found.values())

    def _trial(self, system: str, point: str, seed: int, role: Role, values: Mapping[str, Any]) -> Trial:
        """A training, made once."""
        shown = values if role == "tuning" else {}
        labels = short_names(list(self._contestants[system].tune)) if shown else {}
        name = trial_name([system, point], shown, labels, seed)
        if name not in self._made or dict(self._made[name].values) != dict(values):
            if name in self._begun:
                raise ValueError(f"{system or 'the study'} starts from itself; start it from another training.")
            self._begun.append(name)
            try:
                self._made[name] = self._new_trial(system, point, seed, role, values, name)
            finally:
                self._begun.pop()
        return self._made[name]

    def _new_trial(
        self, system: str, point: str, seed: int, role: Role, values: Mapping[str, Any], name: str = ""
    ) -> Trial:
        given = self._given(system, point, seed, role, values)
        sources = self._sources(given, system, point, seed)
        places = {setting: str(self.out / source.name) for setting, source in sources.items()}
        config = self._config({**given, **places}, values, system, point, role)
        counts = system in self.systems and point in self.points and seed in self.study.seeds
        role = role if counts or role == "tuning" else "shared"  # others start from it, and that is all
        needs = tuple(dict.fromkeys(source.name for source in sources.values()))
        return Trial(name, system, point, seed, config, role, dict(values), needs)

    def _tables(self, system: str, point: str, role: Role) -> dict[str, Mapping[str, Any]]:
        """The tables of the file that say something of a training, the weakest first."""
        study, at = self.study, self._places.get(point, Point())
        tables: dict[str, Mapping[str, Any]] = {"settings": study.settings}
        tables["vary" if study.vary else f"points.{point}.settings"] = at.settings
        if role == "shared":
            tables[f"shared.{system}.settings"] = study.shared[system].settings
        else:
            own = self._contestants[system].settings
            is_known = system in known_systems(several=True) and "system" not in own
            tables[f"systems.{system}.settings"] = {**({"system": system} if is_known else {}), **own}
        if role == "tuning":
            tables["tune.settings"] = study.tune.settings
        return tables

    def _given(self, system: str, point: str, seed: int, role: Role, values: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a training by dotted name, with references as they stand in the file."""
        own: dict[str, Any] = {}
        for table in self._tables(system, point, role).values():
            own.update(table)
        # Test sets are scored once, when nothing is left to choose.
        return {**own, "training.tests": False, **self.overrides, **values, "seed": seed}

    def _sources(self, given: Mapping[str, Any], system: str, point: str, seed: int) -> dict[str, Trial]:
        """The trainings that references such as `{parser}` stand for, by the settings that name them."""
        found: dict[str, Trial] = {}
        for setting, value in given.items():
            if named := _REFERENCE.fullmatch(value) if isinstance(value, str) else None:
                found[setting] = self._source(named[1], point, seed, f"{system or 'the study'}: {setting}")
        return found

    def _source(self, name: str, point: str, seed: int, where: str) -> Trial:
        if name in self.study.shared:
            return self._trial(name, point if self.study.shared[name].each_point else "", seed, "shared", {})
        if name in self._contestants:
            if self._contestants[name].tune:
                raise ValueError(f"{where} starts from {name}, which is tuned; make it a shared training instead.")
            return self._trial(name, point, seed, "final", {})
        known = ", ".join([*self.study.shared, *filter(None, self._contestants)])
        raise ValueError(f"{where} is '{{{name}}}', and there is no such training; there are {known or 'none'}.")

    def _config(
        self, given: Mapping[str, Any], values: Mapping[str, Any], system: str, point: str, role: Role
    ) -> Config:
        options = as_options(self.overrides) | {name: f"{name} = {show_value(v)}" for name, v in values.items()}
        try:
            config = make_config(self._file, given, where=self._where, options=options)
        except ValueError as error:
            said = str(error)
            tables = reversed(self._tables(system, point, role).items())
            at_fault = said.partition(";")[0]  # and what comes after it is advice
            blamed = [table for table, settings in tables if any(_names(at_fault, name) for name in settings)]
            if blamed and said.startswith(self._where):
                said = f"{blamed[0]}{said.removeprefix(self._where)}"
            raise ValueError(said) from None
        return config.model_copy(update={"name": config.name or self._name, "sweep": {}})


def _names(said: str, setting: str) -> bool:
    """Whether a sentence names a setting, or one below it."""
    return re.search(rf"(?<![\w.-]){re.escape(setting)}(?![\w-])", said) is not None


def _only(noun: str, known: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    for name in wanted:
        if name not in known:
            raise ValueError(f"there is no {noun} {name!r}; the study has {', '.join(filter(None, known)) or 'none'}.")
    return {name: value for name, value in known.items() if not wanted or name in wanted}
