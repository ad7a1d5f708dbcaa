"""Handing out work: who is free gets the next task, and what a lost worker had is given to another."""

from collections import Counter, deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, TypeVar

_Work = TypeVar("_Work", bound=Hashable)

_TRIES = 3  # of a task, or of a worker that does not start
_IN_A_ROW = 5  # tasks that fail, and nothing else
_NAP = 5.0


class Lost(Exception):
    """A worker that is there no more; it says why."""


@dataclass(frozen=True)
class Failure:
    """What is said of a task that could not be done.

    Example:
        >>> Failure("there is no file news.txt.").reason
        'there is no file news.txt.'
    """

    reason: str


class Hand(Protocol):
    """A worker, as whoever hands out work sees it. It says `None` when it is ready, and then what it was asked for."""

    def give(self, task: Any) -> None:
        """Ask for something."""
        ...

    def heard(self) -> Any:
        """What it says, once `Team.wait` has found that it says something: an answer or a `Failure`.

        Raises:
            Lost: If it is there no more.
        """
        ...

    def dismiss(self) -> None:
        """End it."""
        ...


class Team(Protocol):
    """Those who work, inside a `with`."""

    def __enter__(self) -> "Team": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @property
    def places(self) -> int:
        """For how many workers there is room now."""
        ...

    def hire(self) -> Hand:
        """One more worker."""
        ...

    def wait(self, hands: Sequence[Hand], seconds: float) -> list[Hand]:
        """Those of some that say something, as soon as one does, or none after so many seconds."""
        ...


def handed_out(tasks: Sequence[_Work], team: Team) -> Iterator[tuple[_Work, Any]]:
    """The tasks, each once, as they are done, with what came out of it: a `Failure` if it was tried in vain.

    A worker that is lost is replaced as long as there is room, and what it had is given to the next. A task that ends
    three workers, or fails three times, is given up, and the others go on.

    Args:
        tasks: What is to be done, in the order it is begun.
        team: Who does it.

    Raises:
        RuntimeError: If no worker starts, or nothing but failures comes back.
    """
    waiting, tries = deque(tasks), Counter[_Work]()
    idle: list[Hand] = []
    busy: dict[Hand, _Work | None] = {}  # None while it starts
    unstarted = in_a_row = 0
    try:
        while waiting or any(task is not None for task in busy.values()):
            under_way = sum(task is not None for task in busy.values())
            for _ in range(min(team.places, len(waiting) + under_way) - len(idle) - len(busy)):
                busy[team.hire()] = None
            while idle and waiting:
                hand, task = idle.pop(), waiting.popleft()
                hand.give(task)
                busy[hand] = task
            for hand in team.wait(list(busy), _NAP):
                task = busy.pop(hand)
                try:
                    answer = hand.heard()
                except Lost as lost:
                    answer = Failure(str(lost))
                else:
                    idle.append(hand)
                if task is None:
                    unstarted = unstarted + 1 if isinstance(answer, Failure) else 0
                    if isinstance(answer, Failure) and unstarted >= _TRIES:
                        raise RuntimeError(f"the workers do not start: {answer.reason}")
                    if isinstance(answer, Failure) and hand in idle:
                        idle.remove(hand)
                        hand.dismiss()
                    continue
                if not isinstance(answer, Failure):
                    in_a_row = 0
                    yield task, answer
                    continue
                tries[task] += 1
                if tries[task] < _TRIES:
                    waiting.append(task)
                    continue
                yield task, answer
                in_a_row += 1
                if in_a_row >= _IN_A_ROW:
                    raise RuntimeError(f"nothing can be done any more: {answer.reason}")
    finally:
        for hand in (*idle, *busy):
            hand.dismiss()
