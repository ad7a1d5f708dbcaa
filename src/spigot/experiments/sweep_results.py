"""What came of the trials of a search, and which combination of values is the best."""

import csv
import io
import json
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spigot.experiments.children import Status
from spigot.experiments.sweep import Sweep, Trial, Value, show_value
from spigot.experiments.tail import Tail
from spigot.training.checkpoint import write_text

RECORD, TABLE = "sweep.json", "sweep.csv"


@dataclass
class Result:
    """What is known of a trial.

    Attributes:
        trial: The trial.
        status: How far it is.
        reason: Why it failed, in one sentence.
        seconds: How long it has been trained, over all attempts.
        place: The phase and the epoch it is in.
        measure: What the dev score measures.
        score: The best dev score of the last phase, in per cent.
        epoch: The epoch it was reached in.
        tests: Scores on the test sets, in per cent, if they were asked for.

    Example:
        >>> from spigot.config import Config
        >>> Result(Trial("eta=0.1,seed=0", {"estimator.eta": 0.1}, 0, Config())).status
        'waiting'
    """

    trial: Trial
    status: Status = "waiting"
    reason: str = ""
    seconds: float = 0.0
    place: str = ""
    measure: str = ""
    score: float | None = None
    epoch: int | None = None
    tests: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """What is known of a combination of values, over its seeds.

    Attributes:
        settings: The combination.
        complete: Whether all its trials are finished.
        scores: The dev score of each seed whose trial is finished, in per cent.
        mean: Their mean.
        sd: Their standard deviation, if there are several.
        epoch: Epochs to the best score, on average.
        minutes: Minutes of training a trial, on average.
        failures: Why trials failed, by seed.
        tests: Mean scores on the test sets, if they were asked for.

    Example:
        >>> row = Row({"semantics.mlp": 100}, True, {0: 70.0, 1: 72.0}, 71.0, 1.41, 6.5, 3.0, {}, {})
        >>> f"{row.mean} ± {row.sd}"
        '71.0 ± 1.41'
    """

    settings: Mapping[str, Value]
    complete: bool
    scores: dict[int, float]
    mean: float | None
    sd: float | None
    epoch: float | None
    minutes: float | None
    failures: dict[int, str]
    tests: dict[str, float]


def rank(sweep: Sweep, results: Sequence[Result]) -> list[Row]:
    """Combinations by their mean dev score, best first; those with unfinished or failed trials come after the others.

    Test scores play no part in it.

    Args:
        sweep: The search.
        results: What is known of each of its trials, in their order.

    Example:
        >>> import tempfile
        >>> from spigot.experiments.sweep import plan_sweep
        >>> file = Path(tempfile.mkdtemp()) / "mine.toml"
        >>> _ = file.write_text('[sweep]\\n"estimator.eta" = [0.1, 1.0]')
        >>> sweep = plan_sweep(file, seeds=[0, 1])
        >>> scores = iter([70.0, 75.0, 72.0, 79.0])
        >>> results = [Result(trial, "finished", score=next(scores)) for trial in sweep.trials]
        >>> [(row.settings["estimator.eta"], row.mean) for row in rank(sweep, results)]
        [(1.0, 77.0), (0.1, 71.0)]
    """
    count = len(sweep.combinations)
    rows = [_row(list(results[k::count])) for k in range(count)]
    return sorted(rows, key=lambda row: (not row.complete, row.mean is None, -(row.mean or 0.0)))


def _row(results: list[Result]) -> Row:
    done = [result for result in results if result.status == "finished"]
    scores = {result.trial.seed: result.score for result in done if result.score is not None}
    return Row(
        settings=results[0].trial.settings,
        complete=len(scores) == len(results),
        scores=scores,
        mean=_mean(list(scores.values())),
        sd=statistics.stdev(scores.values()) if len(scores) > 1 else None,
        epoch=_mean([result.epoch for result in done if result.epoch is not None]),
        minutes=_mean([result.seconds / 60 for result in done if result.seconds]),
        failures={result.trial.seed: result.reason for result in results if result.status == "failed"},
        tests={
            name: statistics.fmean(result.tests[name] for result in done)
            for name in (done[0].tests if done else ())
            if all(name in result.tests for result in done)
        },
    )


def _mean(numbers: Sequence[float]) -> float | None:
    return statistics.fmean(numbers) if numbers else None


def chosen_row(rows: Sequence[Row]) -> Row | None:
    """The combination with the best dev score, of those whose trials are all finished.

    Example:
        >>> chosen_row([]) is None
        True
    """
    return rows[0] if rows and rows[0].complete else None


