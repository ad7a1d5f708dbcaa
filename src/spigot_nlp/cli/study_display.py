"""What a study shows of its trainings: a live table on a terminal, lines now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from spigot_nlp.cli.console import say
from spigot_nlp.cli.watch import duration
from spigot_nlp.experiments.study.progress import Progress, time_left

if TYPE_CHECKING:
    from rich.console import RenderableType

EVERY = 15.0  # seconds between lines where there is no terminal
_WIDE, _NARROW = 80, 58  # characters that all columns need, and those without a bar and losses
# Each at least so wide, so that nothing jumps when a phase has a longer name.
_COLUMNS = {"  system": 14, "phase": 14, "done": 10, "loss": 8, "best on dev": 16, "time": 5}
_MARKS = {"waiting": "·", "running": "▸", "finished": "✓", "failed": "✗", "interrupted": "‖"}


def shown(
    looks: Iterable[list[Progress]],
    size: int,
    processes: int,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> list[Progress]:
    """Take all looks at the trainings, and show them on standard error.

    Args:
        looks: How far each training is, again and again.
        size: How many trainings there will be.
        processes: How many run at a time.
        clock: Tells the time in seconds.

    Returns:
        How far each is in the end.

    Example:
        >>> shown([], 0, 2)
        []
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    known: list[Progress] = []
    started = clock()

    def render() -> "RenderableType":
        spent, (width, height) = clock() - started, console.size
        return table(known, size, processes, spent=spent, width=width, height=height)

    if console.is_terminal:
        # What was there last stays: it says how each training ended.
        with Live(console=console, get_renderable=render, redirect_stdout=False, redirect_stderr=False) as live:
            for look in looks:
                known = look
                live.refresh()
        return known
    lines = Lines(size, processes, clock)
    for known in looks:
        for line in lines.news(known):
            say(line)
            sys.stderr.flush()
    return known


