"""Requests that wait together are answered together."""

import asyncio
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
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
    deadline: float
    taken: int = 0
    results: list[Result] = field(default_factory=list)
    answer: "Future[list[Result]]" = field(default_factory=Future)

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is worth doing any more: it failed, or its caller has given up."""
        return self.answer.done() or self.deadline < time.monotonic()

    def take(self) -> Job:
        """The next job that has not been taken."""
        self.taken += 1
        return self.jobs[self.taken - 1]

    def hand_over(self, results: Sequence[Result | Exception]) -> None:
        """Some more results, in order. The last one ends the waiting, and so does the first thing that went wrong."""
        for result in results:
            if isinstance(result, Exception):
                self.fail(result)
                return
            self.results.append(result)
        if len(self.results) == len(self.jobs):
            with suppress(InvalidStateError):  # its caller has given up meanwhile
                self.answer.set_result(self.results)

    def fail(self, error: Exception) -> None:
        """Say what went wrong."""
        with suppress(InvalidStateError):
            self.answer.set_exception(error)


class Batcher(Generic[Job, Result]):
    """One thread that takes jobs of all waiting requests at once and runs them in one call.

    While a batch runs, requests gather for the next one, so batches grow with the load and an idle server answers at
    once. Jobs are taken from the requests in turn, so that a large one, which fills several batches, keeps nobody else
    waiting for longer than one of them. A request that goes wrong takes nobody with it: if a batch fails, the jobs of
    each request are run again by themselves.

    Args:
        run: Does the jobs: one result for each, in order. A result may be an exception: what was wrong with that job.
        size: How large a job is.
        most: How large a batch gets, unless a single job is larger.
        waiting: How many requests may wait.
        together: Whether requests are batched at all; if not, each is run by itself.

    Example:
        >>> with Batcher(lambda jobs: [job * job for job in jobs], most=100) as squares:
        ...     squares.submit([2, 3], seconds=10)
        [4, 9]
    """

    def __init__(
        self,
        run: Callable[[Sequence[Job]], Sequence[Result | Exception]],
        size: Callable[[Job], int] = lambda job: 1,
        *,
        most: int = 2048,
        waiting: int = 256,
        together: bool = True,
    ) -> None:
        self._run, self._size = run, size
        self._most, self._room, self._together = most, waiting, together
        self._requests: deque[_Request[Job, Result]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="batching", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many requests wait for the next batch."""
        return len(self._requests)

    @property
    def is_full(self) -> bool:
        """Whether nobody else may wait."""
        return len(self._requests) >= self._room

    @property
    def works(self) -> bool:
        """Whether there will be an answer to what is asked now."""
        return not self._closed and self._thread.is_alive()

    def submit(self, jobs: Sequence[Job], *, seconds: float) -> list[Result]:
        """Wait for the results of some jobs.

        Args:
            jobs: What to do.
            seconds: How long to wait at most.

        Returns:
            One result for each job, in order.

        Raises:
            Busy: If too many requests wait already, the time is over, or the batcher was closed.
            Exception: Whatever was wrong with the first job that failed.

        Example:
            >>> with Batcher(lambda jobs: [ValueError("no such word") for _ in jobs]) as failing:
            ...     failing.submit(["xyzzy"], seconds=10)
            Traceback (most recent call last):
            ...
            ValueError: no such word
        """
        if not jobs:
            return []
        answer = self._enqueue(jobs, seconds)
        try:
            return answer.result(seconds)
        except TimeoutError:
            raise _late(seconds) from None

    async def ask(self, jobs: Sequence[Job], *, seconds: float) -> list[Result]:
        """The same for a coroutine, which holds no thread while it waits.

        Example:
            >>> with Batcher(lambda jobs: [job * job for job in jobs]) as squares:
            ...     asyncio.run(squares.ask([2, 3], seconds=10))
            [4, 9]
        """
        if not jobs:
            return []
        answer = self._enqueue(jobs, seconds)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(answer)
        except TimeoutError:
            raise _late(seconds) from None

    def _enqueue(self, jobs: Sequence[Job], seconds: float) -> "Future[list[Result]]":
        request: _Request[Job, Result] = _Request(jobs, time.monotonic() + seconds)
        with self._changed:
            if self._closed:
                raise Busy("the server is closing.")
            if self.is_full:
                raise Busy(f"{len(self._requests)} requests wait already, which is as many as may; try again soon.")
            self._requests.append(request)
            self._changed.notify()
        return request.answer

    def close(self) -> None:
        """End the thread. Whoever waits still is told so."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout=10)

    def __enter__(self) -> "Batcher[Job, Result]":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _work(self) -> None:
        while batch := self._next():
            try:
                self._answer(batch)
            except BaseException as error:  # the thread must outlive anything, or everybody waits for ever
                for request in batch:
                    request.fail(RuntimeError(f"the answer could not be made ({type(error).__name__}: {error})."))
            del batch  # nothing of it is kept while the next one is waited for

    def _next(self) -> dict[_Request[Job, Result], list[Job]]:
        """The next batch: jobs by the requests they belong to; nothing if there will be no more."""
        with self._changed:
            while True:
                batch = self._take()
                if batch:
                    return batch
                if self._closed:
                    return {}
                self._changed.wait()

    def _take(self) -> dict[_Request[Job, Result], list[Job]]:
        batch: dict[_Request[Job, Result], list[Job]] = {}
        size = 0
        while self._requests:
            request = self._requests[0]
            if self._closed:
                request.fail(Busy("the server is closing."))
            if request.is_over:
                self._requests.popleft()
                continue
            size += self._size(request.jobs[request.taken])
            if batch and (size > self._most or not (self._together or request in batch)):
                break
            batch.setdefault(request, []).append(request.take())
            if request.taken == len(request.jobs):
                self._requests.popleft()
            elif self._together:
                self._requests.rotate(-1)
        return batch

    def _answer(self, batch: Mapping[_Request[Job, Result], Sequence[Job]]) -> None:
        try:
            results = iter(self._results([job for jobs in batch.values() for job in jobs]))
        except Exception as error:
            for request, jobs in batch.items():
                if len(batch) == 1:
                    request.fail(error)
                else:
                    self._answer({request: jobs})
            return
        for request, jobs in batch.items():
            request.hand_over(list(itertools.islice(results, len(jobs))))

    def _results(self, jobs: Sequence[Job]) -> Sequence[Result | Exception]:
        results = self._run(jobs)
        if len(results) != len(jobs):
            raise RuntimeError(f"{len(jobs)} jobs were given and {len(results)} results came back.")
        return results


def _late(seconds: float) -> Busy:
    return Busy(f"there was no answer within {seconds:g} seconds; try again, or send less at a time.")
