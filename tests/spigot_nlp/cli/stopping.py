"""`spigot train` in a process that stops where it is told to, so that no test depends on who is quicker.

    python stopping.py HOW AFTER MARKER WORDS...

HOW is `kill`: the process kills itself when it is to save its state for the AFTERth time; the step was taken, and what
it changed is lost. Or HOW is `hold`: it saves so often, makes the file MARKER, and waits there for a signal. It does so
once: with the marker in place, it trains to the end.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spigot_nlp import cli
from spigot_nlp.training import run
from spigot_nlp.training.loop import Trainer


def main(how: str, after: int, marker: Path, words: list[str]) -> int:
    save, listen = run.save_state, run._stop_signals
    calls, received = 0, []

    @contextmanager
    def known() -> Iterator[list[int]]:
        nonlocal received
        with listen() as received:
            yield received

    def counted(trainer: Trainer, folder: Path) -> None:
        nonlocal calls
        calls += 1
        if how == "kill" and calls == after:
            os.kill(os.getpid(), signal.SIGKILL)
        save(trainer, folder)
        if how == "hold" and calls == after and not marker.exists():
            marker.touch()
            while not received:
                time.sleep(0.005)

    run.save_state, run._stop_signals = counted, known
    return cli.main(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]))
