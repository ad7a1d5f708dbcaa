"""glove: word vectors, cut down to the words that the corpora at hand have, lower-cased as a vocabulary has them.

    python -m research.corpora.glove glove.6B.zip --words-of DATA --out DATA

The vectors come from https://nlp.stanford.edu/projects/glove: the zip file, or text, plain or gzipped. Words are taken
from all files of sentences below the folders that are given; so this script comes last.
"""

import gzip
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from research.corpora.build import Target, arguments, require, run
from spigot_nlp.data import FormatError, read
from spigot_nlp.data.formats import guess
from spigot_nlp.data.formats.files import written

_ABOUT = re.compile(r"licen[cs]e|readme|copying", re.IGNORECASE)
_TREE = re.compile(rb"\s*\([0-4] ")


def build(
    file: Path, words_of: Sequence[Path], out: Path, *, dimensions: int = 100, replace: bool = False
) -> Counter[str]:
    """Cut the vectors; how many words have one, in the vocabulary and in running text."""
    require(file, "download glove.6B.zip from https://nlp.stanford.edu/projects/glove")
    words: Counter[str] = Counter()
    for place in words_of:
        require(place, "build the other corpora first")
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if not path.samefile(file) and (style := _format(path)):
                words.update(form.lower() for sentence in read(path, style) for form in sentence.forms)
    if not words:
        raise ValueError(f"{', '.join(map(str, words_of))}: no files of sentences here; build the other corpora first.")
    counts = Counter({"words in the corpora": len(words), "running words": words.total()})
    with _opened(file, dimensions) as (lines, name), Target(out, "glove", replace=replace) as target:
        name = f"{name.removesuffix('.gz').removesuffix('.txt').removesuffix('.subset')}.subset.txt.gz"
        with written(target.beside / name) as cut:
            for word, line in _vectors(lines, str(file)):
                if word in words:
                    counts["of these with a vector"] += 1
                    counts["running words with a vector"] += words.pop(word)
                    cut.write(line)
        target.counts[name] = f"{counts['of these with a vector']:,} words"
        if not counts["of these with a vector"]:
            raise ValueError(f"{file} has a vector for none of the words of the corpora; is it GloVe?")
    return counts


def _format(path: Path) -> str:
    """The format of a file of sentences; nothing for any other file."""
    if not path.is_file() or path.name.startswith(".") or _ABOUT.search(path.name) or path.parent.name == "glove":
        return ""
    try:
        style = guess(path)
    except ValueError:
        return ""
    with path.open("rb") as file:
        return "sst" if style == "text" and _TREE.match(file.readline()) else style


@contextmanager
def _opened(file: Path, dimensions: int) -> Iterator[tuple[IO[bytes], str]]:
    """The lines of a file of vectors, and what it is called."""
    if not zipfile.is_zipfile(file):
        with (gzip.open if file.suffix == ".gz" else open)(file, "rb") as lines:
            yield lines, file.name  # pyright: ignore[reportReturnType]
        return
    with zipfile.ZipFile(file) as archive:
        fitting = [name for name in archive.namelist() if f".{dimensions}d." in name]
        if len(fitting) != 1:
            raise ValueError(f"{file} has not one file of {dimensions} dimensions; give --dimensions, or one file.")
        with archive.open(fitting[0]) as lines:
            yield io.BufferedReader(lines), Path(fitting[0]).name  # pyright: ignore[reportArgumentType]


def _vectors(lines: IO[bytes], name: str) -> Iterator[tuple[str, bytes]]:
    """The words of a file of vectors, each with its line."""
    width = 0
    for number, line in enumerate(lines, 1):
        word, *numbers = line.rstrip().split(b" ")
        if number == 1 and len(numbers) == 1:  # as other programs write it: how many words and numbers
            continue
        width = width or len(numbers)
        if len(numbers) > width:  # a word with a space in it, of which corpora have none
            continue
        if len(numbers) < width:
            raise FormatError(name, number, f"{len(numbers)} numbers where the first line has {width}.")
        yield word.decode(errors="replace"), line.rstrip() + b"\n"


def main() -> None:
    """Run the script."""
    options = arguments("glove", __doc__ or "")
    options.add_argument("file", type=Path, help="vectors as text, plain, gzipped or zipped")
    options.add_argument("--words-of", type=Path, nargs="+", required=True, help="folders and files of corpora")
    options.add_argument("--dimensions", type=int, default=100, help="which file of a zip file; 100 unless given")
    for what, number in build(**vars(options.parse_args())).items():
        print(f"{what}: {number:,}")


if __name__ == "__main__":
    run(main)
