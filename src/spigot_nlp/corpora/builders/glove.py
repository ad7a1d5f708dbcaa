"""Word vectors, cut down to the words that the corpora at hand have."""

import contextlib
import gzip
import io
import math
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from spigot_nlp.corpora.builders.sources import Material, Watch, unwatched
from spigot_nlp.corpora.builders.target import MANIFEST, Built, Target
from spigot_nlp.data.formats import guess, read
from spigot_nlp.data.formats.files import GZIP_ERRORS, FormatError, gzip_reason, opened

VECTORS = Material(
    "GloVe vectors",
    "https://nlp.stanford.edu/projects/glove",
    "PDDL 1.0",
    "download glove.6B.zip from https://nlp.stanford.edu/projects/glove",
)
_ABOUT = re.compile(r"licen[cs]e|readme|copying|manifest", re.IGNORECASE)
_HEADER = re.compile(rb"\d+ \d+\s*")
_TREE = re.compile(rb"\s*\([0-4] ")
_TABLES = ("conllu", "conllx", "sdp", "sdp2014")  # a word on each line, in the second column
_FEWEST = 10  # numbers on a line that make it a vector and no sentence


def glove(
    file: str | Path,
    words_of: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    dimensions: int = 100,
    replace: bool = False,
    watch: Watch = unwatched,
) -> Built:
    """Build `glove`: the vectors of the words that occur in corpora, lower-cased as a vocabulary has them.

    Args:
        file: GloVe text, plain, gzipped, or one of several in a zip file.
        words_of: A folder of corpora, or a file of one, or several of them. In a folder files are taken by their names:
            `.conllu`, `.conllx`, `.sdp`, `.tsv`, `.jsonl`, and `.txt` with sentences or trees of sentiment.
        out: The folder that holds the corpora.
        dimensions: Which file of a zip file to take.
        replace: Whether another file in the place of this may go.
        watch: Shows how far it is.

    Raises:
        FileNotFoundError: If a file or folder is missing.
        ValueError: If there is nothing to read, or no word has a vector.
        FormatError: If a line is not a word and its numbers.
        FileExistsError: If another file is in the place, and may not go.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "rain.txt").write_text("Rain fell .")
        >>> _ = (folder / "glove.2d.vec").write_text("rain 0.5 1\\nsnow -1 2\\n")
        >>> built = glove(folder / "glove.2d.vec", folder, folder / "data")
        >>> built.counts
        {'words in the corpora': 3, 'of these with a vector': 1, 'running words': 3, 'running words with a vector': 1}
        >>> gzip.decompress((built.folder / "glove.2d.vec.subset.txt.gz").read_bytes())
        b'rain 0.5 1\\n'
    """
    file = Path(file)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}; it should hold {VECTORS.name}: {VECTORS.how}")
    places = [words_of] if isinstance(words_of, str | os.PathLike) else list(words_of)
    files = list(_files(map(Path, places), without=(file, Path(out) / "glove")))
    if not files:
        raise ValueError(f"{', '.join(map(str, places))}: no files of sentences here; build the other corpora first.")
    words: Counter[str] = Counter()
    for path in watch(files, "collecting words", total=len(files)):
        words.update(form.lower() for form in _forms(path))
    running, found = words.total(), 0
    kept: set[str] = set()
    with contextlib.ExitStack() as stack:
        lines, name = stack.enter_context(_opened(file, dimensions))
        stem = f"{name.removesuffix('.gz').removesuffix('.txt').removesuffix('.subset')}.subset"
        cut, manifest = f"{stem}.txt.gz", f"{stem}.{MANIFEST}"
        target = stack.enter_context(Target(out, "glove", replace=replace, manifest=manifest))
        with target.file(cut) as stream:
            for word, line in watch(_vectors(lines, str(file), words), f"cutting {name}"):
                if word not in kept:
                    kept.add(word)
                    found += words[word]
                    stream.write(line)
        if not kept:
            raise ValueError(f"{file} has a vector for none of the {len(words):,} words of the corpora; is it GloVe?")
        target.note(cut, len(kept), 0)
        counts = {
            "words in the corpora": len(words),
            "of these with a vector": len(kept),
            "running words": running,
            "running words with a vector": found,
        }
        return target.finish([VECTORS.origin(file.parent, file.name)], VECTORS.licence, counts=counts)


