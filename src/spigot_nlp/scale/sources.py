"""What a corpus is read from: files, folders and URLs; text, JSON lines, CoNLL-U and parquet, compressed or not."""

import bz2
import contextlib
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, cast

Kind: TypeAlias = Literal["text", "jsonl", "conllu", "parquet"]
"""What a file holds."""

_KINDS: dict[str, Kind] = {
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".conllu": "conllu",
    ".parquet": "parquet",
}
_PACKINGS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PIECE = 1 << 20
_NEEDED = "{0} needs pyarrow; install it with: pip install 'torch-spigot[ray]'"


class Damaged(Exception):
    """A compressed file that cannot be unpacked to its end; it says why."""


@dataclass(frozen=True)
class Source:
    """A file of a corpus.

    Attributes:
        name: Its path or URL, as it was given or found in a folder.
        kind: What it holds.
        packing: How it is compressed; empty if it is not.
        size: Its bytes, as they are stored.
        modified: When it was last written, in nanoseconds; 0 if nobody knows.

    Example:
        >>> Source("news.txt.gz", "text", "gzip", 1000, 0).weight
        4000
    """

    name: str
    kind: Kind
    packing: str
    size: int
    modified: int

    @property
    def weight(self) -> int:
        """About how many bytes it has when it is unpacked: text is some four times as long."""
        return self.size * 4 if self.packing else self.size


def find_sources(names: Sequence[str], kind: Kind | None = None) -> list[Source]:
    """The files behind some names; a folder is all that is in it, in the order of names, but for hidden files.

    Args:
        names: Files, folders, and URLs of either.
        kind: What they hold; by default what their names say.

    Raises:
        ValueError: If a name does not tell what a file holds, or there is no file at all.
        FileNotFoundError: If there is no such file or folder.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("b.txt", "a.jsonl.gz", ".hidden"):
        ...     _ = (folder / name).write_text("It rained.")
        >>> [(Path(source.name).name, source.kind, source.packing) for source in find_sources([str(folder)])]
        [('a.jsonl.gz', 'jsonl', 'gzip'), ('b.txt', 'text', '')]
    """
    sources = [source for name in names for source in (_remote if is_url(name) else _local)(name, kind)]
    if not sources:
        raise ValueError(f"there is no file in {', '.join(names)}; give files, or folders with some.")
    twice = {source.name for source in sources}
    if len(twice) < len(sources):
        seen: set[str] = set()
        name = next(source.name for source in sources if source.name in seen or seen.add(source.name))
        raise ValueError(f"{name} is given twice; give it once.")
    return sources


def is_url(name: str) -> bool:
    """Whether a name is a URL, and not a path.

    Example:
        >>> is_url("s3://bucket/news.jsonl"), is_url("news.jsonl")
        (True, False)
    """
    return _URL.match(name) is not None


