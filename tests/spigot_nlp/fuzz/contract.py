"""What any input may lead to: an answer, or an error of a documented kind with one sentence. Nothing else, and soon."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

from spigot_nlp.serve import Refused

_KINDS = (ValueError, TypeError, FileNotFoundError, IsADirectoryError, Refused)
_LONGEST = 1000  # characters of a message


class Broken(AssertionError):
    """An input that was not answered as promised."""


def held(run: Callable[[bytes], object], data: bytes, seconds: float = 10.0) -> bool:
    """Whether the input was taken; `Broken` if it was neither taken nor refused in a sentence.

    Example:
        >>> held(int, b"12"), held(lambda data: [][0], b"")
        Traceback (most recent call last):
        tests.spigot_nlp.fuzz.contract.Broken: IndexError: list index out of range
    """
    try:
        with _limited(seconds):
            run(data)
    except Broken:
        raise
    except BaseException as error:
        kind = type(error)
        ours = kind.__module__.partition(".")[0] in ("spigot", "spigot_nlp") and issubclass(kind, _KINDS)
        if not ours and kind not in _KINDS:
            raise Broken(f"{kind.__name__}: {error}") from error
        message = str(error)
        if not message.strip() or "\n" in message.strip() or len(message) > _LONGEST:
            raise Broken(f"no sentence: {message[:2000]!r}") from error
        return False
    return True


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """End what computes too long, where signals can; only the main thread gets them. A busy machine is no reason."""

    def late(number: int, frame: FrameType | None) -> None:
        raise Broken(f"no answer in {seconds:g} s of processor time")

    try:
        before = signal.signal(signal.SIGPROF, late)
    except (AttributeError, ValueError):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
