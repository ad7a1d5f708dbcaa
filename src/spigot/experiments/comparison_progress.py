"""How far the trainings of a comparison have come, and how long they will still take."""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spigot.config import Config
from spigot.experiments.children import Status
from spigot.experiments.sweep import Trial
from spigot.experiments.tail import Tail
from spigot.training.checkpoint import STEPS
from spigot.training.plan import phases

# What a step costs against one of a parser's own, and what else takes time, in such steps: only the proportions matter,
# as the pace is measured.
_HELPER, _JOINT = 0.6, 1.2  # steps of helpers and of joint training, in steps of a single stage
_START, _FINISH, _DEV_SENTENCE = 150.0, 200.0, 0.1


@dataclass
class Progress:
    """How far one training has come.

    Attributes:
        trial: The training.
        status: Whether it waits, runs or has ended, and how.
        reason: Why it failed, in one sentence.
        seconds: How long it has been trained.
        phase: The part of the training it is in; empty while the corpus is read.
        epoch: The epoch of that part, from 1.
        epochs: How many epochs that part has.
        losses: The mean loss of a sentence in this epoch, by task.
        dev: The dev scores of the best epoch of this part so far, in per cent.
        work: What there is to do, in steps of a parser.
        done: How much of that is done.
        before: How much of that was done before `seconds` began to count.
        is_stopping: Whether it was asked to stop, and saves its state.

    Example:
        >>> from spigot.experiments.comparison_plan import plan_comparison
        >>> progress = Progress(plan_comparison("runs/demo").trials[0])
        >>> progress.place, progress.share
        ('waiting', 0.0)
    """

    trial: Trial
    status: Status = "waiting"
    reason: str = ""
    seconds: float = 0.0
    phase: str = ""
    epoch: int = 0
    epochs: int = 0
    losses: dict[str, float] = field(default_factory=dict)
    dev: dict[str, float] = field(default_factory=dict)
    work: float = 0.0
    done: float = 0.0
    before: float = 0.0
    is_stopping: bool = False

    def __post_init__(self) -> None:
        self.work = self.work or _START + sum(_phase_work(self.trial.config)) + _FINISH

    @property
    def share(self) -> float:
        """The part of the work that is done, from 0 to 1."""
        return 1.0 if self.status == "finished" else min(0.99, self.done / self.work)

    @property
    def place(self) -> str:
        """The phase and the epoch, in words."""
        if self.status != "running":
            return self.status
        if self.is_stopping:
            return "saving"
        if not self.phase:
            return "reading"
        last = phases(self.trial.config)[-1]
        if self.done >= self.work - _FINISH and self.phase == last.name:
            return "scoring"
        return f"{self.phase} {self.epoch}/{self.epochs}"


