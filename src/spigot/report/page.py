"""One self-contained HTML page: no network, light or dark as the reader's device says, readable on a phone."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spigot.report.figures import colour, theme


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
        svg: An `<svg>` element.
        caption: What it shows; also its text for those who cannot see it.
    """

    svg: str
    caption: str


@dataclass(frozen=True)
class Cell:
    """A number of a table.

    Attributes:
        text: As printed.
        detail: Printed smaller behind it.
        share: Length of the bar under it, from 0 to 1.
        best: Whether to print it bold.
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
    """

    columns: Sequence[str]
    rows: Sequence[TableRow]


@dataclass(frozen=True)
class Section:
    """A part of a page: prose, pictures, a table, in this order.

    Attributes:
        title: Its heading.
        prose: Paragraphs, plain text.
        pictures: Figures, as many beside each other as fit.
        small: Whether the figures are thumbnails.
        table: What comes last.
        half: Whether two such sections may stand side by side on a wide screen.
    """

    title: str
    prose: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    small: bool = False
    table: Table | None = None
    half: bool = False


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes:
        title: The heading.
        lead: A paragraph under it, plain text.
        sections: The body.
        facts: What is needed to repeat it, as pairs of name and value, at the foot.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = ()


def render(page: Page) -> str:
    """The page as HTML text.

    Example:
        >>> html = render(Page("A title", "A lead with <angle brackets>.", []))
        >>> "<h1>A title</h1>" in html, "&lt;angle brackets&gt;" in html, "src=" in html
        (True, True, False)
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("spigot.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["colour"] = colour
    series = sorted({row.series for s in page.sections if s.table for row in s.table.rows if row.series is not None})
    return environment.get_template("page.html").render(page=page, light=theme(False), dark=theme(True), series=series)


def check_target(path: Path) -> None:
    """Complain now if `path` cannot be written later, after the work is done.

    Example:
        >>> check_target(Path("no/such/folder/report.html"))
        Traceback (most recent call last):
        ...
        FileNotFoundError: cannot write no/such/folder/report.html: the folder no/such/folder does not exist.
    """
    folder = path.parent
    if not folder.exists():
        raise FileNotFoundError(f"cannot write {path}: the folder {folder} does not exist.")
    if not folder.is_dir():
        raise NotADirectoryError(f"cannot write {path}: {folder} is not a folder.")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; name a file in it, e.g. {path / 'report.html'}.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"cannot write {path}: no permission to write in {folder}.")


def write(text: str, path: Path) -> None:
    """Write a file whole or not at all: a reader never sees half of it, a failure leaves the old one.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write("text", Path(folder) / "page.html")
        ...     (Path(folder) / "page.html").read_text()
        'text'
    """
    check_target(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
