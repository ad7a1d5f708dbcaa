"""`spigot train`: from a configuration to a run folder."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

from spigot_nlp.cli.console import (
    AsJson,
    Device,
    Precision,
    is_first_process,
    print_json,
    say,
    torch_device,
)
from spigot_nlp.cli.memory import keep_freed_memory
from spigot_nlp.cli.options import options_of, plugin_options
from spigot_nlp.cli.scores import print_summary
from spigot_nlp.configs import find_config
from spigot_nlp.threads import use_threads

if TYPE_CHECKING:
    from spigot_nlp.config import Config


def train(
    config: Path | None = None,
    /,
    *settings: Annotated[str, cyclopts.Parameter(allow_leading_hyphen=True)],
    out: Path | None = None,
    resume: Path | None = None,
    tests: bool = True,
    threads: int | None = None,
    device: Device = "cpu",
    precision: Precision | None = None,
    as_json: AsJson = False,
) -> None:
    """Train the experiment of a configuration file, or go on with one that was interrupted.

    Any setting of the file can be changed by its dotted name: --estimator.eta 0.5, --system ste,
    --data.graphs.limit 500, --data.trees.train '["a.conllu", "b.conllu"]'. Interrupting with Ctrl-C loses nothing but
    the current step. Several processes share the work under torchrun: torchrun --nproc-per-node 2 -m spigot_nlp train
    ...

    Parameters
    ----------
    config
        A TOML file, or the name of a configuration that comes with spigot, such as synthetic; a wrong name lists them.
    settings
        Settings to change: --name value, or --name=value, with the value in TOML or as plain text.
    out
        The run folder to make; by default runs/NAME-SYSTEM-SEED.
    resume
        The folder of an interrupted run to go on with, in place of CONFIG. Use as many threads as before: the result is
        then the same, bit for bit, as without the interruption. It goes on in the precision it was begun in, unless
        another is given.
    tests
        Whether the test sets are read, and scored in the end. With --no-tests they are not looked at, and spigot
        evaluate RUN --tests scores them later.
    threads
        How many threads torch may use; by default one for each core, but no more than four, as the tensors are small.
    as_json
        Print the scores as JSON instead of tables.
    """
    if resume is None and config is not None:
        find_config(config)  # which refuses a name before anything waits for torch
    from spigot_nlp import training
    from spigot_nlp.cli.watch import show_progress
    from spigot_nlp.training.plan import phases
    from spigot_nlp.training.requirements import overridden

    keep_freed_memory()
    tell = say if is_first_process() else lambda message: None
    if resume is None:
        chosen, is_preset_asked = _chosen(config, settings, tests)
        folder = out or Path("runs") / f"{chosen.name}-{chosen.system}-{chosen.seed}"
        if out is None:
            tell(f"The run goes to {folder}")
        run = partial(training.train, chosen)
    else:
        if config is not None or settings or out is not None:
            given = config or (settings[0] if settings else "--out")
            raise ValueError(f"--resume goes on with a run as it was; leave out {given}, or leave out --resume.")
        folder, chosen, is_preset_asked = resume, _resumed(resume, tests, precision, tell), False
        run = training.resume
    if is_preset_asked and (remark := overridden(chosen)):
        tell(remark)
    again = _resumable(folder, device, precision if resume else None)
    with use_threads(threads), again, show_progress(phases(chosen)) as on_step:
        done = run(folder, on_step, device=torch_device(device), precision=precision, say=tell)
    if is_first_process():
        if as_json:
            print_json({"run": folder, "scores": done.scores})
        else:
            print_summary(done.scores, chosen)
        say(f"The run is in {folder}")


def _chosen(config: Path | None, settings: tuple[str, ...], tests: bool) -> tuple["Config", bool]:
    """The experiment, and whether a preset was asked for."""
    from spigot_nlp.cli.overrides import parse_overrides
    from spigot_nlp.config import load_config, read_tables

    if config is None:
        raise ValueError("there is nothing to train; give a TOML file, a name such as synthetic, or --resume.")
    overrides = parse_overrides(settings, options_of(train))
    chosen = load_config(config, overrides if tests else {**overrides, "training.tests": False})
    asked = "preset" in overrides or "preset" in read_tables(find_config(config))
    return (chosen if chosen.name else chosen.model_copy(update={"name": config.stem})), asked


def _resumed(run: Path, tests: bool, precision: str | None, tell: Callable[[str], None]) -> "Config":
    """The experiment of an interrupted run."""
    from spigot_nlp.models.checkpoint import CONFIG, read_config
    from spigot_nlp.training.state import saved_precision

    if not (run / CONFIG).exists():
        raise FileNotFoundError(
            f"{run} has no {CONFIG}: there is no run to resume. Start it again with its configuration."
        )
    config = read_config(run)
    if config.training.tests and not tests:
        raise ValueError(f"{run} was begun without --no-tests, and goes on as it was; leave out --no-tests.")
    before = saved_precision(run)
    if precision not in (None, before):
        tell(f"{run} was trained in {before} so far, and goes on in {precision}")
    return config


@contextmanager
def _resumable(folder: Path, device: str, precision: str | None) -> Iterator[None]:
    """An interruption says how to go on."""
    from spigot_nlp.models.checkpoint import CONFIG

    try:
        yield
    except KeyboardInterrupt:
        if not (folder / CONFIG).exists():
            raise KeyboardInterrupt("interrupted before the first step; nothing is kept.") from None
        where = "" if device == "cpu" else f" --device {device}"
        how = f" --precision {precision}" if precision else ""
        again = f"spigot train --resume {shlex.quote(str(folder))}{where}{how}{plugin_options()}"
        raise KeyboardInterrupt(f"interrupted; go on with: {again}") from None
