"""The books of a corpus: what was asked for, the list of work, and what of it is done.

All is in the folder of the shards. `manifest.json` says what was asked for and, at the end, what came of it.
`pieces.jsonl` is the list of work, written once. A line in `done.jsonl` says that the shard of a piece is complete; it
is added after the shard has got its name. So whatever is interrupted, and whenever: a piece that has no line is done
again, into the same shard, and a piece that has one is never looked at again.
"""

import contextlib
import errno
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from spigot_nlp.data.formats.files import written
from spigot_nlp.locks import lock
from spigot_nlp.scale.pieces import Counts, Piece
from spigot_nlp.scale.worker import MARK

MANIFEST, PIECES, DONE = "manifest.json", "pieces.jsonl", "done.jsonl"


@dataclass(frozen=True)
class Manifest:
    """What was asked for, and what came of it.

    Attributes:
        asked: What was asked for: the model, the inputs, the options.
        complete: Whether all of it is done.
        counts: How much there was, all in all.
        shards: The shards in their order, each with its counts.

    Example:
        >>> Manifest({"options": {"to": "jsonl"}}, True, Counts(), ()).complete
        True
    """

    asked: Mapping[str, Any]
    complete: bool
    counts: Counts
    shards: tuple[Mapping[str, Any], ...]


class Ledger:
    """The books in a folder; to be had by `opened_ledger`.

    Args:
        folder: The folder.
        asked: What is asked for.
        suffix: How the names of shards end.
    """

    def __init__(self, folder: Path, asked: Mapping[str, Any], suffix: str) -> None:
        self.folder, self.asked, self._suffix = folder, asked, suffix
        self.mark = secrets.token_hex(16)
        self.done: dict[int, Counts] = {}
        self._journal: IO[bytes] | None = None

    @property
    def pieces(self) -> list[Piece] | None:
        """The list of work; `None` if there is none yet."""
        try:
            text = (self.folder / PIECES).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return [Piece.from_line(line) for line in text.splitlines()]

    def plan(self, pieces: Sequence[Piece]) -> None:
        """Write the list of work."""
        with written(self.folder / PIECES) as file:
            for piece in pieces:
                file.write(f"{piece.line()}\n".encode())

    def add(self, piece: Piece, counts: Counts) -> None:
        """Say that a piece is done."""
        assert self._journal is not None
        self._journal.write(f"{_line(piece.number, counts)}\n".encode())
        self._journal.flush()
        os.fsync(self._journal.fileno())
        self.done[piece.number] = counts

    def open(self) -> None:
        """Read what is there, and clean up after whoever was interrupted."""
        for left in self.folder.glob(".*.tmp"):
            left.unlink(missing_ok=True)
        _write(self.folder / MARK, self.mark)
        if not (self.folder / MANIFEST).exists():
            self.write(complete=False)
        self.done = dict(self._read())
        with written(self.folder / DONE) as file:  # a last line that was cut short goes
            for number, counts in self.done.items():
                file.write(f"{_line(number, counts)}\n".encode())
        self._journal = (self.folder / DONE).open("ab")

    def close(self) -> None:
        """Leave the books to the next."""
        if self._journal is not None:
            self._journal.close()
        (self.folder / MARK).unlink(missing_ok=True)

    def _read(self) -> Iterator[tuple[int, Counts]]:
        try:
            lines = (self.folder / DONE).read_bytes().splitlines()
        except FileNotFoundError:
            return
        there = set(os.listdir(self.folder))
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                record = json.loads(line)
                number = record.pop("piece")
                if Piece(number, ()).shard(self._suffix) in there:  # or else somebody took it away
                    yield number, Counts(**record)

    def write(self, *, complete: bool) -> Manifest:
        """Write the manifest."""
        numbers = sorted(self.done)
        shards = tuple(
            {
                "file": Piece(number, ()).shard(self._suffix),
                **asdict(self.done[number]),
                **({"errors_file": Piece(number, ()).errors} if self.done[number].errors else {}),
            }
            for number in numbers
        )
        counts = Counts.total([self.done[number] for number in numbers])
        manifest = Manifest(self.asked, complete, counts, shards)
        record = {**self.asked, "complete": complete, "counts": asdict(counts), "shards": shards}
        _write(self.folder / MANIFEST, f"{json.dumps(record, ensure_ascii=False, indent=1)}\n")
        return manifest


