"""`python -m research.curves RUN... --keep FOLDER`: how trainings went, epoch by epoch, side by side.

A training takes hours and its folder hundreds of megabytes: what is kept of it is its configuration, its scores and the
development scores after each epoch, under the name of its folder. Whatever is kept there is then printed as one table,
and drawn as one picture.
"""

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from research.command import main
from spigot_nlp.data.formats.files import check_target
from spigot_nlp.models.checkpoint import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVE, KEPT = "curve.csv", ("config.toml", "scores.json")
Curve = list[dict[str, str]]


def curves(
    *runs: Path, keep: Path, measures: Sequence[str] = ("UAS", "LF"), phase: str = "joint", picture: Path | None = None
) -> None:
    """Keep what is worth keeping of finished runs, and show all that are kept.

    Parameters
    ----------
    runs
        Run folders.
    keep
        The folder of what is kept: a folder for each run, with its configuration, scores and curve.
    measures
        Which development scores to show.
    phase
        The part of the training to show; what else is kept stands in the files.
    picture
        Draw the curves to this SVG file.
    """
    if picture is not None:
        check_target(picture)
    for run in runs:
        _keep(run, keep / run.name)
    kept = {folder.name: _read(folder / CURVE, phase) for folder in sorted(keep.iterdir()) if (folder / CURVE).exists()}
    if not kept:
        raise ValueError(f"{keep} holds no curves; give run folders to keep.")
    epochs = range(1, 1 + max(len(curve) for curve in kept.values()))
    print(f"| {' / '.join(measures)} after epoch | {' | '.join(map(str, epochs))} |")
    print(f"| --- |{' --- |' * len(epochs)}")
    for name, curve in kept.items():
        cells = [" / ".join(_shown(row, measure) for measure in measures) for row in curve]
        print(f"| {name} | {' | '.join(cells + [''] * (len(epochs) - len(cells)))} |")
    if picture is not None:
        _draw(kept, measures, picture)


def _keep(run: Path, folder: Path) -> None:
    """Copy what a run was and what came out, and list its development scores."""
    missing = [name for name in KEPT if not (run / name).exists()]
    if missing:
        raise FileNotFoundError(f"{run} has no {' and no '.join(missing)}; give a finished run.")
    steps = map(json.loads, (run / "steps.jsonl").read_text(encoding="utf-8").splitlines())
    rows = [{"phase": step["phase"], "epoch": step["epoch"], **step["dev"]} for step in steps if step["dev"]]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / CURVE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    for name in KEPT:
        shutil.copyfile(run / name, folder / name)


def _read(path: Path, phase: str) -> Curve:
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["phase"] == phase]


def _shown(row: dict[str, str], measure: str) -> str:
    return f"{float(row[measure]):.1f}" if row.get(measure) else "-"


def _draw(kept: dict[str, Curve], measures: Sequence[str], picture: Path) -> None:
    """A panel for each measure, a line for each training, its name at the end of the last panel's."""
    import io

    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "spigot", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(4.4 * len(measures), 3.4), layout="constrained")
        FigureCanvasSVG(figure)
        panels: list[Axes] = list(figure.subplots(1, len(measures), squeeze=False)[0])
        for axes, measure in zip(panels, measures, strict=True):
            for name, curve in kept.items():
                points = [(int(row["epoch"]), float(row[measure])) for row in curve if row.get(measure)]
                if points:
                    axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
            axes.set_xlabel("epoch")
            axes.set_title(f"{measure} on development data", loc="left")
            axes.grid(alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].legend(frameon=False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    write_text(picture, text.getvalue())


if __name__ == "__main__":
    main(curves)
