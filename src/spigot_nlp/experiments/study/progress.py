"""How far the trainings of a study have come, and how long they will still take."""

import json
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spigot_nlp.experiments.children import Status
from spigot_nlp.experiments.study.trials import Trial
from spigot_nlp.experiments.tail import Tail
from spigot_nlp.models.checkpoint import STEPS
from spigot_nlp.training.plan import phases

_HELPER = 0.5  # what an epoch of a helper costs, in epochs of a stage
_ENDS = 0.05  # the part of a training before its first step and after its last


@dataclass
class Progress:
    """How far one training has come.

    Attributes:
        trial: The training.
        status: Whether it waits, runs or has ended, and how.
        reason: Why it failed, in one sentence.
        seconds: How long it has been trained, over all attempts.
        attempts: How often it was started by this command.
        setback: Why it failed when it was started before, and is tried again.
        phase: The part of the training it is in; empty while the corpus is read.
        epoch: The epoch of that part, from 1.
        epochs: How many epochs that part has.
        losses: The mean loss of a sentence in this epoch, by task.
        dev: The dev scores of the best epoch of this part so far, in per cent.
        best_epoch: That epoch.
        share: How much of it is done, from 0 to 1.
        before: How much was done before it was started last.
        earlier: How many of its seconds were before that.
        is_stopping: Whether it was asked to stop, and saves its state.

    Example:
        >>> from spigot_nlp.config import Config
        >>> progress = Progress(Trial("spigot-0", "spigot", "", 0, Config()))
        >>> progress.place, progress.share, progress.has_ended
        ('waiting', 0.0, False)
    """

    trial: Trial
    status: Status = "waiting"
    reason: str = ""
    seconds: float = 0.0
    attempts: int = 0
    phase: str = ""
    epoch: int = 0
    epochs: int = 0
    losses: dict[str, float] = field(default_factory=dict)
    dev: dict[str, float] = field(default_factory=dict)
    best_epoch: int | None = None
    share: float = 0.0
    before: float = 0.0
    earlier: float = 0.0
    is_stopping: bool = False
    setback: str = ""

    @property
    def place(self) -> str:
        """The phase and the epoch, in words."""
        if self.status != "running":
            return self.status
        if self.is_stopping:
            return "saving"
        if not self.phase:
            return "reading"
        return "scoring" if self.share >= 1 - _ENDS else f"{self.phase} {self.epoch}/{self.epochs}"

    @property
    def has_ended(self) -> bool:
        """Whether it is finished, or failed for good."""
        return self.status in ("finished", "failed")

    @property
    def measure(self) -> str:
        """What its dev score measures."""
        return next(iter(self.dev), "")

    @property
    def score(self) -> float | None:
        """The dev score it is chosen by, in per cent; `None` if it is not finished."""
        return self.dev[self.measure] if self.status == "finished" and self.dev else None


