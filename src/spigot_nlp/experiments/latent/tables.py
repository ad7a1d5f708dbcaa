"""The results as tables: for a terminal, for the page, for the documents."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from spigot_nlp.experiments.latent.data import TITLES
from spigot_nlp.experiments.latent.results import Row
from spigot_nlp.report.heat import HeatRow, heat_table
from spigot_nlp.tables import Cell, Table, TableRow

_NONE = Cell("–")


def tasks_of(rows: Iterable[Row]) -> list[str]:
    """The tasks that were run, in their order."""
    return list(dict.fromkeys(row.task for row in rows))


def ranked(rows: Iterable[Row]) -> list[Row]:
    """Rows of one task: bounds and floors first, then those that found most; those that could not take part last."""
    return sorted(rows, key=lambda row: (not row.aside, row.found is None, -row.found[0] if row.found else 0.0))


def result_table(task: str, rows: Iterable[Row], series: Mapping[str, int] = MappingProxyType({})) -> Table:
    """Everything that was measured on a task; the best numbers of the contenders are marked.

    Args:
        task: Its name.
        rows: Rows, also of other tasks.
        series: The colours of contenders in charts beside the table.

    Example:
        >>> row = Row("trees", "Spigot", False, "η = 1", quality=(0.9, 0.01), found=(0.8, 0.02), milliseconds=0.5)
        >>> [(cell.text, cell.detail) for cell in result_table("trees", [row]).rows[0].cells][:4]
        [('η = 1', ''), ('90.0', '± 1.0'), ('80.0', '± 2.0'), ('0.50', '')]
    """
    here = ranked(row for row in rows if row.task == task)
    learnt = [row for row in here if not row.aside]
    best = {
        name: max((getattr(row, name)[0] for row in learnt if getattr(row, name) is not None), default=None)
        for name in ("quality", "found", "cosine", "cosine_near")
    }

    def share(row: Row, name: str) -> Cell:
        value = getattr(row, name)
        if value is None:
            return _NONE
        winner = not row.aside and value[0] == best[name]
        return Cell(f"{100 * value[0]:.1f}", f"± {100 * value[1]:.1f}", max(0.0, value[0]), winner)

    def cosine(row: Row, name: str) -> Cell:
        value = getattr(row, name)
        if value is None:
            return _NONE
        return Cell(f"{value[0]:.2f}", f"± {value[1]:.2f}", best=not row.aside and value[0] == best[name])

    def number(value: float | None, digits: int) -> Cell:
        return _NONE if value is None else Cell(f"{value:.{digits}f}")

    near = any(row.cosine_near is not None for row in here)
    lines = []
    for row in here:
        cells = [Cell(row.option), share(row, "quality"), share(row, "found")]
        cells += [number(row.milliseconds, 2), number(row.ratio, 1), cosine(row, "cosine")]
        cells += [cosine(row, "cosine_near")] if near else []
        cells += [number(row.noise[0] if row.noise else None, 2)]
        lines.append(TableRow(row.contender, cells, series.get(row.contender), row.aside))
    quality = "accuracy, %" if task == "clusters" else "explained, %"
    found = "true clusters, %" if task == "clusters" else "parts found, %"
    columns = ["", "option", quality, found, "ms a step", "× STE", "cosine", *(["halfway"] if near else []), "noise"]
    return Table(columns, lines, TITLES[task], _refusals(here))


def _refusals(rows: Iterable[Row]) -> str:
    reasons = [f"{row.contender}: {row.refusal}" for row in rows if row.refusal]
    return " ".join(["Not taking part.", *reasons]) if reasons else ""


def overview(rows: Sequence[Row]) -> str:
    """The share of parts found by each contender on each task, as a picture.

    Example:
        >>> ">50<" in overview([Row("trees", "Spigot", False, found=(0.5, 0.1))])
        True
    """
    tasks, names = tasks_of(rows), list(dict.fromkeys(row.contender for row in rows))
    found = {(row.contender, row.task): row.found[0] if row.found else None for row in rows}
    aside = {row.contender for row in rows if row.aside}

    usual = {}  # of contenders on each task: who is in few tasks is held against those tasks only
    for task in tasks:
        shares = [row.found[0] for row in rows if row.task == task and row.found and not row.aside]
        usual[task] = sum(shares) / len(shares) if shares else 0.0

    def key(name: str) -> tuple[bool, float]:
        ahead = [share - usual[task] for task in tasks if (share := found.get((name, task))) is not None]
        return name not in aside, -sum(ahead) / len(ahead) if ahead else 1.0

    lines = [
        HeatRow(name, [found.get((name, task)) for task in tasks], name in aside) for name in sorted(names, key=key)
    ]
    title = "Parts of the hidden structures found, per cent"
    return heat_table(tasks, lines, title=title, nothing="does not fit the structure")


def markdown(rows: Sequence[Row]) -> str:
    """The table of every task in Markdown, for the documents.

    Example:
        >>> print(markdown([Row("trees", "Spigot", False, "η = 1", found=(0.5, 0.1))]).splitlines()[0])
        | Trees over five words | option | explained, % | parts found, % | ms a step | × STE | cosine | noise |
    """
    tables = []
    for task in tasks_of(rows):
        table = result_table(task, [row for row in rows if row.refusal is None])
        lines = [[TITLES[task], *table.columns[1:]], ["---"] * len(table.columns)]
        for row in table.rows:
            cells = [
                f"**{cell.text}** {cell.detail}" if cell.best else f"{cell.text} {cell.detail}" for cell in row.cells
            ]
            lines.append([f"*{row.name}*" if row.aside else f"`{row.name}`", *(cell.strip() for cell in cells)])
        tables.append("\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines))
        absent = [f"`{row.contender}`" for row in rows if row.task == task and row.refusal is not None]
        if absent:
            tables.append(f"Do not fit: {', '.join(absent)}.")
    return "\n\n".join(tables)
