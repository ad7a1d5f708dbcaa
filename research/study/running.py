"""A study from its first training to its last, several at a time, so that an interruption loses nothing.

A training is a `spigot train` of its own, in a folder of its own; it is done when its `scores.json` is there.
"""

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from research.study.plan import Plan, Range, Training
from spigot_nlp.corpora.prepared import CACHE_VARIABLE
from spigot_nlp.locks import lock
from spigot_nlp.models.checkpoint import CONFIG, SCORES, read_config, write_config
from spigot_nlp.ray_cluster import join_cluster
from spigot_nlp.scoring import targets

_PAUSE = 0.5  # seconds between two looks at a log that another process holds


class Failed(RuntimeError):
    """A training that was tried as often as the study says; the message says why."""


class Stopped(Exception):
    """A training that was interrupted, or not begun, since the study was asked to stop."""


def run_command(
    words: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    started: Callable[[subprocess.Popen[bytes]], None] = lambda child: None,
) -> int:
    """Run a command of spigot; what it says goes to a log, which is locked as long as it runs.

    Whoever starts a study again after it was killed waits here for what it left behind, instead of training twice.
    """
    with log.open("ab") as file:
        while not lock(file):
            time.sleep(_PAUSE)
        program = [sys.executable, "-m", "spigot_nlp", *words]
        around = {**os.environ, **environment}
        # A session of its own: Ctrl-C reaches the study, which tells its trainings once.
        child = subprocess.Popen(
            program, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=around, start_new_session=True
        )
        started(child)
        try:
            return child.wait()
        except KeyboardInterrupt:  # how Ray cancels
            child.send_signal(signal.SIGINT)
            return child.wait()


class Here:
    """Runs commands on this machine."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._pool = ThreadPoolExecutor(processes)
        self._children: list[subprocess.Popen[bytes]] = []

    async def run(self, words: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
        """Run a command; returns its exit code."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, run_command, words, log, environment, self._children.append)

    def stop(self, number: int) -> None:
        """Pass a signal on to all that run."""
        for child in self._children:
            if child.poll() is None:
                child.send_signal(number)


