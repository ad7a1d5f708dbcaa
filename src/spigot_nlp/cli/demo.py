"""`spigot demo`: the paper's systems side by side on the built-in corpus, in one command."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

from spigot_nlp.cli.console import AsJson, Flag, print_json, say, show_table
from spigot_nlp.cli.options import options_of
from spigot_nlp.cli.study import conduct, failures, narrowed, status
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.experiments.study.plan import Planner
    from spigot_nlp.experiments.study.progress import Progress

REPORT = "report.html"
SENTENCES = 60  # that the report shows: most of the time goes into drawing them
_OURS = ("task", "system", "seed", "name", "sweep", "training.syntax_from", "syntax.start")


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
    """Train the paper's systems on the built-in corpus, print its table for them, and write a report to explore.

    Takes a few minutes on two cores; nothing is downloaded. Interrupting with Ctrl-C loses nothing: the same command
    goes on where it was. Any setting of the systems can be changed by its dotted name, as for spigot train:
    --estimator.eta 0.5, --data.graphs.limit 1000. The demo is a study: spigot study demo trains the same.

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
        Which systems to train: --systems pipeline,ste,spigot.
    processes
        How many trainings to run at a time; by default as many as there are cores.
    as_json
        Print the results as JSON instead of tables.
    """
    from spigot_nlp.cli.overrides import parse_overrides
    from spigot_nlp.experiments.study.file import load_study
    from spigot_nlp.experiments.study.plan import Planner

    if seeds < 1:
        raise ValueError(f"seeds is {seeds}; it must be at least 1.")
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must not be negative.")
    overrides = parse_overrides(settings, options_of(demo))
    for name in overrides:
        if name in _OURS:
            raise ValueError(f"{name} is for the demo to say; leave out --{name}.")
    study = load_study("demo-quick" if quick else "demo")
    study = study.model_copy(update={"seeds": tuple(range(seed, seed + seeds))})
    planner = narrowed(Planner(study, out or Path("runs") / study.name, overrides), systems, None)
    data = planner.trials({})[0].config.data
    if data.source != "synthetic":
        raise ValueError("the demo is about the built-in corpus; train on other data with spigot train CONFIG.")
    trees, graphs = (data.files(name).limit or data.synthetic.train for name in ("trees", "graphs"))
    say(f"The built-in corpus: {trees:,} trees and {graphs:,} semantic graphs of other sentences to learn from.")
    known = conduct(planner, processes=processes, tests=True)
    _finish(planner, known, as_json=as_json)


def _finish(planner: "Planner", known: "list[Progress]", *, as_json: bool) -> None:
    """From finished runs to a table, a report, and what to try next."""
    from spigot_nlp.experiments.study.arms import reported
    from spigot_nlp.experiments.study.record import read_record, summary
    from spigot_nlp.report.study_page import study_plain
    from spigot_nlp.report.study_results import study_results
    from spigot_nlp.report.study_tables import study_tables

    found, record = reported(planner, known), read_record(planner.out)
    runs = {} if found is None else {arm.system: list(arm.runs.values()) for arm in found.arms if arm.runs}
    finished = [run for folders in runs.values() for run in folders]
    results = None if found is None else study_results(found, tests=bool(record.tests))
    if results is not None and not as_json:
        for table in study_tables(results):
            show_table(table)
        sys.stdout.flush()
    report = None
    try:
        if finished:
            report = _write_report(finished, planner.out / REPORT)
    finally:  # whatever becomes of the report, the results are there
        if as_json:
            about = {"folder": planner.out, "report": report, **summary(known, record, {})}
            print_json({**about, "results": None if results is None else study_plain(results)})
    if report is not None:
        say(f"The report is in {report.resolve()}")
        _say_next(finished, runs)
    failures(planner, known)


def _write_report(runs: list[Path], path: Path) -> Path:
    from spigot_nlp.report.page import render, write
    from spigot_nlp.report.runs import report

    with status("writing the report") as shown, use_threads(1):
        page = report(
            runs,
            sentences=SENTENCES,
            told=lambda what: None if shown is None else shown.update(f"writing the report: {what}"),
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
