"""A study from its first training to its last, several at a time, so that an interruption loses nothing."""

import itertools
import json
import time
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from spigot_nlp.experiments.children import Children
from spigot_nlp.experiments.study.plan import Planner
from spigot_nlp.experiments.study.progress import Follower, Progress, by_name
from spigot_nlp.experiments.study.record import Record, check_run, read_record, write_record
from spigot_nlp.experiments.study.trials import Trial
from spigot_nlp.experiments.workers import Workers
from spigot_nlp.models.checkpoint import CONFIG, SCORES, write_config

Team = Callable[[Path], Workers]
"""Makes what trains in a folder."""


def run_study(
    planner: Planner,
    *,
    processes: int = 1,
    threads: int = 1,
    team: Team | None = None,
    pause: float = 0.2,
) -> Generator[list[Progress], None, None]:
    """Train what is not finished yet.

    A run is in `out`/NAME, what its training says in `out`/NAME.log. Finished runs are left alone, and interrupted ones
    go on. A training that fails is tried again when the others are through, and stops none but those that start from
    it. No training looks at its test sets: `score_tests` does, once, when all are finished.

    Args:
        planner: What to train.
        processes: How many to train at a time.
        threads: How many threads each may use.
        team: What trains them: processes of this machine by default.
        pause: Seconds between two looks.

    Returns:
        How far each training is, at each look; the same list each time, which grows where tuning has chosen.

    Raises:
        KeyboardInterrupt: When asked to stop, after all trainings under way have saved their state.

    Example:
        >>> import tempfile
        >>> from spigot_nlp.experiments.study.file import make_study
        >>> out = Path(tempfile.mkdtemp())
        >>> (out / "ste-0").mkdir()
        >>> _ = (out / "ste-0" / "scores.json").write_text("{}")      # finished, so not trained again
        >>> study = make_study({"config": "synthetic", "systems": {"ste": {}}})
        >>> for known in run_study(Planner(study, out)):
        ...     print([(progress.trial.name, progress.status) for progress in known])
        [('ste-0', 'finished')]
    """
    if processes < 1 or threads < 1:
        raise ValueError(f"processes is {processes} and threads is {threads}; both must be at least 1.")
    folder, record, known = planner.out, read_record(planner.out), survey(planner, processes)
    record.suggested, record.budget = planner.suggested, {**record.budget, **planner.budget()}
    followers: dict[str, Follower] = {}
    folder.mkdir(parents=True, exist_ok=True)
    workers = Children(folder, threads=threads) if team is None else team(folder)
    with workers:
        write_record(folder, record, known)
        while True:
            before = [progress.status for progress in known]
            workers.look()
            for progress, status in zip(known, before, strict=True):
                if status == "running":  # also those that have just ended: what they wrote last counts
                    followers[progress.trial.name].update()
                    _settle(progress, planner.study.retries)
            _give_up(known)
            if before != [progress.status for progress in known]:
                _grow(known, planner, record, processes, is_under_way=True)
                _give_up(known)
            for progress in _ready(known)[: 0 if workers.stopped else max(0, processes - len(workers))]:
                name = progress.trial.name
                progress.before, progress.earlier = progress.share, progress.seconds
                if name not in followers:
                    followers[name] = Follower(progress, folder / name)
                    followers[name].update()
                workers.start(progress, training_words(folder, progress.trial, threads))
                progress.attempts += 1
            workers.heed()
            for progress in known:
                progress.is_stopping = bool(workers.stopped)
            if before != [progress.status for progress in known]:
                write_record(folder, record, known)
            yield known
            if not workers and (workers.stopped or not _ready(known)):
                break
            time.sleep(pause)
    workers.raise_if_stopped(known, "trainings")


def survey(planner: Planner, processes: int = 1) -> list[Progress]:
    """What the folder of a study says of the trainings that can be named by now.

    Args:
        planner: The study.
        processes: How many are trained at a time; a search that learns from results looks no further ahead.

    Raises:
        ValueError: If the folder is none of this study, or some training is no valid experiment.

    Example:
        >>> from spigot_nlp.experiments.study.file import make_study
        >>> planner = Planner(make_study({"config": "synthetic"}), Path("nowhere"))
        >>> [(progress.trial.name, progress.status) for progress in survey(planner)]
        [('seed-0', 'waiting')]
    """
    record, known = read_record(planner.out), list[Progress]()
    planner.suggested.update(record.suggested)
    planner.check()
    _grow(known, planner, record, processes)
    return known


def _grow(
    known: list[Progress], planner: Planner, record: Record, processes: int, *, is_under_way: bool = False
) -> None:
    """Take in the trainings that can be named by now; some may have ended, and a choice name more."""
    names = {progress.trial.name for progress in known}
    while new := [trial for trial in planner.trials(by_name(known), processes) if trial.name not in names]:
        for trial in new:
            progress = _found(trial, planner.out, record)
            try:
                check_run(planner.out, trial)
            except ValueError as error:
                if not is_under_way:
                    raise
                progress.status, progress.reason = "failed", str(error)  # others are being trained
            known.append(progress)
            names.add(trial.name)


