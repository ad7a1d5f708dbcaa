"""What the documents say of the experiment: a picture and tables, made from the results of one run.

    spigot clusters --json > clusters.json
    python -m spigot_nlp.experiments.latent.documents clusters.json docs

writes the results without their curves, the picture, and the tables between two marks of the page on estimators.
"""

import json
import sys
from pathlib import Path

from spigot_nlp.experiments.latent.results import rows_of
from spigot_nlp.experiments.latent.tables import markdown, overview
from spigot_nlp.report.page import write

RESULTS, PICTURE, TEXT = Path("figures/latent.json"), Path("figures/latent.svg"), Path("estimators.md")
BEGIN, END = "<!-- tables of spigot clusters -->\n", "<!-- end of tables -->\n"


def with_tables(text: str, tables: str) -> str:
    """A document with what stands between its marks replaced.

    Raises:
        ValueError: It has no marks.

    Example:
        >>> print(with_tables(f"before\\n{BEGIN}old\\n{END}", "new"))
        before
        <!-- tables of spigot clusters -->
        <BLANKLINE>
        new
        <BLANKLINE>
        <!-- end of tables -->
        <BLANKLINE>
    """
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"there is no place for tables; mark it by the lines {BEGIN.strip()} and {END.strip()}.")
    return f"{head}{BEGIN}\n{tables}\n\n{END}{tail}"


def update(results: Path, folder: Path) -> None:
    """Write results, picture and tables into a folder of documents.

    Args:
        results: What `spigot clusters --json` printed.
        folder: The documents.
    """
    record = json.loads(results.read_text(encoding="utf-8"))
    rows = rows_of(record)
    text = (folder / TEXT).read_text(encoding="utf-8")
    kept = {name: value for name, value in record.items() if name != "curves"}
    write(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", folder / RESULTS)
    write(overview(rows) + "\n", folder / PICTURE)
    write(with_tables(text, markdown(rows)), folder / TEXT)


if __name__ == "__main__":
    update(Path(sys.argv[1]), Path(sys.argv[2]))
