"""Work shared out among copies of this process: what it has loaded, they have, too, and start at once."""

import contextlib
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, NamedTuple, TypeVar

from spigot.kernels import kernel_threads, use_kernel_threads

Task = TypeVar("Task")
Result = TypeVar("Result")

_AHEAD = 4  # tasks for each copy that may be done before the one that everybody waits for


def can_fork() -> bool:
    """Whether a process can be copied here: where threads of the system do not mind.

    Example:
        >>> can_fork() or sys.platform != "linux"
        True
    """
    return sys.platform == "linux"


@cache
def spare_copies() -> None:
    """Have all copies that anybody makes of this process from now on use one thread of torch.

    Threads that torch keeps for the next time are not copied, and a copy that waited for them would wait for ever. So
    this is called wherever torch is about to share out work for the first time: where systems are made and loaded.

    Example:
        >>> import torch
        >>> from spigot_nlp.threads import use_threads
        >>> spare_copies()
        >>> with use_threads(2):
        ...     list(in_order(lambda _: torch.get_num_threads(), [0], copies=2)) if can_fork() else [1]
        [1]
    """
    import torch

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task], copies: int) -> Iterator[Result]:
    """What comes out of each task, in the order of the tasks, as soon as it is there; `map` with several processors.

    Tasks and results are pickled, `work` is not: a copy has it. If a task fails, or the tasks themselves end in an
    error, the results of all tasks before it come first. What a copy had when it was lost is done here instead, and the
    others go on; so is what failed in a copy, so that its error is that of this process. Copies end with the results,
    or when nobody listens any longer.

    Args:
        work: What to do with a task. Copies use one thread of torch, and as many for kernels as this process does.
        tasks: The tasks; only a few are held at a time.
        copies: How many copies there are to be; with fewer than two, or where there can be none, all is done here.

    Example:
        >>> list(in_order(abs, [-2, -1], copies=2))
        [2, 1]
    """
    if copies < 2 or not can_fork():
        yield from map(work, tasks)
        return
    spare_copies()
    team: list[_Copy[Task, Result]] = []
    try:
        for _ in range(copies):
            team.append(_Copy(work, team))
        yield from _collected(work, iter(tasks), team)
    finally:
        for copy in team:
            copy.end()


class _Wrong(NamedTuple):
    """What a task ended in."""

    error: Exception


class _Undone:
    """What a copy says of a task that ended in an error. Not every error can be sent, or made again of what was."""


class _Copy(Generic[Task, Result]):
    """A copy of this process, and the way to it. It has one task at a time, so that nobody waits to be heard."""

    def __init__(self, work: Callable[[Task], Result], others: "list[_Copy[Task, Result]]") -> None:
        self.connection, theirs = multiprocessing.Pipe()
        # Ends that only this process may hold: when it is gone, copies hear nothing more, and leave.
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
        """What it has to say.

        Raises:
            EOFError: If it is lost.
        """
        try:
            return self.connection.recv()
        except OSError:
            raise EOFError from None

    def end(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join()


def _serve(work: Callable[[Any], Any], connection: Connection, ours: Iterable[Connection], threads: int) -> None:
    """What a copy does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever shares out the work
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for end in ours:
        end.close()
    with use_kernel_threads(threads), contextlib.suppress(EOFError, OSError):
        while True:
            found = _done(work, connection.recv())
            connection.send(_Undone() if isinstance(found, _Wrong) else found)


def _done(work: Callable[[Task], Result], task: Task) -> Result | _Wrong:
    try:
        return work(task)
    except Exception as error:
        return _Wrong(error)


def _collected(
    work: Callable[[Task], Result], tasks: Iterator[Task], team: "list[_Copy[Task, Result]]"
) -> Iterator[Result]:
    idle, busy = list(team), list[_Copy[Task, Result]]()
    upcoming, found = deque[Task](), dict[int, Result | _Wrong]()
    given = shown = 0
    wrong: Exception | None = None
    while True:
        while idle and upcoming and given - shown < _AHEAD * len(team):
            copy = idle.pop()
            copy.give(given, upcoming.popleft())
            busy.append(copy)
            given += 1
        while shown in found:  # by now all copies have something to do
            result = found.pop(shown)
            if isinstance(result, _Wrong):
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
            if not idle:  # all copies are lost
                found[given] = _done(work, upcoming.popleft())
                given += 1
            continue
        ready = wait([copy.connection for copy in busy])
        for copy in [copy for copy in busy if copy.connection in ready]:
            busy.remove(copy)
            try:
                answer = copy.heard()
                idle.append(copy)
            except EOFError:
                answer = _Undone()
            found[copy.number] = _done(work, copy.task) if isinstance(answer, _Undone) else answer
    if wrong is not None and not isinstance(wrong, StopIteration):
        raise wrong
