"""`spigot report`: runs as one page."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spigot_nlp.bundled import run_folder
from spigot_nlp.cli.console import AsJson, print_json, say
from spigot_nlp.threads import use_threads


def report(
    *runs: Path,
    out: Path = Path("report.html"),
    sentences: int = 100,
    baseline: Path | None = None,
    threads: int | None = None,
    as_json: AsJson = False,
) -> None:
    """Write a page about finished runs: results, training curves, speed, what estimators did, and sentences to look at.

    The page is one file that needs no network. Runs that were judged by the same sentences are compared with each
    other; those that differ only in their seed are one system. Nothing but the run folders is read.

    Parameters
    ----------
    runs
        The folders that spigot train made.
    out
        Where to write the page.
    sentences
        How many sentences of the development data to show for each experiment; 0 for none.
    baseline
        The run whose system the others are compared with; by default the pipeline, or else the first.
    threads
        How many threads torch may use; by default one for each core, up to four.
    as_json
        Print where the page is, and its tables, as JSON.
    """
    for run in runs:
        run_folder(run)  # refused before torch is loaded
    from spigot_nlp.data.formats.files import check_target
    from spigot_nlp.report.page import render, write
    from spigot_nlp.report.runs import pieces_of_work
    from spigot_nlp.report.runs import report as make

    check_target(out)
    with use_threads(threads), _bar(pieces_of_work(runs)) as told:
        page = make(runs, sentences=sentences, baseline=baseline, told=told)
    write(render(page), out)
    if as_json:
        tables = [
            {
                "section": section.title,
                "table": table.title,
                "columns": table.columns,
                "rows": {row.name: [f"{cell.text} {cell.detail}".strip() for cell in row.cells] for row in table.rows},
            }
            for section in page.sections
            for table in section.all_tables()
        ]
        print_json({"out": out, "tables": tables})
    say(f"The report is in {out.resolve()}")


@contextmanager
def _bar(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on standard error if that is a terminal; what it gives is called before each piece of work."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda what: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task("reading", total=total)
        yield lambda what: bars.update(bar, advance=1, description=what)
