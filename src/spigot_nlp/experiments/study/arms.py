"""What came of a study: its runs in the shape that reports take, and what tuning tried."""

import csv
import io
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spigot_nlp.experiments.study.plan import Planner
from spigot_nlp.experiments.study.progress import Progress, by_name
from spigot_nlp.experiments.study.trials import show_value
from spigot_nlp.models.checkpoint import write_text
from spigot_nlp.report.study import Arm
from spigot_nlp.report.study import Study as ReportedStudy

_AT = "at"  # what reports call the places of a study that names them


def arms(planner: Planner, known: Sequence[Progress]) -> list[Arm]:
    """The systems at their points, each with the runs that are finished.

    Example:
        >>> from spigot_nlp.experiments.study.file import make_study
        >>> study = make_study({"config": "synthetic", "systems": {"ste": {}}, "vary": {"training.epochs": [1, 2]}})
        >>> [(arm.system, arm.point, arm.complete) for arm in arms(Planner(study, Path("runs/x")), [])]
        [('ste', {'training.epochs': 1}, False), ('ste', {'training.epochs': 2}, False)]
    """
    found = []
    for point in planner.points:
        for system in planner.systems:
            runs = {
                progress.trial.seed: planner.out / progress.trial.name
                for progress in known
                if (progress.trial.system, progress.trial.point, progress.trial.role) == (system, point, "final")
                and progress.status == "finished"
            }
            complete = set(runs) == set(planner.study.seeds)
            found.append(
                Arm(system or planner.study.name, _place(planner, point), dict(sorted(runs.items())), complete)
            )
    return found


def reported(planner: Planner, known: Sequence[Progress]) -> ReportedStudy | None:
    """A study as reports take it; `None` while none of its runs is finished.

    Example:
        >>> from spigot_nlp.experiments.study.file import make_study
        >>> reported(Planner(make_study({"config": "synthetic"}), Path("runs/x")), []) is None
        True
    """
    study, found = planner.study, arms(planner, known)
    # Of a point that nothing has reached yet there is nothing to say.
    reached = [dict(arm.point) for arm in found if arm.runs]
    found = [arm for arm in found if dict(arm.point) in reached]
    if not found:
        return None
    others = [system for system in study.against if system in planner.systems]
    pairs = [(system, other) for other in others for system in planner.systems]
    places = {
        _AT: {name: point.x for name, point in planner.points.items() if point.x is not None and study.points},
    }
    return ReportedStudy(
        study.title or study.name,
        found,
        against=next(iter(others), None),
        comparisons=[pair for pair in pairs if pair[0] != pair[1]] if others else None,
        places=places if any(places.values()) else {},
        names={next(iter(study.vary), _AT): study.along} if study.along else {},
    )


def _place(planner: Planner, point: str) -> dict[str, Any]:
    """A point by the settings that make it, or by its name where that stands for several."""
    if not point:
        return {}
    if planner.study.points:
        x = planner.points[point].x
        return {_AT: point if x is None or f"{x:g}" != point else int(x) if x.is_integer() else x}
    return dict(planner.points[point].settings)


@dataclass(frozen=True)
class TuningRow:
    """What is known of a combination of values, over its seeds.

    Attributes:
        system: The system it was tried for.
        point: Where.
        values: The combination.
        scores: The dev score of each seed whose training is finished, in per cent.
        complete: Whether all of them are.
        chosen: Whether it is the best.
        minutes: Minutes of training, on average.
        epoch: Epochs to the best score, on average.
        failures: Why trainings failed, by seed.
        measure: What the score measures.

    Example:
        >>> TuningRow("ste", "", {"estimator.eta": 1.0}, {0: 70.0, 1: 72.0}, True, True, 3.0, 6.5, {}, "LF").mean
        71.0
    """

    system: str
    point: str
    values: Mapping[str, Any]
    scores: Mapping[int, float]
    complete: bool
    chosen: bool
    minutes: float | None
    epoch: float | None
    failures: Mapping[int, str]
    measure: str

    @property
    def mean(self) -> float | None:
        """The mean over seeds."""
        return statistics.fmean(self.scores.values()) if self.scores else None

    @property
    def sd(self) -> float | None:
        """The standard deviation over seeds, if there are several."""
        return statistics.stdev(self.scores.values()) if len(self.scores) > 1 else None