class Follower:
    """Follows the `steps.jsonl` of a training as it grows.

    Args:
        progress: What to bring up to date.
        run: The run folder; it need not exist yet.

    Example:
        >>> import tempfile
        >>> from spigot.experiments.comparison_plan import plan_comparison
        >>> run = Path(tempfile.mkdtemp())
        >>> step = {"phase": "syntax", "epoch": 1, "step": 3, "of": 50, "task": "syntax", "loss": 2.5, "sentences": 8}
        >>> _ = (run / STEPS).write_text(json.dumps({**step, "dev": None, "is_best": False}) + "\\n")
        >>> progress = Progress(plan_comparison("runs/demo").trials[0], "running")
        >>> Follower(progress, run).update()
        >>> progress.place, progress.losses
        ('syntax 1/6', {'syntax': 2.5})
    """

    def __init__(self, progress: Progress, run: Path) -> None:
        self.progress = progress
        self._tail = Tail(run / STEPS)
        self._phases = phases(progress.trial.config)
        self._work = _phase_work(progress.trial.config)
        self._forget()

    def _forget(self) -> None:
        self._sums: dict[str, tuple[float, int]] = {}
        progress = self.progress
        progress.phase, progress.epoch, progress.epochs, progress.done = "", 0, 0, 0.0
        progress.losses, progress.dev = {}, {}

    def update(self) -> None:
        """Read what has been added."""
        lines = self._tail.read()
        if self._tail.is_anew:
            self._forget()
        for line in lines:
            with suppress(ValueError, LookupError, TypeError, StopIteration):  # a line that a crash spoilt
                self._see(json.loads(line))

    def _see(self, step: dict[str, Any]) -> None:
        progress = self.progress
        here = next(k for k, phase in enumerate(self._phases) if phase.name == step["phase"])
        if (progress.phase, progress.epoch) != (step["phase"], step["epoch"]):
            self._sums = {}
        if progress.phase != step["phase"]:
            progress.phase, progress.dev = step["phase"], {}
        progress.epoch, progress.epochs = step["epoch"], self._phases[here].epochs
        loss, sentences = self._sums.get(step["task"], (0.0, 0))
        self._sums[step["task"]] = (loss + step["loss"] * step["sentences"], sentences + step["sentences"])
        progress.losses = {task: total / max(count, 1) for task, (total, count) in sorted(self._sums.items())}
        if step["dev"] is not None and step["is_best"]:
            progress.dev = step["dev"]
        # The last step of an epoch comes after the scoring of the development data; before that, leave room for it.
        within = step["step"] / step["of"] * (1.0 if step["dev"] is not None else 0.95)
        share = (step["epoch"] - 1 + within) / progress.epochs
        progress.done = _START + sum(self._work[:here]) + share * self._work[here]


def time_left(known: Sequence[Progress], sources: Mapping[str, str], processes: int) -> float | None:
    """Seconds until all trainings have ended, if each goes on at the pace seen so far.

    What is left is given out to the processes as it will be: a training that starts from another's parser waits for it.

    Args:
        known: The trainings, in the order they are started.
        sources: For the name of a training, the name of the one whose parser it starts from.
        processes: How many run at a time.

    Returns:
        The time; `None` before anything is known of the pace.

    Example:
        >>> from spigot.experiments.comparison_plan import plan_comparison
        >>> trials = plan_comparison("runs/demo", systems=["neurboparser", "pipeline"]).trials
        >>> first = Progress(trials[0], "running", seconds=20.0, work=1000.0, done=400.0)
        >>> other = Progress(trials[1], work=400.0)
        >>> time_left([first, other], {}, 1), time_left([first, other], {}, 2)
        (50.0, 30.0)
    """
    seen = [progress for progress in known if progress.done > progress.before + _START / 2 and progress.seconds > 0]
    if not seen:
        return None
    pace = sum(progress.done - progress.before for progress in seen) / sum(progress.seconds for progress in seen)
    free = [0.0] * processes
    parser_at: dict[str, float] = {}
    for progress in sorted(known, key=lambda progress: progress.status != "running"):
        if progress.status not in ("running", "waiting"):
            continue
        source = sources.get(progress.trial.name, "")
        begin = max(min(free), parser_at.get(source, 0.0))
        left = max(progress.work - progress.done, 0.0)
        if progress.status == "running" and not progress.done:
            left = max(left - pace * progress.seconds, left / 2)
        free[free.index(min(free))] = begin + left / pace
        before_end = min(left, _phase_work(progress.trial.config)[-1] + _FINISH)
        parser_at[progress.trial.name] = begin + (left - before_end) / pace
    return max(free)


def _phase_work(config: Config) -> list[float]:
    """What each phase has to do, in steps of a parser."""
    data, training = config.data, config.training
    found = []
    for phase in phases(config):
        steps = 0
        for task in phase.tasks:
            limit = data.files(config.data_of(task.partition(".")[0])).limit
            drawn = training.share if len(phase.tasks) > 1 and task != config.end else 1.0
            steps += math.ceil(drawn * min(limit or data.synthetic.train, data.synthetic.train) / training.batch)
        helper, joint = phase.judge is None, len(phase.tasks) > 1
        dev = data.synthetic.dev * _DEV_SENTENCE * (0.5 if helper else 1.0)
        found.append(phase.epochs * (steps * (_HELPER if helper else _JOINT if joint else 1.0) + dev))
    return found
