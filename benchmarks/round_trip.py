"""Reads every corpus below a folder, writes it again, and compares byte for byte.

python -m benchmarks.round_trip FOLDER
"""

import gzip
import io
import re
import sys
import time
from pathlib import Path

from spigot_nlp.data.formats import guess, read, write

_NAMES = ("*.conllu", "*.conllx", "*.conll", "*.sdp", "*.jsonl", "*.txt")


def format_of(path: Path) -> str:
    """The format of a file; empty for a `.txt` that does not begin like a sentiment tree: a licence, or vectors."""
    if path.name.removesuffix(".gz").endswith(".txt"):
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rb") as file:
            return "sst" if re.match(rb"\([0-4] \(", file.read(4)) else ""
    return guess(path)


def check(path: Path) -> tuple[int, float, float, bool]:
    """How many sentences a file has, the seconds to read and to write them, and whether they come back unchanged."""
    format = format_of(path)
    start = time.perf_counter()
    sentences = list(read(path, format if format == "sst" else None))  # the contents tell the year of SDP
    middle = time.perf_counter()
    out = io.BytesIO()
    count = write(sentences, out, format)
    end = time.perf_counter()
    expected = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return count, middle - start, end - middle, out.getvalue() == expected


def main(folder: str) -> int:
    """Prints one line for each file; the exit status says whether all of them came back unchanged."""
    found = (path for name in _NAMES for path in (*Path(folder).rglob(name), *Path(folder).rglob(f"{name}.gz")))
    paths = sorted(path for path in found if format_of(path))
    if not paths:
        print(f"no {', '.join(_NAMES)} below {folder}", file=sys.stderr)
        return 1
    width = max(len(str(path.relative_to(folder))) for path in paths)
    print(f"{'file':<{width}} {'sentences':>10} {'read s':>8} {'read/s':>8} {'write/s':>8}")
    exact = True
    for path in paths:
        count, reading, writing, same = check(path)
        exact &= same
        verdict = "" if same else "  DIFFERS"
        name = path.relative_to(folder)
        print(
            f"{name!s:<{width}} {count:>10,} {reading:>8.2f} {count / reading:>8,.0f} {count / writing:>8,.0f}{verdict}"
        )
    print(f"{len(paths)} files, {'every one byte for byte' if exact else 'NOT all unchanged'}")
    return 0 if exact else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
