"""A run folder belongs to one training at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spigot_nlp.training.distributed import is_main

try:
    import fcntl
except ImportError:  # not on this system: nobody is kept out
    fcntl = None

LOCK = ".lock"


class RunLocked(ValueError):
    """Another process trains in the folder."""


@contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Keep other trainings out of a folder, which is made if need be, and goes again if nothing is written into it.

    The system lets go of it whatever ends the process. Of several processes of one training, the first has it.

    Raises:
        RunLocked: Somebody is in there.
        OSError: Nothing can be written there.
    """
    if not is_main():
        yield
        return
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    path = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = _held(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise type(error)(f"{folder} cannot hold a run ({reason}); choose another folder with --out.") from None
    try:
        for half_written in folder.glob(".*.tmp"):  # by a process that was killed
            half_written.unlink(missing_ok=True)
        yield
    finally:
        if held is not None:
            path.unlink(missing_ok=True)
            os.close(held)
        with suppress(OSError):  # what has anything in it stays
            for place in made:
                place.rmdir()


def _held(path: Path) -> int | None:
    """The locked file; `None` where there are no locks, as on some network disks."""
    while fcntl is not None:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise RunLocked(
                f"{path.parent} is being trained by another process. Wait for it, or choose another folder."
            ) from None
        except OSError:
            os.close(file)
            return None
        if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
            return file
        os.close(file)  # whoever had it took it away meanwhile
    return None
