"""What happened, line by line: `steps.jsonl`, and when the epochs ended: `times.jsonl`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spigot_nlp.models import checkpoint
from spigot_nlp.training.loop import Step, Trainer


class Log:
    """The log of a run: the steps that its saved state knows, and those after it.

    Times stand in a file of their own, because they differ from one training to the next, and steps do not.

    Args:
        folder: The run folder. Lines about steps that the state does not know are dropped: they are taken again.
        trainer: The training, as it was restored.

    Example:
        >>> import tempfile
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.corpora.corpus import Corpus, Split
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.training.run import build
        >>> rain = Sentence(("Rain", "fell"), tags=("NN", "VBD"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> config = make_config({"system": "neurboparser", "training": {"epochs": 1}})
        >>> corpus = Corpus({"graphs": Split([rain], [rain])})
        >>> trainer, folder = Trainer(build(config, corpus), corpus), Path(tempfile.mkdtemp())
        >>> log = Log(folder, trainer)
        >>> for step in trainer.steps():
        ...     log.append(step, seconds=0.5)
        >>> log.close()
        >>> len((folder / "steps.jsonl").read_text().splitlines()) >= 1
        True
    """

    def __init__(self, folder: Path, trainer: Trainer) -> None:
        progress = trainer.progress
        names = [phase.name for phase in trainer.phases]

        def known(line: dict[str, Any]) -> bool:
            # Where the training stood after it: the end of an epoch is the start of the next.
            ended = line.get("dev", line.get("seconds")) is not None
            place = (line["epoch"], 0) if ended else (line["epoch"] - 1, line["step"])
            if line["phase"] not in names:
                raise ValueError(
                    f"{folder} tells of a phase {line['phase']!r}, and this training has {', '.join(names)}: it was "
                    "begun by another version of spigot; go on with that one, or begin again."
                )
            return (names.index(line["phase"]), *place) <= (progress.phase, progress.epoch, progress.step)

        self._files = {}
        for name in (checkpoint.STEPS, checkpoint.TIMES):
            kept = [text for text, line in _lines(folder / name) if known(line)]
            checkpoint.write_text(folder / name, "".join(f"{text}\n" for text in kept))
            self._files[name] = (folder / name).open("a", encoding="utf-8")

    def append(self, step: Step, seconds: float, processor: float | None = None) -> None:
        """Add a step, and when it was taken: seconds since the training began, and those the processor worked."""
        self._write(checkpoint.STEPS, asdict(step))
        if step.dev is not None:
            line = {"phase": step.phase, "epoch": step.epoch, "seconds": round(seconds, 3)}
            worked = {} if processor is None else {"processor": round(processor, 3)}
            self._write(checkpoint.TIMES, line | worked)

    def flush(self) -> None:
        """Hand everything to the system."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Finish the files."""
        for file in self._files.values():
            file.close()

    def _write(self, name: str, line: dict[str, Any]) -> None:
        self._files[name].write(json.dumps(line) + "\n")


def _lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            found.append((text, json.loads(text)))
        except ValueError:  # a line cut short by a crash
            continue
    return found