def training_words(folder: Path, trial: Trial, threads: int) -> list[str]:
    """The words of the command that trains, or goes on with, a trial.

    Example:
        >>> import tempfile
        >>> from spigot_nlp.config import Config
        >>> training_words(Path(tempfile.mkdtemp()), Trial("ste-0", "ste", "", 0, Config()), 1)[0]
        'train'
    """
    run = folder / trial.name
    if (run / CONFIG).exists():
        words = ["--resume", str(run)]
    else:
        # A copy for this one alone: the file it comes from may change while others are trained.
        config = folder / f"{trial.name}.toml"
        write_config(config, trial.config)
        words = [str(config), "--out", str(run)]
    return ["train", *words, "--threads", str(threads)]


def score_tests(
    planner: Planner,
    known: Sequence[Progress],
    *,
    processes: int = 1,
    threads: int = 1,
    team: Team | None = None,
    pause: float = 0.1,
) -> Generator[tuple[int, int], None, None]:
    """Score the test sets of the trainings that count, once all of them are finished.

    Args:
        planner: The study.
        known: Its trainings.
        processes: How many to score at a time.
        threads: How many threads each may use.
        team: What scores them.
        pause: Seconds between two looks.

    Returns:
        How many are scored, and of how many, at each look.

    Raises:
        ValueError: If some training is not finished: test sets are looked at when nothing is left to choose.
        RuntimeError: If some could not be scored.
    """
    if missing := untested(planner, known):
        raise ValueError(f"{missing}; the test sets are scored once, when all trainings of a study are finished.")
    final = [progress for progress in known if progress.trial.role == "final"]
    folder, record = planner.out, read_record(planner.out)
    waiting = [Progress(p.trial) for p in final if not _has_tests(folder / p.trial.name)]
    total, failed = len(final), list[Progress]()
    with Children(folder, threads=threads) if team is None else team(folder) as workers:
        queue = list(waiting)
        while queue or len(workers):
            workers.look()
            while queue and len(workers) < processes and not workers.stopped:
                progress = queue.pop(0)
                run = str(folder / progress.trial.name)
                workers.start(progress, ["evaluate", run, "--tests", "--threads", str(threads)])
            if workers.stopped:
                queue.clear()
            workers.heed()
            failed = [progress for progress in waiting if progress.status == "failed"]
            yield total - sum(progress.status != "finished" for progress in waiting), total
            time.sleep(pause)
    workers.raise_if_stopped(waiting, "test scores")
    if failed:
        raise RuntimeError(f"The test sets of {failed[0].trial.name} could not be scored: {failed[0].reason}")
    record.tests = record.tests or datetime.now(UTC).isoformat(timespec="seconds")
    write_record(folder, record, known)


def untested(planner: Planner, known: Sequence[Progress]) -> str:
    """Why the test sets cannot be scored yet; empty if they can.

    A combination of values that cannot be trained is not chosen, and does not stand in the way.

    Example:
        >>> from spigot_nlp.experiments.study.file import make_study
        >>> planner = Planner(make_study({"config": "synthetic"}), Path("nowhere"))
        >>> untested(planner, survey(planner))
        'seed-0 is not finished'
    """
    for progress in known:
        if progress.status != "finished" and not (progress.trial.role == "tuning" and progress.has_ended):
            return f"{progress.trial.name} is not finished"
    for system, point in itertools.product(planner.systems, planner.points):
        if planner.study.seeds and planner.choice(system, point, by_name(known)).chosen is None:
            return f"no values are chosen for {system or 'the study'}{f' at {point}' if point else ''}"
    return ""


def _has_tests(run: Path) -> bool:
    """Whether a run's test sets are scored."""
    try:
        scores = json.loads((run / SCORES).read_bytes())
    except ValueError:
        return False
    return any(name.split()[0] != "dev" for name in scores)


def _found(trial: Trial, folder: Path, record: Record) -> Progress:
    """What a folder says of a training that this command has not met yet."""
    progress = Progress(trial, seconds=record.seconds.get(trial.name, 0.0))
    Follower(progress, folder / trial.name).update()
    if (folder / trial.name / SCORES).exists():
        progress.status, progress.share = "finished", 1.0
    progress.before, progress.earlier = progress.share, progress.seconds
    return progress


def _settle(progress: Progress, retries: int) -> None:
    """Say of a training that has ended whether that was the end of it."""
    if progress.status == "finished":
        progress.share = 1.0
    elif progress.status == "failed" and progress.attempts <= retries:
        progress.status, progress.setback = "waiting", progress.reason


def _give_up(known: Sequence[Progress]) -> None:
    """What starts from a training that failed cannot be trained."""
    status = {progress.trial.name: progress.status for progress in known}
    changed = True
    while changed:
        changed = False
        for progress in known:
            source = next((name for name in progress.trial.needs if status.get(name) == "failed"), None)
            if progress.status == "waiting" and source is not None:
                progress.status, progress.reason = "failed", f"It starts from {source}, which failed."
                status[progress.trial.name], changed = "failed", True


def _ready(known: Sequence[Progress]) -> list[Progress]:
    """The trainings that wait for nothing but a free process, those that failed before after the others."""
    finished = {progress.trial.name for progress in known if progress.status == "finished"}
    ready = [p for p in known if p.status == "waiting" and finished.issuperset(p.trial.needs)]
    return sorted(ready, key=lambda progress: progress.attempts)
