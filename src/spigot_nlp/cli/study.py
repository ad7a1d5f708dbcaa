"""`spigot study`: many trainings that answer one question, from one file."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts

from spigot_nlp.cli.console import AsJson, Flag, counted, print_json, print_table, progress, say, show_table
from spigot_nlp.cli.options import options_of
from spigot_nlp.threads import cores

if TYPE_CHECKING:
    from spigot_nlp.experiments.cluster import RayTeam
    from spigot_nlp.experiments.study.arms import TuningRow
    from spigot_nlp.experiments.study.plan import Planner
    from spigot_nlp.experiments.study.progress import Progress

REPORT, MARKDOWN, TUNING = "study.html", "study.md", "tuning.csv"


def study(
    file: Path,
    /,
    *settings: Annotated[str, cyclopts.Parameter(allow_leading_hyphen=True)],
    out: Path | None = None,
    systems: str | None = None,
    points: str | None = None,
    seeds: str | None = None,
    processes: int | None = None,
    threads: int = 1,
    on: str | None = None,
    tests: Flag = False,
    plan: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Train every system of a study with every seed, and say what came of it: means, differences, intervals, cost.

    The same command goes on with a study that was interrupted, and shows the tables of one that is finished. A training
    that fails is tried again, and does not stop the others. Any setting can be changed for all trainings by its dotted
    name, as for spigot train.

    Parameters
    ----------
    file
        A TOML file, or the name of a study that comes with spigot, such as demo; a wrong name lists them.
    settings
        Settings that all trainings have: --name value, or --name=value.
    out
        The folder for the runs, the logs, the tables and the page; by default runs/NAME.
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
    on
        Where to train: on this machine by default; 'ray' for Ray on it, or the address of a Ray cluster
        (ray://HOST:PORT) whose machines see the folder of the study under the same name.
    tests
        When all trainings are finished, score the test sets, once, and show these scores too. Without it none is read.
    plan
        Say what would be trained, and train nothing.
    as_json
        Print the results as JSON instead of tables.
    """
    from spigot_nlp.cli.overrides import parse_overrides
    from spigot_nlp.experiments.study.file import load_study
    from spigot_nlp.experiments.study.plan import Planner

    whole = load_study(file)
    if seeds is not None:
        whole = whole.model_copy(update={"seeds": read_seeds(seeds)})
    overrides = parse_overrides(settings, options_of(study))
    planner = narrowed(Planner(whole, out or Path("runs") / whole.name, overrides), systems, points)
    if plan:
        _print_plan(planner, as_json=as_json)
        return
    known = conduct(planner, processes=processes, threads=threads, on=on, tests=tests)
    _finish(planner, known, tests=tests, as_json=as_json)


def narrowed(planner: "Planner", systems: str | None, points: str | None) -> "Planner":
    """A study with some of its systems and points, as they stand on a command line.

    Raises:
        ValueError: If there is no such system or point.

    Example:
        >>> from spigot_nlp.experiments.study.file import load_study
        >>> from spigot_nlp.experiments.study.plan import Planner
        >>> list(narrowed(Planner(load_study("demo"), Path("runs/demo")), "pipeline,spigot", None).systems)
        ['pipeline', 'spigot']
    """
    return replace(
        planner,
        only_systems=_named("--systems", systems, planner.systems),
        only_points=_named("--points", points, planner.points),
    )


def _named(option: str, given: str | None, known: Iterable[str]) -> tuple[str, ...]:
    """The names in a list with commas; a name that is made of values may have commas itself."""
    if given is None:
        return ()
    there = ", ".join(filter(None, known)) or "none"
    words, found = [word.strip() for word in given.split(",") if word.strip()], list[str]()
    if not words:
        raise ValueError(f"{option} names none; the study has {there}.")
    while words:
        joined = ((",".join(words[:many]), many) for many in range(len(words), 0, -1))
        name, many = next(((name, many) for name, many in joined if name in known), (words[0], 0))
        if not many:
            raise ValueError(f"{option} names {name!r}; the study has {there}.")
        found.append(name)
        words = words[many:]
    return tuple(found)


def read_seeds(text: str) -> tuple[int, ...]:
    """Seeds as they stand on a command line.

    Example:
        >>> read_seeds("0,1,2")
        (0, 1, 2)
    """
    try:
        found = tuple(int(word) for word in text.split(","))
    except ValueError:
        raise ValueError(f"--seeds is {text!r}; write whole numbers with commas, such as --seeds 0,1,2.") from None
    if min(found) < 0 or len(set(found)) < len(found):
        raise ValueError(f"--seeds is {text!r}; seeds are whole numbers from 0, each once.")
    return found


