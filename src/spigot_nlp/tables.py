"""Tables of numbers: one model for terminals, for pages, for documents, and for whoever makes them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """A number of a table.

    Attributes:
        text: As printed.
        detail: Printed smaller behind it.
        share: Length of the bar under it, from 0 to 1.
        best: Whether to print it bold.

    Example:
        >>> Cell("84.58", "± 0.24", best=True).detail
        '± 0.24'
    """

    text: str
    detail: str = ""
    share: float | None = None
    best: bool = False


@dataclass(frozen=True)
class TableRow:
    """A row of a table.

    Attributes:
        name: What the row is about.
        cells: Its numbers.
        series: Its colour in the charts, or `None`.
        aside: Set apart, for bounds and floors.

    Example:
        >>> TableRow("SPIGOT", [Cell("84.58")], series=2).aside
        False
    """

    name: str
    cells: Sequence[Cell]
    series: int | None = None
    aside: bool = False


@dataclass(frozen=True)
class Table:
    """A table of numbers.

    Attributes:
        columns: The heads of the columns, the first one being that of the row names.
        rows: The rows.
        title: What it shows, above it.
        note: How to read it, below it.
        narrow: Whether several such tables may stand side by side.
        stacked: Whether the details of cells stand below their numbers instead of behind them.

    Example:
        >>> len(Table(["", "LF"], [TableRow("SPIGOT", [Cell("84.58")])]).rows)
        1
    """

    columns: Sequence[str]
    rows: Sequence[TableRow]
    title: str = ""
    note: str = ""
    narrow: bool = False
    stacked: bool = False


def plain_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> Table:
    """A table from texts alone, the first of each row its name.

    Example:
        >>> plain_table("Trees, per cent", ["", "UAS"], [["dev", "91.20"]]).rows[0].cells
        [Cell(text='91.20', detail='', share=None, best=False)]
    """
    return Table(columns, [TableRow(name, [Cell(text) for text in cells]) for name, *cells in rows], title, note)


def markdown(table: Table) -> str:
    """A table for a document: its title in bold above it, how to read it below.

    Example:
        >>> print(markdown(Table(["", "LF"], [TableRow("a|b", [Cell("84.58", "± 0.24", best=True)])], "Graphs")))
        **Graphs**
        <BLANKLINE>
        |  | LF |
        |---|---:|
        | a\\|b | **84.58** ± 0.24 |
    """

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    def shown(cell: Cell) -> str:
        return " ".join(filter(None, (f"**{cell.text}**" if cell.best else cell.text, cell.detail)))

    rule = "|---|" + "---:|" * (len(table.columns) - 1)
    rows = [line([row.name, *map(shown, row.cells)]) for row in table.rows]
    above = [f"**{table.title}**", ""] if table.title else []
    return "\n".join([*above, line(table.columns), rule, *rows, *(["", table.note] if table.note else [])])
