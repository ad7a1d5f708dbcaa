"""The trials of a search, each an ordinary training in a process of its own. `sweep` says which there are."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any

import tomli_w

from spigot.config import Config
from spigot.experiments.sweep import Sweep, Trial
from spigot.experiments.sweep_results import RECORD, Result, Steps, write_record
from spigot.training.checkpoint import CONFIG, SCORES, STEPS, read_config, write_text

try:
    import fcntl
except ImportError:  # only POSIX can lock a folder this way
    fcntl = None

LOCK = ".sweep.lock"
TRAIN = (sys.executable, "-m", "spigot", "train")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


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
    running: list[_Child] = []
    with _lock(folder) as lock, _stop_signals() as stopped:
        asked = 0
        try:
            write_record(sweep, results, folder)
            while True:
                changed = _look(running, stopping=bool(stopped), tests=tests)
                waiting = [result for result in results if result.status == "waiting"]
                for result in waiting[: max(0, processes - len(running))] if not stopped else []:
                    running.append(_start(result, folder, threads, command, lock))
                    changed = True
                if len(stopped) > asked:
                    for child in running:
                        if asked:  # again: at once
                            child.process.kill()
                        else:
                            child.process.terminate()  # it saves its state first
                    asked = len(stopped)
                if changed:
                    write_record(sweep, results, folder)
                yield results
                if not running and (stopped or not any(result.status == "waiting" for result in results)):
                    break
                time.sleep(pause)
        finally:  # without effect unless the caller has given up, or the record cannot be written
            for child in running:
                if not asked:
                    child.process.terminate()
            for child in running:
                child.process.wait()
                child.log.close()
    if stopped:
        finished = sum(result.status == "finished" for result in results)
        raise KeyboardInterrupt(
            f"interrupted with {finished} of {len(results)} trials finished; run the same command again to go on."
        )


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
    then, now = dict(_leaves(found.model_dump())), dict(_leaves(trial.config.model_dump()))
    for name in now:
        if name != "name" and then.get(name) != now[name]:
            raise ValueError(
                f"{run} was trained with {name} = {then.get(name)!r}, and this sweep has {now[name]!r}. Give the "
                "settings as they were, or choose another --out."
            )


def _leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield above + name, value


def _take_steps(result: Result, steps: Steps) -> None:
    result.place, result.measure, result.score, result.epoch = steps.place, steps.measure, steps.score, steps.epoch


def _test_scores(path: Path) -> dict[str, float]:
    """The main number of every test set, in per cent."""
    found = {}
    for name, part in json.loads(path.read_bytes()).items():
        if name.split()[0] != "dev" and isinstance(part, dict):
            labelled = part.get("labelled")
            share = labelled["f1"] if isinstance(labelled, dict) else part.get("uas", part.get("accuracy"))
            if share is not None:
                found[name] = 100 * share
    return found


@dataclass
class _Child:
    """A training under way."""

    result: Result
    run: Path
    process: "subprocess.Popen[bytes]"
    log: IO[bytes]
    said_before: int
    steps: Steps
    before: float
    started: float = field(default_factory=time.monotonic)


def _start(result: Result, folder: Path, threads: int, command: Sequence[str], lock: int | None) -> _Child:
    trial = result.trial
    run = folder / trial.name
    if (run / CONFIG).exists():
        words = ["--resume", str(run)]
    else:
        # A copy for this trial alone: the file it comes from may change while a long search goes on.
        config = folder / f"{trial.name}.toml"
        write_text(config, tomli_w.dumps(trial.config.model_dump(mode="json", exclude_none=True)))
        words = [str(config), "--out", str(run)]
    log = (folder / f"{trial.name}.log").open("ab")
    said_before = log.tell()
    process = subprocess.Popen(
        [*command, *words, "--threads", str(threads)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env={**os.environ, **dict.fromkeys(_THREADS, str(threads))},
        # Ctrl-C on a terminal reaches all its processes. Two signals would keep a training from saving its state, and
        # it gets one from here.
        start_new_session=True,
        # While a training lives the folder stays locked, even if this process is killed.
        pass_fds=() if lock is None else (lock,),
    )
    result.status, result.reason = "running", ""
    return _Child(result, run, process, log, said_before, Steps(run / STEPS), result.seconds)


def _look(running: list[_Child], *, stopping: bool, tests: bool) -> bool:
    """Bring the results of running trials up to date; returns whether any has ended."""
    ended = []
    for child in running:
        code = child.process.poll()
        result = child.result
        result.seconds = child.before + time.monotonic() - child.started
        child.steps.update()
        _take_steps(result, child.steps)
        if code is None:
            continue
        ended.append(child)
        child.log.close()
        if code == 0 and (child.run / SCORES).exists():
            result.status = "finished"
            result.tests = _test_scores(child.run / SCORES) if tests else {}
        elif stopping:
            result.status = "interrupted"
        else:
            result.status, result.reason = "failed", _reason(child, code)
    running[:] = [child for child in running if child not in ended]
    return bool(ended)


def _reason(child: _Child, code: int) -> str:
    """Why a training ended, in one sentence."""
    if code < 0:
        name = signal.Signals(-code).name if -code in list(signal.Signals) else f"signal {-code}"
        more = ", as the system does when memory runs out" if name == "SIGKILL" else ""
        return f"It was ended by {name}{more}."
    if code == 0:
        return f"It ended without a {SCORES}."
    with Path(child.log.name).open("rb") as log:
        log.seek(child.said_before)
        said = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    ours = [line for line in said if line.startswith("spigot: ")]
    text = (ours or said or [f"It ended with exit code {code} and said nothing."])[-1].removeprefix("spigot: ").strip()
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]


@contextmanager
def _lock(folder: Path) -> Iterator[int | None]:
    """Keep other searches out of a folder."""
    if fcntl is None:
        yield None
        return
    with (folder / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(
                f"a sweep, or a trial of one that was killed, is still running in {folder}; wait for it, or stop it."
            ) from None
        yield file.fileno()


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect requests to stop, so that trials under way are stopped first."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    try:
        # What was ignored, e.g. under nohup, stays so.
        before = {n: signal.signal(n, note) for n in wanted if signal.getsignal(n) is not signal.SIG_IGN}
    except ValueError:  # not in the main thread: the caller looks after signals
        before = {}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