def conduct(
    planner: "Planner", *, processes: int | None = None, threads: int = 1, on: str | None = None, tests: bool = False
) -> "list[Progress]":
    """Train all of a study, and show how far it is.

    Args:
        planner: The study.
        processes: How many trainings to run at a time; as many as there are cores for if omitted.
        threads: How many threads each may use.
        on: Where to train; see `spigot study`.
        tests: Whether to score the test sets in the end.

    Returns:
        What became of each training.
    """
    from spigot_nlp.cli.study_display import shown
    from spigot_nlp.experiments.study.runner import run_study, score_tests, survey, untested
    from spigot_nlp.training.requirements import never_through

    if threads < 1:
        raise ValueError(f"threads is {threads}; it must be at least 1.")
    team = _team(on, threads)
    if processes is None:
        processes = max(1, cores() // threads if team is None else team.places)
    if processes < 1:
        raise ValueError(f"processes is {processes}; it must be at least 1.")
    found = survey(planner, processes)
    if tests and (bare := next((one.trial for one in found if not one.trial.config.data.has_tests), None)):
        raise ValueError(f"--tests: {bare.name} has no test sets; name some as data.NAME.tests, or leave --tests out.")
    say(announcement(planner, found, processes))
    if idle := next(((one.trial, said) for one in found if (said := never_through(one.trial.config))), None):
        say(f"{idle[0].name}: {idle[1]}")
    looks = run_study(planner, processes=processes, threads=threads, team=team)
    known = shown(looks, planner.size, processes)
    if tests and (missing := untested(planner, known)):
        say(f"The test sets are not scored: {missing}.")
    elif tests:
        scored = score_tests(planner, known, processes=processes, threads=threads, team=team)
        try:
            for _ in progress(scored, "scoring the test sets", describe=lambda now: f"test sets {now[0]}/{now[1]}"):
                pass
        except RuntimeError as error:  # what the development data say is shown all the same
            say(str(error))
    return known


def _team(on: str | None, threads: int) -> "RayTeam | None":
    if on is None:
        return None
    from spigot_nlp.experiments.cluster import ray_workers

    return ray_workers(on, threads=threads)


def announcement(planner: "Planner", known: "Sequence[Progress]", processes: int) -> str:
    """What is about to be trained, in a sentence.

    Example:
        >>> from spigot_nlp.experiments.study.file import load_study
        >>> from spigot_nlp.experiments.study.plan import Planner
        >>> announcement(Planner(load_study("demo"), Path("runs/demo")), [], 2)
        '7 trainings, 2 at a time, in runs/demo'
    """
    finished = sum(progress.status == "finished" for progress in known)
    begun = sum(progress.status == "waiting" and progress.share > 0 for progress in known)
    parts = [f"{finished} finished"] * bool(finished) + [f"{begun} begun"] * bool(begun)
    before = f"; {' and '.join(parts)} already" if parts else ""
    return f"{counted(planner.size, 'training')}, {processes} at a time, in {planner.out}{before}"


def _print_plan(planner: "Planner", *, as_json: bool) -> None:
    from spigot_nlp.experiments.study.runner import survey

    known, budget = survey(planner), planner.budget()
    trials = [progress.trial for progress in known]
    if as_json:
        listed = [
            {
                "name": trial.name,
                "role": trial.role,
                "seed": trial.seed,
                "starts_from": trial.needs,
                "status": progress.status,
            }
            for progress in known
            for trial in [progress.trial]
        ]
        print_json({"folder": planner.out, "trainings": planner.size, "budget": budget, "named": listed})
        return
    rows = [[trial.name, trial.role, ", ".join(trial.needs)] for trial in trials]
    print_table(f"{counted(planner.size, 'training')} in {planner.out}", ["", "role", "starts from"], rows)
    if len(trials) < planner.size:
        print(f"{planner.size - len(trials)} more once tuning has chosen their values.")
    if any(budget.values()):
        print("Trainings to tune by: " + ", ".join(f"{name or 'all'} {count}" for name, count in budget.items()))
        if len({count for count in budget.values() if count}) > 1 or not all(budget.values()):
            print("The systems are not tuned alike; that is for whoever reads the results to know.")


def _finish(planner: "Planner", known: "list[Progress]", *, tests: bool, as_json: bool) -> None:
    """From finished runs to tables and a page."""
    from spigot_nlp.experiments.study.arms import reported, tuning_rows, write_tuning
    from spigot_nlp.experiments.study.record import read_record, summary
    from spigot_nlp.models.checkpoint import write_text
    from spigot_nlp.report.page import render, write
    from spigot_nlp.report.study_page import study_markdown, study_page, study_plain
    from spigot_nlp.report.study_results import study_results
    from spigot_nlp.report.study_tables import study_tables

    rows, found = tuning_rows(planner, known), reported(planner, known)
    record = read_record(planner.out)
    results = None
    if found is not None:
        with status("counting"):
            results = study_results(found, tests=tests and bool(record.tests))
    if as_json:
        chosen = {f"{row.system},{row.point}".strip(","): dict(row.values) for row in rows if row.chosen}
        plain = None if results is None else study_plain(results)
        print_json({"folder": planner.out, **summary(known, record, chosen), "results": plain})
    else:
        if rows:
            print_tuning(rows)
        for table in () if results is None else study_tables(results):
            show_table(table)
    sys.stdout.flush()
    if rows:
        write_tuning(rows, planner.out / TUNING)
    if results is not None:
        write(render(study_page(results)), planner.out / REPORT)
        write_text(planner.out / MARKDOWN, study_markdown(results))
        say(f"The page is in {(planner.out / REPORT).resolve()}, its tables for documents in {MARKDOWN} beside it")
    failures(planner, known)
    if tests and not record.tests:
        raise RuntimeError("the test sets are not scored; the same command tries again.")


def failures(planner: "Planner", known: "Sequence[Progress]") -> None:
    """Complain of trainings that failed.

    Raises:
        RuntimeError: Some did.
    """
    failed = [progress for progress in known if progress.status == "failed"]
    if failed:
        first = next((p for p in failed if (planner.out / f"{p.trial.name}.log").exists()), failed[0])
        raise RuntimeError(
            f"{len(failed)} of {planner.size} trainings failed; {planner.out / first.trial.name}.log says more, and "
            "the same command tries them again."
        )


def status(what: str) -> Any:
    """A word on a terminal while something takes its time."""
    from rich.console import Console

    console = Console(stderr=True)
    return console.status(what) if console.is_terminal else nullcontext()


def print_tuning(rows: "Sequence[TuningRow]") -> None:
    """Print what was tried, and which values the development data choose.

    Example:
        >>> from spigot_nlp.experiments.study.arms import TuningRow
        >>> values = {0.1: 70.1, 1.0: 71.0}
        >>> print_tuning([
        ...     TuningRow("", "", {"estimator.eta": eta}, {0: score}, True, eta == 1.0, 1.5, 4, {}, "LF")
        ...     for eta, score in sorted(values.items(), reverse=True)
        ... ])
        2 combinations by LF on the development data, per cent
        <BLANKLINE>
              eta     dev   epochs   minutes
         ────────────────────────────────────
          1     1   71.00        4       1.5
          2   0.1   70.10        4       1.5
        <BLANKLINE>
        Chosen on the development data: --estimator.eta 1
    """
    from spigot_nlp.experiments.study.trials import show_value

    groups: dict[tuple[str, str], list[TuningRow]] = {}
    for row in rows:
        groups.setdefault((row.system, row.point), []).append(row)
    for (system, point), tried in groups.items():
        _print_group(", ".join(filter(None, (system, point))), tried)
        chosen = next((row for row in tried if row.chosen), None)
        if chosen is None:
            print("None is chosen: no combination has a dev score for all of its trainings.")
        else:
            words = (f"--{name} {show_value(value)}" for name, value in chosen.values.items())
            print(f"Chosen on the development data: {' '.join(words)}")


def _print_group(name: str, rows: "Sequence[TuningRow]") -> None:
    from spigot_nlp.experiments.study.trials import short_names, show_value

    seeds = sorted({seed for row in rows for seed in (*row.scores, *row.failures)})
    several, failed = len(seeds) > 1, any(row.failures for row in rows)
    columns = ["", *short_names(list(rows[0].values)).values(), "dev", *(["each seed"] if several else [])]
    columns += ["epochs", "minutes", *(["failed"] if failed else [])]
    cells = []
    for number, row in enumerate(rows, 1):
        dev = _number(row.mean, 2) + (f" ± {row.sd:.2f}" if row.sd is not None else "")
        epochs = "–" if row.epoch is None else f"{row.epoch:.1f}".removesuffix(".0")
        why = " ".join(f"seed {seed}: {reason}" for seed, reason in row.failures.items())
        cells.append(
            [
                *(str(number), *map(show_value, row.values.values()), dev),
                *([" ".join(_number(row.scores.get(seed), 2) for seed in seeds)] if several else []),
                *(epochs, _number(row.minutes, 1), *([why] if failed else [])),
            ]
        )
    measure = next((row.measure for row in rows if row.measure), "score")
    over = f", mean ± standard deviation of {len(seeds)} seeds" if several else ""
    title = f"{counted(len(rows), 'combination')} by {measure} on the development data{over}, per cent"
    print_table(f"{name}: {title}" if name else title, columns, cells)


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
