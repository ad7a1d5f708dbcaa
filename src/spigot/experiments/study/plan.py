"""From a study to its trainings: which there are, what each starts from, and what tuning has chosen."""

import itertools
import re
import statistics
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from spigot.config import Config, as_options, find_config, make_config
from spigot.config import systems as known_systems
from spigot.experiments.study.file import Contestant, Point, Range, Study, flat
from spigot.experiments.study.search import Combination, combinations, suggestion
from spigot.experiments.study.trials import Role, Trial, short_names, show_value, trial_name

_REFERENCE = re.compile(r"\{([\w.+-]+)\}")


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

    Example:
        >>> from spigot.experiments.study.file import make_study
        >>> study = {"config": "synthetic", "systems": {"ste": {}, "spigot": {}}, "seeds": [0, 1]}
        >>> [trial.name for trial in Planner(make_study(study), Path("runs/x")).trials({})]
        ['ste-0', 'spigot-0', 'ste-1', 'spigot-1']
    """

    study: Study
    out: Path
    overrides: Mapping[str, Any] = field(default_factory=dict)
    suggested: dict[str, list[Combination]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        path = find_config(self.study.config)
        try:
            self._given = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not valid TOML: {error}.") from None
        self._where = str(path)
        self._name = str(self._given.get("name") or path.stem)
        self._made: dict[str, Trial] = {}
        self.systems: dict[str, Contestant] = dict(self.study.systems) or {"": Contestant()}
        self.points = dict(_points(self.study)) or {"": Point()}

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
            self._trial(system, point, seed, "final", choice.chosen, {})
            for seed in self.study.seeds
            for (system, point), choice in chosen.items()
            if choice.chosen is not None
        ]
        wanted = [*tuning, *final]
        return [*self._needed(wanted), *wanted]

    @property
    def size(self) -> int:
        """How many trainings there will be in the end."""
        first = self.trials({})
        finals = len(self.systems) * len(self.points) * len(self.study.seeds)
        tuned = sum(self._budget(system) * len(self._tuned_at()) for system in self.systems)
        shared = len({trial.name for trial in first if trial.role == "shared"})
        return finals + tuned + shared

    def budget(self) -> dict[str, int]:
        """How many trainings each system is tuned by: fair studies give all the same."""
        return {system: self._budget(system) * len(self._tuned_at()) for system in self.systems}

    def choice(self, system: str, point: str, known: Mapping[str, Known]) -> Choice:
        """What tuning has come to, for a system at a point."""
        if not self.systems[system].tune:
            return Choice([], {}, is_over=True)
        at = self.study.tune.point or point
        tried: list[tuple[Combination, float | None]] = []
        is_over = len(self._combinations(system, at)) == self._budget(system) // len(self.study.tune.seeds)
        for values in self._combinations(system, at):
            runs = [
                known.get(self._trial(system, at, seed, "tuning", values, values).name)
                for seed in self.study.tune.seeds
            ]
            is_over = is_over and all(run is not None and run.has_ended for run in runs)
            scores = [run.score for run in runs if run is not None and run.has_ended]
            whole = [score for score in scores if score is not None]
            tried.append((values, statistics.fmean(whole) if len(whole) == len(runs) else None))
        good = [(score, -k) for k, (_, score) in enumerate(tried) if score is not None]
        best = tried[-max(good)[1]][0] if good and is_over else None
        return Choice(tried, best, is_over)

    def _tuned_at(self) -> list[str]:
        return [self.study.tune.point] if self.study.tune.point else list(self.points)

    def _budget(self, system: str) -> int:
        tried, tuning = self.systems[system].tune, self.study.tune
        if not tried:
            return 0
        many = tuning.trials if tuning.search == "bayes" else len(combinations(tried, tuning))
        return (many or 0) * len(tuning.seeds)

    def _combinations(self, system: str, point: str) -> list[Combination]:
        tried, tuning = self.systems[system].tune, self.study.tune
        if tuning.search == "bayes":
            return self.suggested.get(f"{system},{point}", [])
        return combinations(tried, tuning)

    def _tuning(self, system: str, known: Mapping[str, Known], parallel: int) -> Iterator[Trial]:
        if not self.systems[system].tune:
            return
        for point in self._tuned_at():
            if self.study.tune.search == "bayes":
                self._suggest(system, point, known, parallel)
            for seed, values in itertools.product(self.study.tune.seeds, self._combinations(system, point)):
                yield self._trial(system, point, seed, "tuning", values, values)

    def _suggest(self, system: str, point: str, known: Mapping[str, Known], parallel: int) -> None:
        """Ask for as many combinations as can be tried now."""
        tuning, made = self.study.tune, self.suggested.setdefault(f"{system},{point}", [])
        while len(made) < (tuning.trials or 0):
            tried = self.choice(system, point, known).tried
            ended = 0
            for values in made:
                runs = [known.get(self._trial(system, point, s, "tuning", values, values).name) for s in tuning.seeds]
                ended += all(run is not None and run.has_ended for run in runs)
            if len(made) - ended >= parallel:
                return
            values = suggestion(self.systems[system].tune, tried, tuning.seed)
            if values in made:  # where values are few, the same may come again; it would be one folder
                values = next((other for other in _all(self.systems[system].tune) if other not in made), None)
                if values is None:
                    return
            made.append(values)

    def _needed(self, wanted: Iterable[Trial]) -> list[Trial]:
        """The shared trainings that others start from, each once."""
        found: dict[str, Trial] = {}
        for trial in wanted:
            for name in trial.needs:
                shared = self._made[name]
                if shared.role == "shared":
                    found.setdefault(name, shared)
        return list(found.values())

    def _trial(
        self, system: str, point: str, seed: int, role: Role, values: Mapping[str, Any], shown: Mapping[str, Any]
    ) -> Trial:
        labels = short_names(list(self.systems[system].tune)) if role != "shared" else {}
        name = trial_name([system, point], shown, labels, seed)
        if name in self._made and dict(self._made[name].values) == dict(values):
            return self._made[name]
        study = self.study
        own = {**study.settings, **self.points[point].settings} if point in self.points else dict(study.settings)
        if role == "shared":
            own.update(study.shared[system].settings)
        else:
            if "system" not in self.systems[system].settings and system in known_systems():
                own["system"] = system
            own.update(self.systems[system].settings)
        if role == "tuning":
            own.update(study.tune.settings)
        own["training.tests"] = False  # they are scored once, when nothing is left to choose
        given = {**own, **self.overrides, **values, "seed": seed}
        needs: list[str] = []
        for setting, value in given.items():
            found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
            if found:
                source = self._source(found[1], point, seed, f"{system or 'the study'}: {setting}")
                needs.append(source)
                given[setting] = str(self.out / source)
        trial = Trial(name, system, point, seed, self._config(given, values), role, dict(values), tuple(needs))
        self._made[name] = trial
        return trial

    def _source(self, name: str, point: str, seed: int, where: str) -> str:
        """The name of the training that `{name}` stands for."""
        if name in self.study.shared:
            at = point if self.study.shared[name].each_point else ""
            return self._trial(name, at, seed, "shared", {}, {}).name
        if name in self.systems:
            if self.systems[name].tune:
                raise ValueError(f"{where} starts from {name}, which is tuned; make it a shared training instead.")
            return self._trial(name, point, seed, "final", {}, {}).name
        known = [*self.study.shared, *filter(None, self.systems)]
        raise ValueError(f"{where} is '{{{name}}}', and there is no such training; there are {', '.join(known)}.")

    def _config(self, given: Mapping[str, Any], values: Mapping[str, Any]) -> Config:
        options = as_options(self.overrides) | {name: f"{name} = {show_value(v)}" for name, v in values.items()}
        config = make_config(self._given, given, where=self._where, options=options)
        return config.model_copy(update={"name": config.name or self._name, "sweep": {}})


def _points(study: Study) -> Iterator[tuple[str, Point]]:
    if study.points:
        for name, point in study.points.items():
            yield name, point if point.x is not None else point.model_copy(update={"x": _number(name)})
        return
    labels = short_names(list(study.vary))
    lists = [values for values in study.vary.values() if not isinstance(values, Range)]
    for picked in itertools.product(*lists):
        settings = dict(zip(study.vary, picked, strict=True))
        if settings:
            name = ",".join(f"{labels[setting]}={show_value(value)}" for setting, value in settings.items())
            alone = picked[0] if len(picked) == 1 and isinstance(picked[0], int | float) else None
            yield name, Point(settings=flat(settings), x=None if isinstance(alone, bool) else alone)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "").replace("_", ""))
    except ValueError:
        return None


def _all(tried: Mapping[str, Range | tuple[Any, ...]]) -> Iterator[Combination]:
    lists: list[Sequence[Any]] = [values for values in tried.values() if not isinstance(values, Range)]
    if len(lists) == len(tried):
        yield from (dict(zip(tried, picked, strict=True)) for picked in itertools.product(*lists))
