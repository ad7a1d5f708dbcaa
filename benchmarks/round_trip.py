"""Reads every corpus below a folder, writes it again, and compares byte for byte.

python -m benchmarks.round_trip FOLDER
"""

import gzip
import io
import sys
import time
from pathlib import Path

from spigot.data.formats import guess, read, write

_NAMES = ("*.conllu", "*.conllx", "*.conll", "*.sdp")


def check(path: Path) -> tuple[int, float, float, bool]:
    """How many sentences a file has, the seconds to read and to write them, and whether they come back unchanged."""
    start = time.perf_counter()
    sentences = list(read(path))
    middle = time.perf_counter()
    out = io.BytesIO()
    count = write(sentences, out, guess(path))
    end = time.perf_counter()
    expected = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return count, middle - start, end - middle, out.getvalue() == expected


def main(folder: str) -> int:
    """Prints one line for each file; the exit status says whether all of them came back unchanged."""
    paths = sorted(path for name in _NAMES for path in (*Path(folder).rglob(name), *Path(folder).rglob(f"{name}.gz")))
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
