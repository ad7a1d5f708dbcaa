"""Trainings on the machines of a Ray cluster, from the same study file as those of one machine."""

import re
import secrets
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import spigot
from spigot_nlp.experiments.children import Children, surroundings
from spigot_nlp.experiments.post import MARK, Post, unfit
from spigot_nlp.experiments.processes import is_locked
from spigot_nlp.models.checkpoint import write_text
from spigot_nlp.ray_cluster import cores as _cores
from spigot_nlp.ray_cluster import join_cluster
from spigot_nlp.ray_cluster import last_line as _last_line
from spigot_nlp.ray_cluster import ray_module as _ray

_NAP = 0.5  # seconds that a worker waits for its training before it listens again
_ANSWER = 300.0  # seconds that the machines have to say whether they see the folder
_PATIENCE = 120.0  # seconds that a training whose worker has died may take to save its state
# Of the environment, what trainings are told by whoever starts them; the rest belongs to each machine.
_HANDED_ON = re.compile(r"SPIGOT_\w+|\w+_NUM_THREADS|PYTHONPATH|PYTHONHASHSEED")


def ray_workers(on: str, *, threads: int, command: Sequence[str] | None = None) -> "RayTeam":
    """Join a Ray cluster, or start one on this machine.

    Args:
        on: `"ray"` for the one that runs on this machine, which is started if there is none; or the address of one.
        threads: How many threads each training may use, and cores it is given.
        command: What runs a command of spigot, before its words; spigot as each machine has it if omitted.

    Returns:
        What makes the workers of a study; see `run_study`.

    Raises:
        ModuleNotFoundError: If Ray is not installed; it says how to.
        ValueError: If that is no address, or no machine has so many cores.
        ConnectionError: If there is no cluster, or it cannot be started.

    Example:
        >>> ray_workers("slurm", threads=1)
        Traceback (most recent call last):
        ValueError: on is 'slurm'; give 'ray' for this machine, or the address of a Ray cluster: ray://HOST:10001.
    """
    ray = join_cluster(on)
    most = max(_cores(ray).values(), default=0)
    if most < threads:
        raise ValueError(f"threads is {threads}, and no machine of the cluster has more than {most} cores; give fewer.")
    return RayTeam(threads, None if command is None else tuple(command))


