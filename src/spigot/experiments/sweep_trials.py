"""The trials of a search, each an ordinary training in a process of its own. `sweep` says which there are."""

import json
import os
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from spigot.config import Config
from spigot.experiments.children import TRAIN, Children
from spigot.experiments.settings import difference
from spigot.experiments.sweep import Sweep, Trial
from spigot.experiments.sweep_results import RECORD, Result, Steps, write_record
from spigot.training.checkpoint import CONFIG, SCORES, STEPS, read_config


def run_trials(
    sweep: Sweep,
    out: str | os.PathLike[str],
    *,
    processes: int = 1,
    threads: int = 1,
    tests: bool = False,
    command: Sequence[str] = TRAIN,
    pause: float = 0.2,
) -> Generator[list[Result], None, None]:
    """Train what is not finished yet, several trials at a time.

    A trial's run is in `out`/NAME, what it says in `out`/NAME.log. Finished trials are left alone, and interrupted
    ones go on. A trial that fails does not stop the others. The results so far are always in `out`/sweep.json and
    `out`/sweep.csv.

    Args:
        sweep: The search.
        out: The folder for its runs. It may hold a part of the same search.
        processes: How many trials to train at a time.
        threads: How many threads each may use.
        tests: Whether to report scores on the test sets too.
        command: What trains, before its arguments.
        pause: Seconds between two looks at the trials.

    Returns:
        What is known of every trial, in their order, at each look; the same list each time.

    Raises:
        KeyboardInterrupt: When asked to stop, after all trials under way have saved their state.

    Example:
        >>> import tempfile
        >>> from spigot.experiments.sweep import plan_sweep
        >>> out = Path(tempfile.mkdtemp())
        >>> _ = (out / "mine.toml").write_text('[sweep]\\n"estimator.eta" = [0.1]')
        >>> sweep = plan_sweep(out / "mine.toml")
        >>> (out / sweep.trials[0].name).mkdir()
        >>> _ = (out / sweep.trials[0].name / "scores.json").write_text("{}")     # finished, so not trained again
        >>> for results in run_trials(sweep, out):
        ...     print([(result.trial.name, result.status) for result in results])
        [('eta=0.1,seed=0', 'finished')]
    """
    if processes < 1 or threads < 1:
        raise ValueError(f"processes is {processes} and threads is {threads}; both must be at least 1.")
    folder = Path(out)
    results = known_results(sweep, folder, tests=tests)
    folder.mkdir(parents=True, exist_ok=True)
    steps: dict[str, Steps] = {}
    with Children(folder, threads=threads, command=command) as children:
        write_record(sweep, results, folder)
        while True:
            before = [result.status for result in results]
            children.look()
            for result, status in zip(results, before, strict=True):
                name = result.trial.name
                if status == "running":  # also those that have just ended: what they wrote last counts
                    steps[name].update()
                    _take_steps(result, steps[name])
                    if result.status == "finished" and tests:
                        result.tests = _test_scores(folder / name / SCORES)
                if result.status == "waiting" and len(children) < processes and not children.stopped:
                    children.start(result)
                    steps[name] = Steps(folder / name / STEPS)
            children.heed()
            if before != [result.status for result in results]:
                write_record(sweep, results, folder)
            yield results
            if not children and (children.stopped or not any(result.status == "waiting" for result in results)):
                break
            time.sleep(pause)
    children.raise_if_stopped(results, "trials")


def known_results(sweep: Sweep, folder: Path, *, tests: bool = False) -> list[Result]:
    """What the folder of a search has already.

    Raises:
        ValueError: If the folder is another search's, or some trial was trained with other settings.

    Example:
        >>> known_results(Sweep((), (0,), ()), Path("nowhere"))
        []
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; choose another --out for the sweep.")
    if (folder / CONFIG).exists():
        raise ValueError(f"{folder} is the folder of one run; choose another --out for the sweep.")
    before = _recorded(folder / RECORD)
    names = {trial.name for trial in sweep.trials}
    if missing := sorted(before.keys() - names):
        raise ValueError(
            f"{folder} holds another sweep, with trials such as {missing[0]}. A sweep may only grow: give all its "
            "settings, values and seeds again, or choose another --out."
        )
    results = []
    for trial in sweep.trials:
        run = folder / trial.name
        if (run / CONFIG).exists():
            _check_same(trial, read_config(run), run)
        result = Result(trial, seconds=before.get(trial.name, 0.0))
        if (run / SCORES).exists():
            result.status = "finished"
            _take_steps(result, Steps(run / STEPS))
            result.tests = _test_scores(run / SCORES) if tests else {}
        results.append(result)
    return results


def _recorded(path: Path) -> dict[str, float]:
    """The trials that a record names, and how long they were trained."""
    if not path.exists():
        return {}
    try:
        return {trial["name"]: float(trial["seconds"]) for trial in json.loads(path.read_bytes())["trials"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is damaged ({type(error).__name__}: {error}); restore it, or remove it to find the trials anew."
        ) from None


def _check_same(trial: Trial, found: Config, run: Path) -> None:
    if different := difference(found, trial.config, but=["name"]):
        name, then, now = different
        raise ValueError(
            f"{run} was trained with {name} = {then!r}, and this sweep has {now!r}. Give the settings as they were, or "
            "choose another --out."
        )


def _take_steps(result: Result, steps: Steps) -> None:
    result.place, result.measure, result.score, result.epoch = steps.place, steps.measure, steps.score, steps.epoch


def _test_scores(path: Path) -> dict[str, float]:
    """The main number of every test set, in per cent."""
    try:
        parts = json.loads(path.read_bytes())
    except ValueError as error:
        again = f"spigot train --resume {path.parent}"
        raise ValueError(f"{path} is damaged ({error}); write it again with {again}.") from None
    found = {}
    for name, part in parts.items():
        if name.split()[0] != "dev" and isinstance(part, dict):
            labelled = part.get("labelled")
            share = labelled["f1"] if isinstance(labelled, dict) else part.get("uas", part.get("accuracy"))
            if share is not None:
                found[name] = 100 * share
    return found
