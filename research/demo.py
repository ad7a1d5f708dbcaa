"""`python -m research.demo`: the paper's systems side by side on the built-in corpus, in one command."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import cyclopts

from research.command import main
from research.study.__main__ import conduct, listed, print_results, raise_failures
from research.study.plan import Plan, load_study
from research.study.running import Run
from research.study.tables import Results
from spigot_nlp.cli.console import AsJson, Flag, say
from spigot_nlp.cli.options import options_of
from spigot_nlp.cli.overrides import parse_overrides


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
    goes on where it was. The demo is a study, research/studies/demo.toml.

    Parameters
    ----------
    settings
        Settings that all systems have: --estimator.eta 0.5, --data.graphs.limit 1000.
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
    if seeds < 1 or seed < 0:
        raise ValueError(f"seed is {seed} and seeds is {seeds}; they must be at least 0 and 1.")
    study = load_study("demo-quick" if quick else "demo")
    study = study.model_copy(update={"seeds": tuple(range(seed, seed + seeds))})
    overrides = parse_overrides(settings, options_of(demo))
    plan = Plan(study, out or Path("runs") / study.name, overrides, listed(systems, study.systems))
    run = conduct(plan, processes=processes)
    if not run.failed:
        run.score_tests()
    print_results(run, Results(plan, run.finals(), tests=not run.failed), as_json=as_json)
    runs = [plan.out / training.name for training in run.finals()]
    if runs:
        report = [sys.executable, "-m", "spigot_nlp", "report", *map(str, runs)]
        subprocess.run([*report, "--out", str(plan.out / "report.html"), "--sentences", "60"], check=False)
        _say_next(run)
    raise_failures(run)


def _say_next(run: Run) -> None:
    runs = {training.system: run.plan.out / training.name for training in reversed(run.finals())}
    program = Path(sys.executable).with_name("spigot")
    here = Path.cwd()
    spigot = shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))
    one = shlex.quote(str(runs.get("spigot") or next(iter(runs.values()))))
    say("Next:")
    say(f"  {spigot} serve {one} --open\n      type sentences, force and forbid arcs, see what changes")
    say(f'  echo "The old baker praised the clever pilot." | {spigot} parse {one}\n      plain text in, graphs out')
    if "pipeline" in runs and "spigot" in runs:
        python, pipeline = spigot.removesuffix("spigot") + "python", shlex.quote(str(runs["pipeline"]))
        say(f"  {python} -m research.analysis {pipeline} {one}\n      what the end task changed in the trees")


if __name__ == "__main__":
    main(demo)
