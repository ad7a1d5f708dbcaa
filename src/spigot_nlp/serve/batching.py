"""Requests that wait together are answered together."""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


class Busy(RuntimeError):
    """There is no room to wait in, or the answer took too long: try again later.

    Example:
        >>> str(Busy("try again soon."))
        'try again soon.'
    """


@dataclass(eq=False)
class _Request(Generic[Job, Result]):
    """What one caller waits for."""

    jobs: Sequence[Job]
    answer: "asyncio.Future[list[Result]]"
    taken: int = 0
    results: list[Result] = field(default_factory=list)

    def take(self) -> Job:
        self.taken += 1
        return self.jobs[self.taken - 1]

    def hand_over(self, results: Sequence[Result | Exception]) -> None:
        """Some more results, in order. The last one ends the waiting, and so does the first thing that went wrong."""
        for result in results:
            if isinstance(result, Exception):
                self.fail(result)
                return
            self.results.append(result)
        if len(self.results) == len(self.jobs) and not self.answer.done():  # its caller may have given up
            self.answer.set_result(self.results)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Batcher(Generic[Job, Result]):
    """Runs the jobs of all waiting requests in one call, in a thread of its own.

    While a batch runs, requests gather for the next one, so batches grow with the load and an idle server answers at
    once. Jobs are taken from the requests in turn, so that a large one, which fills several batches, keeps nobody else
    waiting for longer than one of them. A request that goes wrong takes nobody with it: if a batch fails, the jobs of
    each request are run again by themselves.

    Args:
        run: Does the jobs: one result for each, in order. A result may be an exception: what was wrong with that job.
        size: How large a job is.
        most: How large a batch gets, unless a single job is larger.
        waiting: How many requests may wait.

    Example:
        >>> with Batcher(lambda jobs: [job * job for job in jobs], most=100) as squares:
        ...     asyncio.run(squares.submit([2, 3], seconds=10))
        [4, 9]
    """

    def __init__(
        self,
        run: Callable[[Sequence[Job]], Sequence[Result | Exception]],
        size: Callable[[Job], int] = lambda job: 1,
        *,
        most: int = 2048,
        waiting: int = 256,
    ) -> None:
        self._run, self._size, self._most, self._room = run, size, most, waiting
        self._requests: deque[_Request[Job, Result]] = deque()
        self._thread = ThreadPoolExecutor(1, "batch")
        self._working: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many requests wait for the next batch."""
        return len(self._requests)

    @property
    def has_room(self) -> bool:
        """Whether a request that came now could wait for its answer."""
        return not self._closed and len(self._requests) < self._room

    async def submit(self, jobs: Sequence[Job], *, seconds: float) -> list[Result]:
        """Wait for the results of some jobs.

        Args:
            jobs: What to do.
            seconds: How long to wait at most.

        Returns:
            One result for each job, in order.

        Raises:
            Busy: If too many requests wait already, the time is over, or the batcher was closed.
            Exception: Whatever was wrong with the first job that failed.
        """
        if not jobs:
            return []
        if self._closed:
            raise Busy("the server is closing.")
        if not self.has_room:
            raise Busy(f"{len(self._requests)} requests wait already, which is as many as may; try again soon.")
        request: _Request[Job, Result] = _Request(jobs, asyncio.get_running_loop().create_future())
        self._requests.append(request)
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        try:
            async with asyncio.timeout(seconds):
                return await request.answer
        except TimeoutError:
            raise Busy(f"there was no answer within {seconds:g} seconds; try again, or send less at a time.") from None

    def close(self) -> None:
        """Tell whoever waits that there will be no answer, and end the thread when its batch is done."""
        self._closed = True
        for request in self._requests:
            request.fail(Busy("the server is closing."))
        self._thread.shutdown()

    def __enter__(self) -> "Batcher[Job, Result]":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    async def _work(self) -> None:
        while batch := self._take():
            await self._answer(batch)

    def _take(self) -> dict[_Request[Job, Result], list[Job]]:
        """The next batch: jobs by the requests they belong to."""
        batch: dict[_Request[Job, Result], list[Job]] = {}
        size = 0
        while self._requests:
            request = self._requests[0]
            if request.answer.done():  # it failed, or its caller has given up
                self._requests.popleft()
                continue
            size += self._size(request.jobs[request.taken])
            if batch and size > self._most:
                break
            batch.setdefault(request, []).append(request.take())
            self._requests.rotate(-1)
            if request.taken == len(request.jobs):
                self._requests.pop()
        return batch

    async def _answer(self, batch: Mapping[_Request[Job, Result], Sequence[Job]]) -> None:
        jobs = [job for mine in batch.values() for job in mine]
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._run, jobs)
            if len(found) != len(jobs):
                raise RuntimeError(f"{len(jobs)} jobs were given and {len(found)} results came back.")
        except Exception as error:
            for request, mine in batch.items():
                if len(batch) == 1:
                    request.fail(error)
                else:
                    await self._answer({request: mine})
            return
        results = iter(found)
        for request, mine in batch.items():
            request.hand_over(list(itertools.islice(results, len(mine))))
