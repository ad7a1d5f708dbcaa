"""A run folder belongs to one training at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on this system: nobody is kept out
    fcntl = None

LOCK = ".lock"


class FolderTaken(ValueError):
    """Another process trains in the folder."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other trainings out of a folder. The system lets go of it whatever ends the process.

    Raises:
        FolderTaken: Somebody is in there.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with alone(folder):
        ...     with alone(folder):
        ...         pass
        Traceback (most recent call last):
        spigot_nlp.training.lock.FolderTaken: ... is being trained by another process. Wait for it, or choose ...
        >>> list(folder.iterdir())
        []
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    held = _held(path)
    try:
        yield
    finally:
        if held is not None:
            path.unlink(missing_ok=True)
            os.close(held)


def _held(path: Path) -> int | None:
    """The locked file; `None` where there are no locks, as on some network disks."""
    while fcntl is not None:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise FolderTaken(
                f"{path.parent} is being trained by another process. Wait for it, or choose another folder."
            ) from None
        except OSError:
            os.close(file)
            return None
        if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
            return file
        os.close(file)  # whoever had it took it away meanwhile
    return None