def _files(places: Iterable[Path], without: Iterable[Path]) -> Iterator[Path]:
    """The files of sentences in some folders, in an order of their own, and those that are named themselves."""
    hidden = {path.resolve() for path in without}
    for place in places:
        if not place.exists():
            raise FileNotFoundError(
                f"there is no {place} to take words of; give a folder of corpora, or a file of one."
            )
        if place.is_file():
            yield place
            continue
        for path in sorted(place.rglob("*")):
            whole = path.resolve()
            if path.is_file() and not hidden & {whole, *whole.parents} and _holds_sentences(path):
                yield path


def _holds_sentences(path: Path) -> bool:
    if any(part.startswith(".") for part in path.parts[-2:]) or _ABOUT.search(path.name):
        return False
    style = _format(path)
    return bool(style) and not (style == "text" and _is_vector(_first_line(path)))


def _format(path: Path) -> str:
    """The format of a file, nothing if its name tells none. Trees of sentiment look like plain text by it."""
    try:
        style = guess(path)
    except ValueError:
        return ""
    return "sst" if style == "text" and _TREE.match(_first_line(path)) else style


def _forms(path: Path) -> Iterator[str]:
    """The words of a file, as they come."""
    style = _format(path) or "text"
    if style in _TABLES:  # the words alone are found much faster than whole sentences
        with opened(path) as (lines, name):
            for place, line in enumerate(lines, 1):
                number, _, rest = line.partition(b"\t")
                if number.isdigit():
                    yield _text(rest.partition(b"\t")[0], name, place)
    else:
        for sentence in read(path, style):
            yield from sentence.forms


def _text(word: bytes, name: str, line: int) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError as error:
        said = f"byte 0x{word[error.start]:02x} is not UTF-8; convert the file to UTF-8."
        raise FormatError(name, line, said) from None


def _first_line(path: Path) -> bytes:
    with opened(path) as (lines, _):
        return next(iter(lines), b"")


def _is_vector(line: bytes) -> bool:
    numbers = line.split(b" ")[1:]
    return len(numbers) >= _FEWEST and all(map(_number, numbers))


def _number(cell: bytes) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _width(line: bytes) -> int:
    """How many numbers end a line; a word may have spaces in it."""
    cells = line.split()[1:]
    return next((k for k, cell in enumerate(reversed(cells)) if not _number(cell)), len(cells))


@contextlib.contextmanager
def _opened(file: Path, dimensions: int) -> Iterator[tuple[Iterable[bytes], str]]:
    """The lines of a file of vectors, and what it is called."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if name.endswith(".txt")]
            fitting = [name for name in names if f".{dimensions}d." in name] or (names if len(names) == 1 else [])
            if len(fitting) != 1:
                raise ValueError(
                    f"{file} has {', '.join(names) or 'no .txt files'}, and not one of {dimensions} dimensions among "
                    f"them; give --dimensions, or unzip it and give one file."
                )
            with archive.open(fitting[0]) as member:
                yield io.BufferedReader(cast(io.RawIOBase, member)), Path(fitting[0]).name
        return
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rb") as stream:
        yield cast(BinaryIO, stream), file.name


def _vectors(lines: Iterable[bytes], name: str, words: Counter[str]) -> Iterator[tuple[str, bytes]]:
    """The words of a file of vectors that are wanted, each with its line."""
    width = number = 0
    wanted = {word.encode() for word in words}
    try:
        for number, line in enumerate(lines, 1):
            if number == 1 and _HEADER.fullmatch(line):  # as other programs write it: how many words and numbers
                continue
            width = width or _width(line)
            word, _, rest = line.partition(b" ")
            if word not in wanted:
                continue
            numbers = rest.split()
            if len(numbers) != width:
                if len(numbers) > width > 0 and not all(map(_number, numbers[:-width])):
                    continue  # a word with a space in it, of which corpora have none
                raise FormatError(name, number, f"{len(numbers)} numbers where the first line has {width}.")
            if not all(map(_number, numbers)):
                raise FormatError(
                    name, number, f"{line[:60].decode(errors='replace')!r} is not a word and finite numbers."
                )
            yield word.decode(), line if line.endswith(b"\n") else line + b"\n"
    except (*GZIP_ERRORS, zipfile.BadZipFile) as error:
        raise FormatError(name, number + 1, gzip_reason(error)) from None
