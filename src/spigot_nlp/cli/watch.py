"""What a training shows of itself: a live display on a terminal, a line an epoch elsewhere."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spigot_nlp.cli.console import is_first_process, say

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from spigot_nlp.training.loop import Step
    from spigot_nlp.training.plan import Phase


@dataclass
class Watch:
    """Losses, speed, best score and time left of a training, from its steps.

    Args:
        phases: The parts of the training.
        clock: Tells the time in seconds.
    """

    phases: "Sequence[Phase]"
    clock: Callable[[], float] = time.monotonic
    step: "Step | None" = None
    best: str = ""
    rate: float = 0.0
    _losses: dict[str, tuple[float, int]] = field(default_factory=dict)
    _epoch: dict[str, float] = field(default_factory=dict)  # seconds, by phase
    _start: float = 0.0
    _last: float = 0.0
    _steps: int = 0
    _tokens: int = 0

    def see(self, step: "Step") -> None:
        """Take note of one more step."""
        now, before = self.clock(), self.step
        if before is None or (before.phase, before.epoch) != (step.phase, step.epoch):
            # What the very first step took is not known: before it the corpus was read.
            self._start, self._losses, self._steps, self._tokens = self._last if before else now, {}, 0, 0
        self.step = step
        loss, sentences = self._losses.get(step.task, (0.0, 0))
        self._losses[step.task] = (loss + step.loss * step.sentences, sentences + step.sentences)
        if before is not None:
            self._steps, self._tokens = self._steps + 1, self._tokens + step.tokens
        spent = now - self._start
        if step.dev is None:  # the last step of an epoch comes after the development data, which are not trained on
            self.rate = self._tokens / spent if spent > 0 else self.rate
        elif self._steps:
            self._epoch[step.phase] = spent * step.of / self._steps
        if step.is_best:
            self.best = f"best {self._dev()} ({step.phase} {step.epoch})"
        self._last = now

    @property
    def losses(self) -> dict[str, float]:
        """The mean loss of a sentence in this epoch, by task."""
        return {task: loss / max(sentences, 1) for task, (loss, sentences) in self._losses.items()}

    @property
    def left(self) -> float | None:
        """Seconds to the end if no phase stops early; a phase not seen yet counts like the present one."""
        step = self.step
        if step is None or not self._steps:
            return None
        spent = self._last - self._start
        epoch = self._epoch.get(step.phase, spent * step.of / self._steps)
        names = [phase.name for phase in self.phases]
        here = names.index(step.phase)
        rest = epoch * (self.phases[here].epochs - step.epoch + 1 - step.step / step.of)
        return rest + sum(phase.epochs * self._epoch.get(phase.name, epoch) for phase in self.phases[here + 1 :])

    def place(self) -> str:
        """The phase and the epoch."""
        if self.step is None:
            return "reading"
        epochs = next(phase.epochs for phase in self.phases if phase.name == self.step.phase)
        return f"{self.step.phase} {self.step.epoch}/{epochs}"

    def numbers(self) -> list[str]:
        """Losses, speed and time left, in words."""
        parts = [", ".join(f"{task} {loss:.3f}" for task, loss in sorted(self.losses.items()))]
        if self.rate:
            parts.append(f"{self.rate:,.0f} tokens/s")
        if self.left:
            parts.append(f"{duration(self.left)} left")
        return parts

    def line(self) -> str:
        """Where the training stands, in one line."""
        if self.step is None:
            return self.place()
        losses, *rest = self.numbers()
        dev = [self._dev() + (" (best)" if self.step.is_best else "")] if self.step.dev else []
        return f"{self.place()}: {'; '.join([losses, *dev, *rest])}"

    def _dev(self) -> str:
        dev = self.step.dev if self.step is not None and self.step.dev is not None else {}
        return ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in dev.items())


def duration(seconds: float) -> str:
    """A time in words, as exact as it deserves."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def show_progress(phases: "Sequence[Phase]") -> "Iterator[Callable[[Step], None]]":
    """Shows the steps of a training on standard error as they come; only the first of several processes shows any.

    Args:
        phases: The parts of the training.
    """
    from rich.console import Console

    watch, console = Watch(phases), Console(stderr=True)
    if not is_first_process():
        yield lambda step: None
        return
    with _screen(console, watch) if console.is_terminal else nullcontext(say) as show:

        def see(step: "Step") -> None:
            watch.see(step)
            if step.dev is not None:
                show(watch.line())

        yield see


@contextmanager
def _screen(console: "Console", watch: Watch) -> "Iterator[Callable[[str], None]]":
    """A display at the foot of the terminal that follows `watch`; what is printed goes above it."""
    from rich.console import Group
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    started = watch.clock()

    def render() -> "RenderableType":
        step, last = watch.step, watch.phases[-1] if watch.phases else None
        row = Table.grid(padding=(0, 1))
        spent = duration(watch.clock() - started)
        if step is None or last is None:
            row.add_row("reading and tagging", ProgressBar(total=None, width=30, pulse=True), spent)
            return row
        ended = step.dev is not None and (step.phase, step.epoch) == (last.name, last.epochs)
        bar = ProgressBar(total=step.of, completed=step.step, width=30, pulse=ended)
        row.add_row("scoring" if ended else watch.place(), bar, f"{step.step}/{step.of}", spent)
        below = (", ".join(watch.numbers()), watch.best)
        return Group(row, *(Text(f"  {part}", style="dim") for part in below if part))

    with Live(console=console, transient=True, get_renderable=render):
        yield lambda line: console.print(line, highlight=False, soft_wrap=True)
