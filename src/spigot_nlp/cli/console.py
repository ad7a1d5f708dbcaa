"""What the commands share: progress, tables, JSON, and the count of sentences that were skipped."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, TypeVar

import cyclopts

from spigot_nlp.data.formats import FORMATS

if TYPE_CHECKING:
    import torch
    from rich.text import Text

    from spigot_nlp.tables import Cell, Table

_Item = TypeVar("_Item")
_WIDEST = 1000  # of a table, in characters

Flag: TypeAlias = Annotated[bool, cyclopts.Parameter(negative="")]
"""An option that is there or not, without a `--no-` twin."""

AsJson: TypeAlias = Annotated[bool, cyclopts.Parameter(name="--json", negative="")]
"""`--json`: results for programs instead of people."""

Device: TypeAlias = Annotated[
    str, cyclopts.Parameter(help="Where to compute: cpu, cuda, cuda:1, mps, or auto for the fastest that is there.")
]
"""`--device`: what `torch_device` takes."""

Precision: TypeAlias = Annotated[
    Literal["float32", "bfloat16", "int16"],
    cyclopts.Parameter(
        help="What words are encoded in: float32; bfloat16 where that is quicker; int16 to read quickly on a CPU, with "
        "states and scores rounded to three digits, and as float32 elsewhere."
    ),
]
"""`--precision`: of encoders, and whole numbers of scorers; structures are found in single precision either way."""

FormatName: TypeAlias = Annotated[
    str | None,
    cyclopts.Parameter(help=f"The format of the files, if their names do not tell: {', '.join(FORMATS)}."),
]
"""`--format`: a key of `FORMATS`."""


def progress(
    items: Iterable[_Item],
    description: str,
    *,
    total: int | None = None,
    describe: Callable[[_Item], str] | None = None,
) -> Iterator[_Item]:
    """Pass items on, with a bar on standard error if that is a terminal and silently elsewhere.

    Args:
        items: What to pass on.
        description: What is being done.
        total: How many items there will be, if that is known.
        describe: Says what is being done now, from the item that has just come.

    Example:
        >>> list(progress([1, 2], "counting"))
        [1, 2]
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield from items
        return
    share = TextColumn("{task.percentage:>3.0f}%") if total is not None else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), share, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(description, total=total)
        for item in items:
            bars.update(bar, advance=1, description=describe(item) if describe else description)
            yield item


def print_json(value: object) -> None:
    """Print a result as JSON; dataclasses become objects, paths strings.

    Example:
        >>> print_json({"out": Path("report.html")})
        {
          "out": "report.html"
        }
    """
    print(json.dumps(value, indent=2, default=_plain))


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}, which JSON has no form for; give numbers and strings.")


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence["str | Text"]],
    *,
    dim: Callable[[str], bool] | None = None,
) -> None:
    """Print a table: names on the left, numbers aligned to the right. No number is ever cut short to fit a screen.

    Args:
        title: What it shows.
        columns: The heads of the columns.
        rows: The cells of each row.
        dim: Says by its first cell whether a row is of less interest.

    Example:
        >>> print_table("Trees, per cent", ["", "UAS"], [["all words", "91.2"]])
        Trees, per cent
        <BLANKLINE>
                       UAS
         ──────────────────
          all words   91.2
        <BLANKLINE>
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(columns[0], no_wrap=True)
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row, style="dim" if dim is not None and dim(str(row[0])) else None)
    console = Console()
    needed = console.measure(table, options=console.options.update(max_width=_WIDEST)).maximum
    console = Console(width=max(console.width, needed))
    with console.capture() as captured:
        console.print(title, style="italic", highlight=False, soft_wrap=True)
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())


def show_table(table: "Table") -> None:
    """Print a table of results, and how to read it. Nothing in it can touch the screen.

    Args:
        table: The table.

    Example:
        >>> from spigot_nlp.tables import plain_table
        >>> show_table(plain_table("Roles", ["", "gold"], [["[red]ARG1", "7"]], "As they are."))
        Roles
        <BLANKLINE>
                      gold
         ──────────────────
          [red]ARG1      7
        <BLANKLINE>
        As they are.
        <BLANKLINE>
    """
    from rich.markup import escape

    def shown(text: str) -> str:
        return escape(printable(text))

    def number(cell: "Cell") -> str:
        return f"[bold]{shown(cell.text)}[/bold]" if cell.best else shown(cell.text)

    rows = []
    for row in table.rows:
        if not table.stacked:
            rows.append([shown(row.name), *(f"{number(cell)} {shown(cell.detail)}".strip() for cell in row.cells)])
            continue
        # Below their numbers, an interval below its difference: a terminal is narrow.
        details = [cell.detail.removesuffix(")").split(" (") if cell.detail else [] for cell in row.cells]
        rows.append([shown(row.name), *map(number, row.cells)])
        for k in range(max(map(len, details), default=0)):
            rows.append(["", *(shown(pieces[k]) if k < len(pieces) else "" for pieces in details)])
    print_table(printable(table.title), [shown(column) for column in table.columns], rows)
    if table.note:
        print(f"{printable(table.note)}\n")


def printable(text: str) -> str:
    """Text from outside, without characters that would move the cursor or colour the screen.

    Example:
        >>> printable("a\\x07b")
        'a\N{REPLACEMENT CHARACTER}b'
    """
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def say(message: str) -> None:
    """Tell the user something that is not a result, on standard error.

    Example:
        >>> say("Stopped.")
    """
    print(message, file=sys.stderr)


def is_first_process() -> bool:
    """Whether this is the only process of a command, or the first of those that `torchrun` started.

    Example:
        >>> is_first_process()
        True
    """
    return os.environ.get("RANK", "0") == "0"


def torch_device(name: str) -> "torch.device":
    """The device that `--device` names, if this machine has it.

    Raises:
        ValueError: If there is no such device.

    Example:
        >>> torch_device("cpu")
        device(type='cpu')
    """
    from spigot_nlp.threads import find_device

    return find_device(name, "--device")


def percent(share: float) -> str:
    """A share as it stands in tables.

    Example:
        >>> percent(0.91234)
        '91.23'
    """
    return f"{100 * share:.2f}"


def counted(number: int, noun: str) -> str:
    """A number of things, in words.

    Example:
        >>> counted(1, "sentence"), counted(1200, "token")
        ('1 sentence', '1,200 tokens')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(items: Iterable[object], last: str = "and") -> str:
    """Some things in a row, at least one, with a word before the last.

    Example:
        >>> listed([0, 1, 2]), listed(["sdp", "jsonl"], "or"), listed(["text"])
        ('0, 1 and 2', 'sdp or jsonl', 'text')
    """
    *most, end = map(str, items)
    return f"{', '.join(most)} {last} {end}" if most else end


@dataclass
class Skipped:
    """Counts the sentences that a reader leaves out, to be given to `read` as `skip_bad`.

    Example:
        >>> from spigot_nlp.data import FormatError
        >>> skipped = Skipped()
        >>> skipped(FormatError("dev.conllu", 7, "word 2 has 9 columns; it must have 10."))
        >>> skipped.count
        1
    """

    count: int = 0
    first: Exception | None = field(default=None, repr=False)

    def __call__(self, error: Exception) -> None:
        self.count += 1
        self.first = self.first or error

    def report(self) -> None:
        """Say on standard error how many there were, and why the first was one."""
        if self.first is not None:
            say(f"Skipped {counted(self.count, 'bad sentence')}; the first: {self.first}")
