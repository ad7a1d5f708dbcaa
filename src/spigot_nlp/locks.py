"""Locks on open files, so that two processes do not do the same work. Nothing but Python itself is imported here."""

from typing import IO

try:
    import fcntl
except ImportError:  # only POSIX can lock a file this way
    fcntl = None


def lock(file: IO[bytes] | IO[str]) -> bool:
    """Lock an open file until it is closed, here and by all that inherit it; returns whether it is ours.

    Raises:
        ValueError: If the file system knows no locks.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryFile() as file:
        ...     lock(file)
        True
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise ValueError(
            f"{file.name} cannot be locked ({error.strerror}), and processes could get into each other's way; "
            "choose an --out on another file system."
        ) from None
    return True
