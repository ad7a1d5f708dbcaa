"""The ordered map over forked processes, and what happens when something goes wrong."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator

import pytest

from spigot_nlp.parallel import can_fork, ordered_map

needs_forks = pytest.mark.skipif(not can_fork(), reason="processes cannot be copied here")


def _late(task: int) -> int:
    """The first of every twelve comes when all others have been done that may be."""
    time.sleep(0.2 if task % 12 == 0 else 0)
    return 2 * task


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_results_come_in_the_order_of_their_tasks(processes: int) -> None:
    assert list(ordered_map(_late, range(20), processes)) == [2 * k for k in range(20)]
    assert list(ordered_map(_late, [], processes)) == []


@needs_forks
def test_copies_do_the_work_and_end_with_it() -> None:
    found = set(ordered_map(lambda _: os.getpid(), range(12), 2))
    assert found
    assert os.getpid() not in found
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_comes_where_its_task_stands(processes: int) -> None:
    found: list[int] = []
    with pytest.raises(ZeroDivisionError):
        found.extend(ordered_map(lambda task: 6 // (3 - task), range(9), processes))
    assert found == [2, 3, 6]
    assert not multiprocessing.active_children()


class Unlike(ValueError):
    """An error that pickle cannot make again: it is not made of what it says."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")


class Unsendable(ValueError):
    """An error that pickle cannot take."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.again = lambda: None


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("kind", [Unlike, Unsendable])
def test_an_error_may_be_of_any_kind(kind: type[Exception], processes: int, capfd: pytest.CaptureFixture[str]) -> None:
    """That of a plug-in, say."""

    def work(task: int) -> int:
        if task == 2:
            raise kind(task, "it is too long.")
        return task

    found: list[int] = []
    with pytest.raises(kind, match=r"line 2: it is too long\."):
        found.extend(ordered_map(work, range(6), processes))
    assert found == [0, 1]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("processes", [1, 2])
def test_what_came_before_an_error_of_the_tasks_is_done(processes: int) -> None:
    def tasks() -> Iterator[int]:
        yield from range(5)
        raise ValueError("the file ends in the middle of a line.")

    found: list[int] = []
    with pytest.raises(ValueError, match="middle of a line"):
        found.extend(ordered_map(_late, tasks(), processes))
    assert found == [0, 2, 4, 6, 8]


@needs_forks
@pytest.mark.parametrize("deadly", [[3], [0, 4], range(10)])
def test_what_a_lost_copy_had_is_done_here(deadly: list[int]) -> None:
    here = os.getpid()

    def work(task: int) -> int:
        if task in deadly and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    assert list(ordered_map(work, range(10), 2)) == list(range(10))


@needs_forks
def test_nobody_works_on_when_nobody_listens() -> None:
    results = ordered_map(_late, iter(int, 1), 2)
    assert next(results) == 0
    results.close()  # pyright: ignore[reportAttributeAccessIssue] # it is a generator
    assert not multiprocessing.active_children()


@needs_forks
def test_large_tasks_and_results_do_not_wait_for_each_other() -> None:
    large = ["x" * 3_000_000] * 6
    assert list(ordered_map(lambda text: text + "!", large, 2)) == [text + "!" for text in large]
