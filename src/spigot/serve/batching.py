"""Requests that wait together are answered together."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


class Busy(RuntimeError):
    """There is no room to wait in, or the answer took too long: try again later."""


@dataclass(eq=False)
class _Request(Generic[Job, Result]):
    """What one caller waits for."""

    jobs: Sequence[Job]
    size: int
    deadline: float
    results: list[Result] = field(default_factory=list)
    error: Exception | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def finish(self, results: Sequence[Result | Exception] | Exception) -> None:
        """Hand over the answer, or the first thing that went wrong."""
        if isinstance(results, Exception):
            self.error = results
        else:
            self.error = next((result for result in results if isinstance(result, Exception)), None)
            self.results = [result for result in results if not isinstance(result, Exception)]
        self.done.set()


class Batcher(Generic[Job, Result]):
    """One thread that takes all waiting requests at once and runs their jobs in one call.

    While a batch runs, requests gather for the next one, so batches grow with the load and an idle server answers at
    once. A request is never divided between batches, and one that goes wrong takes nobody with it: if a batch fails,
    its requests are run again, each by itself.

    Args:
        run: Does the jobs: one result for each, in order. A result may be an exception: what was wrong with that job.
        size: How large a job is.
        most: How large a batch gets, unless a single request is larger.
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
        request: _Request[Job, Result] = _Request(jobs, sum(map(self._size, jobs)), time.monotonic() + seconds)
        with self._changed:
            if self._closed:
                raise Busy("the server is closing.")
            if len(self._requests) >= self._room:
                raise Busy(f"{len(self._requests)} requests wait already, which is as many as may; try again soon.")
            self._requests.append(request)
            self._changed.notify()
        if not request.done.wait(seconds):
            raise Busy(f"there was no answer within {seconds:g} seconds; try again, or send less at a time.")
        if request.error is not None:
            raise request.error
        return request.results

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
                    if not request.done.is_set():
                        request.finish(RuntimeError(f"the answer could not be made ({type(error).__name__}: {error})."))
            del batch  # nothing of it is kept while the next one is waited for

    def _next(self) -> list[_Request[Job, Result]]:
        """The requests of the next batch; none if there will be no more."""
        with self._changed:
            while True:
                batch = self._take()
                if batch:
                    return batch
                if self._closed:
                    return []
                self._changed.wait()

    def _take(self) -> list[_Request[Job, Result]]:
        batch: list[_Request[Job, Result]] = []
        size = 0
        while self._requests:
            request = self._requests[0]
            if self._closed:
                self._requests.popleft().finish(Busy("the server is closing."))
            elif request.deadline < time.monotonic():
                self._requests.popleft()  # its caller has given up
            elif batch and (not self._together or size + request.size > self._most):
                break
            else:
                batch.append(self._requests.popleft())
                size += request.size
        return batch

    def _answer(self, batch: Sequence[_Request[Job, Result]]) -> None:
        try:
            results = self._results([job for request in batch for job in request.jobs])
        except Exception as error:
            if len(batch) == 1:
                batch[0].finish(error)
                return
            for request in batch:
                self._answer([request])
            return
        start = 0
        for request in batch:
            request.finish(results[start : start + len(request.jobs)])
            start += len(request.jobs)

    def _results(self, jobs: Sequence[Job]) -> Sequence[Result | Exception]:
        results = self._run(jobs)
        if len(results) != len(jobs):
            raise RuntimeError(f"{len(jobs)} jobs were given and {len(results)} results came back.")
        return results
