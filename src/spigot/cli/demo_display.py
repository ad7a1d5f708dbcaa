"""What `spigot demo` shows of several trainings at once: a live table on a terminal, lines now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from spigot.cli.console import say
from spigot.cli.watch import duration
from spigot.experiments.comparison_progress import Progress, time_left

if TYPE_CHECKING:
    from rich.console import RenderableType

EVERY = 15.0  # seconds between lines where there is no terminal
_WIDE, _NARROW = 80, 58  # characters that all columns need, and those without a bar and losses
# Each at least so wide, so that nothing jumps when a phase has a longer name.
_COLUMNS = {"  system": 14, "phase": 14, "done": 10, "loss": 8, "best on dev": 16, "time": 5}
_MARKS = {"waiting": "·", "running": "▸", "finished": "✓", "failed": "✗", "interrupted": "‖"}


def shown(
    looks: Iterable[list[Progress]],
    sources: Mapping[str, str],
    processes: int,
    *,
    order: Sequence[str] = (),
    clock: Callable[[], float] = time.monotonic,
) -> list[Progress]:
    """Take all looks at the trainings, and show them on standard error.

    Args:
        looks: How far each training is, again and again.
        sources: For the name of a training, the name of the one whose parser it starts from.
        processes: How many run at a time.
        order: The names of the trainings as they are to be shown.
        clock: Tells the time in seconds.

    Returns:
        How far each is in the end.

    Example:
        >>> shown([], {}, 2)
        []
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    known: list[Progress] = []
    started = clock()

    def render() -> "RenderableType":
        spent, (width, height) = clock() - started, console.size
        return table(known, sources, processes, spent=spent, order=order, width=width, height=height)

    if console.is_terminal:
        # What was there last stays: it says how each training ended.
        with Live(console=console, get_renderable=render, redirect_stdout=False, redirect_stderr=False) as live:
            for look in looks:
                known = look
                live.refresh()
        return known
    lines = Lines(sources, processes, clock)
    for known in looks:
        for line in lines.news(known):
            say(line)
            sys.stderr.flush()
    return known


def table(
    known: Sequence[Progress],
    sources: Mapping[str, str],
    processes: int,
    *,
    spent: float,
    order: Sequence[str] = (),
    width: int = 80,
    height: int | None = None,
) -> "RenderableType":
    """All trainings, a row each: how far, losses, dev scores so far and time; and the time left for the whole.

    Args:
        known: How far each is, in the order they are started.
        sources: For the name of a training, the name of the one whose parser it starts from.
        processes: How many run at a time.
        spent: Seconds since the beginning.
        order: The names of the trainings as they are to be shown.
        width: Characters in a line; with 100 or more there is room to name the losses, and with few there is none for
            some of the columns.
        height: Lines on the screen, if there is one; where they are too few, the trainings under way are shown.

    Example:
        >>> from rich.console import Console
        >>> from spigot.experiments.comparison_plan import plan_comparison
        >>> trial = plan_comparison("runs/demo", systems=["neurboparser"]).trials[0]
        >>> at = Progress(trial, "running", "", 20.0, "semantics", 3, 18, {"semantics": 8.25}, {"LF": 61.5}, 1000, 400)
        >>> Console(width=80).print(table([at], {}, 2, spent=21.0))
          system          phase           done        loss      best on dev        time
        ▸ neurboparser    semantics 3/18  ━━━━        8.2       LF 61.5            0:20
          0 of 1 trained                  ━━━━                  about 0:30 left    0:21
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = sorted(known, key=lambda progress: order.index(progress.trial.name) if progress.trial.name in order else 0)
    failed = [progress for progress in rows if progress.status == "failed"]
    if height is not None and len(rows) + len(failed) + 3 > height:
        rows = [progress for progress in rows if progress.status == "running"]
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
        _total_cells(known, time_left(known, sources, processes), spent, narrow=narrow),
    ]
    for row in cells:
        grid.add_row(*(cell for name, cell in zip(_COLUMNS, row, strict=True) if name not in dropped))
    return Group(grid, *(Text(f"✗ {progress.trial.name}: {progress.reason}", style="red") for progress in failed))


def _cells(progress: Progress, *, whole_name: bool, named_losses: bool) -> "list[RenderableType]":
    """The row of a training."""
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    name = progress.trial.name if whole_name else str(progress.trial.settings["system"])
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
    known: Sequence[Progress], left: float | None, spent: float, *, narrow: bool
) -> "list[RenderableType]":
    """The last row, about all trainings together; on a narrow screen the time left stands further to the left."""
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    going = [progress for progress in known if progress.status != "failed"]
    work = sum(progress.work for progress in going)
    done = sum(progress.share * progress.work for progress in going)
    left_words = f"about {clock_time(left)} left" if left else ""
    return [
        Text(f"  {sum(progress.status == 'finished' for progress in known)} of {len(known)} trained", style="bold"),
        Text(left_words if narrow else "", style="bold"),
        ProgressBar(total=max(work, 1.0), completed=done, width=10),
        "",
        Text(left_words, style="bold"),
        Text(clock_time(spent), style="bold"),
    ]


def _losses(progress: Progress, *, named: bool) -> str:
    words = [f"{task} {value:.1f}" if named else f"{value:.1f}" for task, value in progress.losses.items()]
    return " ".join(words)


def clock_time(seconds: float) -> str:
    """A time as minutes and seconds.

    Example:
        >>> clock_time(42.4), clock_time(125)
        ('0:42', '2:05')
    """
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02}"


def _main(dev: Mapping[str, float]) -> list[tuple[str, float]]:
    """Of the scores of an epoch, those with names people know."""
    return [(measure, value) for measure, value in dev.items() if measure in ("LF", "UAS", "recall")]


class Lines:
    """What is new, in plain lines: every start and end, and where each training is every now and then.

    Args:
        sources: For the name of a training, the name of the one whose parser it starts from.
        processes: How many run at a time.
        clock: Tells the time in seconds.

    Example:
        >>> from spigot.experiments.comparison_plan import plan_comparison
        >>> trial = plan_comparison("runs/demo", systems=["neurboparser"]).trials[0]
        >>> lines = Lines({}, 2, clock=lambda: 0.0)
        >>> lines.news([Progress(trial, "running")]), lines.news([Progress(trial, "running", seconds=1.0)])
        (['neurboparser-0: starts'], [])
    """

    def __init__(self, sources: Mapping[str, str], processes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._sources, self._processes, self._clock = sources, processes, clock
        self._seen: dict[str, str] = {}
        self._said = clock()

    def news(self, known: Sequence[Progress]) -> list[str]:
        """The lines to say now; few, if any."""
        first = not self._seen
        found = []
        for progress in known:
            name, before = progress.trial.name, self._seen.get(progress.trial.name)
            saves = progress.status == "running" and progress.is_stopping
            self._seen[name] = state = "saving" if saves else progress.status
            if state in (before, "waiting"):
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
            left = time_left(known, self._sources, self._processes)
            found += [f"about {clock_time(left)} left"] if left else []
        return found

    def _dev(self, progress: Progress) -> str:
        return "".join(f", {measure} {value:.1f}" for measure, value in _main(progress.dev))
