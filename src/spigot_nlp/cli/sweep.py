"""`spigot sweep`: train an experiment with many settings, and say which are best."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts

from spigot_nlp.cli.console import AsJson, print_json, say, show_table
from spigot_nlp.cli.options import options_of
from spigot_nlp.cli.study import TUNING, conduct, failures, print_tuning, read_seeds

if TYPE_CHECKING:
    from spigot_nlp.experiments.study.file import Study


def sweep(
    config: Path,
    /,
    *settings: Annotated[str, cyclopts.Parameter(allow_leading_hyphen=True)],
    over: Annotated[list[str] | None, cyclopts.Parameter(negative="")] = None,
    random: int | None = None,
    bayes: int | None = None,
    sweep_seed: int = 0,
    seeds: str | None = None,
    processes: int | None = None,
    threads: int = 1,
    on: str | None = None,
    out: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Search for good settings: train every combination of the given values, and rank them by their dev score.

    A sweep is a study that tunes one system and does nothing else; see spigot study. The same command goes on with a
    sweep that was interrupted, and shows the table of one that is finished. More values, seeds or combinations add
    trainings to it. No test set is read: score that of what was chosen with spigot evaluate RUN --tests.

    Parameters
    ----------
    config
        A TOML file, or the name of a configuration that comes with spigot; its table [sweep] may say which values to
        try.
    settings
        Settings that all trainings have: --name value, or --name=value, as for spigot train.
    over
        A setting and the values to try: --over estimator.eta=0.1,1. May be given several times.
    random
        How many combinations to draw by chance; all of them by default.
    bayes
        How many combinations to try, each chosen by what the ones before it came to (with Optuna, the extra "search").
    sweep_seed
        Where the drawing starts.
    seeds
        The seeds to train every combination with: --seeds 0,1,2.
    processes
        How many trainings to run at a time; by default as many as there are cores for.
    threads
        How many threads each of them may use.
    on
        Where to train: see spigot study.
    out
        The folder for the runs, the logs and the table; by default runs/NAME-sweep.
    as_json
        Print the results as JSON instead of a table.
    """
    from spigot_nlp.cli.overrides import parse_overrides
    from spigot_nlp.experiments.study.arms import reported, tuning_rows, write_tuning
    from spigot_nlp.experiments.study.plan import Planner
    from spigot_nlp.experiments.study.record import read_record, summary
    from spigot_nlp.report.study_results import study_results
    from spigot_nlp.report.study_tables import study_tables

    overrides = parse_overrides(settings, options_of(sweep))
    study = as_study(
        config,
        over=parse_over(over or []),
        overrides=overrides,
        seeds=None if seeds is None else read_seeds(seeds),
        random=random,
        bayes=bayes,
        sweep_seed=sweep_seed,
    )
    fixed = {name: value for name, value in overrides.items() if name != "seed"}  # which is among its seeds
    planner = Planner(study, out or Path("runs") / study.name, fixed)
    known = conduct(planner, processes=processes, threads=threads, on=on)
    rows = tuning_rows(planner, known)
    write_tuning(rows, planner.out / TUNING)
    if as_json:
        chosen = next((dict(row.values) for row in rows if row.chosen), None)
        print_json({"folder": planner.out, **summary(known, read_record(planner.out), {}), "chosen": chosen})
    elif rows:
        print_tuning(rows)
    elif found := reported(planner, known):  # nothing but seeds
        for table in study_tables(study_results(found)):
            show_table(table)
    say(f"The runs and the table are in {planner.out}")
    failures(planner, known)


def as_study(
    config: str | Path,
    *,
    over: "dict[str, list[Any]] | None" = None,
    overrides: "dict[str, Any] | None" = None,
    seeds: Sequence[int] | None = None,
    random: int | None = None,
    bayes: int | None = None,
    sweep_seed: int = 0,
) -> "Study":
    """A search as a study that tunes one system.

    Args:
        config: The configuration, a file or a name. Its table `[sweep]` says which values to try.
        over: Values to try by dotted name; they replace those of the file.
        overrides: Values that all trainings have. A setting given here is not varied, even if the file would.
        seeds: The seeds to train every combination with; those of the file, or its one seed, if omitted.
        random: How many combinations to draw by chance.
        bayes: How many to try by what was seen so far.
        sweep_seed: Where the drawing starts.

    Raises:
        ValueError: If nothing varies, or the search makes no sense.

    Example:
        >>> as_study("sst", over={"estimator.eta": [0.1, 1.0]}, random=30).tune.trials
        30
    """
    from spigot_nlp.config import find_config, load_config
    from spigot_nlp.experiments.study.file import make_study

    over, overrides, path = dict(over or {}), dict(overrides or {}), find_config(config)
    if both := sorted(over.keys() & overrides.keys()):
        raise ValueError(f"{both[0]} is to vary and to be fixed; give one of --over {both[0]}=... and --{both[0]}.")
    if random is not None and bayes is not None:
        raise ValueError("--random and --bayes are two ways to search; give one of them.")
    base = load_config(path, overrides)
    values: dict[str, Any] = {name: list(v) for name, v in base.sweep.items() if name not in overrides}
    values.update(over)
    listed = values.pop("seed", None)
    chosen = list(seeds if seeds is not None else listed if listed is not None else [base.seed])
    for setting, options in values.items():
        if setting == "name" or setting.partition(".")[0] == "sweep":
            raise ValueError(f"{path}: a sweep over {setting!r} changes no result; leave it out.")
        if not options:
            raise ValueError(f"{path}: there is no value of {setting} to try; give some, or leave it out.")
    if not values and len(chosen) < 2:
        raise ValueError(
            f"{path} has nothing to vary; give values by --over, e.g. --over estimator.eta=0.1,1, several --seeds, "
            "or a table [sweep] in the file."
        )
    count = random if random is not None else bayes
    if count is not None and count < 1:
        raise ValueError(f"--{'random' if bayes is None else 'bayes'} is {count}; it must be at least 1.")
    search = "grid" if count is None else "random" if bayes is None else "bayes"
    return make_study(
        {
            "name": f"{base.name or path.stem}-sweep",
            "config": str(path),
            "seeds": [] if values else chosen,
            "systems": {"": {"tune": values}} if values else {},
            "tune": {"seeds": chosen, "search": search, "trials": count, "seed": sweep_seed},
        },
        "the sweep",
    )


def parse_over(words: Sequence[str]) -> dict[str, list[Any]]:
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
    from spigot_nlp.cli.overrides import parse_overrides

    found: dict[str, list[Any]] = {}
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
