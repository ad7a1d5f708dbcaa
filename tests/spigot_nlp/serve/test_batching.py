"""Requests that wait together are run together, and none of them hurts another."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from spigot_nlp.serve.batching import Batcher, Busy


class Gate:
    """Squares numbers, but stops until it is opened; negative numbers are an error, 13 breaks everything."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.entered = threading.Event()
        self.batches: list[list[int]] = []

    def __call__(self, jobs: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(jobs))
        self.entered.set()
        assert self.open.wait(20)
        if 13 in jobs:
            raise RuntimeError("thirteen.")
        return [ValueError(f"{job} is negative.") if job < 0 else job * job for job in jobs]


@pytest.fixture
def gate():
    return Gate()


def behind_the_gate(gate: Gate, batcher: Batcher[int, int], groups: list[list[int]], seconds: float = 20):
    """Submit groups while a first job is running, so that they wait together; what each came to."""

    def result(group: list[int]) -> object:
        try:
            return batcher.submit(group, seconds=seconds)
        except Exception as error:
            return str(error)

    with ThreadPoolExecutor(len(groups) + 1) as pool:
        first = pool.submit(result, [1])
        assert gate.entered.wait(20)
        futures = []
        for k, group in enumerate(groups):
            futures.append(pool.submit(result, group))
            wait_until(lambda k=k: batcher.waiting == k + 1)
        gate.open.set()
        assert first.result() == [1]
        return [future.result() for future in futures]


def wait_until(condition) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_those_who_wait_are_run_together_and_get_their_own(gate):
    with Batcher(gate) as batcher:
        assert behind_the_gate(gate, batcher, [[2, 3], [4], [5]]) == [[4, 9], [16], [25]]
        assert batcher.submit([], seconds=20) == []
    assert gate.batches == [[1], [2, 3, 4, 5]]


def test_a_batch_has_a_size_and_takes_from_everybody_in_turn(gate):
    with Batcher(gate, size=lambda job: job, most=10) as batcher:
        assert behind_the_gate(gate, batcher, [[4, 5, 6], [2], [20, 1], [3]]) == [[16, 25, 36], [4], [400, 1], [9]]
    # The large one comes by itself, and those with a single small job are not kept waiting by those with many.
    assert gate.batches == [[1], [4, 2], [20], [3, 5, 1], [6]]


def test_what_is_left_of_a_request_that_failed_is_not_run(gate):
    with Batcher(gate, size=lambda job: 10, most=10) as batcher:
        assert behind_the_gate(gate, batcher, [[-2, 3], [13, 4], [5, 6]]) == ["-2 is negative.", "thirteen.", [25, 36]]
    assert gate.batches == [[1], [-2], [13], [5], [6]]


def test_without_batching_everybody_is_run_alone(gate):
    with Batcher(gate, together=False) as batcher:
        behind_the_gate(gate, batcher, [[2, 5], [3]])
    assert gate.batches == [[1], [2, 5], [3]]


def test_an_error_belongs_to_one_request(gate):
    with Batcher(gate) as batcher:
        found = behind_the_gate(gate, batcher, [[2], [3, -4], [5]])
    assert found == [[4], "-4 is negative.", [25]]
    assert len(gate.batches) == 2  # nothing was run twice


def test_a_batch_that_breaks_is_run_again_one_by_one(gate):
    with Batcher(gate) as batcher:
        found = behind_the_gate(gate, batcher, [[2], [13], [5]])
    assert found == [[4], "thirteen.", [25]]
    assert gate.batches == [[1], [2, 13, 5], [2], [13], [5]]


def test_a_result_that_is_missing_is_noticed():
    with Batcher(lambda jobs: [0]) as batcher, pytest.raises(RuntimeError, match="2 jobs were given and 1 results"):
        batcher.submit([1, 2], seconds=20)


def test_a_full_queue_turns_people_away(gate):
    with Batcher(gate, waiting=1) as batcher, ThreadPoolExecutor(2) as pool:
        first = pool.submit(batcher.submit, [1], seconds=20)
        assert gate.entered.wait(20)
        second = pool.submit(batcher.submit, [2], seconds=20)
        wait_until(lambda: batcher.waiting == 1)
        with pytest.raises(Busy, match="1 requests wait already"):
            batcher.submit([3], seconds=20)
        gate.open.set()
        assert (first.result(), second.result()) == ([1], [4])


def test_who_gives_up_is_not_served_later(gate):
    with Batcher(gate) as batcher, ThreadPoolExecutor(1) as pool:
        first = pool.submit(batcher.submit, [1], seconds=20)
        assert gate.entered.wait(20)
        with pytest.raises(Busy, match=r"no answer within 0\.01 seconds"):
            batcher.submit([2], seconds=0.01)
        gate.open.set()
        assert first.result() == [1]
        assert batcher.submit([3], seconds=20) == [9]
    assert gate.batches == [[1], [3]]


def test_closing_tells_those_who_wait(gate):
    batcher = Batcher(gate)
    with ThreadPoolExecutor(3) as pool:
        running = pool.submit(batcher.submit, [1], seconds=20)
        assert gate.entered.wait(20)
        waiting = pool.submit(batcher.submit, [2], seconds=20)
        wait_until(lambda: batcher.waiting == 1)
        closing = pool.submit(batcher.close)
        wait_until(lambda: batcher._closed)
        gate.open.set()
        assert running.result() == [1]
        with pytest.raises(Busy, match="closing"):
            waiting.result()
        closing.result()
    with pytest.raises(Busy, match="closing"):
        batcher.submit([3], seconds=20)
