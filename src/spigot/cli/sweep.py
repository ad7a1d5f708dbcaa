"""`spigot sweep`: train an experiment with many settings, and say which are best."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

from spigot.cli.console import AsJson, Flag, cores, print_json, print_table, say
from spigot.cli.options import options_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from spigot.experiments.sweep import Sweep, Value
    from spigot.experiments.sweep_results import Result


def sweep(
    config: Path,
    /,
    *settings: Annotated[str, cyclopts.Parameter(allow_leading_hyphen=True)],
    over: Annotated[list[str] | None, cyclopts.Parameter(negative="")] = None,
    random: int | None = None,
    sweep_seed: int = 0,
    seeds: str | None = None,
    processes: int | None = None,
    threads: int = 1,
    out: Path | None = None,
    tests: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Search for good settings: train every combination of the given values, and rank them by their dev score.

    The same command goes on with a sweep that was interrupted, and shows the table of one that is finished. More
    values, seeds or random combinations add trials to it.

    Parameters
    ----------
    config
        A TOML file, or the name of a configuration that comes with spigot; its table [sweep] may say which values to
        try.
    settings
        Settings that all trials have: --name value, or --name=value, as for spigot train.
    over
        A setting and the values to try: --over estimator.eta=0.1,1. May be given several times.
    random
        How many combinations to draw by chance; all of them by default.
    sweep_seed
        Where the drawing starts.
    seeds
        The seeds to train every combination with: --seeds 0,1,2.
    processes
        How many trials to train at a time; by default as many as there are cores for.
    threads
        How many threads each of them may use.
    out
        The folder for the runs, the logs and the table; by default runs/NAME-sweep.
    tests
        Show scores on the test sets too. The ranking never looks at them.
    as_json
        Print the results as JSON instead of a table.
    """
    from spigot.cli.overrides import parse_overrides
    from spigot.experiments.sweep import plan_sweep
    from spigot.experiments.sweep_results import record
    from spigot.experiments.sweep_trials import known_results, run_trials

    if threads < 1:
        raise ValueError(f"threads is {threads}; it must be at least 1.")
    if processes is None:
        processes = max(1, cores() // threads)
    plan = plan_sweep(
        config,
        over=parse_over(over or []),
        overrides=parse_overrides(settings, options_of(sweep)),
        seeds=None if seeds is None else _seeds(seeds),
        random=random,
        sweep_seed=sweep_seed,
    )
    folder = out or Path("runs") / f"{plan.trials[0].config.name}-sweep"
    finished = sum(result.status == "finished" for result in known_results(plan, folder))
    say(_announcement(plan, processes, folder, finished))
    results = _watched(run_trials(plan, folder, processes=processes, threads=threads, tests=tests), processes)
    if as_json:
        print_json({"folder": folder, **record(plan, results)})
    else:
        print_sweep(plan, results)
    say(f"The runs and the table are in {folder}")
    if failed := [result for result in results if result.status == "failed"]:
        raise RuntimeError(
            f"{len(failed)} of {len(results)} trials failed; {folder / failed[0].trial.name}.log says more, and the "
            "same command tries them again."
        )


def parse_over(words: Sequence[str]) -> "dict[str, list[Value]]":
    """Read `name=value,value` into values by dotted name.

    A value is read as TOML, and as plain text where it is none or where the setting is text. A value with a comma in
    it stands in double quotes.

    Args:
        words: What was given to `--over`.

    Raises:
        ValueError: If there is no value.

    Example:
        >>> parse_over(["semantics.mlp=100,150", "system=ste,spigot", "semantics.determinism=true,false"])
        {'semantics.mlp': [100, 150], 'system': ['ste', 'spigot'], 'semantics.determinism': [True, False]}
    """
    from spigot.cli.overrides import parse_overrides

    found: dict[str, list[Value]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        text = text.strip()
        text = text[1:-1] if text.startswith("[") and text.endswith("]") else text
        if not equals or not name or not text:
            raise ValueError(f"--over {word} has no values; write --over NAME=VALUE,VALUE, e.g. estimator.eta=0.1,1.")
        for piece in re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', text):  # at commas outside quotes
            if not piece.strip():
                raise ValueError(f'--over {word} has an empty value; write "" if it is meant.')
            ((full, value),) = parse_overrides([f"--{name}={piece.strip()}"]).items()
            if isinstance(value, dict):
                raise ValueError(f"--over {word} has a value that is a group of settings; vary them one by one.")
            found.setdefault(full, []).append(value)
    return found


def _seeds(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"--seeds is {text!r}; write whole numbers with commas, such as --seeds 0,1,2.") from None


def _announcement(plan: "Sweep", processes: int, folder: Path, finished: int) -> str:
    combinations, trials = len(plan.combinations), len(plan.trials)
    counts = f"{combinations} combination{'s' if combinations > 1 else ''}"
    if len(plan.seeds) > 1:
        counts += f" × {len(plan.seeds)} seeds = {trials} trials"
    before = f"; {finished} {'is' if finished == 1 else 'are'} finished already" if finished else ""
    return f"{counts}, {processes} at a time, in {folder}{before}"


def print_sweep(plan: "Sweep", results: "Sequence[Result]") -> None:
    """Print the table of a search, and which combination the development data choose.

    Args:
        plan: The search.
        results: What came of its trials.

    Example:
        >>> import tempfile
        >>> from spigot.experiments.sweep import plan_sweep
        >>> from spigot.experiments.sweep_results import Result
        >>> file = Path(tempfile.mkdtemp()) / "mine.toml"
        >>> _ = file.write_text('[sweep]\\n"estimator.eta" = [0.1, 1.0]')
        >>> plan = plan_sweep(file)
        >>> scores = (70.1, 71.0)
        >>> found = [
        ...     Result(trial, "finished", seconds=90, measure="LF", score=score, epoch=4)
        ...     for trial, score in zip(plan.trials, scores, strict=True)
        ... ]
        >>> print_sweep(plan, found)
        2 combinations by LF on the development data, per cent
        <BLANKLINE>
              eta     dev   epochs   minutes
         ────────────────────────────────────
          1     1   71.00        4       1.5
          2   0.1   70.10        4       1.5
        <BLANKLINE>
        Chosen on the development data: --estimator.eta 1
    """
    from spigot.experiments.sweep import short_names, show_value
    from spigot.experiments.sweep_results import chosen_row, failures, rank

    rows = rank(plan, results)
    measure = next((result.measure for result in results if result.measure), "score")
    several = len(plan.seeds) > 1
    sets = next((list(row.tests) for row in rows if row.tests), [])
    failed = any(row.failures for row in rows)
    columns = ["", *short_names(plan.names).values(), "dev", *(["each seed"] if several else [])]
    columns += ["epochs", "minutes", *(f"{name} (test)" for name in sets), *(["failed"] if failed else [])]
    cells = []
    for number, row in enumerate(rows, 1):
        dev = _number(row.mean, 2) + (f" ± {row.sd:.2f}" if row.sd is not None else "")
        each = [" ".join(_number(row.scores.get(seed), 2) for seed in plan.seeds)] if several else []
        epochs = "–" if row.epoch is None else f"{row.epoch:.1f}".removesuffix(".0")
        cells.append(
            [
                str(number),
                *map(show_value, row.settings.values()),
                dev,
                *each,
                epochs,
                _number(row.minutes, 1),
                *(_number(row.tests.get(name), 2) for name in sets),
                *([failures(row)] if failed else []),
            ]
        )
    many = f"{len(rows)} combination{'s' if len(rows) > 1 else ''}"
    over = f", mean ± standard deviation of {len(plan.seeds)} seeds" if several else ""
    print_table(f"{many} by {measure} on the development data{over}, per cent", columns, cells)
    chosen = chosen_row(rows)
    if chosen is None:
        print("None is chosen: no combination has a dev score for all of its trials.")
    elif chosen.settings:
        words = (f"--{name} {show_value(value)}" for name, value in chosen.settings.items())
        print(f"Chosen on the development data: {' '.join(words)}")


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def time_left(results: "Sequence[Result]", processes: int) -> float | None:
    """Seconds until all trials are finished, if they take as long as those that are; unknown before the first is.

    Example:
        >>> from spigot.config import Config
        >>> from spigot.experiments.sweep import Trial
        >>> from spigot.experiments.sweep_results import Result
        >>> trial = Trial("eta=1,seed=0", {}, 0, Config())
        >>> known = [Result(trial, "finished", seconds=60), Result(trial, "running", seconds=20), Result(trial)]
        >>> time_left(known, 2)
        50.0
    """
    took = [result.seconds for result in results if result.status == "finished" and result.seconds]
    if not took:
        return None
    each = sum(took) / len(took)
    running = [max(0.0, each - result.seconds) for result in results if result.status == "running"]
    waiting = sum(result.status == "waiting" for result in results)
    return max([(sum(running) + waiting * each) / processes, *running])


def _watched(looks: "Iterable[list[Result]]", processes: int) -> "list[Result]":
    """Take all looks at the trials, and show them on standard error."""
    from rich.console import Console

    console = Console(stderr=True)
    results: list[Result] = []
    seen: dict[str, str] = {}
    with _screen(console, lambda: results, processes) if console.is_terminal else _lines() as tell:
        for results in looks:
            if not seen:  # what is known from before is no news
                seen = {r.trial.name: r.status if r.status == "finished" else "" for r in results}
            for result in results:
                if seen[result.trial.name] != result.status:
                    seen[result.trial.name] = result.status
                    if result.status != "waiting":
                        tell(_news(result, results, processes))
    return results


def _news(result: "Result", results: "Sequence[Result]", processes: int) -> str:
    from spigot.cli.watch import duration

    ended = sum(other.status in ("finished", "failed") for other in results)
    name = f"[{ended}/{len(results)}] {result.trial.name}"
    if result.status == "running":
        return f"{name}: goes on" if result.seconds else f"{name}: starts"
    if result.status == "failed":
        return f"{name}: failed. {result.reason}"
    if result.status == "interrupted":
        return f"{name}: interrupted" + (f" in {result.place}" if result.place else "")
    left = time_left(results, processes)
    score = "" if result.score is None else f"{result.measure} {result.score:.2f} at epoch {result.epoch}, "
    return f"{name}: {score}{duration(result.seconds)}" + (f"; about {duration(left)} left" if left else "")


@contextmanager
def _lines() -> "Iterator[Callable[[str], None]]":
    def tell(line: str) -> None:
        say(line)
        sys.stderr.flush()

    yield tell


@contextmanager
def _screen(
    console: "Console", results: "Callable[[], Sequence[Result]]", processes: int
) -> "Iterator[Callable[[str], None]]":
    """A display at the foot of the terminal; what is printed goes above it."""
    from rich.console import Group
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from spigot.cli.watch import duration

    def render() -> "RenderableType":
        known = results()
        counts = {status: sum(r.status == status for r in known) for status in ("finished", "running", "failed")}
        bar = ProgressBar(total=max(len(known), 1), completed=counts["finished"] + counts["failed"], width=30)
        words = [f"{counts['finished']}/{len(known)} finished", f"{counts['running']} running"]
        words += [f"{counts['failed']} failed"] if counts["failed"] else []
        left = time_left(known, processes)
        words += [f"about {duration(left)} left"] if left else []
        top, below = Table.grid(padding=(0, 1)), Table.grid(padding=(0, 2))
        top.add_row("trials", bar, ", ".join(words))
        for result in known:
            if result.status == "running":
                score = "" if result.score is None else f"best {result.measure} {result.score:.2f}"
                cells = (f"  {result.trial.name}", result.place or "reading", score, duration(result.seconds))
                below.add_row(*(Text(cell, style="dim") for cell in cells))
        return Group(top, below)

    with Live(
        console=console, transient=True, get_renderable=render, redirect_stdout=False, redirect_stderr=False
    ) as live:

        def tell(line: str) -> None:
            console.print(line, highlight=False, soft_wrap=True, markup=False)
            live.refresh()  # the counts have changed

        yield tell
