"""The long search: `python -m tests.spigot_nlp.fuzz --seconds 600`. What breaks the contract is kept as a file."""

import argparse
import hashlib
import sys
import time
import warnings
from pathlib import Path
from random import Random

from tests.spigot_nlp.fuzz.contract import Broken, held
from tests.spigot_nlp.fuzz.mutation import mutated
from tests.spigot_nlp.fuzz.targets import TARGETS

FAILURES = Path(__file__).parent / "failures"


def search(names: list[str], seconds: float, seed: int) -> int:
    """Draw inputs until the time is up.

    Args:
        names: Which targets; all if there are none.
        seconds: How long.
        seed: Of the first round; each further round has the next.

    Returns:
        How many inputs were not answered as promised.
    """
    chosen = [target for target in TARGETS if not names or target.name in names]
    begun, cases, taken, failures = time.monotonic(), 0, 0, 0
    while chosen and time.monotonic() - begun < seconds:
        for target in chosen:
            dice, inputs = Random(f"{target.name} {seed}"), target.seeds()
            for _ in range(max(1, round(100 * target.share))):
                data = mutated(inputs, dice)
                cases += 1
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("error")
                        taken += held(target.run, data)
                except Broken as broken:
                    failures += 1
                    path = FAILURES / f"{target.name}.{hashlib.sha256(data).hexdigest()[:12]}"
                    path.write_bytes(data)
                    print(f"{target.name}, seed {seed}: {str(broken)[:300]}\n    kept as {path}", flush=True)
        seed += 1
    minutes = (time.monotonic() - begun) / 60
    print(f"{cases:,} inputs in {minutes:.1f} minutes, {taken:,} taken, the rest refused; {failures} failures.")
    print(f"Go on with --seed {seed}.")
    return failures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.spigot_nlp.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(map(str, TARGETS))}; all by default")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.exit(bool(search(given.names, given.seconds, given.seed)))
