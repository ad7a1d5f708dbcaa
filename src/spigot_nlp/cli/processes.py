"""How many processes read a file: several where that pays."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import cyclopts

from spigot_nlp.cli.output import STREAM
from spigot_nlp.forks import can_fork
from spigot_nlp.threads import cores

Processes: TypeAlias = Annotated[
    int | None,
    cyclopts.Parameter(
        help="How many processes parse, each some hundred sentences at a time, with the same answers for any number; "
        "by default one for each core, up to four, where files are long, and one where --threads is given."
    ),
]
"""`--processes`: what `process_count` takes."""

SHARE = 512
"""Sentences that a process is given at a time: enough to sort by length, few enough that all end at the same time."""

_MOST = 4
_LONG = 150_000  # bytes, or about thirty thousand words: some seconds of work


@contextmanager
def collecting_new() -> Iterator[None]:
    """A block in which the collector of garbage looks at what is made in it, and not again and again at a loaded model.

    Example:
        >>> with collecting_new():
        ...     gc.get_freeze_count() > 0
        True
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def process_count(wanted: int | None, threads: int | None, device: str, files: Iterable[Path]) -> int:
    """How many processes are to parse some files.

    Args:
        wanted: What was asked for.
        threads: How many threads were asked for.
        device: Where to compute.
        files: What is read.

    Raises:
        ValueError: If there is to be no process, or there can only be one.

    Example:
        >>> process_count(None, None, "cpu", [STREAM])
        1
        >>> process_count(3, None, "cpu", [STREAM]) if can_fork() else 3
        3
        >>> process_count(0, None, "cpu", [])
        Traceback (most recent call last):
        ValueError: processes is 0; it must be at least 1.
    """
    if wanted is not None:
        if wanted < 1:
            raise ValueError(f"processes is {wanted}; it must be at least 1.")
        if wanted > 1 and (device != "cpu" or not can_fork()):
            raise ValueError(f"processes is {wanted}; several need a CPU and Linux. Leave it out, or use --threads.")
        return wanted
    if threads is not None or device != "cpu" or not can_fork():
        return 1
    known = list(files)
    if STREAM in known or sum(path.stat().st_size for path in known) < _LONG:
        return 1
    return min(_MOST, cores())
