"""The results as tables, and as a picture."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from research.latent.data import TITLES
from research.latent.results import Row
from spigot_nlp.tables import Cell, Table, TableRow

_NONE = Cell("–")


def tasks_of(rows: Iterable[Row]) -> list[str]:
    """The tasks that were run, in their order."""
    return list(dict.fromkeys(row.task for row in rows))


def ranked(rows: Iterable[Row]) -> list[Row]:
    """Rows of one task: bounds and floors first, then those that found most; those that could not take part last."""
    return sorted(rows, key=lambda row: (not row.aside, row.found is None, -row.found[0] if row.found else 0.0))


def result_table(task: str, rows: Iterable[Row]) -> Table:
    """Everything that was measured on a task; the best numbers of the contenders are marked.

    Args:
        task: Its name.
        rows: Rows, also of other tasks.

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
        lines.append(TableRow(row.contender, cells, aside=row.aside))
    quality = "accuracy, %" if task == "clusters" else "explained, %"
    found = "true clusters, %" if task == "clusters" else "parts found, %"
    columns = ["", "option", quality, found, "ms a step", "× STE", "cosine", *(["halfway"] if near else []), "noise"]
    return Table(columns, lines, TITLES[task], _refusals(here))


def _refusals(rows: Iterable[Row]) -> str:
    reasons = [f"{row.contender}: {row.refusal}" for row in rows if row.refusal]
    return " ".join(["Not taking part.", *reasons]) if reasons else ""


def overview(rows: Sequence[Row]) -> tuple[list[str], list[str], list[list[float]]]:
    """Contenders, tasks, and the share of the parts that each found, `nan` where it does not fit.

    Bounds and floors first, then those that are furthest ahead of the others on the tasks that they are in.
    """
    tasks, names = tasks_of(rows), list(dict.fromkeys(row.contender for row in rows))
    found = {(row.contender, row.task): row.found[0] for row in rows if row.found}
    aside = {row.contender for row in rows if row.aside}
    shares = {task: [found[name, task] for name in names if (name, task) in found] for task in tasks}

    def key(name: str) -> tuple[bool, float]:
        ahead = [found[name, task] - sum(shares[task]) / len(shares[task]) for task in tasks if (name, task) in found]
        return name not in aside, -sum(ahead) / len(ahead) if ahead else 1.0

    order = sorted(names, key=key)
    return order, tasks, [[found.get((name, task), float("nan")) for task in tasks] for name in order]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the overview as a picture."""
    from matplotlib.figure import Figure

    names, tasks, shares = overview(rows)
    figure = Figure(figsize=(1.3 * len(tasks) + 3, 0.28 * len(names) + 1), layout="constrained")
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
    axes.set_xticks(range(len(tasks)), tasks)
    axes.set_yticks(range(len(names)), names)
    axes.set_title("Parts of the hidden structures found, per cent")
    for k, row in enumerate(shares):
        for column, share in enumerate(row):
            text = "–" if share != share else f"{100 * share:.0f}"
            axes.text(column, k, text, ha="center", va="center")
    figure.savefig(path)
