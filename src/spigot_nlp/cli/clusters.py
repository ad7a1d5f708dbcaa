"""`spigot clusters`: what the estimators do on small problems with a hidden structure."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spigot_nlp.cli.console import AsJson, Flag, print_json, print_table, progress, say
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.experiments.latent.results import Outcome


def clusters(
    *tasks: str,
    quick: Flag = False,
    seeds: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    out: Path = Path("clusters.html"),
    as_json: AsJson = False,
    threads: int = 1,
) -> None:
    """Train every estimator to find hidden structures from the final answer alone, print tables and write a page.

    Clusters are the first of six tasks: clusters, chains, trees, subsets, paths through a grid, and matchings. Every
    registered estimator takes part, those of plug-ins too, each with its main option tuned on other seeds; and its
    gradient is held against the exact one.

    Parameters
    ----------
    tasks
        Which of the tasks; all if none is named.
    quick
        A few seconds only and nothing tuned, to see that everything works.
    seeds
        How many repetitions; 5 if omitted.
    steps
        Updates in each training; 200 if omitted. All tasks then take some minutes.
    seed
        Where the random numbers start; the same seed gives the same numbers, times apart.
    out
        Where to write the page.
    as_json
        Print the results as JSON instead of tables.
    threads
        How many threads torch may use. The tensors here are small: more threads mostly wait for each other.
    """
    from spigot_nlp.data.formats.files import check_target
    from spigot_nlp.experiments.latent.contenders import contenders
    from spigot_nlp.experiments.latent.page import latent_page
    from spigot_nlp.experiments.latent.results import as_json as plain
    from spigot_nlp.experiments.latent.results import run
    from spigot_nlp.experiments.latent.settings import Settings
    from spigot_nlp.report.page import render, write

    settings = Settings.quick() if quick else Settings()
    changes = {"tasks": tuple(dict.fromkeys(tasks)) or None, "seeds": seeds, "steps": steps, "seed": seed}
    settings = replace(settings, **{name: value for name, value in changes.items() if value is not None})
    check_target(out)
    entrants = contenders()
    with use_threads(threads):
        outcomes = list(
            progress(
                run(settings, entrants),
                "hidden structures",
                total=len(settings.tasks) * len(entrants),
                describe=lambda outcome: f"{outcome.task:<10} {outcome.contender:<24}",
            )
        )
    if as_json:
        print_json(plain(settings, outcomes))
    else:
        _print_results(outcomes)
    sys.stdout.flush()  # whatever becomes of the page
    write(render(latent_page(settings, outcomes)), out)
    say(f"The report is in {out.resolve()}")


def _print_results(outcomes: "Sequence[Outcome]") -> None:
    from rich.text import Text

    from spigot_nlp.experiments.latent.results import summarise
    from spigot_nlp.experiments.latent.tables import result_table, tasks_of

    rows = summarise(outcomes)
    for task in tasks_of(rows):
        table = result_table(task, [row for row in rows if row.refusal is None])
        aside = {row.name for row in table.rows if row.aside}
        cells = [
            [row.name, *(Text(f"{c.text} {c.detail}".strip(), style="bold" if c.best else "") for c in row.cells)]
            for row in table.rows
        ]
        print_table(table.title, table.columns, cells, dim=aside.__contains__)
        absent = [row.contender for row in rows if row.task == task and row.refusal is not None]
        if absent:
            print(f"Do not fit, for reasons that are on the page: {', '.join(absent)}.\n")