@dataclass(frozen=True)
class RayTeam:
    """Makes the workers of a study on the cluster that this process has joined.

    Attributes:
        threads: How many threads each training may use.
        command: What runs a command of spigot, before its words.

    Example:
        >>> RayTeam(threads=2).threads
        2
    """

    threads: int
    command: tuple[str, ...] | None = None

    @property
    def places(self) -> int:
        """How many trainings the cluster has room for."""
        return sum(cores // self.threads for cores in _cores(_ray()).values())

    def __call__(self, folder: Path) -> Children:
        """The workers for a folder."""
        launcher = RayLauncher(folder, threads=self.threads, command=self.command)
        return Children(folder, threads=self.threads, launcher=launcher)


class RayLauncher:
    """Starts each training as a Ray actor, which runs it in a process of its own on the machine it is given.

    An actor and not a task, as one can be sent signals. When it dies, so does its training, which saves its state
    first; until it has, the log is locked and the training counts as under way, so that none is trained twice.

    Args:
        folder: The folder of the study, which all machines see.
        threads: How many threads each training may use.
        command: What runs a command of spigot, before its words.

    Raises:
        ValueError: If a machine does not see the folder.

    Example:
        >>> launcher = RayLauncher(Path("runs/x"), threads=1)
    """

    def __init__(self, folder: Path, *, threads: int, command: Sequence[str] | None = None) -> None:
        self._folder, self._threads, self._command = folder.resolve(), threads, command
        self._mark = secrets.token_hex(16)
        self._held = ExitStack()

    def __enter__(self) -> "RayLauncher":
        with ExitStack() as stack:
            stack.callback((self._folder / MARK).unlink, missing_ok=True)
            write_text(self._folder / MARK, self._mark)
            self._check()
            self._held = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def start(self, log: Path, words: Sequence[str]) -> "RayProcess":
        """Run a command of spigot."""
        ray = _ray()
        whole = surroundings(self._folder, self._threads)
        environment = {name: value for name, value in whole.items() if _HANDED_ON.fullmatch(name)}
        # Ray would run an actor again that has died; here whoever runs the study decides.
        actor = ray.remote(num_cpus=self._threads, max_restarts=0, max_task_retries=0)(Post)
        return RayProcess(
            actor.remote(log.resolve(), self._command, list(words), environment, Path.cwd(), self._mark), log
        )

    def _check(self) -> None:
        """Ask all machines whether they see the folder, before hours of training on some of them are lost."""
        ray = _ray()
        asked = ray.remote(num_cpus=0, max_retries=0)(unfit)
        pinned = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        answers = [
            asked.options(scheduling_strategy=pinned(node, soft=False)).remote(
                self._folder, Path.cwd(), self._mark, spigot.__version__ if self._command is None else ""
            )
            for node, cores in _cores(ray).items()
            if cores >= self._threads
        ]
        try:
            problems = ray.get(answers, timeout=_ANSWER)
        except ray.exceptions.RayError as error:
            raise ValueError(f"a machine of the cluster cannot train: {_last_line(error)}") from None
        for problem in filter(None, problems):
            raise ValueError(problem)


class RayProcess:
    """A training that an actor runs.

    Args:
        actor: The actor, a `Post`.
        log: The log of the training, as this machine sees it.
    """

    def __init__(self, actor: Any, log: Path) -> None:
        self._actor, self._log = actor, log
        self._host = self._number = ""
        self._started: float | None = None
        self._killed = False
        self._lost: tuple[float, str] | None = None
        self._answer = actor.start.remote()

    @property
    def place(self) -> str:
        return f"{self._host}:{self._number}" if self._host else ""

    @property
    def seconds(self) -> float:
        """How long it has been there; a training may have to wait for a machine."""
        return 0.0 if self._started is None else time.monotonic() - self._started

    def poll(self) -> int | str | None:
        ray = _ray()
        if self._lost is None:
            try:
                return self._heard(ray)
            except (ray.exceptions.RayError, ConnectionError) as error:
                self._lost = time.monotonic(), self._why(error)
        since, why = self._lost
        if not is_locked(self._log):
            return why
        if time.monotonic() - since < _PATIENCE and not self._killed:
            return None
        return f"{why[:-1]}, and its process is still there."

    def _heard(self, ray: ModuleType) -> int | str | None:
        """What the actor has answered by now, and ask again."""
        if not ray.wait([self._answer], timeout=0)[0]:
            return None
        answer = ray.get(self._answer)
        if self._started is None:
            self._host, self._number = answer
            if not self._host:
                ray.kill(self._actor)
                return self._number
            self._started = time.monotonic()
        elif answer is not None:
            ray.kill(self._actor)  # makes room for the next at once
            return answer
        self._answer = self._actor.wait.remote(_NAP)
        return None

    def tell(self, number: int) -> None:
        ray = _ray()
        if self._started is None or self._killed:  # it still waits for a machine, or that does not answer
            ray.kill(self._actor)
            self._lost = self._lost or (time.monotonic(), "It was given up.")
        else:
            self._actor.tell.remote(number)
        self._killed = self._killed or number == signal.SIGKILL

    def _why(self, error: Exception) -> str:
        said, there = str(error), f" on {self._host}" if self._host else ""
        if "low on memory" in said:
            return f"Ray ended it{there}, where memory ran out."
        if "node has died" in said or "node was terminated" in said:
            return f"The machine it was trained{there or ' on'} has left the cluster."
        if isinstance(error, _ray().exceptions.RayActorError) and self._started is not None:
            return f"The Ray worker that trained it{there} died."
        return f"Ray could not train it{there}: {_last_line(error)}"
