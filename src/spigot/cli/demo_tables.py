"""The tables of `spigot demo`: the paper's Table 1 and Table 3."""

import shutil
import textwrap
from typing import TYPE_CHECKING

from spigot.cli.console import percent, print_table

if TYPE_CHECKING:
    from spigot.evaluation.analysis import Analysis
    from spigot.experiments.comparison_tables import Cell, Outcome

_GROUPS = {"same": "same tree", "different": "other tree", "all": "all"}


def print_outcome(found: "Outcome") -> None:
    """Print the tables, and in words what they show.

    Args:
        found: What came of the comparison.

    Example:
        >>> from spigot.experiments.comparison_tables import Cell, Outcome, Row
        >>> cell = Cell(0.8123, None, 0.791, 0.832, (0.8123,))
        >>> print_outcome(Outcome({"id": 300}, (Row("ste", 1, {"id": {"LF": cell}}),), (), None))
        Table 1. Test sentences: 300 in domain. Per cent, with 95 % bootstrap intervals
        <BLANKLINE>
                       in
                   domain
                       LF
         ─────────────────
          ste       81.23
                79.1–83.2
        <BLANKLINE>
        ste starts from the pipeline's parser and sees trees for longer than it, so a
        lead over the pipeline would not be due to the gradient through the trees alone.
        Each system was trained once; another seed moves its numbers too, and --seeds 3
        says how far.
    """
    from spigot.experiments.comparison_tables import remarks

    _print_table_1(found)
    if found.analysis is not None:
        _print_table_3(found.analysis)
    for remark in remarks(found):
        print(_filled(remark))


def _filled(text: str) -> str:
    """A text in lines that fit the terminal."""
    width = max(20, min(shutil.get_terminal_size().columns, 100))
    return textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False)


def _print_table_1(found: "Outcome") -> None:
    from rich.text import Text

    from spigot.experiments.comparison_tables import MEASURES, PARTS

    columns = [
        (part, measure)
        for measures in (MEASURES[:2], MEASURES[2:])  # graphs first, then the parser inside
        for part in PARTS
        for measure in measures
        if any(measure in row.scores.get(part, {}) for row in found.rows)
    ]
    best = {
        (part, measure): max(row.scores[part][measure].mean for row in found.rows if measure in row.scores[part])
        for part, measure in columns
    }
    rows: list[list[str | Text]] = []
    for row in found.rows:
        cells = [row.scores[part].get(measure) for part, measure in columns]
        top = [cell is not None and cell.mean == best[key] for cell, key in zip(cells, columns, strict=True)]
        marks = ["bold" if is_best and len(found.rows) > 1 else "" for is_best in top]
        rows.append([row.system, *(Text(_value(cell), style) for cell, style in zip(cells, marks, strict=True))])
        # Without those of the parser inside, the table fits 80 characters; JSON has all intervals.
        ranges = ("" if measure == "UAS" else _range(cell) for cell, (_, measure) in zip(cells, columns, strict=True))
        rows.append(["", *(Text(text, "dim") for text in ranges)])
    heads = [f"{PARTS[part].replace(' domain', chr(10) + 'domain')}\n{measure}" for part, measure in columns]
    sizes = ", ".join(f"{count:,} {PARTS[part]}" for part, count in found.sentences.items())
    seeds = max((row.seeds for row in found.rows), default=1)
    over = f", mean ± standard deviation of {seeds} seeds" if seeds > 1 else ""
    title = f"Table 1. Test sentences: {sizes}. Per cent{over}, with 95 % bootstrap intervals"
    print_table(_filled(title), ["", *heads], rows)


def _value(cell: "Cell | None") -> str:
    if cell is None:
        return "–"
    return percent(cell.mean) + (f" ± {100 * cell.sd:.2f}" if cell.sd is not None else "")


def _range(cell: "Cell | None") -> str:
    return "" if cell is None else f"{100 * cell.low:.1f}–{100 * cell.high:.1f}"


def _print_table_3(analysis: "Analysis") -> None:
    rows = []
    for group in sorted(analysis.groups, key=lambda group: group.name == "all"):
        scores = [group.scores.get(name) for name in ("UAS", "LF")]
        for system in ("pipeline", "spigot"):
            numbers = (
                "–" if score is None else percent(score.a if system == "pipeline" else score.b) for score in scores
            )
            first = system == "pipeline"
            rows.append([_GROUPS[group.name] if first else "", f"{group.sentences}" if first else "", system, *numbers])
    title = "Table 3. Development sentences by whether pipeline and spigot give them the same tree, per cent"
    print_table(_filled(title), ["", "sentences", "", "UAS", "LF"], rows)
