"""What happened, line by line: `steps.jsonl`, and when the epochs ended: `times.jsonl`."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from spigot_nlp.models import checkpoint
from spigot_nlp.training.distributed import is_main
from spigot_nlp.training.state import Progress

if TYPE_CHECKING:
    from spigot_nlp.training.loop import Step


class Log:
    """The log of a run: the steps that its saved state knows, and those after it; only the first process writes it.

    Times stand in a file of their own, because they differ from one training to the next, and steps do not.

    Args:
        folder: The run folder. Lines about steps that the state does not know are dropped: they are taken again.
        phases: What the parts of the training are called, in order.
        progress: How far it has come.
    """

    def __init__(self, folder: Path, phases: Sequence[str], progress: Progress) -> None:
        def known(line: dict[str, Any]) -> bool:
            # Where the training stood after it: the end of an epoch is the start of the next.
            ended = line.get("dev", line.get("seconds")) is not None
            place = (line["epoch"], 0) if ended else (line["epoch"] - 1, line["step"])
            if line["phase"] not in phases:
                raise ValueError(
                    f"{folder} tells of a phase {line['phase']!r}, and this training has {', '.join(phases)}: its "
                    "files do not belong together; restore them, or train in a new folder."
                )
            return (phases.index(line["phase"]), *place) <= (progress.phase, progress.epoch, progress.step)

        self._files: dict[str, TextIO] = {}
        for name in (checkpoint.STEPS, checkpoint.TIMES) if is_main() else ():
            kept = [text for text, line in _lines(folder / name) if known(line)]
            checkpoint.write_text(folder / name, "".join(f"{text}\n" for text in kept))
            self._files[name] = (folder / name).open("a", encoding="utf-8")

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def append(self, step: "Step", progress: Progress) -> None:
        """Add a step, and how long the training took to the end of an epoch."""
        self._write(checkpoint.STEPS, asdict(step))
        if step.dev is not None:
            times = {"seconds": round(progress.seconds, 3), "processor": round(progress.processor, 3)}
            self._write(checkpoint.TIMES, {"phase": step.phase, "epoch": step.epoch, **times})

    def flush(self) -> None:
        """Hand everything to the system."""
        for file in self._files.values():
            file.flush()

    def _write(self, name: str, line: dict[str, Any]) -> None:
        if name in self._files:
            self._files[name].write(json.dumps(line) + "\n")


def _lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            found.append((text, json.loads(text)))
        except ValueError:  # a line cut short by a crash
            continue
    return found
