"""How times are taken: the least of many repetitions, ours and theirs in one run."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: What was measured.
        ours: Our time in milliseconds.
        other: What it is compared with, or "".
        theirs: Its time in milliseconds, or None.
        want: The ratio that we hold ourselves to, as words.
        ratio: Their time over ours, or ours over theirs where less is meant to be little more.
        met: Whether it was reached.
        note: What else there is to say, such as a rate.
    """

    name: str
    ours: float
    other: str = ""
    theirs: float | None = None
    want: str = ""
    ratio: float | None = None
    met: bool | None = None
    note: str = ""


def best(function: Callable[[], object], seconds: float = 0.6, least: int = 3) -> float:
    """The least of several times, in milliseconds, after one call to warm up."""
    function()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """That many threads, for torch and for the kernels."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def torch_only() -> Iterator[None]:
    """Our own operations in plain torch, as on a machine without the kernels."""
    from spigot._runtime import native  # here, as versions measured side by side keep it elsewhere

    before = native.available
    native.available = False
    try:
        yield
    finally:
        native.available = before


def faster(name: str, ours: float, other: str, theirs: float, want: float | None = None) -> Row:
    """They should take `want` times as long as we do."""
    ratio = theirs / ours
    words, met = ("", None) if want is None else (f"{want:g}x faster", ratio >= want)
    return Row(name, ours, other, theirs, words, ratio, met)


def at_most(name: str, ours: float, other: str, theirs: float, want: float) -> Row:
    """We should take at most `want` times as long as they do."""
    ratio = ours / theirs
    return Row(name, ours, other, theirs, f"at most {want:g}x", ratio, ratio <= want)


def within(name: str, ours: float, want: float) -> Row:
    """We should take at most so many milliseconds."""
    return Row(name, ours, want=f"at most {want:g} ms", met=ours <= want)
