"""Runs that nobody planned as a study, reported on as one."""

from collections.abc import Sequence
from pathlib import Path

from spigot_nlp.report.material import experiments, read_run
from spigot_nlp.report.study import Arm, Study


def study_of(runs: Sequence[Path], *, baseline: Path | None = None) -> Study:
    """Finished runs as a study: those that differ only in their seed are one system, and there is one point.

    Args:
        runs: The run folders, all judged by the same sentences.
        baseline: The run whose system the others are compared with; by default the pipeline, or else the first.

    Raises:
        FileNotFoundError: If a folder holds no finished run.
        ValueError: If there are no runs, or they were judged by different sentences.

    Example:
        >>> study_of([])
        Traceback (most recent call last):
        ValueError: there are no runs to report on; give one run folder or more.
    """
    found = experiments([read_run(run) for run in runs], baseline)
    if len(found) > 1:
        first, second = (next(experiment.runs).path for experiment in found[:2])
        raise ValueError(f"{first} and {second} were not judged by the same sentences; report on them separately.")
    (experiment,) = found
    arms = []
    for contender in experiment.contenders:
        seeds = [run.config.seed for run in contender.runs]
        if len(set(seeds)) < len(seeds):
            twice = next(run for k, run in enumerate(contender.runs) if run.config.seed in seeds[:k])
            raise ValueError(f"{twice.path} has the seed of another run of {contender.name}; leave one of them out.")
        arms.append(Arm(contender.name, {}, {run.config.seed: run.path for run in contender.runs}))
    against = None if experiment.baseline is None else experiment.baseline.name
    return Study(experiment.name, arms, against=against)
