"""Workers that are processes of this machine."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any

from spigot_nlp.forks import can_fork
from spigot_nlp.scale.team import Failure, Hand, Lost
from spigot_nlp.scale.worker import Order, Worker

_LOADED = ["spigot_nlp.scale.processes", "spigot_nlp.models.checkpoint"]  # and torch, with them


class ProcessTeam:
    """Processes of this machine, each with the model.

    Args:
        order: What each is told.
        places: How many there are to be.

    Example:
        >>> from spigot_nlp.scale.shards import Look
        >>> ProcessTeam(Order("runs/spigot", "out", Look("jsonl")), 2).places
        2
    """

    def __init__(self, order: Order, places: int) -> None:
        self._order, self._places = order, places
        # A copy of a process with threads may hang, so all are copies of one that loads the libraries and does no more:
        # they are loaded once, whether there are two workers or two hundred, and what they take of memory is shared.
        self._context: Any = multiprocessing.get_context("forkserver" if can_fork() else "spawn")
        if can_fork():
            self._context.set_forkserver_preload(_LOADED)

    def __enter__(self) -> "ProcessTeam":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @property
    def places(self) -> int:
        return self._places

    def hire(self) -> Hand:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._order), daemon=True)
        process.start()
        theirs.close()
        return _ProcessHand(process, ours)

    def wait(self, hands: Sequence[Any], seconds: float) -> list[Any]:
        ready = set(wait([hand.connection for hand in hands], seconds))
        return [hand for hand in hands if hand.connection in ready]


class _ProcessHand:
    """A process. When it dies, its end of the connection closes, and that is heard, too."""

    def __init__(self, process: Any, connection: Any) -> None:
        self._process, self.connection = process, connection

    def give(self, task: Any) -> None:
        with contextlib.suppress(OSError):  # that it is lost is heard next
            self.connection.send(task)

    def heard(self) -> Any:
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self._process.join(10)
            raise Lost(_ended(self._process.exitcode)) from None

    def dismiss(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join()


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        more = ", as the system does when memory runs out" if code == -signal.SIGKILL else ""
        return f"a worker was ended by {signal.Signals(-code).name}{more}."
    return f"a worker ended with exit code {code}."


def _serve(connection: Any, order: Order) -> None:
    """What a process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever hands out work
    threading.Thread(target=_leave_when_alone, daemon=True).start()
    worker = Worker(order)
    with contextlib.suppress(EOFError, OSError):
        connection.send(None)
        while True:
            connection.send(answered(worker, connection.recv()))


def answered(worker: Worker, task: Any) -> Any:
    """What a worker says to a task; what goes wrong is said, too.

    Example:
        >>> from spigot_nlp.scale.shards import Look
        >>> from spigot_nlp.scale.sources import Source
        >>> worker = Worker(Order("runs/spigot", "out", Look("jsonl")))
        >>> answered(worker, Source("no-such-file.txt", "text", "", 9, 0))
        Failure(reason="[Errno 2] No such file or directory: 'no-such-file.txt'")
    """
    try:
        return worker.do(task)
    except Exception as error:
        return Failure(str(error) or type(error).__name__)


def _leave_when_alone() -> None:
    """End this process when the one that hands out work has ended, however it did."""
    handing_out = multiprocessing.parent_process()
    assert handing_out is not None
    handing_out.join()
    os._exit(1)
