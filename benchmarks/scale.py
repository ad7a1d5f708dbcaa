"""Whole corpora against plain `spigot parse`, on the same cores: `python -m benchmarks.scale RUN [--ray]`.

Commands take turns, and of each the best of several turns counts. What a command costs before its first word is taken
out by parsing two corpora, one three times as long as the other, and taking the difference.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def measure(words: list[str]) -> tuple[float, float, float]:
    """Seconds, seconds of processors, and the largest process in MB."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    # A process of its own, so that the peak is that of this command alone.
    script = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    command = [sys.executable, "-c", script, sys.executable, "-m", "spigot", *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, spent, float(done.stdout.split()[-1])


def main() -> None:
    """Measure, and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("run")
    arguments.add_argument("--sentences", type=int, default=4000, help="of the shorter corpus")
    arguments.add_argument("--turns", type=int, default=3)
    arguments.add_argument("--ray", action="store_true")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = [folder / "short.txt", folder / "long.txt"]
        for text, times in zip(texts, (1, 3), strict=True):
            text.write_text("\n\n".join([story(given.sentences)] * times), encoding="utf-8")
        size = texts[0].stat().st_size
        kinds = {"plain": [], "processes": ["--on", "processes"], **({"ray": ["--on", "ray"]} if given.ray else {})}
        best: dict[str, list[tuple[float, float, float]]] = {kind: [(1e9, 1e9, 1e9)] * 2 for kind in kinds}
        for turn in range(given.turns):
            for kind, options in kinds.items():
                for k, text in enumerate(texts):
                    out = folder / f"{kind}-{turn}-{k}"
                    more = [*options, "--piece", str(size / 4e6)] if options else []
                    target = out if options else out.with_suffix(".jsonl")
                    found = measure(["parse", given.run, str(text), "-o", str(target), "--to", "jsonl", *more])
                    best[kind][k] = tuple(map(min, best[kind][k], found))  # pyright: ignore[reportArgumentType]
        lines = (folder / "plain-0-0.jsonl").read_text(encoding="utf-8").splitlines()
        tokens = sum(len(json.loads(line)["forms"]) for line in lines)
        print(f"{tokens:,} words, and three times as many; {os.cpu_count()} cores")
        for kind, (short, long) in best.items():
            rate, spent = 2 * tokens / (long[0] - short[0]), (long[1] - short[1]) / (2 * tokens) * 1e6
            print(f"{kind:10} {rate:8,.0f} words/s, {spent:6.1f} us of processor a word, ", end="")
            print(f"{short[2]:,.0f} and {long[2]:,.0f} MB")


if __name__ == "__main__":
    main()
