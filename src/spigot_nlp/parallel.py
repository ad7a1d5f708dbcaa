"""An ordered map over forked processes: what this one has loaded, they have, too, and start at once."""

import contextlib
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, NamedTuple, TypeVar

from spigot.kernels import kernel_threads, use_kernel_threads

Task = TypeVar("Task")
Result = TypeVar("Result")

_AHEAD = 4  # tasks for each process that may be done before the one that everybody waits for


def can_fork() -> bool:
    """Whether a process can be forked here: where threads of the system do not mind."""
    return sys.platform == "linux"


def ordered_map(work: Callable[[Task], Result], tasks: Iterable[Task], processes: int) -> Iterator[Result]:
    """What comes out of each task, in the order of the tasks, as soon as it is there; `map` with several processors.

    Tasks and results are pickled, `work` is not: a forked process has it. If a task fails, or the tasks themselves end
    in an error, the results of all tasks before it come first. What a process had that was lost is done here instead,
    and the others go on; so is what failed in one, so that its error is that of this process. Processes end with the
    results, or when nobody listens any longer.

    Args:
        work: What to do with a task. Processes use one thread of torch, and as many for kernels as this one does.
        tasks: The tasks; only a few are held at a time.
        processes: How many there are to be; with fewer than two, or where there can be none, all is done here.

    Example:
        >>> list(ordered_map(abs, [-2, -1], processes=2))
        [2, 1]
    """
    if processes < 2 or not can_fork():
        yield from map(work, tasks)
        return
    team: list[_Worker[Task, Result]] = []
    try:
        for _ in range(processes):
            team.append(_Worker(work, team))
        yield from _collected(work, iter(tasks), team)
    finally:
        for worker in team:
            worker.end()


class _Failed(NamedTuple):
    """What a task ended in."""

    error: Exception


class _Undone:
    """What a process says of a task that ended in an error: not every error can be sent, or made again of what was."""


class _Worker(Generic[Task, Result]):
    """A forked process, and the way to it. It has one task at a time, so that nobody waits to be heard."""

    def __init__(self, work: Callable[[Task], Result], others: "list[_Worker[Task, Result]]") -> None:
        self.connection, theirs = multiprocessing.Pipe()
        # Ends that only this process may hold: when it is gone, the others hear nothing more, and leave.
        ours = [self.connection, *(other.connection for other in others)]
        self._process = multiprocessing.get_context("fork").Process(
            target=_serve, args=(work, theirs, ours, kernel_threads()), daemon=True
        )
        self._process.start()
        theirs.close()

    def give(self, number: int, task: Task) -> None:
        self.number, self.task = number, task
        with contextlib.suppress(OSError):  # that it is lost is heard next
            self.connection.send(task)

    def heard(self) -> Result | _Undone:
        """What it has to say; `EOFError` if it is lost."""
        try:
            return self.connection.recv()
        except OSError:
            raise EOFError from None

    def end(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join()


def _serve(work: Callable[[Any], Any], connection: Connection, ours: Iterable[Connection], threads: int) -> None:
    """What a forked process does."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever shares out the work
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for end in ours:
        end.close()
    torch.set_num_threads(1)  # threads that torch keeps were not forked, and who waits for them waits for ever
    with use_kernel_threads(threads), contextlib.suppress(EOFError, OSError):
        while True:
            found = _done(work, connection.recv())
            connection.send(_Undone() if isinstance(found, _Failed) else found)


def _done(work: Callable[[Task], Result], task: Task) -> Result | _Failed:
    try:
        return work(task)
    except Exception as error:
        return _Failed(error)


def _collected(
    work: Callable[[Task], Result], tasks: Iterator[Task], team: "list[_Worker[Task, Result]]"
) -> Iterator[Result]:
    idle, busy = list(team), list[_Worker[Task, Result]]()
    upcoming, found = deque[Task](), dict[int, Result | _Failed]()
    given = shown = 0
    wrong: Exception | None = None
    while True:
        while idle and upcoming and given - shown < _AHEAD * len(team):
            worker = idle.pop()
            worker.give(given, upcoming.popleft())
            busy.append(worker)
            given += 1
        while shown in found:  # by now all have something to do
            result = found.pop(shown)
            if isinstance(result, _Failed):
                raise result.error
            yield result
            shown += 1
        if wrong is None and not upcoming:
            try:
                upcoming.append(next(tasks))
                continue
            except Exception as error:  # the end of the tasks is one, too
                wrong = error
        if not busy:
            if not upcoming:
                break
            if not idle:  # all are lost
                found[given] = _done(work, upcoming.popleft())
                given += 1
            continue
        ready = wait([worker.connection for worker in busy])
        for worker in [worker for worker in busy if worker.connection in ready]:
            busy.remove(worker)
            try:
                answer = worker.heard()
                idle.append(worker)
            except EOFError:
                answer = _Undone()
            found[worker.number] = _done(work, worker.task) if isinstance(answer, _Undone) else answer
    if wrong is not None and not isinstance(wrong, StopIteration):
        raise wrong
