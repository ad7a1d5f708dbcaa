"""`spigot clusters`: what the estimators do on a problem with one hidden choice."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spigot.cli.console import AsJson, Flag, print_json, print_table, progress, say, use_threads

if TYPE_CHECKING:
    from spigot.experiments.clusters import Row, Settings


def clusters(
    *,
    quick: Flag = False,
    seeds: int | None = None,
    epochs: int | None = None,
    seed: int = 0,
    out: Path = Path("clusters.html"),
    as_json: AsJson = False,
    threads: int = 1,
) -> None:
    """Train every estimator to find hidden clusters from the final label alone, print a table and write a page.

    Parameters
    ----------
    quick
        A few seconds only, to see that everything works.
    seeds
        How many repetitions.
    epochs
        Passes over the training points.
    seed
        Where the random numbers start; the same seed gives the same numbers.
    out
        Where to write the page.
    as_json
        Print the results as JSON instead of a table.
    threads
        How many threads torch may use. The tensors here are small: more threads mostly wait for each other.
    """
    from spigot.experiments import clusters as experiment
    from spigot.experiments.clusters_page import cluster_page
    from spigot.report.page import check_target, render, write

    settings = experiment.Settings.quick() if quick else experiment.Settings()
    changes = {"seeds": seeds, "epochs": epochs, "seed": seed}
    settings = replace(settings, **{name: value for name, value in changes.items() if value is not None})
    check_target(out)
    with use_threads(threads):
        records = list(
            progress(
                experiment.run(settings),
                "latent clusters",
                total=experiment.total_epochs(settings),
                describe=lambda epoch: f"K = {epoch.clusters:<3} {epoch.contender:<20}",
            )
        )
    if as_json:
        print_json(experiment.as_json(settings, records))
    else:
        _print_results(experiment.summarise(records), settings)
    sys.stdout.flush()  # whatever becomes of the page
    write(render(cluster_page(settings, records)), out)
    say(f"The report is in {out.resolve()}")


def _print_results(rows: "Sequence[Row]", settings: "Settings") -> None:
    from rich.text import Text

    from spigot.experiments.clusters_page import COLUMNS, result_rows

    for k in settings.clusters:
        here = result_rows([row for row in rows if row.clusters == k])
        aside = {name for name, _, is_aside in here if is_aside}
        cells = [
            [name, *(Text(f"{cell.text} {cell.detail}", style="bold" if cell.best else "") for cell in numbers)]
            for name, numbers, _ in here
        ]
        print_table(f"K = {k} clusters, {settings.seeds} seeds, per cent", COLUMNS, cells, dim=aside.__contains__)
