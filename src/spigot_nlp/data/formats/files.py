"""Files as blocks of lines: opening, gzip, UTF-8, line ends, and writing all or nothing.

What the formats share and none of them should know: a parser sees a `Block` of clean lines and says
`Malformed(offset, reason)`; a renderer returns the text of one sentence and its `Layout`.
"""

import contextlib
import errno
import gzip
import os
import secrets
import shutil
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO, TypeAlias, cast

Stream: TypeAlias = TextIO | BinaryIO
Location: TypeAlias = str | os.PathLike[str] | Stream

_GZIP = b"\x1f\x8b"
FULL = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})
"""Errors of a system that has no room for what is written."""
GZIP_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)
_MARK = b"\xef\xbb\xbf"
_BLANK = (b"\n", b"\r\n")
_LONGEST = 100_000  # lines without a blank one; a file that is not in blocks at all must not fill the memory


class FormatError(ValueError):
    """A data file that is not in its format.

    Attributes:
        path: The file.
        line: The line, from 1.
        reason: What is wrong there.

    Example:
        >>> print(FormatError("dev.sdp", 1042, "word 7 has 3 argument columns but the sentence has 4 predicates."))
        dev.sdp:1042: word 7 has 3 argument columns but the sentence has 4 predicates.
    """

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(path, line, reason)
        self.path = path
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


class Malformed(Exception):
    """What a parser raises: which line of its block, from 0, and what is wrong there.

    Example:
        >>> Malformed(2, "word 3 has 9 columns; it must have 10.").offset
        2
    """

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(offset, reason)
        self.offset = offset
        self.reason = reason


class Layout(NamedTuple):
    """The white space of a block in its file.

    Attributes:
        lead: What stands before it: a byte order mark, blank lines, comments that belong to no sentence.
        newline: What ends its lines.
        tail: What follows its last line, up to the next block.

    Example:
        >>> Layout(newline="\\r\\n").tail
        '\\n\\n'
    """

    lead: str = ""
    newline: str = "\n"
    tail: str = "\n\n"


PLAIN = Layout()
LINE = Layout(tail="\n")


class Block(NamedTuple):
    """The lines of one sentence, without their ends.

    Attributes:
        lines: The lines.
        opens: Whether it is the first of its file.
        layout: The white space around it.
        first: The number of its first line in the file, from 1.

    Example:
        >>> Block(["1\\tRain", "2\\tfell"], opens=True).first
        1
    """

    lines: list[str]
    opens: bool = False
    layout: Layout = PLAIN
    first: int = 1


@dataclass(slots=True)
class RawBlock:
    """A block as it stands in the file, not yet decoded.

    Attributes:
        first: The number of its first line in the file, from 1.
        lines: Its lines, with their ends.
        lead: What stands before it.
        tail: The blank lines after it.
        opens: Whether it is the first of its file.

    Example:
        >>> RawBlock(1, [b"1\\tRain\\n"]).opens
        False
    """

    first: int
    lines: list[bytes] = field(repr=False)
    lead: bytes = b""
    tail: bytes = b""
    opens: bool = False


def shown(text: str) -> str:
    """Text of a file as a message quotes it: its beginning, if there is much of it.

    Example:
        >>> shown("rain"), shown("9" * 500)
        ("'rain'", "'999999999999999999999999999999999999 ...'")
    """
    return repr(text if len(text) <= 40 else f"{text[:36]} ...")


def gzip_reason(error: Exception) -> str:
    """What is wrong with gzip data, of what reading them raised: one of `GZIP_ERRORS`.

    Example:
        >>> gzip_reason(EOFError())
        'the gzip data end too early; the file is truncated.'
    """
    if isinstance(error, EOFError):
        return "the gzip data end too early; the file is truncated."
    return f"the gzip data are damaged ({error})."


