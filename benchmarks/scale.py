"""Whole corpora against plain `spigot parse`, on the same cores: `python -m benchmarks.scale RUN [--ray]`.

Commands take turns, and of each the best of several turns counts. What a command costs before its first word is taken
out by parsing two corpora, one three times as long as the other, and taking the difference; what a shard costs, by
parsing the longer one once more, in pieces of a sixteenth. It looks at /proc, so it runs on Linux alone.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_TICK = os.sysconf("SC_CLK_TCK")
_FINER = 16
PARTS = (
    ("The judge", "A poet", "Nobody", "The old sailor", "She", "Mr. Poe"),
    ("saw", "hoped to remember", "did not see", "praised", "lost", "could have found"),
    ("the stones", "it", "a small house", "the letter in the drawer", "nothing at all", "them by the river"),
)


def story(sentences: int) -> str:
    """Paragraphs of sentences of our own."""
    draw = random.Random(0)
    made = []
    for k in range(sentences):
        one = " and ".join(f"{draw.choice(PARTS[1])} {draw.choice(PARTS[2])}" for _ in range(draw.randint(1, 4)))
        made.append(f"{draw.choice(PARTS[0])} {one}.{'  '[: 1 + k % 2] if k % 6 else chr(10) * 2}")
    return "".join(made)


class Cost(NamedTuple):
    """What a command took: seconds, seconds of processors, and the MB of its largest process."""

    seconds: float = 1e9
    processor: float = 1e9
    megabytes: float = 1e9

    def best(self, other: "Cost") -> "Cost":
        return Cost(*map(min, self, other))


def measure(words: Iterable[str]) -> Cost:
    """Run a command of spigot, and watch it and all that it starts.

    Workers of Ray are nobody's children in the end, so that no parent is told what they took: hence looks at /proc,
    some a second. What a process does between the last look and its end is not seen.
    """
    started = time.monotonic()
    command = [sys.executable, "-m", "spigot_nlp", *words]
    ours: dict[int, tuple[float, float]] = {}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        ours[process.pid] = (0.0, 0.0)
        while process.poll() is None:
            _look(ours)
            time.sleep(0.3)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}")
    seconds = time.monotonic() - started
    return Cost(seconds, sum(spent for spent, _ in ours.values()), max(peak for _, peak in ours.values()))


def _look(ours: dict[int, tuple[float, float]]) -> None:
    """Bring up to date what our processes have taken, and add those that they have started."""
    seen = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            seen[int(path.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICK
    while new := {pid for pid, (parent, _) in seen.items() if parent in ours and pid not in ours}:
        ours |= dict.fromkeys(new, (0.0, 0.0))
    for pid in ours.keys() & seen.keys():
        with contextlib.suppress(OSError, IndexError):
            peak = (Path("/proc") / str(pid) / "status").read_text().partition("VmHWM:")[2].split()[0]
            ours[pid] = seen[pid][1], float(peak) / 1024


def main() -> None:
    """Measure, and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("run")
    arguments.add_argument("--sentences", type=int, default=4000, help="of the shorter corpus")
    arguments.add_argument("--turns", type=int, default=3)
    arguments.add_argument("--to", default="jsonl", help="jsonl or parquet; plain parsing always writes JSON lines")
    arguments.add_argument("--ray", action="store_true")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = [folder / "short.txt", folder / "long.txt"]
        for text, times in zip(texts, (1, 3), strict=True):
            text.write_text("\n\n".join([story(given.sentences)] * times), encoding="utf-8")
        piece = texts[0].stat().st_size / 2 / 1e6  # so that the shorter one has work for two
        kinds = {"plain": [], "processes": ["--shard-megabytes"]}
        kinds |= {"ray": ["--ray", "auto", "--shard-megabytes"]} if given.ray else {}
        best = {kind: [Cost()] * 3 for kind in kinds}
        shards = {kind: [0] * 3 for kind in kinds}
        for turn in range(given.turns):
            for kind, options in kinds.items():
                for k, text in enumerate((*texts, texts[1])[: 3 if options else 2]):
                    out = folder / f"{kind}-{turn}-{k}"
                    more = [*options, str(piece / _FINER if k == 2 else piece)] if options else []
                    target, to = (out, given.to) if options else (out.with_suffix(".jsonl"), "jsonl")
                    if options:
                        out.mkdir()
                    found = measure(["parse", given.run, str(text), "-o", str(target), "--to", to, *more])
                    best[kind][k] = best[kind][k].best(found)
                    shards[kind][k] = len(list(out.glob("*.txt*")))
                    print(f"turn {turn + 1}, {kind}, {k}: {found.seconds:.1f} s", file=sys.stderr)
        lines = (folder / "plain-0-0.jsonl").read_text(encoding="utf-8").splitlines()
        tokens = sum(len(json.loads(line)["forms"]) for line in lines)
        print(f"{tokens:,} words, and three times as many; {os.cpu_count()} cores")
        for kind, (short, long, fine) in best.items():
            rate = 2 * tokens / (long.seconds - short.seconds)
            spent = (long.processor - short.processor) / (2 * tokens) * 1e6
            print(f"{kind:10} {rate:8,.0f} words/s, {spent:6.1f} us of processor a word, ", end="")
            print(f"{short.megabytes:,.0f} and {long.megabytes:,.0f} MB", end="")
            if made := shards[kind][2] - shards[kind][1]:
                print(f", {1000 * (fine.processor - long.processor) / made:.0f} ms of processor a shard", end="")
            print()


if __name__ == "__main__":
    main()
