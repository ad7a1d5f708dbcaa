"""What trains for a study: processes of this machine, or a cluster."""

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

from spigot_nlp.experiments.children import Training


class Workers(Protocol):
    """Trainings under way in a folder, which is theirs alone meanwhile.

    Inside a `with`, requests to stop are collected in `stopped`. At the end of it, nothing is left running.

    Attributes:
        stopped: The requests to stop so far.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from spigot_nlp.experiments.children import Children
        >>> workers: Workers = Children(Path(tempfile.mkdtemp()))
        >>> len(workers)
        0
    """

    stopped: list[int]

    def __enter__(self) -> "Workers": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __len__(self) -> int:
        """How many are under way."""
        ...

    def start(self, training: Training, words: Sequence[str]) -> None:
        """Run a command of spigot for a training."""
        ...

    def look(self) -> bool:
        """Bring what is known of the trainings up to date; returns whether any has ended."""
        ...

    def heed(self) -> None:
        """Pass new requests to stop on: at the first, trainings save their state; at the next, they end at once."""
        ...

    def raise_if_stopped(self, trainings: Sequence[Training], noun: str) -> None:
        """Say how far they all came, if a request to stop has ended them."""
        ...
