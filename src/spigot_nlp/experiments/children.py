"""Trainings in processes of their own: started, watched, and stopped so that none of their work is lost."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Literal, Protocol, TypeAlias

from spigot_nlp.corpora.prepared import CACHE_VARIABLE
from spigot_nlp.experiments.processes import Launcher, LocalLauncher, Process, is_locked, signal_name
from spigot_nlp.experiments.study.trials import Trial
from spigot_nlp.locks import lock
from spigot_nlp.models.checkpoint import SCORES

COMMAND = (sys.executable, "-m", "spigot_nlp")
"""What runs a command of spigot, before its words."""

LOCK, CACHE = ".trainings.lock", ".cache"
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_PAUSE = 0.02  # seconds between two looks at those that were told to end

Status: TypeAlias = Literal["waiting", "running", "finished", "failed", "interrupted"]
"""How far a training is."""


class Training(Protocol):
    """What is known of a training; whoever has it started sees it change.

    Attributes:
        trial: What is trained.
        status: How far it is.
        reason: Why it failed, in one sentence.
        seconds: How long it has been trained.

    Example:
        >>> from spigot_nlp.config import Config
        >>> from spigot_nlp.experiments.study.progress import Progress
        >>> training: Training = Progress(Trial("ste-0", "ste", "", 0, Config()))
        >>> training.status
        'waiting'
    """

    @property
    def trial(self) -> Trial: ...

    status: Status
    reason: str
    seconds: float


@dataclass
class _Child:
    training: Training
    run: Path
    process: Process
    log: Path
    said_before: int
    seconds_before: float


class Children:
    """The trainings under way in a folder, which is theirs alone meanwhile.

    A training's run is in `folder`/NAME, what it says in `folder`/NAME.log. Inside a `with`, requests to stop (Ctrl-C,
    termination, a terminal that is closed) are collected for `heed`. At the end of it, nothing is left running.

    Args:
        folder: The folder for the runs; it exists.
        threads: How many threads each training may use.
        command: What runs a command of spigot, before its words.
        launcher: What starts them: processes of this machine by default.

    Attributes:
        stopped: The requests to stop so far.

    Raises:
        ValueError: If trainings of others are under way in the folder.

    Example:
        >>> import tempfile
        >>> with Children(Path(tempfile.mkdtemp())) as children:
        ...     len(children), children.stopped, children.look()
        (0, [], False)
    """

    def __init__(
        self,
        folder: Path,
        *,
        threads: int = 1,
        command: Sequence[str] = COMMAND,
        launcher: Launcher | None = None,
    ) -> None:
        self.stopped: list[int] = []
        self._folder = folder
        self._launcher = launcher or LocalLauncher(command, surroundings(folder, threads))
        self._running: list[_Child] = []
        self._heeded = 0
        self._ending = False
        self._lock: IO[str] | None = None
        self._noted = ""
        self._held = ExitStack()

    def __enter__(self) -> "Children":
        with ExitStack() as stack:
            self._lock = stack.enter_context(_own(self._folder))
            stack.enter_context(self._launcher)
            stack.enter_context(_collected_signals(self.stopped))  # last, as a launcher may listen to them, too
            self._held = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:
            if not self._ending:  # the caller has given up
                self._end()
            while self._running:
                self.heed()
                if not self.look():
                    time.sleep(_PAUSE)

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._running)

    def start(self, training: Training, words: Sequence[str]) -> None:
        """Start a training, or go on with one that was interrupted.

        Args:
            training: What is told how far it is.
            words: The words of the command.
        """
        name = training.trial.name
        log = self._folder / f"{name}.log"
        said_before = log.stat().st_size if log.exists() else 0
        process = self._launcher.start(log, words)
        training.status, training.reason = "running", ""
        self._running.append(_Child(training, self._folder / name, process, log, said_before, training.seconds))
        self._note_processes()

    def look(self) -> bool:
        """Bring what is known of the trainings up to date; returns whether any has ended."""
        ended = False
        for child in list(self._running):
            training = child.training
            code = child.process.poll()
            training.seconds = child.seconds_before + child.process.seconds
            if code is None:
                continue
            ended = True
            self._running.remove(child)
            if code == 0 and (child.run / SCORES).exists():
                training.status = "finished"
            elif self._ending:
                training.status = "interrupted"
            else:
                training.status, training.reason = "failed", _reason(child, code)
        self._note_processes()
        return ended

    def heed(self) -> None:
        """Pass new requests to stop on: at the first, trainings save their state; at the next, they end at once."""
        if len(self.stopped) > self._heeded:
            self._end()
            self._heeded = len(self.stopped)

    def raise_if_stopped(self, trainings: Sequence[Training], noun: str) -> None:
        """Say how far they all came, if a request to stop has ended them.

        Raises:
            KeyboardInterrupt: There was one.
        """
        if self.stopped:
            finished = sum(training.status == "finished" for training in trainings)
            raise KeyboardInterrupt(
                f"interrupted with {finished} of {len(trainings)} {noun} finished; run the same command again to go on."
            )

    def _end(self) -> None:
        for child in self._running:
            child.process.tell(signal.SIGKILL if self._ending else signal.SIGTERM)
        self._ending = True

    def _note_processes(self) -> None:
        """Tell in the locked file what runs in the folder."""
        places = " ".join(filter(None, (child.process.place for child in self._running)))
        if self._lock is not None and places != self._noted:
            self._noted = places
            with suppress(OSError):  # a full disk is no reason to give up
                self._lock.truncate(0)
                self._lock.write(places)
                self._lock.flush()


def surroundings(folder: Path, threads: int) -> dict[str, str]:
    """The environment of a training: so many threads, and one place for what all would work out again.

    Example:
        >>> surroundings(Path("runs"), 2)["OMP_NUM_THREADS"]
        '2'
    """
    cache = os.environ.get(CACHE_VARIABLE) or str(folder.resolve() / CACHE)
    return {**os.environ, CACHE_VARIABLE: cache, **dict.fromkeys(_THREADS, str(threads))}


def _reason(child: _Child, code: int | str) -> str:
    """Why a training ended, in one sentence."""
    if isinstance(code, str):
        return code
    if code < 0:
        name = signal_name(-code)
        more = ", as the system does when memory runs out" if name == "SIGKILL" else ""
        return f"It was ended by {name}{more}."
    if code == 0:
        return f"It ended without a {SCORES}."
    with child.log.open("rb") as log:
        log.seek(child.said_before)
        said = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    ours = [line for line in said if line.startswith("spigot: ")]
    text = (ours or said or [f"It ended with exit code {code} and said nothing."])[-1].removeprefix("spigot: ").strip()
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]


@contextmanager
def _own(folder: Path) -> Iterator[IO[str]]:
    """Keep others out of a folder.

    Another command has the folder locked; what a killed one has left running, here or on a cluster, its own log.
    """
    with (folder / LOCK).open("a+", encoding="utf-8") as file:
        if not lock(file) or any(is_locked(log) for log in folder.glob("*.log")):
            file.seek(0)
            by = f" (process {', '.join(numbers)})" if (numbers := file.read().split()) else ""
            raise ValueError(
                f"trainings are still running in {folder}, of another command or of one that was killed{by}; wait for "
                "them, or stop them."
            )
        file.truncate(0)
        yield file


@contextmanager
def _collected_signals(received: list[int]) -> Iterator[None]:
    """Collect requests to stop, so that trainings under way are stopped first."""

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    try:
        # What was ignored, e.g. under nohup, stays so.
        before = {n: signal.signal(n, note) for n in wanted if signal.getsignal(n) is not signal.SIG_IGN}
    except ValueError:  # not in the main thread: the caller looks after signals
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