@contextlib.contextmanager
def opened_ledger(folder: Path, asked: Mapping[str, Any], suffix: str) -> Iterator[Ledger]:
    """The books in a folder, which is made if need be; nobody else has them meanwhile.

    Args:
        folder: The folder.
        asked: What is asked for, as JSON has it.
        suffix: How the names of shards end.

    Raises:
        ValueError: If the folder has other things in it, or the answers to something else, or somebody writes there.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with opened_ledger(folder, {"options": {"to": "jsonl"}}, ".jsonl") as ledger:
        ...     ledger.plan([Piece(0, ())])
        >>> with opened_ledger(folder, {"options": {"to": "sdp"}}, ".sdp") as ledger:
        ...     pass  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: ... to another command: to was jsonl and is sdp; give that command, or another --out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(folder))
    with (folder / ".lock").open("ab") as file:
        if not lock(file):
            raise ValueError(f"another process is writing to {folder}; wait for it, or stop it.")
        _check(folder, asked)
        ledger = Ledger(folder, asked, suffix)
        try:
            ledger.open()
            yield ledger
        finally:
            ledger.close()


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """What a folder of shards says about itself.

    Args:
        folder: The folder.

    Raises:
        FileNotFoundError: If it has no manifest.

    Example:
        >>> read_manifest("nowhere")
        Traceback (most recent call last):
        FileNotFoundError: nowhere has no manifest.json; spigot parse --out writes one.
    """
    try:
        record = json.loads((Path(folder) / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{folder} has no {MANIFEST}; spigot parse --out writes one.") from None
    except ValueError:
        raise ValueError(f"{Path(folder) / MANIFEST} is damaged; choose another --out.") from None
    counts, shards = Counts(**record.pop("counts")), tuple(record.pop("shards"))
    return Manifest(record, record.pop("complete"), counts, shards)


def _check(folder: Path, asked: Mapping[str, Any]) -> None:
    if not (folder / MANIFEST).exists():
        if others := [name for name in sorted(os.listdir(folder)) if not name.startswith(".")]:
            raise ValueError(f"{folder} has other files in it, {others[0]} for one; choose an --out of its own.")
        return
    # As JSON has it, where there are no tuples.
    before, now = read_manifest(folder).asked, json.loads(json.dumps(asked))
    if said := _difference(before, now):
        raise ValueError(f"{folder} has the answers to another command: {said}; give that command, or another --out.")


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """In what two commands differ first."""
    if before.get("model") != now.get("model"):
        return "the model is another"
    had = {entry[0]: entry for entry in before.get("inputs", ())}
    has = {entry[0]: entry for entry in now.get("inputs", ())}
    for name in (*has, *had):
        if name not in had:
            return f"{name} was not among the inputs"
        if name not in has:
            return f"{name} was among the inputs"
        if had[name] != has[name]:
            return f"{name} has changed since"
    if list(had) != list(has):
        return "the inputs had another order"
    old, new = before.get("options", {}), now.get("options", {})
    for name in (*new, *old):
        if old.get(name) != new.get(name):
            return f"{name} was {_shown(old.get(name))} and is {_shown(new.get(name))}"
    if before.get("spigot") != now.get("spigot"):
        return f"it was spigot {before.get('spigot')}, and this is {now.get('spigot')}"
    return ""


def _shown(value: object) -> str:
    if value is None:
        return "not given"
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _line(number: int, counts: Counts) -> str:
    return json.dumps({"piece": number, **asdict(counts)})


def _write(path: Path, text: str) -> None:
    with written(path) as file:
        file.write(text.encode())