def _numbered(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers, and errors of the stream with the line where they happen."""
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            yield number, line
    except GZIP_ERRORS as error:
        raise FormatError(name, number + 1, gzip_reason(error)) from None
    except UnicodeError as error:
        raise FormatError(name, number + 1, f"not UTF-8 ({error}); convert the file to UTF-8.") from None


def split_blocks(lines: Iterable[bytes], name: str) -> Iterator[RawBlock]:
    """Cuts lines into blocks at blank lines, one block in memory beside the one that is handed out.

    Comments that stand alone go before the block that follows them, or after the last one.

    Example:
        >>> [(block.first, len(block.lines)) for block in split_blocks([b"a\\n", b"b\\n", b"\\n", b"c\\n"], "some.txt")]
        [(1, 2), (4, 1)]
    """
    number, pending, lead, opens = 0, None, b"", True
    current: list[bytes] = []
    for number, line in _numbered(lines, name):
        if line not in _BLANK:
            current.append(line)
            if len(current) > _LONGEST:
                reason = f"no blank line in {_LONGEST:,} lines; an empty line separates two sentences."
                raise FormatError(name, number, reason)
        elif not current:
            if pending is not None and not lead:
                pending.tail += line
            else:
                lead += line
        elif _only_comments(current):
            lead += b"".join(current) + line
            current = []
        else:
            if pending is not None:
                yield pending
            pending = RawBlock(number - len(current), current, lead, line, opens)
            current, lead, opens = [], b"", False
    if current and _only_comments(current):
        lead, current = lead + b"".join(current), []
    if current:
        if pending is not None:
            yield pending
        pending, lead = RawBlock(number - len(current) + 1, current, lead, b"", opens), b""
    if pending is not None:
        pending.tail += lead
        yield pending


def split_lines(lines: Iterable[bytes], name: str) -> Iterator[RawBlock]:
    """Makes one block of every line that is not blank, for formats with a sentence on each line.

    Here a line of white space is blank too: no such format has columns in which it could mean something.

    Example:
        >>> [block.first for block in split_lines([b"a\\n", b" \\n", b"b\\n"], "some.txt")]
        [1, 3]
    """
    pending, lead = None, b""
    for number, line in _numbered(lines, name):
        if (line.removeprefix(_MARK) if number == 1 else line).strip():
            if pending is not None:
                yield pending
            pending, lead = RawBlock(number, [line], lead, b"", pending is None), b""
        elif pending is not None:
            pending.tail += line
        else:
            lead += line
    if pending is not None:
        yield pending


def _only_comments(lines: list[bytes]) -> bool:
    # Comments come first in a block, so the last line decides almost always.
    return lines[-1].startswith(b"#") and all(line.startswith(b"#") for line in lines)


def _text(data: bytes, offset: int) -> str:
    """UTF-8 as text; `offset` is that of its first line."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        offset += data.count(b"\n", 0, error.start)
        byte = data[error.start]
        raise Malformed(offset, f"byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8.") from None


def decode(raw: RawBlock) -> Block:
    """The text of a block; `Malformed` if it is not clean UTF-8 with one kind of line end.

    Example:
        >>> decode(RawBlock(1, [b"1\\tRain\\n", b"2\\tfell\\n"])).lines
        ['1\\tRain', '2\\tfell']
    """
    data = b"".join(raw.lines)
    text = _text(data, 0)
    lead = _text(raw.lead, -raw.lead.count(b"\n"))
    tail = _text(raw.tail, len(raw.lines))
    if raw.opens and not lead and text.startswith("\ufeff"):
        text, lead = text[1:], "\ufeff"
    if "\0" in text:
        raise Malformed(text.count("\n", 0, text.index("\0")), "a NUL character; the file is damaged or not text.")
    lines = text.split("\n")
    end = ""
    if not lines[-1]:
        lines.pop()
        end = "\n"
    if "\r" not in text:
        if not lead and tail == "\n" and end:
            return Block(lines, raw.opens, first=raw.first)
        return Block(lines, raw.opens, Layout(lead, "\n", end + tail), raw.first)
    # The last line of a file may have no end at all.
    ended = len(lines) if end else len(lines) - 1
    returns = ended and lines[0].endswith("\r")
    for offset, line in enumerate(lines):
        if line.find("\r") != (len(line) - 1 if returns and offset < ended else -1):
            raise Malformed(offset, "a carriage return inside the line, or line ends of two kinds in one sentence.")
    lines[:ended] = [line[:-1] for line in lines[:ended]]
    return Block(lines, raw.opens, Layout(lead, "\r\n", ("\r\n" if end else "") + tail), raw.first)


@contextlib.contextmanager
def opened(location: Location) -> Iterator[tuple[Iterable[bytes], str]]:
    """The lines of a file or stream as bytes, gunzipped if they are gzipped, and its name for messages.

    Example:
        >>> import io
        >>> with opened(io.BytesIO(gzip.compress(b"Rain\\nfell\\n"))) as (lines, name):
        ...     list(lines), name
        ([b'Rain\\n', b'fell\\n'], '<stream>')
    """
    if isinstance(location, str | os.PathLike):
        path = os.fspath(location)
        with open(path, "rb") as file:
            if path.endswith(".gz") and not _starts_gzip(file):
                raise FormatError(path, 1, "the name ends in .gz but the data are not gzip.")
            if _starts_gzip(file):
                with gzip.GzipFile(fileobj=file) as unzipped:
                    yield unzipped, path
            else:
                yield file, path
        return
    name = str(getattr(location, "name", "<stream>"))
    if is_text(location):
        yield (line.encode(errors="surrogateescape") for line in cast(TextIO, location)), name
        return
    stream = cast(BinaryIO, location)
    if _starts_gzip(stream):
        with gzip.GzipFile(fileobj=stream) as unzipped:
            yield unzipped, name
    else:
        yield stream, name


def _starts_gzip(stream: BinaryIO) -> bool:
    peek = getattr(stream, "peek", None)
    if peek is not None:
        return peek(2)[:2] == _GZIP
    if not stream.seekable():
        return False
    start = stream.tell()
    magic = stream.read(2)
    stream.seek(start)
    return magic == _GZIP


def is_text(stream: Stream) -> bool:
    """Whether a stream takes and gives `str`.

    Example:
        >>> import io
        >>> is_text(io.StringIO()), is_text(io.BytesIO())
        (True, False)
    """
    mode = getattr(stream, "mode", None)
    if isinstance(mode, str) and "b" in mode:
        return False
    return hasattr(stream, "encoding")


def require(path: str | os.PathLike[str]) -> None:
    """Says at once, not at the first sentence, that a file is not there.

    Example:
        >>> require("no-such-file.sdp")
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] no such data file: 'no-such-file.sdp'
    """
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, "no such data file", os.fspath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "a folder, not a data file", os.fspath(path))


def check_target(path: Path) -> None:
    """Complain now if a file cannot be written later, after the work is done."""
    folder = path.parent
    if not folder.exists():
        raise FileNotFoundError(f"cannot write {path}: the folder {folder} does not exist.")
    if not folder.is_dir():
        raise NotADirectoryError(f"cannot write {path}: {folder} is not a folder.")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; name a file in it, e.g. {path / 'report.html'}.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"cannot write {path}: no permission to write in {folder}.")


@contextlib.contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes its place when the block ends, and leaves nothing if it fails.

    A name that ends in `.gz` is gzipped, without a time stamp, so that equal text gives equal files.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "notes.txt"
        >>> with written(path) as file:
        ...     _ = file.write(b"It rained.")
        ...     path.exists()
        False
        >>> path.read_bytes()
        b'It rained.'
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # A pipe or a terminal cannot be replaced.
        with target.open("wb") as file:
            yield file
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder to write to", str(target.parent))
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("xb") as file:
            if target.name.endswith(".gz"):
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as zipped:
                    yield cast(BinaryIO, zipped)
            else:
                yield file
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
            error.filename = str(path)  # which the system does not say of what is written
        raise
