"""The command line: each command parses, calls the library and prints.

Results go to standard output, messages and progress to standard error. A failure is one message and a non-zero exit
code: 2 if the command was not understood, 1 if it could not be done. `--debug` shows the traceback instead.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

import spigot

if TYPE_CHECKING:
    from spigot.experiments.clusters import Epoch, Row, Settings


def version() -> str:
    """The version, and whether the compiled kernels run.

    Example:
        >>> version().splitlines()[0] == f"spigot {spigot.__version__}"
        True
    """
    return f"spigot {spigot.__version__}\n{spigot.native.status()}"


app = cyclopts.App(
    name="spigot",
    help="Discrete structures inside PyTorch networks. With --debug, a failure shows its traceback.",
    version=version,
)


@app.command
def demo(
    *,
    quick: Annotated[bool, cyclopts.Parameter(negative="")] = False,
    seeds: int | None = None,
    epochs: int | None = None,
    seed: int = 0,
    out: Path = Path("report.html"),
    as_json: Annotated[bool, cyclopts.Parameter(name="--json", negative="")] = False,
    threads: int = 1,
) -> None:
    """Train every estimator on a small latent problem, print a table and write a page.

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
    import torch

    from spigot.experiments import clusters
    from spigot.experiments.clusters_page import cluster_page
    from spigot.report.page import check_target, render, write

    settings = clusters.Settings.quick() if quick else clusters.Settings()
    changes = {"seeds": seeds, "epochs": epochs, "seed": seed}
    settings = replace(settings, **{name: value for name, value in changes.items() if value is not None})
    check_target(out)
    if threads < 1:
        raise ValueError(f"threads is {threads}; it must be at least 1.")

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        records = list(_with_progress(clusters.run(settings), settings))
    finally:
        torch.set_num_threads(before)
    write(render(cluster_page(settings, records)), out)
    if as_json:
        print(json.dumps(clusters.as_json(settings, records), indent=2))
    else:
        _print_table(clusters.summarise(records), settings)
    print(f"The report is in {out.resolve()}", file=sys.stderr)


def _with_progress(epochs: "Iterator[Epoch]", settings: "Settings") -> "Iterator[Epoch]":
    """Pass the records on, with a bar on a terminal and silently elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from spigot.experiments.clusters import total_epochs

    console = Console(stderr=True)
    if not console.is_terminal:
        yield from epochs
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("latent clusters", total=total_epochs(settings))
        for epoch in epochs:
            progress.update(bar, advance=1, description=f"K = {epoch.clusters:<3} {epoch.contender:<20}")
            yield epoch


def _print_table(rows: "Sequence[Row]", settings: "Settings") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from spigot.experiments.clusters_page import COLUMNS, result_rows

    console = Console()
    for k in settings.clusters:
        table = Table(
            title=f"K = {k} clusters, {settings.seeds} seeds, per cent", box=box.SIMPLE_HEAD, title_justify="left"
        )
        table.add_column(COLUMNS[0], no_wrap=True)
        for column in COLUMNS[1:]:
            table.add_column(column, justify="right")
        for name, cells, aside in result_rows([row for row in rows if row.clusters == k]):
            numbers = [Text(f"{cell.text} {cell.detail}", style="bold" if cell.best else "") for cell in cells]
            table.add_row(name, *numbers, style="dim" if aside else None)
        console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The words after `spigot`; those of the process if omitted.

    Returns:
        The exit code.

    Example:
        >>> main(["--version"])  # doctest: +ELLIPSIS
        spigot ...
        0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if words == ["--version"]:  # as it stands; the parser would wrap it like prose
        print(version())
        return 0
    try:
        command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
        command(*bound.args, **bound.kwargs)
    except cyclopts.CycloptsError as error:
        if debug:
            raise
        print(f"spigot: {' '.join(str(error).split())} See spigot --help.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("spigot: interrupted.", file=sys.stderr)
        return 130
    except Exception as error:
        if debug:
            raise
        print(f"spigot: {str(error) or type(error).__name__}", file=sys.stderr)
        return 1
    return 0
