"""A training as a process. What it says goes to a log, and while it lives that log is locked: two cannot share a run.

Nothing but Python itself is imported here, and a file like it, as every worker of a cluster imports this file.
"""

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol

from spigot_nlp.locks import lock


class Process(Protocol):
    """A training under way, on this machine or another.

    Example:
        >>> import sys, tempfile
        >>> process: Process = LocalProcess(Path(tempfile.mkdtemp()) / "one.log", [sys.executable, "-c", ""], {})
        >>> while process.poll() is None:
        ...     time.sleep(0.01)
        >>> process.poll()
        0
    """

    @property
    def place(self) -> str:
        """Its number, after the name of its machine if that is another; empty while it has none."""
        ...

    @property
    def seconds(self) -> float:
        """How long it has been there."""
        ...

    def poll(self) -> int | str | None:
        """The exit code, or in a sentence why there is none; `None` while it is there."""
        ...

    def tell(self, number: int) -> None:
        """Send it a signal."""
        ...


class Launcher(Protocol):
    """Starts processes, inside a `with`.

    Example:
        >>> launcher: Launcher = LocalLauncher(["true"], {})
    """

    def __enter__(self) -> "Launcher": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def start(self, log: Path, words: Sequence[str]) -> Process:
        """Run a command of spigot.

        Args:
            log: Where what it says goes.
            words: The words of the command.
        """
        ...


class LocalProcess:
    """A process of this machine that holds the lock of its log.

    It has a session of its own. Ctrl-C on a terminal reaches all its processes; two signals would keep a training from
    saving its state, and it gets one from whoever started it.

    Args:
        log: The log; it is added to.
        command: What to run.
        environment: Its environment.
        folder: Where to run it; here by default.

    Raises:
        ValueError: If the log is that of a training under way.

    Example:
        >>> import sys, tempfile
        >>> log = Path(tempfile.mkdtemp()) / "one.log"
        >>> process = LocalProcess(log, [sys.executable, "-c", "input()"], {})
        >>> int(process.place) > 1, process.wait(60)
        (True, 1)
        >>> b"EOF" in log.read_bytes(), is_locked(log)
        (True, False)
    """

    def __init__(
        self, log: Path, command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
    ) -> None:
        self._started = time.monotonic()
        with _locked(log) as file:
            # The lock belongs to the open file, which the process has as its output: it ends when the process does,
            # and not before, whatever becomes of this one.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
            )

    @property
    def place(self) -> str:
        return str(self._process.pid)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """The exit code, if there is one in so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll()

    def tell(self, number: int) -> None:
        self._process.send_signal(number)


class LocalLauncher:
    """Starts processes on this machine.

    Args:
        command: What runs a command of spigot, before its words.
        environment: Their environment.

    Example:
        >>> import sys, tempfile
        >>> with LocalLauncher([sys.executable, "-c"], {}) as launcher:
        ...     launcher.start(Path(tempfile.mkdtemp()) / "one.log", ["print(1)"]).wait(60)
        0
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command, self._environment = list(command), environment

    def __enter__(self) -> "LocalLauncher":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def start(self, log: Path, words: Sequence[str]) -> LocalProcess:
        """Run a command of spigot."""
        return LocalProcess(log, [*self._command, *words], self._environment)


def is_locked(path: Path) -> bool:
    """Whether a file is locked by another process, on whichever machine that sees it.

    Example:
        >>> is_locked(Path("no/such.log"))
        False
    """
    try:
        with path.open("rb+") as file:
            return not lock(file)
    except FileNotFoundError:
        return False


def _locked(log: Path) -> IO[bytes]:
    """A log to add to, for one process alone."""
    file = log.open("ab")
    try:
        if not lock(file):
            raise ValueError(f"{log.stem} is still being trained by another process; wait for it, or stop it.")
    except BaseException:
        file.close()
        raise
    return file


def signal_name(number: int) -> str:
    """What a signal is called.

    Example:
        >>> signal_name(15), signal_name(1000)
        ('SIGTERM', 'signal 1000')
    """
    return signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
