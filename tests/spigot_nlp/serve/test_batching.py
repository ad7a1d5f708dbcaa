"""Requests that wait together are run together, and none of them hurts another."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from spigot_nlp.serve import Batcher


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


async def asked(batcher: Batcher[int, int], group: list[int], seconds: float = 20) -> object:
    """What a group of jobs came to."""
    try:
        return await batcher.submit(group, seconds=seconds)
    except Exception as error:
        return str(error)


def behind_the_gate(gate: Gate, batcher: Batcher[int, int], groups: list[list[int]]) -> list[object]:
    """Submit groups while a first job is running, so that they wait together; what each came to."""

    async def all_of_them() -> list[object]:
        first = asyncio.create_task(asked(batcher, [1]))
        await asyncio.to_thread(gate.entered.wait, 20)
        others = [asyncio.create_task(asked(batcher, group)) for group in groups]
        await asyncio.sleep(0)
        assert batcher.waiting == len(groups)
        gate.open.set()
        assert await first == [1]
        return await asyncio.gather(*others)

    return asyncio.run(all_of_them())


def test_those_who_wait_are_run_together_and_get_their_own(gate):
    with Batcher(gate) as batcher:
        assert behind_the_gate(gate, batcher, [[2, 3], [4], [5]]) == [[4, 9], [16], [25]]
        assert asyncio.run(batcher.submit([], seconds=20)) == []
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


def test_an_error_belongs_to_one_request(gate):
    with Batcher(gate) as batcher:
        assert behind_the_gate(gate, batcher, [[2], [3, -4], [5]]) == [[4], "-4 is negative.", [25]]
    assert len(gate.batches) == 2  # nothing was run twice


def test_a_batch_that_breaks_is_run_again_one_by_one(gate):
    with Batcher(gate) as batcher:
        assert behind_the_gate(gate, batcher, [[2], [13], [5]]) == [[4], "thirteen.", [25]]
    assert gate.batches == [[1], [2, 13, 5], [2], [13], [5]]


def test_a_result_that_is_missing_is_noticed():
    with Batcher(lambda jobs: [0]) as batcher, pytest.raises(RuntimeError, match="2 jobs were given and 1 results"):
        asyncio.run(batcher.submit([1, 2], seconds=20))


def test_who_finds_no_room_or_gives_up_is_told_so_and_not_served_later(gate):
    async def some() -> list[object]:
        first = asyncio.create_task(asked(batcher, [1]))
        await asyncio.to_thread(gate.entered.wait, 20)
        impatient = asyncio.create_task(asked(batcher, [2], seconds=0.01))
        await asyncio.sleep(0)
        assert not batcher.has_room
        refused = await asked(batcher, [3])
        late = await impatient
        gate.open.set()
        return [await first, refused, late, await asked(batcher, [4])]

    with Batcher(gate, waiting=1) as batcher:
        first, refused, late, after = asyncio.run(some())
    assert (first, after) == ([1], [16])
    assert "1 requests wait already" in str(refused)
    assert "no answer within 0.01 seconds" in str(late)
    assert gate.batches == [[1], [4]]


def test_closing_tells_those_who_wait(gate):
    async def some() -> list[object]:
        first, second = (asyncio.create_task(asked(batcher, [k])) for k in (1, 2))
        await asyncio.to_thread(gate.entered.wait, 20)
        third = asyncio.create_task(asked(batcher, [3]))
        await asyncio.sleep(0)
        threading.Timer(0.05, gate.open.set).start()
        batcher.close()  # waits for what is under way
        assert gate.open.is_set()
        return [await first, await second, await third, await asked(batcher, [4])]

    batcher = Batcher(gate)
    first, second, waited, after = asyncio.run(some())
    assert (first, second) == ([1], [4])
    assert waited == after == "the server is closing."
