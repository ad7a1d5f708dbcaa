"""One self-contained HTML page: no network, light or dark as the reader's device says, readable on a phone."""

import base64
import functools
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from spigot_nlp.data.formats.files import check_target, written
from spigot_nlp.report.figures import colour, theme
from spigot_nlp.tables import Table

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
        svg: An `<svg>` element.
        caption: What it shows, below it; also its text for those who cannot see it. A chart may say that itself.

    Example:
        >>> Picture("<svg></svg>", "Nothing.").caption
        'Nothing.'
    """

    svg: str
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a page: prose, pictures, markup, tables, notes, in this order.

    Attributes:
        title: Its heading.
        prose: Paragraphs, plain text.
        pictures: Figures, as many beside each other as fit.
        small: Whether the figures are thumbnails.
        table: The only table, or the first.
        half: Whether two such sections may stand side by side on a wide screen.
        tables: Further tables.
        markup: HTML that is put in as it is; whoever makes it has escaped what comes from outside.
        notes: Small print, plain text.
        keys: What the colours of its pictures stand for: names and numbers of series.
        key: Its name in links to it; a section with one is listed at the top of the page.
        about: What is inside, in a few words beside the heading of a folded section.
        folded: Whether only its heading is seen until it is opened: by a click, a key, a link to it, or a printer.

    Example:
        >>> Section("Results", table=Table(["", "LF"], [], "Graphs")).all_tables()[0].title
        'Graphs'
    """

    title: str
    prose: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    small: bool = False
    table: Table | None = None
    half: bool = False
    tables: Sequence[Table] = ()
    markup: str = ""
    notes: Sequence[str] = ()
    keys: Sequence[tuple[str, int]] = ()
    key: str = ""
    about: str = ""
    folded: bool = False

    def all_tables(self) -> list[Table]:
        """Every table of the section, in order."""
        return [*([self.table] if self.table is not None else []), *self.tables]


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes:
        title: The heading.
        lead: A paragraph under it, plain text.
        sections: The body. Those that open the page, before the list of contents, are neither folded nor have a key.
        facts: What is needed to repeat it, as pairs of name and value, at the foot.
        details: Long texts at the foot that are folded away, as pairs of name and text.
        made: When and by what it was made, in a line under the title.
        foot: What the facts and details are folded under; without it they stand open.
        styles: Style sheets beside that of every page.
        scripts: What runs in the page; nothing else does.
        data: Values for the scripts, found by the name of their element.

    Example:
        >>> Page("A title", "A lead.", [Section("Results")]).sections[0].title
        'Results'
    """

    title: str
    lead: str
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = ()
    details: Sequence[tuple[str, str]] = ()
    styles: Sequence[str] = ()
    scripts: Sequence[str] = ()
    data: Mapping[str, object] = field(default_factory=dict)
    made: Sequence[str] = ()
    foot: str = ""


def render(page: Page) -> str:
    """The page as HTML text. Its policy lets it load nothing, and run no script but its own.

    Example:
        >>> html = render(Page("A title", "A lead with <angle brackets>.", []))
        >>> "<h1>A title</h1>" in html, "&lt;angle brackets&gt;" in html, "src=" in html
        (True, True, False)
    """
    tables = [table for section in page.sections for table in section.all_tables()]
    series = {row.series for table in tables for row in table.rows if row.series is not None}
    series |= {number for section in page.sections for _, number in section.keys}
    folds = bool(page.foot) or any(section.folded for section in page.sections)
    scripts = [*([source("fold.js")] if folds else []), *page.scripts]
    opening = list(itertools.takewhile(lambda section: not section.key and not section.folded, page.sections))
    return (
        environment()
        .get_template("page.html")
        .render(
            page=page,
            light=theme(False),
            dark=theme(True),
            series=sorted(series),
            scripts=scripts,
            folds=folds,
            opening=opening if any(section.key for section in page.sections) else [],
            policy=policy(scripts),
            data={name: embedded(value) for name, value in page.data.items()},
        )
    )


@functools.cache
def environment() -> "Environment":
    """The templates of the reports; whatever is filled in is escaped.

    Example:
        >>> environment().from_string("{{ word }}").render(word="<b>")
        '&lt;b&gt;'
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("spigot_nlp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["colour"] = colour
    return made


def source(name: str) -> str:
    """The text of a script or a style sheet that stands beside the templates.

    Example:
        >>> "function" in source("explore.js")
        True
    """
    return resources.files("spigot_nlp.report").joinpath("templates", name).read_text(encoding="utf-8")


def policy(scripts: Sequence[str]) -> str:
    """A content security policy: nothing from elsewhere, and no script but these.

    Example:
        >>> policy([])
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    """
    allowed = f"; script-src {' '.join(map(fingerprint, scripts))}" if scripts else ""
    return f"default-src 'none'; style-src 'unsafe-inline'{allowed}; base-uri 'none'; form-action 'none'"


def fingerprint(script: str) -> str:
    """How a content security policy names a script that stands in the page.

    Example:
        >>> fingerprint("alert(1)")
        "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def embedded(value: object) -> str:
    """A value as JSON that may stand inside a `<script>` element, whatever the texts in it say.

    Example:
        >>> embedded({"word": "</script>"})
        '{"word":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


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
    with written(path) as file:
        file.write(text.encode())