class OnRay:
    """Runs commands as tasks of a Ray cluster, whose machines see the folder of the study under the same name."""

    def __init__(self, address: str, processes: int | None, threads: int) -> None:
        self._ray = join_cluster(address)
        self.processes = processes or max(1, int(self._ray.cluster_resources().get("CPU", 1)) // threads)
        # A training that is lost with its machine is tried again by whoever runs the study.
        self._task = self._ray.remote(num_cpus=threads, max_retries=0)(run_command)
        self._running: list[Any] = []

    async def run(self, words: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
        """Run a command; returns its exit code."""
        task = self._task.remote(list(words), log, dict(environment))
        self._running.append(task)
        try:
            return await task
        except self._ray.exceptions.RayError as error:
            with log.open("a", encoding="utf-8") as file:
                file.write(f"{error}\n")
            return 1
        finally:
            self._running.remove(task)

    def stop(self, number: int) -> None:
        """Cancel all tasks, gently at first."""
        for task in self._running:
            self._ray.cancel(task, force=number == signal.SIGKILL)


class Run:
    """A study under way.

    Args:
        plan: Its trainings.
        machine: What runs commands.
        threads: How many threads each may use.
        told: Told of each training that has ended: its name, its scores or why it failed, and its seconds.

    Attributes:
        scores: The scores of all trainings that are finished, by name.
        failed: Why others failed, by name.
        chosen: The values that tuning chose, by system and point.
        tried: Each combination with the scores of its trainings, by system and point.
    """

    def __init__(
        self,
        plan: Plan,
        machine: Here | OnRay,
        threads: int = 1,
        told: Callable[[Training, str, float], None] = lambda training, said, seconds: None,
    ) -> None:
        self.plan, self.scores, self.failed = plan, dict[str, dict[str, Any]](), dict[str, str]()
        self.chosen, self.tried = dict[tuple[str, str], Any](), dict[tuple[str, str], list[tuple[Any, list[float]]]]()
        self._machine, self._threads, self._told = machine, threads, told
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots, self._stopped = asyncio.Semaphore(), 0
        self._seconds = dict[Path, float]()  # of each training, by its log

    def train(self) -> None:
        """Train what is not finished yet. A training that fails stops none but those that start from it.

        Raises:
            KeyboardInterrupt: When asked to stop, after all trainings under way have saved their state.
        """
        self._complete(self._everything)

    def score_tests(self) -> None:
        """Score the test sets of the trainings that count, once all of them are finished.

        Raises:
            ValueError: If some training is not finished: test sets are looked at when nothing is left to choose.
        """
        if self.failed:
            raise ValueError(f"the test sets are not scored, as {min(self.failed)} is not finished.")
        self._complete(self._all_tests)

    def finals(self) -> list[Training]:
        """The trainings that count and are finished."""
        named = (
            training
            for (system, point), values in self.chosen.items()
            if values is not None
            for training in self.plan.finals(system, point, values)
        )
        return [training for training in named if training.name in self.scores]

    def _complete(self, work: Callable[[], Any]) -> None:
        """Do some work to its end, and collect requests to stop meanwhile."""

        async def whole() -> None:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self._stop)
            self._tasks.clear()
            self._slots = asyncio.Semaphore(self._machine.processes)  # of this loop
            await work()

        self.plan.out.mkdir(parents=True, exist_ok=True)
        with (self.plan.out / ".lock").open("w") as file:
            if not lock(file):
                raise ValueError(
                    f"another study is under way in {self.plan.out}; wait for it, or choose another --out."
                )
            asyncio.run(whole())
        if self._stopped:
            raise KeyboardInterrupt("interrupted; the same command goes on.")

    def _stop(self) -> None:
        self._stopped += 1
        self._machine.stop(signal.SIGINT if self._stopped == 1 else signal.SIGKILL)

    async def _everything(self) -> None:
        tuned = {name for name, system in self.plan.study.systems.items() if system.tune}
        for training in self.plan.named():  # before hours of others; what is to be chosen is not known yet
            if training.role != "final" or training.system not in tuned:
                check_run(self.plan.out / training.name, training)
        choices = {
            (system, self.plan.tuned_at(point)): None for point in self.plan.points for system in self.plan.systems
        }
        tasks = {place: asyncio.create_task(self._choose(*place)) for place in choices}

        async def finish(system: str, point: str) -> None:
            values = self.chosen[system, point] = await tasks[system, self.plan.tuned_at(point)]
            if values is not None:
                await self._all(self.plan.finals(system, point, values))

        places = [(system, point) for point in self.plan.points for system in self.plan.systems]
        self.chosen = dict.fromkeys(places)
        await asyncio.gather(*(finish(*place) for place in places))

    async def _choose(self, system: str, point: str) -> dict[str, Any] | None:
        """The values that are best on the development data; `None` if no combination could be trained."""
        if not self.plan.study.systems[system].tune:
            return {}
        tried = self.tried[system, point] = []
        combinations = self.plan.combinations(system)
        if combinations is None:
            await self._search(system, point, tried)
        else:
            found = await asyncio.gather(*(self._try(system, point, values) for values in combinations))
            tried += zip(combinations, found, strict=True)
        seeds = len(self.plan.study.tune.seeds)
        known = [(values, statistics.fmean(scores)) for values, scores in tried if len(scores) == seeds]
        return max(known, key=lambda each: each[1])[0] if known and not self._stopped else None

    async def _try(self, system: str, point: str, values: Mapping[str, Any]) -> list[float]:
        """The dev scores of those of a combination's trainings that ended well."""
        trainings = self.plan.tried(system, point, values)
        await self._all(trainings)
        return [dev_score(t, self.scores[t.name]) for t in trainings if t.name in self.scores]

    async def _search(self, system: str, point: str, tried: list[tuple[Any, list[float]]]) -> None:
        """Have Optuna say what to try. Its journal remembers all of it, and what was under way is tried first."""
        import optuna
        from optuna.storages.journal import JournalFileBackend

        tune, spaces = self.plan.study.tune, self.plan.study.systems[system].tune
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        journal = JournalFileBackend(str(self.plan.out / "tuning.journal"))
        sampler = {"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler}[tune.search]
        search = optuna.create_study(
            storage=optuna.storages.JournalStorage(journal),
            study_name=f"{system},{point}",
            direction="maximize",
            load_if_exists=True,
        )
        search.sampler = sampler(seed=tune.seed + len(search.trials))  # not what it drew before it was interrupted
        State = optuna.trial.TrialState
        for trial in search.get_trials(states=[State.RUNNING]):
            search.tell(trial.number, state=State.FAIL)
            search.enqueue_trial(trial.params)
        ended = search.get_trials(states=[State.COMPLETE])
        tried += [(trial.params, await self._try(system, point, trial.params)) for trial in ended]
        left = self.plan.trials(system) - len(ended)

        async def work() -> None:
            nonlocal left
            while left > 0 and not self._stopped:
                left -= 1
                trial = search.ask({name: _distribution(values) for name, values in spaces.items()})
                scores = await self._try(system, point, trial.params)
                if self._stopped:  # the trial is under way as far as the journal knows
                    return
                tried.append((trial.params, scores))
                if len(scores) == len(tune.seeds):
                    search.tell(trial, statistics.fmean(scores))
                else:
                    search.tell(trial, state=State.FAIL)

        await asyncio.gather(*(work() for _ in range(self._machine.processes)))

    async def _all(self, trainings: Sequence[Training]) -> None:
        """Train all of these; those that fail are among `failed` then."""
        ended = await asyncio.gather(*map(self._begin, trainings), return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException) and not isinstance(error, Failed | Stopped):
                raise error

    def _begin(self, training: Training) -> asyncio.Task[None]:
        if training.name not in self._tasks:
            self._tasks[training.name] = asyncio.create_task(self._train(training))
        return self._tasks[training.name]

    async def _train(self, training: Training) -> None:
        run = self.plan.out / training.name
        check_run(run, training)
        try:
            if not (run / SCORES).exists():
                for source in training.needs:
                    await self._begin(source)
                await self._attempts(training)
                said = f"{dev_name(training)} {100 * dev_score(training, read_scores(run)):.2f} on dev"
                self._tell(training, said)
            self.scores[training.name] = read_scores(run)
        except Failed as error:
            self.failed[training.name] = str(error)
            self._tell(training, f"failed: {error}")
            raise Failed(f"it starts from {training.name}, which failed") from None

    async def _attempts(self, training: Training) -> None:
        run, log = self.plan.out / training.name, self.plan.out / f"{training.name}.log"
        for _ in range(1 + self.plan.study.retries):
            if await self._command(_training_words(run, training), log) == 0 and (run / SCORES).exists():
                return
        raise Failed(f"{_last_line(log)} {log} says more.")

    async def _command(self, words: list[str], log: Path) -> int:
        async with self._slots:
            if self._stopped:
                raise Stopped
            one = str(self._threads)
            around = {"OMP_NUM_THREADS": one, "MKL_NUM_THREADS": one, CACHE_VARIABLE: str(self.plan.out / ".cache")}
            start = time.monotonic()
            code = await self._machine.run([*words, "--threads", one], log, around)
            self._seconds[log] = time.monotonic() - start
            if self._stopped:
                raise Stopped
            return code

    async def _all_tests(self) -> None:
        finals = [training for training in self.finals() if not has_tests(self.scores[training.name])]
        await asyncio.gather(*map(self._test, finals))

    async def _test(self, training: Training) -> None:
        run, log = self.plan.out / training.name, self.plan.out / f"{training.name}.log"
        if await self._command(["evaluate", str(run), "--tests"], log):
            raise Failed(f"the test sets of {training.name} could not be scored: {_last_line(log)}")
        self.scores[training.name] = read_scores(run)
        self._tell(training, "test sets scored")

    def _tell(self, training: Training, said: str) -> None:
        self._told(training, said, self._seconds.get(self.plan.out / f"{training.name}.log", 0.0))


def _training_words(run: Path, training: Training) -> list[str]:
    if (run / CONFIG).exists():
        return ["train", "--resume", str(run)]
    config = run.parent / f"{training.name}.toml"
    write_config(config, training.config)
    return ["train", str(config), "--out", str(run)]


def _distribution(values: Any) -> Any:
    import optuna

    if isinstance(values, Range) and values.whole:
        return optuna.distributions.IntDistribution(int(values.low), int(values.high), log=values.log)
    if isinstance(values, Range):
        return optuna.distributions.FloatDistribution(values.low, values.high, log=values.log)
    return optuna.distributions.CategoricalDistribution(values)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "It said nothing.")


def read_scores(run: Path) -> dict[str, Any]:
    """What a finished training scored, as `scores.json` has it."""
    try:
        return json.loads((run / SCORES).read_bytes())
    except ValueError as error:
        raise ValueError(
            f"{run / SCORES} is damaged ({error}); remove it, and the same command writes it again."
        ) from None


def has_tests(scores: Mapping[str, Any]) -> bool:
    """Whether there are scores of test sets."""
    return any(name != "dev" for name in scores)


def dev_name(training: Training) -> str:
    """What the development score of a training measures."""
    return targets(training.config)[0].annotation.measures[0].name


def dev_score(training: Training, scores: Mapping[str, Any]) -> float:
    """The development score that values are chosen by."""
    target = targets(training.config)[0]
    return target.annotation.measures[0].value(scores["dev"][target.key])


def check_run(run: Path, training: Training) -> None:
    """Complain if a folder holds a training with other settings than this one."""
    if not (run / CONFIG).exists():
        return
    then, now = read_config(run).by_name(), training.config.by_name()
    for name in then | now:
        pair = then.get(name), now.get(name)
        if name.endswith("start"):  # the folder may have been moved: only the names in it count
            pair = Path(str(pair[0] or "")).name, Path(str(pair[1] or "")).name
        if pair[0] != pair[1] and name not in ("name", "data.obtain", "training.tests"):
            raise ValueError(
                f"{run} was trained with {name} = {pair[0]!r}, and now it is {pair[1]!r}; give the settings as "
                "they were, remove that folder to train it afresh, or choose another --out."
            )