def table(
    known: Sequence[Progress],
    size: int,
    processes: int,
    *,
    spent: float,
    width: int = 80,
    height: int | None = None,
) -> "RenderableType":
    """All trainings, a row each: how far, losses, dev scores so far and time; and the time left for the whole.

    Args:
        known: How far each is, in the order they are started.
        size: How many there will be.
        processes: How many run at a time.
        spent: Seconds since the beginning.
        width: Characters in a line; with 100 or more there is room to name the losses, and with few there is none for
            some of the columns.
        height: Lines on the screen, if there is one; where they are too few, the trainings under way are shown.

    Example:
        >>> from rich.console import Console
        >>> from spigot_nlp.config import Config
        >>> from spigot_nlp.experiments.study.trials import Trial
        >>> about = {"phase": "semantics", "epoch": 3, "epochs": 18, "losses": {"semantics": 8.25}, "dev": {"LF": 61.5}}
        >>> trial = Trial("neurboparser-0", "neurboparser", "", 0, Config())
        >>> at = Progress(trial, "running", seconds=20.0, share=0.4, **about)
        >>> Console(width=80).print(table([at], 1, 2, spent=21.0))
          system          phase           done        loss      best on dev        time
        ▸ neurboparser    semantics 3/18  ━━━━        8.2       LF 61.5            0:20
          0 of 1 trained                  ━━━━                  about 0:30 left    0:21
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = list(known)
    failed = [progress for progress in rows if progress.status == "failed"]
    if height is not None and len(rows) + len(failed) + 3 > height:
        rows = [progress for progress in rows if progress.status == "running"]
    room = len(failed) if height is None else max(1, height - len(rows) - 4)
    more = [Text(f"  and {len(failed) - room} more failed", style="red")] if len(failed) > room else []
    several = len({progress.trial.seed for progress in known}) > 1
    narrow = width < _NARROW
    dropped = () if width >= _WIDE else ("done", "loss", "best on dev") if narrow else ("done", "loss")
    grid = Table.grid(padding=(0, 2))
    for name, least in _COLUMNS.items():
        if name not in dropped:
            grid.add_column(no_wrap=True, min_width=least, justify="right" if name == "time" else "left")
    cells = [
        [Text(name, style="bold") for name in _COLUMNS],
        *(_cells(progress, whole_name=several, named_losses=width >= 100) for progress in rows),
        _total_cells(known, size, time_left(known, size, processes), spent, narrow=narrow),
    ]
    for row in cells:
        grid.add_row(*(cell for name, cell in zip(_COLUMNS, row, strict=True) if name not in dropped))
    why = [Text(f"✗ {progress.trial.name}: {progress.reason}", style="red") for progress in failed[:room]]
    return Group(grid, *why, *more)


def _cells(progress: Progress, *, whole_name: bool, named_losses: bool) -> "list[RenderableType]":
    """The row of a training."""
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    name = progress.trial.name if whole_name else progress.trial.name.rpartition("-")[0]
    style = {"failed": "red", "interrupted": "red", "waiting": "dim", "finished": "green"}.get(progress.status, "")
    return [
        Text(f"{_MARKS[progress.status]} {name}", style=style),
        Text(progress.place, style=style),
        ProgressBar(total=1.0, completed=progress.share, width=10),
        Text(_losses(progress, named=named_losses) if progress.status == "running" else ""),
        Text(" ".join(f"{measure} {value:.1f}" for measure, value in _main(progress.dev))),
        Text(clock_time(progress.seconds) if progress.seconds else ""),
    ]


def _total_cells(
    known: Sequence[Progress], size: int, left: float | None, spent: float, *, narrow: bool
) -> "list[RenderableType]":
    """The last row, about all trainings together; on a narrow screen the time left stands further to the left."""
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    done = sum(progress.has_ended or progress.share for progress in known)
    left_words = f"about {clock_time(left)} left" if left else ""
    return [
        Text(f"  {sum(progress.status == 'finished' for progress in known)} of {size} trained", style="bold"),
        Text(left_words if narrow else "", style="bold"),
        ProgressBar(total=max(size, 1), completed=done, width=10),
        "",
        Text(left_words, style="bold"),
        Text(clock_time(spent), style="bold"),
    ]


def _losses(progress: Progress, *, named: bool) -> str:
    words = [f"{task} {value:.1f}" if named else f"{value:.1f}" for task, value in progress.losses.items()]
    return " ".join(words)


def clock_time(seconds: float) -> str:
    """A time as minutes and seconds, and hours if there are any.

    Example:
        >>> clock_time(42.4), clock_time(125), clock_time(7325)
        ('0:42', '2:05', '2:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _main(dev: Mapping[str, float]) -> list[tuple[str, float]]:
    """Of the scores of an epoch, what it is judged by, and the trees inside."""
    return [(measure, value) for k, (measure, value) in enumerate(dev.items()) if k == 0 or measure == "UAS"]


class Lines:
    """What is new, in plain lines: every start and end, and where each training is every now and then.

    Args:
        size: How many trainings there will be.
        processes: How many run at a time.
        clock: Tells the time in seconds.

    Example:
        >>> from spigot_nlp.config import Config
        >>> from spigot_nlp.experiments.study.trials import Trial
        >>> trial = Trial("neurboparser-0", "neurboparser", "", 0, Config())
        >>> lines = Lines(1, 2, clock=lambda: 0.0)
        >>> lines.news([Progress(trial, "running")]), lines.news([Progress(trial, "running", seconds=1.0)])
        (['neurboparser-0: starts'], [])
    """

    def __init__(self, size: int, processes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._size, self._processes, self._clock = size, processes, clock
        self._seen: dict[str, str] = {}
        self._attempts: dict[str, int] = {}
        self._said = clock()

    def news(self, known: Sequence[Progress]) -> list[str]:
        """The lines to say now; few, if any."""
        first = not self._seen
        found = []
        for progress in known:
            name, before = progress.trial.name, self._seen.get(progress.trial.name)
            saves = progress.status == "running" and progress.is_stopping
            self._seen[name] = state = "saving" if saves else progress.status
            again = progress.attempts > self._attempts.get(name, 0) > 0
            self._attempts[name] = progress.attempts
            if again:  # it may have failed and been started between two looks
                found.append(f"{name}: failed, and is tried again. {progress.setback}")
            if again or state in (before, "waiting"):
                continue
            if saves:
                found.append(f"{name}: saves its state, unless it is interrupted again")
            elif progress.status == "running":
                found.append(f"{name}: {'goes on' if progress.before else 'starts'}")
            elif progress.status == "failed":
                found.append(f"{name}: failed. {progress.reason}")
            elif not first:  # what is known from before is no news
                spent = duration(progress.seconds)
                found.append(f"{name}: {progress.status}{self._dev(progress)}, after {spent}")
        now = self._clock()
        if now - self._said >= EVERY:
            self._said = now
            running = [progress for progress in known if progress.status == "running"]
            found += [f"{progress.trial.name}: {progress.place}{self._dev(progress)}" for progress in running]
            left = time_left(known, self._size, self._processes)
            found += [f"about {clock_time(left)} left"] if left else []
        return found

    def _dev(self, progress: Progress) -> str:
        return "".join(f", {measure} {value:.1f}" for measure, value in _main(progress.dev))
