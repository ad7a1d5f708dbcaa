"""What `spigot parse --on processes` holds of a corpus: `python -m benchmarks.scale_memory RUN`.

Corpora of growing size, and one long document. Many times a second the resident memory of the command and of each of
its workers is looked up in /proc, so it runs on Linux alone. Every sentence has a name of its own, so that what were
kept of each new word would be seen to grow.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.scale import story

_DOCUMENT = 20  # sentences


class Held(NamedTuple):
    """The largest that was seen, in MB.

    Attributes:
        command: The process that hands out work.
        worker: The largest of its workers.
        halfway: The largest of its workers in the first half of the time that these had.
        together: All its processes, with what they share counted once.
    """

    command: float
    worker: float
    halfway: float
    together: float


def sentences(words: int) -> list[str]:
    """At least so many words of sentences of our own, each with a name that no other has."""
    draw, found, count = random.Random(1), [], 0
    for sentence in itertools.chain.from_iterable(itertools.repeat(story(500).replace("\n", " ").split(". "))):
        name = "".join(draw.choice("bdfgklmnprst") + draw.choice("aeiou") for _ in range(5)).title()
        found.append(f"{name} said that {sentence.strip().removesuffix('.')}.")
        count += len(found[-1].split()) + 1
        if count >= words:
            return found
    raise AssertionError


def held(words: list[str]) -> Held:
    """Run a command of spigot, and watch it and all that it starts."""
    command, workers, together = 0.0, list[float](), 0.0
    with subprocess.Popen([sys.executable, "-m", "spigot_nlp", *words], stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            ours = _tree(process.pid)
            resident = {pid: _megabytes(pid, "status", "VmRSS:") for pid in ours}
            command = max(command, resident[process.pid])
            if others := [resident[pid] for pid in ours if pid != process.pid]:
                workers.append(max(others))
            together = max(together, sum(_megabytes(pid, "smaps_rollup", "Pss:") for pid in ours))
            time.sleep(0.2)
        if process.returncode:
            raise SystemExit(f"spigot {' '.join(words)} ended with code {process.returncode}")
    return Held(command, max(workers), max(workers[: len(workers) // 2]), together)


def _tree(root: int) -> list[int]:
    """A process, and all that it or those have started."""
    found = [root]
    for pid in found:
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return found


def _megabytes(pid: int, file: str, name: str) -> float:
    with contextlib.suppress(OSError, IndexError):
        return float(Path(f"/proc/{pid}/{file}").read_text().partition(name)[2].split()[0]) / 1024
    return 0.0  # it has ended


def main() -> None:
    """Measure, and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("run")
    arguments.add_argument("--words", type=int, nargs="*", default=[20_000, 80_000, 320_000])
    arguments.add_argument("--document", type=int, default=100_000, help="words of one document; 0 for none")
    arguments.add_argument("--workers", type=int, default=os.cpu_count())
    arguments.add_argument("--piece", type=float, default=0.1)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        cases = [(count, False) for count in given.words] + [(given.document, True)] * bool(given.document)
        for count, whole in cases:
            corpus = Path(name) / f"{count}-{whole}{'.txt' if whole else '.jsonl'}"
            texts = sentences(count)
            if whole:
                corpus.write_text(" ".join(texts), encoding="utf-8")
            else:
                documents = (" ".join(texts[k : k + _DOCUMENT]) for k in range(0, len(texts), _DOCUMENT))
                corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents), encoding="utf-8")
            words = ["parse", given.run, str(corpus), "-o", str(corpus.with_suffix("")), "--on", "processes"]
            found = held([*words, "--workers", str(given.workers), "--piece", str(given.piece)])
            print(f"{count:9,} words{' in one document' if whole else '':18}", end="")
            print(f"command {found.command:4.0f} MB, worker {found.worker:4.0f} ", end="")
            print(f"(first half {found.halfway:4.0f}), together {found.together:5.0f}", flush=True)


if __name__ == "__main__":
    main()
