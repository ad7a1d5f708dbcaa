"""The lines that a training writes about its steps, read as its file grows."""

import os
from pathlib import Path


class Tail:
    """The lines of a file that grows, or is begun again as by a training that is resumed.

    Args:
        path: The file; it need not exist yet.

    Attributes:
        is_anew: Whether the lines found last are the first of a file, and all from before are void.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "steps.jsonl"
        >>> tail = Tail(path)
        >>> tail.read(), tail.is_anew
        ([], True)
        >>> _ = path.write_text("one\\ntw")
        >>> tail.read(), tail.is_anew, tail.read(), tail.is_anew
        ([b'one'], True, [], False)
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._forget()

    def _forget(self) -> None:
        self._file: int | None = None
        self._offset = 0
        self.is_anew = True

    def read(self) -> list[bytes]:
        """The lines that have been added; one that is still being written is none yet."""
        self.is_anew = False
        try:
            with self._path.open("rb") as file:
                about = os.fstat(file.fileno())
                if self._file != about.st_ino or about.st_size < self._offset:
                    self._forget()
                    self._file = about.st_ino
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            self._forget()
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.splitlines()