class Steps:
    """What `steps.jsonl` says of a training so far, read as it grows.

    Args:
        path: The file; it need not exist yet.

    Attributes:
        place: The phase and the epoch of the last step.
        measure: What the dev score of the present phase measures.
        score: The best one so far.
        epoch: Its epoch.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "steps.jsonl"
        >>> step = {"phase": "joint", "epoch": 2, "step": 5, "of": 5, "dev": {"LF": 71.5, "UAS": 80.0}, "is_best": True}
        >>> _ = path.write_text(json.dumps(step) + "\\n")
        >>> steps = Steps(path)
        >>> steps.place, steps.measure, steps.score, steps.epoch
        ('joint 2', 'LF', 71.5, 2)
    """

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._forget()
        self.update()

    def _forget(self) -> None:
        self._phase = self.place = self.measure = ""
        self.score: float | None = None
        self.epoch: int | None = None

    def update(self) -> None:
        """Read what has been added."""
        lines = self._tail.read()
        if self._tail.is_anew:
            self._forget()
        for number, line in enumerate(lines, 1):
            # There may be a hundred thousand steps; only ends of epochs matter, and where the training is now.
            if number == len(lines) or b'"dev": null' not in line:
                with suppress(ValueError, LookupError, TypeError):  # a line that a crash spoilt
                    self._see(json.loads(line))

    def _see(self, step: dict[str, Any]) -> None:
        if step["phase"] != self._phase:
            self._phase, self.measure, self.score, self.epoch = step["phase"], "", None, None
        dev = step["dev"]
        self.place = f"{step['phase']} {step['epoch']}" + (f" ({step['step']}/{step['of']})" if dev is None else "")
        if dev is not None and step["is_best"]:
            self.epoch = step["epoch"]
            for name, value in list(dev.items())[:1]:  # the first is what the phase is judged by
                self.measure, self.score = name, value


def write_record(sweep: Sweep, results: Sequence[Result], folder: Path) -> None:
    """Write the results so far: everything to `sweep.json`, the table to `sweep.csv`.

    Args:
        sweep: The search.
        results: What is known of its trials.
        folder: Where to write.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_record(Sweep((), (0,), ()), [], folder)
        >>> (folder / "sweep.csv").read_text()
        'dev_mean,dev_sd,dev_seed_0,epoch,minutes,failed\\n'
    """
    rows = rank(sweep, results)
    write_text(folder / RECORD, json.dumps(record(sweep, results), indent=2) + "\n")
    tests = next((list(row.tests) for row in rows if row.tests), [])
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    seeds = [f"dev_seed_{seed}" for seed in sweep.seeds]
    table.writerow([*sweep.names, "dev_mean", "dev_sd", *seeds, "epoch", "minutes", "failed", *tests])
    for row in rows:
        numbers = [row.mean, row.sd, *(row.scores.get(seed) for seed in sweep.seeds), row.epoch, row.minutes]
        table.writerow([*map(show_value, row.settings.values()), *numbers, failures(row), *row.tests.values()])
    write_text(folder / TABLE, text.getvalue())


def record(sweep: Sweep, results: Sequence[Result]) -> dict[str, Any]:
    """The results so far as plain values.

    Example:
        >>> record(Sweep((), (0,), ()), [])["chosen"] is None
        True
    """
    rows = rank(sweep, results)
    chosen = chosen_row(rows)
    return {
        "settings": list(sweep.names),
        "seeds": list(sweep.seeds),
        "measure": next((result.measure for result in results if result.measure), None),
        "chosen": None if chosen is None else dict(chosen.settings),
        "rows": [_without(asdict(row), row.tests) for row in rows],
        "trials": [_trial_record(result) for result in results],
    }


def _trial_record(result: Result) -> dict[str, Any]:
    plain = {name: value for name, value in vars(result).items() if name != "trial"}
    trial = result.trial
    plain = {"name": trial.name, "settings": dict(trial.settings), "seed": trial.seed, **plain}
    return _without(plain, result.tests)


def _without(plain: dict[str, Any], tests: dict[str, float]) -> dict[str, Any]:
    """Test scores are in a record only if they were asked for."""
    return plain if tests else {name: value for name, value in plain.items() if name != "tests"}


def failures(row: Row) -> str:
    """Why trials of a combination failed, in words.

    Example:
        >>> failures(Row({}, False, {}, None, None, None, None, {1: "The loss is nan."}, {}))
        'seed 1: The loss is nan.'
    """
    return " ".join(f"seed {seed}: {reason}" for seed, reason in row.failures.items())