def tuning_rows(planner: Planner, known: Sequence[Progress]) -> list[TuningRow]:
    """What was tried for each system, best first; combinations with unfinished trainings come after the others.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.experiments.study.file import make_study
        >>> study = make_study({"config": "synthetic", "systems": {"ste": {"tune": {"estimator.eta": [0.1, 1.0]}}}})
        >>> planner = Planner(study, Path("runs/x"))
        >>> known = [Progress(t, "finished", dev={"LF": 70.0 + k}) for k, t in enumerate(planner.trials({}))]
        >>> [(row.values["estimator.eta"], row.mean, row.chosen) for row in tuning_rows(planner, known)]
        [(1.0, 71.0, True), (0.1, 70.0, False)]
    """
    found: list[TuningRow] = []
    for system in planner.systems:
        for point in planner.tuned_at:
            choice = planner.choice(system, point, by_name(known))
            rows = [_row(planner, known, system, point, values, values == choice.chosen) for values, _ in choice.tried]
            found += sorted(rows, key=lambda row: (not row.complete, row.mean is None, -(row.mean or 0.0)))
    return found


def write_tuning(rows: Sequence[TuningRow], path: Path) -> None:
    """Write what was tried as a table for programs.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "tuning.csv"
        >>> write_tuning([TuningRow("ste", "", {"eta": 1.0}, {0: 70.0}, True, True, 3.0, 6, {}, "LF")], path)
        >>> path.read_text().splitlines()
        ['system,point,eta,dev_mean,dev_sd,dev_seed_0,epoch,minutes,chosen,failed', 'ste,,1,70.0,,70.0,6,3.0,True,']
    """
    names = list(dict.fromkeys(name for row in rows for name in row.values))
    seeds = sorted({seed for row in rows for seed in (*row.scores, *row.failures)})
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    each = [f"dev_seed_{seed}" for seed in seeds]
    table.writerow(["system", "point", *names, "dev_mean", "dev_sd", *each, "epoch", "minutes", "chosen", "failed"])
    for row in rows:
        values = [show_value(row.values[name]) if name in row.values else "" for name in names]
        scores = [row.scores.get(seed) for seed in seeds]
        why = " ".join(f"seed {seed}: {reason}" for seed, reason in row.failures.items())
        numbers = [row.mean, row.sd, *scores, row.epoch, row.minutes]
        table.writerow([row.system, row.point, *values, *numbers, row.chosen, why])
    write_text(path, text.getvalue())


def _row(
    planner: Planner, known: Sequence[Progress], system: str, point: str, values: Mapping[str, Any], chosen: bool
) -> TuningRow:
    runs = [
        progress
        for progress in known
        if (progress.trial.system, progress.trial.point, progress.trial.role) == (system, point, "tuning")
        and progress.trial.values == values
    ]
    scores = {run.trial.seed: run.score for run in runs if run.score is not None}
    epochs = [run.best_epoch for run in runs if run.best_epoch is not None and run.status == "finished"]
    took = [run.seconds / 60 for run in runs if run.status == "finished" and run.seconds]
    return TuningRow(
        system,
        point,
        values,
        scores,
        len(scores) == len(planner.study.tune.seeds),
        chosen,
        statistics.fmean(took) if took else None,
        statistics.fmean(epochs) if epochs else None,
        {run.trial.seed: run.reason for run in runs if run.status == "failed"},
        next((run.measure for run in runs if run.measure), ""),
    )
