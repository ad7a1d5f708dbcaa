"""What a report is made from: run folders, read and sorted into experiments and the systems that contend there."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from spigot_nlp.config import Config, systems
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models import checkpoint
from spigot_nlp.scoring import Target, targets

_SAME = ("seed", "name", "data.root", "training.tests", "training.save_seconds")  # and whatever a stage starts from
_UNSHOWN = "data.obtain"
_LINES = {
    checkpoint.STEPS: {"phase", "task", "epoch", "step", "of", "loss", "sentences", "tokens", "dev"},
    checkpoint.TIMES: {"phase", "epoch", "seconds"},
}
"""What each line of a file must say."""


@dataclass(frozen=True)
class Run:
    """A finished training, as far as a report needs it.

    Attributes:
        path: Its folder.
        config: The experiment.
        scores: What `scores.json` says.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> run = Run(Path("runs/dm-spigot-0"), make_config({}), {})
        >>> run.name, [target.stage for target in run.targets]
        ('dm-spigot-0', ['semantics', 'syntax'])
    """

    path: Path
    config: Config
    scores: Mapping[str, Mapping[str, Any]] = field(repr=False)
    _read: dict[Path, list[Sentence] | None] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.path.resolve().name

    @property
    def parts(self) -> list[str]:
        """The sets of sentences that the end task was judged by: `dev`, then the test sets."""
        return [name for name, found in self.scores.items() if self.targets[0].key in found]

    @cached_property
    def targets(self) -> list[Target]:
        """What its stages were judged by, the last one first."""
        return targets(self.config)

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """The lines of `steps.jsonl`, or none; the last of an epoch says when it ended, if that is known."""
        ends = {(line["phase"], line["epoch"]): line["seconds"] for line in self._lines(checkpoint.TIMES)}
        return [
            {**step, "seconds": ends.get((step["phase"], step["epoch"])) if step["dev"] is not None else None}
            for step in self._lines(checkpoint.STEPS)
        ]

    def _lines(self, name: str) -> list[dict[str, Any]]:
        path = self.path / name
        if not path.exists():
            return []
        try:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            whole = all(isinstance(line, dict) and line.keys() >= _LINES[name] for line in lines)
        except ValueError:
            lines, whole = [], False
        if not whole:
            raise ValueError(f"{path} is damaged; restore it, or leave {self.path} out of the report.")
        return lines

    @property
    def seconds(self) -> float | None:
        """How long the training took, if that is known."""
        return self._progress.get("seconds")

    @property
    def processor(self) -> float | None:
        """How many seconds of processor time it took, if that is known; of several processes, the first's."""
        return self._progress.get("processor")

    @cached_property
    def _progress(self) -> dict[str, Any]:
        """How far the training had come when it was saved last."""
        try:
            with safe_open(self.path / checkpoint.STATE, framework="pt") as file:
                return json.loads((file.metadata() or {}).get("about", "{}"))
        except (FileNotFoundError, SafetensorError, ValueError, OSError):
            return {}

    def gold(self, part: str) -> list[Sentence] | None:
        """The right annotation of a part, with the tags and lemmas that this system sees; `None` if it was not kept."""
        return self._sentences(self.gold_path(part))

    def gold_path(self, part: str) -> Path:
        """Where that is."""
        return self.path / f"gold.{part}.jsonl"

    def predictions(self, part: str, judge: Target) -> list[Sentence] | None:
        """What the training wrote down of a stage when it had finished; `None` if there is no such file."""
        found = self._sentences(self.path / f"predictions.{part}.{judge.file}") if judge.file else None
        return None if found is None else list(map(judge.annotation.reread, found))

    def _sentences(self, path: Path) -> list[Sentence] | None:
        if path not in self._read:
            self._read[path] = list(read(path)) if path.exists() else None
        return self._read[path]


@dataclass(frozen=True)
class Contender:
    """A system in comparison with others: runs that differ in nothing but their seed.

    Attributes:
        name: As settings and commands call it; with settings, where two systems share it.
        runs: The runs, by seed.
        series: Its colour, the same everywhere in a report.

    Example:
        >>> Contender("spigot", (Run(Path("a"), Config(system="spigot"), {}),), 0).first.config.system
        'spigot'
    """

    name: str
    runs: tuple[Run, ...]
    series: int

    @property
    def first(self) -> Run:
        """The run whose sentences are shown."""
        return self.runs[0]


@dataclass(frozen=True)
class Experiment:
    """Systems that were judged by the same sentences.

    Attributes:
        name: What the configuration calls it.
        contenders: The systems, simple ones first.
        baseline: The one that the others are compared with; `None` if there is only one.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> run = Run(Path("a"), make_config({}), {"dev": {"graphs": {}, "trees": {}}})
        >>> contender = Contender("spigot", (run,), 0)
        >>> Experiment("dm", (contender,), None).parts
        ['dev']
    """

    name: str
    contenders: tuple[Contender, ...]
    baseline: Contender | None

    @property
    def runs(self) -> Iterator[Run]:
        """All of them."""
        return (run for contender in self.contenders for run in contender.runs)

    @property
    def end(self) -> Target:
        """What all of them were judged by in the end."""
        return next(self.runs).targets[0]

    @property
    def parts(self) -> list[str]:
        """The sets of sentences of the end task that any system was judged by."""
        return list(dict.fromkeys(part for run in self.runs for part in run.parts))