@contextlib.contextmanager
def opened(name: str, packing: str = "", *, start: int = 0, folder: str = "") -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked, from some place on.

    Args:
        name: Its path or URL.
        packing: How it is compressed.
        start: How many bytes of what is unpacked to leave out.
        folder: What a path is relative to.

    Raises:
        Damaged: While it is read, if it cannot be unpacked.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "news.gz"
        >>> _ = file.write_bytes(gzip.compress(b"It rained."))
        >>> with opened(str(file), "gzip", start=3) as stream:
        ...     stream.read()
        b'rained.'
    """
    with contextlib.ExitStack() as stack:
        if is_url(name):
            system, path = _file_system(name)
            file = stack.enter_context(system.open_input_stream(path, compression=None))
        else:
            file = stack.enter_context(open(os.path.join(folder, name), "rb"))
        stream = _unpacked(file, packing)
        if start and not packing and not is_url(name):
            file.seek(start)
        else:
            _skip(stream, start)
        with _sentences_about_damage(packing):
            yield cast(IO[bytes], stream)


@contextlib.contextmanager
def opened_parquet(name: str, folder: str = "") -> Iterator[Any]:
    """A parquet file, as pyarrow has it.

    Args:
        name: Its path or URL.
        folder: What a path is relative to.

    Raises:
        Damaged: If it is none.
    """
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        raise ModuleNotFoundError(_NEEDED.format("parquet")) from None
    with contextlib.ExitStack() as stack:
        if is_url(name):
            system, path = _file_system(name)
            file: Any = stack.enter_context(system.open_input_file(path))
        else:
            file = stack.enter_context(open(os.path.join(folder, name), "rb"))
        try:
            yield stack.enter_context(pyarrow.parquet.ParquetFile(file))
        except pyarrow.ArrowInvalid as error:
            raise Damaged(f"the parquet data are damaged ({error}).") from None


def _local(name: str, kind: Kind | None) -> list[Source]:
    path = Path(name)
    if path.is_dir():
        paths = sorted(_inside(path))
    elif path.exists():
        paths = [path]
    else:
        raise FileNotFoundError(f"there is no file or folder {name}.")
    return [
        Source(str(found), *_told(str(found), kind), status.st_size, status.st_mtime_ns)
        for found in paths
        for status in (found.stat(),)
    ]


def _inside(folder: Path) -> Iterator[Path]:
    """The files in a folder and in those below; one that cannot be looked into is an error, or some would be missed."""

    def fail(error: OSError) -> None:
        raise error

    for place, folders, files in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        paths = (Path(place, name) for name in files if not name.startswith((".", "_")))
        yield from (path for path in paths if path.is_file())


def _remote(name: str, kind: Kind | None) -> list[Source]:
    import pyarrow.fs  # pyright: ignore[reportMissingImports]

    system, path = _file_system(name)
    (found,) = system.get_file_info([path])
    if found.type == pyarrow.fs.FileType.NotFound:
        raise FileNotFoundError(f"there is no file or folder {name}.")
    if found.type == pyarrow.fs.FileType.Directory:
        inside = system.get_file_info(pyarrow.fs.FileSelector(path, recursive=True))
        infos = sorted((info for info in inside if info.is_file), key=lambda info: info.path)
        infos = [
            info for info in infos if not any(part.startswith((".", "_")) for part in info.path[len(path) :].split("/"))
        ]
    else:
        infos = [found]
    front = name[: len(name) - len(path)] if name.endswith(path) else name[: _end_of_scheme(name)]
    return [Source(front + info.path, *_told(info.path, kind), info.size or 0, info.mtime_ns or 0) for info in infos]


def _end_of_scheme(name: str) -> int:
    match = _URL.match(name)
    return match.end() if match else 0


def _file_system(name: str) -> tuple[Any, str]:
    """The file system that Ray would read a URL from, and the path in it."""
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        import pyarrow.fs  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        raise ModuleNotFoundError(_NEEDED.format(name)) from None
    try:
        return pyarrow.fs.FileSystem.from_uri(name)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        pass
    import fsspec  # torch brings it

    try:
        system, path = fsspec.core.url_to_fs(name)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{name} cannot be read: {str(error).rstrip('.')}.") from None
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(system)), path


def _told(name: str, kind: Kind | None) -> tuple[Kind, str]:
    """What a file holds and how it is compressed, by its name."""
    stem, suffix = os.path.splitext(name.lower())
    packing = _PACKINGS.get(suffix, "")
    if packing:
        suffix = os.path.splitext(stem)[1]
    kind = kind or _KINDS.get(suffix)
    if kind is None:
        raise ValueError(
            f"{name}: the name does not tell what it holds; it may end in {', '.join(_KINDS)}, "
            f"and then in {', '.join(_PACKINGS)}. Or say it for all files: --from text."
        )
    if kind == "parquet" and packing:
        raise ValueError(f"{name}: parquet is compressed inside; unpack the file.")
    return kind, packing


def _unpacked(file: Any, packing: str) -> Any:
    match packing:
        case "gzip":
            return gzip.GzipFile(fileobj=file)
        case "bz2":
            return bz2.BZ2File(file)
        case "xz":
            return lzma.LZMAFile(file)
        case "zstd":
            try:
                import pyarrow  # pyright: ignore[reportMissingImports]
            except ModuleNotFoundError:
                raise ModuleNotFoundError(_NEEDED.format("zstd")) from None
            return pyarrow.CompressedInputStream(file, "zstd")
        case _:
            return file


def _skip(stream: Any, count: int) -> None:
    while count > 0:
        piece = stream.read(min(count, _PIECE))
        if not piece:
            return
        count -= len(piece)


@contextlib.contextmanager
def _sentences_about_damage(packing: str) -> Iterator[None]:
    try:
        yield
    except EOFError:
        raise Damaged(f"the {packing} data end too early; the file is truncated.") from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise Damaged(f"the {packing} data are damaged ({error}).") from None
    except OSError as error:
        # bz2 and pyarrow have no error of their own; those of the system have a number.
        if packing not in ("bz2", "zstd") or error.errno is not None:
            raise
        raise Damaged(f"the {packing} data are damaged ({error}).") from None
