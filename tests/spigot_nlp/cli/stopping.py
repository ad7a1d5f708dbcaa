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
from pathlib import Path
from types import FrameType
from typing import Any

from spigot_nlp import cli
from spigot_nlp.training.state import State


def wait(marker: Path) -> None:
    """Until a signal has come, which is then the training's."""
    received: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        handlers[number](number, frame)
        received.append(number)

    handlers: Any = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    marker.touch()
    while not received:
        time.sleep(0.005)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def main(how: str, after: int, marker: Path, words: list[str]) -> int:
    save, calls = State.save, 0

    def counted(self: State, folder: Path) -> None:
        nonlocal calls
        calls += 1
        if how == "kill" and calls == after:
            os.kill(os.getpid(), signal.SIGKILL)
        save(self, folder)
        if how == "hold" and calls == after and not marker.exists():
            wait(marker)

    State.save = counted
    return cli.main(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]))
