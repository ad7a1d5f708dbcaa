"""`spigot demo`: the paper's systems side by side on the built-in corpus, in one command."""

import shlex
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

from spigot.cli.console import AsJson, Flag, cores, counted, print_json, say, use_threads
from spigot.cli.options import options_of

if TYPE_CHECKING:
    from spigot.experiments.comparison_plan import Plan
    from spigot.experiments.comparison_progress import Progress

REPORT = "report.html"
SENTENCES = 60  # that the report shows: most of the time goes into drawing them


def demo(
    *settings: Annotated[str, cyclopts.Parameter(allow_leading_hyphen=True)],
    quick: Flag = False,
    out: Path | None = None,
    seed: int = 0,
    seeds: int = 1,
    systems: str | None = None,
    processes: int | None = None,
    as_json: AsJson = False,
) -> None:
    """Train the paper's systems on the built-in corpus, print its tables for them, and write a report to explore.

    Takes a few minutes on two cores; nothing is downloaded. Interrupting with Ctrl-C loses nothing: the same command
    goes on where it was. Any setting of the systems can be changed by its dotted name, as for spigot train:
    --estimator.eta 0.5, --data.graphs.limit 1000.

    Parameters
    ----------
    settings
        Settings that all systems have: --name value, or --name=value.
    quick
        Less than a minute: smaller data, shorter trainings, rougher numbers.
    out
        The folder for the runs and the report; by default runs/demo, or runs/demo-quick. Remove it to start afresh.
    seed
        Where the random numbers of the trainings start.
    seeds
        How many times to train each system, with one seed after the other.
    systems
        Which systems to train: --systems pipeline,ste,spigot. The pipeline is always there where others start from its
        parser.
    processes
        How many trainings to run at a time; by default as many as there are cores.
    as_json
        Print the results as JSON instead of tables.
    """
    from spigot.cli.demo_display import shown
    from spigot.cli.overrides import parse_overrides
    from spigot.experiments.comparison import run_comparison
    from spigot.experiments.comparison_plan import SYSTEMS, check_folder, plan_comparison

    if seeds < 1:
        raise ValueError(f"seeds is {seeds}; it must be at least 1.")
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must not be negative.")
    if processes is None:
        processes = cores()
    if processes < 1:
        raise ValueError(f"processes is {processes}; it must be at least 1.")
    folder = out or Path("runs") / ("demo-quick" if quick else "demo")
    plan = plan_comparison(
        folder,
        systems=SYSTEMS if systems is None else [name.strip() for name in systems.split(",") if name.strip()],
        seeds=range(seed, seed + seeds),
        quick=quick,
        overrides=parse_overrides(settings, options_of(demo)),
    )
    check_folder(plan, folder)
    _announce(plan, folder)
    order = [run.name for runs in plan.runs(folder).values() for run in runs]
    looks = run_comparison(plan, folder, processes=processes)
    known = shown(looks, plan.sources, processes, order=order)
    _finish(plan, folder, known, as_json=as_json)


def _announce(plan: "Plan", folder: Path) -> None:
    from spigot.training.checkpoint import CONFIG, SCORES

    data = plan.trials[0].config.data
    if data.source == "synthetic":
        limits = (data.files(name).limit or data.synthetic.train for name in ("trees", "graphs"))
        trees, graphs = (min(limit, data.synthetic.train) for limit in limits)
        say(f"The built-in corpus: {trees:,} trees and {graphs:,} semantic graphs of other sentences to learn from.")
    runs = [folder / trial.name for trial in plan.trials]
    finished = sum((run / SCORES).exists() for run in runs)
    begun = sum((run / CONFIG).exists() and not (run / SCORES).exists() for run in runs)
    if finished or begun:
        parts = [f"{finished} finished"] * bool(finished) + [f"{begun} begun"] * bool(begun)
        say(f"{folder} has {' and '.join(parts)} of {len(runs)} trainings already; remove it to start afresh.")
    else:
        say(f"{counted(len(runs), 'training')}, each in a folder of its own in {folder}")


def _finish(plan: "Plan", folder: Path, known: "list[Progress]", *, as_json: bool) -> None:
    """From finished runs to tables, a report, and what to try next."""
    from spigot.cli.demo_tables import print_outcome
    from spigot.experiments.comparison_tables import outcome, remarks

    failed = {progress.trial.name: progress.reason for progress in known if progress.status == "failed"}
    runs = {system: [run for run in folders if run.name not in failed] for system, folders in plan.runs(folder).items()}
    finished = [run for folders in runs.values() for run in folders]
    found = outcome(runs)
    if finished and not as_json:
        print_outcome(found)
        sys.stdout.flush()
    report = None
    try:
        if finished:
            report = _write_report(finished, folder / REPORT)
    finally:  # whatever becomes of the report, the results are there
        if as_json:
            seconds = {progress.trial.name: progress.seconds for progress in known}
            about = {"folder": folder, "report": report, "runs": finished, "failed": failed, "seconds": seconds}
            print_json({**about, "remarks": remarks(found), "results": found})
    if report is not None:
        say(f"The report is in {report.resolve()}")
        _say_next(finished, runs)
    if failed:
        name = next(iter(failed))
        raise RuntimeError(
            f"{len(failed)} of {len(known)} trainings failed; {folder / name}.log says more, and the same command "
            "tries again."
        )


def _write_report(runs: list[Path], path: Path) -> Path:
    from rich.console import Console

    from spigot.report.page import render, write
    from spigot.report.runs import report

    console = Console(stderr=True)
    with console.status("writing the report") if console.is_terminal else nullcontext() as status, use_threads(1):
        page = report(
            runs,
            sentences=SENTENCES,
            told=lambda what: None if status is None else status.update(f"writing the report: {what}"),
        )
        write(render(page), path)
    return path


def _say_next(finished: list[Path], runs: dict[str, list[Path]]) -> None:
    run = _word((runs.get("spigot") or finished[-1:])[0])
    spigot = _program()
    commands = {
        f"{spigot} serve {run} --open": "type sentences, force and forbid arcs, see what changes",
        f'echo "The old baker praised the clever pilot." | {spigot} parse {run}': "plain text in, trees and graphs out",
    }
    if runs.get("pipeline") and runs.get("spigot"):
        commands[f"{spigot} analyse {_word(runs['pipeline'][0])} {run}"] = "what the end task changed in the trees"
    say("Next:")
    for command, purpose in commands.items():
        say(f"  {command}\n      {purpose}")


def _program() -> str:
    """How to call this program from here; make leaves it in an environment that need not be active."""
    mine = Path(sys.argv[0])
    if shutil.which("spigot") or mine.name != "spigot" or not mine.exists():
        return "spigot"
    here = Path.cwd()
    return _word(mine.relative_to(here) if mine.is_absolute() and mine.is_relative_to(here) else mine)


def _word(path: Path) -> str:
    """A path as a word of a command that can be copied."""
    return shlex.quote(str(path))
