"""`python -m research.study FILE`: train every system of a study with every seed, and say what came of it."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import cyclopts

from research.command import main
from research.study.plan import Plan, Training, load_study
from research.study.running import Here, OnRay, Run
from research.study.tables import Results, tuning_rows, tuning_table, write_csv
from spigot_nlp.cli.console import AsJson, Flag, counted, print_json, print_table, say, show_table
from spigot_nlp.cli.options import options_of
from spigot_nlp.cli.overrides import parse_overrides
from spigot_nlp.report.speed import duration


def study(
    file: str,
    /,
    *settings: Annotated[str, cyclopts.Parameter(allow_leading_hyphen=True)],
    out: Path | None = None,
    systems: str | None = None,
    points: str | None = None,
    seeds: str | None = None,
    processes: int | None = None,
    threads: int = 1,
    ray: str | None = None,
    tests: Flag = False,
    plan: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Train every system of a study with every seed, and say what came of it: means, differences, intervals, cost.

    The same command goes on with a study that was interrupted, and shows the tables of one that is finished. A training
    that fails is tried again, and does not stop the others.

    Parameters
    ----------
    file
        A TOML file, or the name of one in research/studies, such as smoke.
    settings
        Settings that all trainings have: --name value, or --name=value, as for spigot train.
    out
        The folder for the runs, the logs and the tables; by default runs/NAME.
    systems
        Only some of its systems: --systems pipeline,spigot.
    points
        Only some of its points: --points 500,2000.
    seeds
        Other seeds than those of the file: --seeds 0,1,2. More seeds later add to the study.
    processes
        How many trainings to run at a time; by default as many as there are cores for, here or on the cluster.
    threads
        How many threads each of them may use.
    ray
        Train on a Ray cluster whose machines see the folder of the study under the same name: its address
        (ray://HOST:PORT), or 'auto' for this machine.
    tests
        When all trainings are finished, score the test sets, once, and show these scores too. Without it none is read.
    plan
        Say what would be trained, and train nothing.
    as_json
        Print the results as JSON instead of tables.
    """
    whole = load_study(file)
    if seeds is not None:
        whole = type(whole).model_validate({**whole.model_dump(), "seeds": seeds.split(",")})
    overrides = parse_overrides(settings, options_of(study))
    folder = out or Path("runs") / whole.name
    planned = Plan(whole, folder, overrides, listed(systems, whole.systems), listed(points, whole.places))
    if plan:
        print_plan(planned, as_json=as_json)
    else:
        run = conduct(planned, processes=processes, threads=threads, ray=ray, tests=tests)
        print_results(run, Results(planned, run.finals(), tests=tests), as_json=as_json)
        raise_failures(run)


def listed(given: str | None, known: Iterable[str]) -> list[str]:
    """The names in a list with commas; names of points that are made of values may have commas themselves."""
    words, found = (given or "").split(",") if given else [], list[str]()
    while words:
        many = next((k for k in range(len(words), 0, -1) if ",".join(words[:k]) in known), 1)
        found.append(",".join(words[:many]))
        words = words[many:]
    return found


def conduct(
    plan: Plan, *, processes: int | None = None, threads: int = 1, ray: str | None = None, tests: bool = False
) -> Run:
    """Train all of a study, and say on standard error how far it is.

    Args:
        plan: The trainings.
        processes: How many to run at a time.
        threads: How many threads each may use.
        ray: The Ray cluster to train on.
        tests: Whether to score the test sets in the end.
    """
    if threads < 1 or (processes is not None and processes < 1):
        raise ValueError(f"threads is {threads} and processes {processes}; both must be at least 1.")
    free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    machine = Here(processes or max(1, free // threads)) if ray is None else OnRay(ray, processes, threads)
    named = plan.named()
    open_ones = {name for name in plan.systems if plan.combinations(name) is None}
    size = len(named) + sum(plan.budget[name] for name in open_ones)
    done = sum((plan.out / training.name / "scores.json").exists() for training in named)
    say(f"{counted(size, 'training')}, {machine.processes} at a time, in {plan.out}; {done} finished already")

    def told(training: Training, said: str, seconds: float) -> None:
        nonlocal done
        done += not said.startswith(("failed", "test"))
        say(f"{done}/{size}  {training.name}: {said}, {duration(seconds)}")

    run = Run(plan, machine, threads, told)
    run.train()
    if tests:
        run.score_tests()
    return run


def print_plan(plan: Plan, *, as_json: bool) -> None:
    """Say what would be trained, and by how many trainings each system is tuned."""
    named, budget = plan.named(), plan.budget
    if as_json:
        plain = [_plain(plan, training) for training in named]
        print_json({"folder": plan.out, "trainings": plain, "budget": budget})
        return
    rows = [[t.name, t.role, ", ".join(source.name for source in t.needs)] for t in named]
    print_table(f"{counted(len(named), 'training')} in {plan.out}", ["", "role", "starts from"], rows)
    if any(budget.values()):
        print("Trainings to tune by: " + ", ".join(f"{name} {count}" for name, count in budget.items()))
        if len({count for count in budget.values() if count}) > 1:
            print("The systems are not tuned alike; that is for whoever reads the results to know.")


def _plain(plan: Plan, training: Training) -> dict[str, Any]:
    finished = (plan.out / training.name / "scores.json").exists()
    return {
        "name": training.name,
        "role": training.role,
        "seed": training.seed,
        "starts_from": [source.name for source in training.needs],
        "finished": finished,
    }


def print_results(run: Run, results: Results, *, as_json: bool) -> None:
    """Print the tables of a study, and write them beside its runs."""
    plan = run.plan
    tried = tuning_rows(plan, run.tried)
    if as_json:
        chosen = [
            {"system": system, "point": point, "values": values} for (system, point), values in run.chosen.items()
        ]
        plain = {"folder": plan.out, "budget": plan.budget, "tried": tried, "chosen": chosen, "failed": run.failed}
        print_json({**plain, "scores": results.scores, "differences": results.differences})
    else:
        for table in [*([tuning_table(tried)] if tried else []), *results.tables()]:
            show_table(table)
    for name, rows in (("scores", results.scores), ("differences", results.differences), ("tuning", tried)):
        if rows:
            write_csv(rows, plan.out / f"{name}.csv")
    say(f"The runs and the tables are in {plan.out}; spigot report RUN RUN ... makes a page of runs.")


def raise_failures(run: Run) -> None:
    """Complain of trainings that failed."""
    if run.failed:
        first = next(iter(run.failed))
        raise RuntimeError(
            f"{counted(len(run.failed), 'training')} failed, first {first}; {run.plan.out / first}.log says more, and "
            "the same command tries again."
        )


if __name__ == "__main__":
    main(study)