def read_run(path: Path) -> Run:
    """A finished run.

    Raises:
        FileNotFoundError: If the folder holds no run, or one whose training has not finished.

    Example:
        >>> read_run(Path("nowhere"))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        FileNotFoundError: nowhere is no run folder: it has no config.toml. Train one with spigot train...
    """
    config = checkpoint.read_config(path)
    scores = path / checkpoint.SCORES
    if not scores.exists():
        raise FileNotFoundError(
            f"{path} has no {checkpoint.SCORES}: its training has not finished. Finish it with spigot train --resume "
            f"{shlex.quote(str(path))}, or leave it out."
        )
    try:
        found = json.loads(scores.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not all(isinstance(part, dict) for part in found.values()):
            raise ValueError("it is no object of objects")
    except ValueError as error:
        raise ValueError(
            f"{scores} is damaged ({error}); write it again with spigot train --resume {shlex.quote(str(path))}."
        ) from None
    return Run(path, config, found)


def experiments(runs: Sequence[Run], baseline: Path | None = None) -> list[Experiment]:
    """Sort runs: those judged by the same sentences are one experiment, those that differ in the seed one system.

    Args:
        runs: The runs.
        baseline: The run whose system the others are compared with; by default the pipeline, or else the first.

    Raises:
        ValueError: If two runs are the same, or the baseline is none of them.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> configs = [make_config({"system": name}, {"seed": seed}) for name in ("spigot", "ste") for seed in (1, 0)]
        >>> (only,) = experiments([Run(Path(f"run {k}"), config, {}) for k, config in enumerate(configs)])
        >>> [(contender.name, len(contender.runs)) for contender in only.contenders], only.baseline.name
        ([('ste', 2), ('spigot', 2)], 'ste')
    """
    if not runs:
        raise ValueError("there are no runs to report on; give one run folder or more.")
    where = [run.path.resolve() for run in runs]
    twice = next((path for path in where if where.count(path) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is given twice; name every run once.")
    if baseline is not None and baseline.resolve() not in where:
        raise ValueError(f"the baseline {baseline} is none of the runs of the report; add it to them.")
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(_judged_by(run.config), []).append(run)
    return [_experiment(group, baseline) for group in groups.values()]


def _judged_by(config: Config) -> str:
    """The same text for runs that can be compared: same annotation in the end, same development and test data."""
    data, name = config.data.model_dump(mode="json"), config.data_of(config.end)
    end, judged = data.get(name) or {}, config.stages[config.end]
    kept = {key: end.get(key) for key in ("dev", "tests", "format")} if data["source"] == "files" else data
    own = ("root", "obtain", "tags", "folds", "vectors", "text")
    kept = {key: value for key, value in kept.items() if key not in own}
    return json.dumps([judged.annotation, judged.field, name, data["source"], kept], sort_keys=True)


def _experiment(runs: Sequence[Run], baseline: Path | None) -> Experiment:
    alike: dict[str, list[Run]] = {}
    for run in runs:
        settings = {name: value for name, value in run.config.by_name().items() if not _is_same(name)}
        alike.setdefault(json.dumps(settings, sort_keys=True), []).append(run)
    order = systems(runs[0].config.task, several=True)

    def place(group: Sequence[Run]) -> int:
        label = group[0].config.system
        return order.index(label) if label in order else len(order)

    groups = sorted(alike.values(), key=place)
    contenders = tuple(
        Contender(name, tuple(sorted(group, key=lambda run: run.config.seed)), series)
        for series, (group, name) in enumerate(zip(groups, _names(groups), strict=True))
    )
    return Experiment(runs[0].config.name or runs[0].name, contenders, _baseline(contenders, baseline))


def _is_same(setting: str) -> bool:
    """Whether runs that differ in a setting are still the same system."""
    return setting in _SAME or setting.endswith(".start")


def _baseline(contenders: Sequence[Contender], wanted: Path | None) -> Contender | None:
    if len(contenders) < 2:
        return None
    for contender in contenders:
        if wanted is not None and any(run.path.resolve() == wanted.resolve() for run in contender.runs):
            return contender
    return next((contender for contender in contenders if _is_pipeline(contender.first.config)), contenders[0])


def _is_pipeline(config: Config) -> bool:
    """Whether nothing ever comes back by any of its wires."""
    wires = [wire for _, wire in config.wires]
    return bool(wires) and all(wire.is_frozen for wire in wires)


def _names(groups: Sequence[Sequence[Run]]) -> list[str]:
    """The names of the systems; of those that share one, also the settings in which they differ."""
    configs = [group[0].config for group in groups]
    names = []
    for k, config in enumerate(configs):
        name = config.system
        rivals = [other.by_name() for other in configs if other.system == config.system]
        if len(rivals) > 1:
            mine = config.by_name()
            differ = [
                key
                for key in mine
                if not _is_same(key) and not key.startswith(_UNSHOWN) and any(r.get(key) != mine[key] for r in rivals)
            ]
            # Several wires that share a setting are named once.
            told = list(dict.fromkeys(f"{_short(key, mine, differ)} {mine[key]}" for key in differ))[:2]
            name += f", {', '.join(told)}" if told else f" ({groups[k][0].name})"
        names.append(name)
    return names


def _short(key: str, values: Mapping[str, Any], keys: Sequence[str]) -> str:
    """A setting by its last word, where all settings of that word say the same."""
    leaf = key.rpartition(".")[2]
    same = {values[other] for other in keys if other.rpartition(".")[2] == leaf and not isinstance(values[other], list)}
    alone = sum(other.rpartition(".")[2] == leaf for other in keys) == 1
    return leaf if len(same) == 1 and not alone else key