class Follower:
    """Follows the `steps.jsonl` of a training as it grows.

    Args:
        progress: What to bring up to date.
        run: The run folder; it need not exist yet.

    Example:
        >>> import tempfile
        >>> from spigot_nlp.config import make_config
        >>> run = Path(tempfile.mkdtemp())
        >>> step = {"phase": "joint", "epoch": 1, "step": 3, "of": 50, "task": "syntax", "loss": 2.5, "sentences": 8}
        >>> _ = (run / STEPS).write_text(json.dumps({**step, "dev": None, "is_best": False}) + "\\n")
        >>> progress = Progress(Trial("spigot-0", "spigot", "", 0, make_config({})), "running")
        >>> Follower(progress, run).update()
        >>> progress.place, progress.losses
        ('joint 1/30', {'syntax': 2.5})
    """

    def __init__(self, progress: Progress, run: Path) -> None:
        self.progress = progress
        self._tail = Tail(run / STEPS)
        self._phases = phases(progress.trial.config)
        self._work = [phase.epochs * (_HELPER if phase.judge is None else 1.0) for phase in self._phases]
        self._forget()

    def _forget(self) -> None:
        self._sums: dict[str, tuple[float, int]] = {}
        progress = self.progress
        progress.phase, progress.epoch, progress.epochs, progress.share = "", 0, 0, 0.0
        progress.losses, progress.dev, progress.best_epoch = {}, {}, None

    def update(self) -> None:
        """Read what has been added."""
        lines = self._tail.read()
        if self._tail.is_anew:
            self._forget()
        # There may be a hundred thousand steps: losses are those of the present epoch, and need only its last ones.
        for number, line in enumerate(lines, 1):
            if len(lines) - number < 200 or b'"dev": null' not in line:
                with suppress(ValueError, LookupError, TypeError, StopIteration):  # a line that a crash spoilt
                    self._see(json.loads(line))

    def _see(self, step: dict[str, Any]) -> None:
        progress = self.progress
        here = next(k for k, phase in enumerate(self._phases) if phase.name == step["phase"])
        if (progress.phase, progress.epoch) != (step["phase"], step["epoch"]):
            self._sums = {}
        if progress.phase != step["phase"]:
            progress.phase, progress.dev, progress.best_epoch = step["phase"], {}, None
        progress.epoch, progress.epochs = step["epoch"], self._phases[here].epochs
        loss, sentences = self._sums.get(step["task"], (0.0, 0))
        self._sums[step["task"]] = (loss + step["loss"] * step["sentences"], sentences + step["sentences"])
        progress.losses = {task: total / max(count, 1) for task, (total, count) in sorted(self._sums.items())}
        if step["dev"] is not None and step["is_best"]:
            progress.dev, progress.best_epoch = step["dev"], step["epoch"]
        # The last step of an epoch comes after the scoring of the development data; before that, leave room for it.
        within = step["step"] / step["of"] * (1.0 if step["dev"] is not None else 0.95)
        done = sum(self._work[:here]) + (step["epoch"] - 1 + within) / progress.epochs * self._work[here]
        progress.share = _ENDS + (1 - 2 * _ENDS) * done / sum(self._work)


def time_left(known: Sequence[Progress], size: int, processes: int) -> float | None:
    """Seconds until all trainings have ended, if each takes as long as others like it.

    Args:
        known: The trainings that can be named by now.
        size: How many there will be.
        processes: How many run at a time.

    Returns:
        The time; `None` before anything is known of the pace.

    Example:
        >>> from spigot_nlp.config import Config
        >>> def training(seed, *about):
        ...     return Progress(Trial(f"ste-{seed}", "ste", "", seed, Config()), *about)
        >>> known = [training(0, "finished", "", 60.0), training(1, "running", "", 20.0), training(2)]
        >>> time_left(known, 4, 2)
        100.0
    """
    took = {p.trial.name: seconds for p in known if (seconds := _whole(p)) is not None}
    if not took:
        return None
    like: dict[object, list[float]] = {}
    for p in known:
        for kind in _kinds(p.trial) if p.trial.name in took else ():
            like.setdefault(kind, []).append(took[p.trial.name])

    def whole(p: Progress) -> float:
        """How long trainings like this one take."""
        return statistics.fmean(next(like[kind] for kind in _kinds(p.trial) if kind in like))

    free = [0.0] * processes
    left = [max(0.0, (took.get(p.trial.name) or whole(p)) - p.seconds) for p in known if p.status == "running"]
    waiting = [max(0.0, whole(p) * (1 - p.share)) for p in known if p.status in ("waiting", "interrupted")]
    unnamed = [statistics.fmean(took.values())] * max(0, size - len(known))
    for seconds in (*left, *waiting, *unnamed):
        free[free.index(min(free))] += seconds
    return max(free)


def _kinds(trial: Trial) -> list[object]:
    """What a training is like: of the same system and point, of the same point, any; the nearest first."""
    return [("system", trial.system, trial.point), ("point", trial.point, trial.role), "any"]


def _whole(progress: Progress) -> float | None:
    """How long a training takes in all, if that can be said."""
    if progress.status == "finished" and progress.seconds:
        return progress.seconds
    done = progress.share - progress.before
    if progress.status == "running" and done > 2 * _ENDS:
        return progress.seconds + (1 - progress.share) * (progress.seconds - progress.earlier) / done
    return None


def by_name(known: Sequence[Progress]) -> Mapping[str, Progress]:
    """Trainings by the names of their folders.

    Example:
        >>> by_name([])
        {}
    """
    return {progress.trial.name: progress for progress in known}
