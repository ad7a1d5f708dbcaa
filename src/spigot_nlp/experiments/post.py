"""A training on a machine of a cluster: what a worker there does.

Like `processes`, this imports nothing but Python itself: a worker starts faster, and has its memory left for training.
"""

import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import spigot
from spigot_nlp.experiments.processes import LocalProcess

MARK = ".cluster"
"""The file in the folder of a study by which a machine knows that it sees the same folder."""

_PATIENCE = 5.0  # seconds until a shared folder shows on one machine what another has written
# A training must not outlive the worker that watches it: nobody could stop it, or tell how it ended. On Linux a process
# can ask to get a signal when its parent dies, whatever that dies of: here the one at which trainings save their state.
# Whose parent is another already has asked too late.
_LEASH = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit("its worker died")
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Post:
    """One training, on the machine that this is made on.

    Args:
        log: Where what it says goes.
        command: What runs a command of spigot, before its words; spigot as it is installed on this machine if omitted.
        words: The words of the command.
        environment: What differs from the environment here.
        folder: Where to run it.
        mark: What the file of that name in the folder of the study says.

    Example:
        >>> import tempfile
        >>> study = Path(tempfile.mkdtemp())
        >>> _ = (study / MARK).write_text("ours")
        >>> post = Post(study / "one.log", [sys.executable, "-c"], ["print(1)"], {}, study, "ours")
        >>> host, number = post.start()
        >>> post.wait(60)
        0
    """

    def __init__(
        self,
        log: Path,
        command: Sequence[str] | None,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        mark: str,
    ) -> None:
        self._log, self._folder, self._mark = log, folder, mark
        self._command = [*(command or (sys.executable, "-m", "spigot_nlp")), *words]
        self._environment = {**os.environ, **environment}
        self._process: LocalProcess | None = None

    def start(self) -> tuple[str, str]:
        """Start it; returns the machine and the number of the process, or no machine and why it cannot be started."""
        if problem := unfit(self._log.parent, self._folder, self._mark):
            return "", problem
        leash = [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid())] if sys.platform == "linux" else []
        try:
            self._process = LocalProcess(self._log, [*leash, *self._command], self._environment, self._folder)
        except (OSError, ValueError) as error:
            return "", f"It could not be started on {socket.gethostname()}: {error}"
        return socket.gethostname(), self._process.place

    def wait(self, seconds: float) -> int | None:
        """Its exit code, if it ends in so many seconds."""
        return None if self._process is None else self._process.wait(seconds)

    def tell(self, number: int) -> None:
        """Send it a signal."""
        if self._process is not None:
            self._process.tell(number)


def unfit(study: Path, folder: Path, mark: str, wanted: str = "") -> str:
    """Why this machine cannot train for a study, in a sentence; empty if it can.

    Args:
        study: The folder of the study.
        folder: Where trainings are run.
        mark: What the file of that name in the folder of the study says.
        wanted: The version of spigot there has to be, if it matters.

    Example:
        >>> unfit(Path("/no/such"), Path("/"), "ours").partition(" does not see ")[2]
        '/no/such; the folder of a study must be the same one, under the same name, on every machine of the cluster.'
    """
    host, deadline = socket.gethostname(), time.monotonic() + _PATIENCE
    while _read(study / MARK) != mark:
        if time.monotonic() > deadline or not study.is_dir():
            return (
                f"{host} does not see {study}; the folder of a study must be the same one, under the same name, on "
                "every machine of the cluster."
            )
        time.sleep(0.1)
    if not folder.is_dir():
        return f"{host} has no {folder}; start the study in a folder that every machine of the cluster has."
    if wanted and spigot.__version__ != wanted:
        return f"{host} has spigot {spigot.__version__}, and the study is of {wanted}; install the same."
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
