"""`python -m research.latent`: what the estimators do on small problems with a hidden structure."""

import json
from dataclasses import replace
from pathlib import Path

from research.command import main
from research.latent.contenders import contenders
from research.latent.results import plain_results, run, summarise
from research.latent.settings import Settings
from research.latent.tables import draw, result_table, tasks_of
from spigot_nlp.cli.console import AsJson, Flag, print_json, progress, show_table
from spigot_nlp.data.formats.files import check_target
from spigot_nlp.models.checkpoint import write_text
from spigot_nlp.threads import use_threads


def latent(
    *tasks: str,
    quick: Flag = False,
    seeds: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    picture: Path | None = None,
    threads: int = 1,
    as_json: AsJson = False,
) -> None:
    """Train every estimator to find hidden structures from the final answer alone, and print what they found.

    Every registered estimator takes part, each with its main option tuned on other seeds; and its gradient is held
    against the exact one.

    Parameters
    ----------
    tasks
        Which of clusters, chains, trees, subsets, paths, matchings; all if none is named.
    quick
        A few seconds only and nothing tuned, to see that everything works.
    seeds
        How many repetitions; 5 if omitted.
    steps
        Updates in each training; 200 if omitted. All tasks then take some minutes.
    seed
        Where the random numbers start; the same seed gives the same numbers, times apart.
    out
        A file for settings, results and learning curves, as JSON.
    picture
        A file for a picture of how much each estimator found, as SVG.
    threads
        How many threads torch may use. The tensors here are small: more threads mostly wait for each other.
    as_json
        Print the results as JSON instead of tables.
    """
    settings = Settings.quick() if quick else Settings()
    changes = {"tasks": tuple(dict.fromkeys(tasks)) or None, "seeds": seeds, "steps": steps, "seed": seed}
    settings = replace(settings, **{name: value for name, value in changes.items() if value is not None})
    for target in filter(None, (out, picture)):
        check_target(target)
    entrants = contenders()
    with use_threads(threads):
        total = len(settings.tasks) * len(entrants)
        outcomes = list(progress(run(settings, entrants), "hidden structures", total=total))
    plain, rows = plain_results(settings, outcomes), summarise(outcomes)
    if out is not None:
        write_text(out, json.dumps(plain, indent=1, ensure_ascii=False) + "\n")
    if picture is not None:
        draw(rows, picture)
    if as_json:
        print_json(plain)
        return
    for task in tasks_of(rows):
        show_table(result_table(task, rows))


if __name__ == "__main__":
    main(latent)
