"""Plain text from files and streams, in batches that suit both those who have much of it and those who wait."""

import codecs
import os
import re
import select
import stat
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias, cast

from spigot_nlp.data.formats.files import GZIP_ERRORS, FormatError, gzip_reason, opened
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.raw import Splitter

Errors: TypeAlias = Literal["strict", "replace"]
"""What to do about bytes that are no text: complain, or put U+FFFD in their place."""

# With its mark, or without: every other byte of what is mostly ASCII is 0.
_UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff|(?:[^\0]\0){2}|(?:\0[^\0]){2}", re.DOTALL)


@dataclass
class Decoder:
    """Decodes UTF-8.

    Attributes:
        name: What messages call the source.
        errors: Whether bytes that are no UTF-8 are an error, or become U+FFFD each.

    Example:
        >>> decoder = Decoder("notes.txt")
        >>> [decoder.feed(piece) for piece in (b"caf", b"\\xc3", b"\\xa9")] + [decoder.close()]
        ['caf', '', 'é', '']
        >>> decoder.feed(b"\\nna\\xefve")
        Traceback (most recent call last):
        spigot_nlp.data.formats.files.FormatError: notes.txt:2: byte 0xef, byte 9 of the input, is not UTF-8; \
convert it to UTF-8, or have such bytes replaced (--errors replace).
    """

    name: str
    errors: Errors = "strict"
    _bytes: int = field(default=0, init=False, repr=False)
    _lines: int = field(default=0, init=False, repr=False)
    _decoder: codecs.IncrementalDecoder = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(self.errors)

    def feed(self, piece: bytes) -> str:
        """The text of what comes next, as far as its characters are complete.

        Raises:
            FormatError: Some byte is not UTF-8; it says which.
        """
        return self._decode(piece, False)

    def close(self) -> str:
        """The rest of the text.

        Raises:
            FormatError: The last character is not complete.
        """
        return self._decode(b"", True)

    def _decode(self, piece: bytes, final: bool) -> str:
        if not self._bytes and self.errors == "strict" and _UTF_16.match(piece):
            raise FormatError(self.name, 1, "UTF-16, not UTF-8; convert it to UTF-8.")
        waiting = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            place = self._bytes - waiting + error.start + 1
            line = self._lines + error.object.count(b"\n", 0, error.start) + 1
            raise FormatError(
                self.name,
                line,
                f"byte 0x{error.object[error.start]:02x}, byte {place:,} of the input, is not UTF-8; convert it to "
                "UTF-8, or have such bytes replaced (--errors replace).",
            ) from None
        self._bytes += len(piece)
        self._lines += piece.count(b"\n")
        return text


_BYTES = 1 << 16
_UNFIT = re.compile(r"[\s/]+")


@dataclass
class Reader:
    """Sentences of several sources in batches: full ones where there is text enough, and what there is where not.

    A source that makes one wait, a keyboard or a slow pipe, is answered before the next wait: its sentences are handed
    out as soon as a line ends them and nothing more has arrived. No sentence goes from one source into the next. They
    are numbered from 1, and with several sources the name of the source comes first: `notes-1`. Where two files have
    one name, as many of their folders come with it as tell them apart: `may_notes-1`.

    Attributes:
        sources: Files, gzipped or not, and open streams of bytes.
        splitter: How sentences are found; its settings serve for each of the sources.
        errors: What to do about bytes that are not UTF-8.
        batch: How many sentences a full batch has.
        waited: How many seconds went by waiting for streams.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "note.txt"
        >>> _ = file.write_text("Rain fell. Why? Nobody knows.")
        >>> [[sentence.id for sentence in batch] for batch in Reader([file], batch=2)]
        [['1', '2'], ['3']]
    """

    sources: Sequence[Path | BinaryIO]
    splitter: Splitter = field(default_factory=Splitter)
    errors: Errors = "strict"
    batch: int = 2048
    waited: float = 0.0

    def __iter__(self) -> Iterator[list[Sentence]]:
        pending: list[Sentence] = []
        numbers: Counter[str] = Counter()  # go on in a file that is given twice
        for source, prefix in zip(self.sources, _prefixes(self.sources), strict=True):
            for found in self._found(source):
                for sentence in found or ():
                    numbers[prefix] += 1
                    pending.append(replace(sentence, id=f"{prefix}{numbers[prefix]}"))
                while len(pending) >= self.batch:
                    yield pending[: self.batch]
                    del pending[: self.batch]
                if found is None and pending:
                    yield pending
                    pending = []
        if pending:
            yield pending

    def _found(self, source: Path | BinaryIO) -> Iterator[list[Sentence] | None]:
        """The sentences of a source as they become complete, and None where nobody knows when the next will be."""
        path = source if isinstance(source, Path) else None
        waits = path is None and _makes_wait(cast(BinaryIO, source))
        splitter = replace(self.splitter, eager=waits)
        decoder = Decoder("standard input" if path is None else str(path), self.errors)
        with opened(source) as (stream, _):
            while True:
                if waits and not _has_more(cast(BinaryIO, source)):
                    yield None
                start = time.monotonic()
                piece = _read(cast(BinaryIO, stream), decoder.name)
                if waits:
                    self.waited += time.monotonic() - start
                if not piece:
                    break
                yield splitter.feed(decoder.feed(piece))
        yield splitter.feed(decoder.close()) + splitter.close()


def _prefixes(sources: Sequence[Path | BinaryIO]) -> list[str]:
    """What comes before the numbers of each source: nothing if it is alone, or else the shortest names that differ.

    They are written as the ids of Universal Dependencies may be, without slashes and white space.
    """
    if len(sources) == 1:
        return [""]
    paths = [source.resolve() if isinstance(source, Path) else Path("stdin") for source in sources]
    folders = range(2, max(len(path.parts) for path in paths) + 1)
    ways = [
        [path.stem for path in paths],
        *(["/".join((*path.parts[-k:-1], path.stem)) for path in paths] for k in folders),
        *(["/".join(path.parts[-k:]) for path in paths] for k in (1, *folders)),  # one name, of several kinds of files
    ]
    distinct = len(set(paths))
    plain = [[_UNFIT.sub("_", name) for name in names] for names in ways]
    numbered = [f"{paths.index(path) + 1}" for path in paths]
    names = next((names for names in plain if len(set(names)) == distinct), numbered)
    return [f"{name}-" for name in names]


def _read(stream: BinaryIO, name: str) -> bytes:
    """What there is, up to some hundred sentences; nothing at the end."""
    try:
        return getattr(stream, "read1", stream.read)(_BYTES)
    except GZIP_ERRORS as error:
        raise FormatError(name, 1, gzip_reason(error)) from None


def _makes_wait(stream: BinaryIO) -> bool:
    """Whether a stream is neither a file nor in memory."""
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:
        return False


def _has_more(stream: BinaryIO) -> bool:
    """Whether reading would give something, or the end, at once."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):  # where only sockets can be asked
        return False
