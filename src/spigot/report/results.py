"""The numbers of a report: results with their intervals, and how the trainings went."""

import shlex
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spigot.data.sentence import Sentence
from spigot.evaluation import Counts, graph_counts, interval, label_counts, tree_counts
from spigot.report.figures import Curve, curves
from spigot.report.material import Experiment, Run, System
from spigot.report.page import Cell, Picture, Section, Table, TableRow

SAMPLES = 2000
"""How often the bootstrap draws the sentences anew."""

_SHORT = 180.0  # a training of fewer seconds is drawn by the second

PHASES = {
    "pruner": "pruner",
    "syntax": "syntactic parser",
    "semantics": "semantic parser",
    "classifier": "classifier",
    "joint": "joint",
    "latent": "latent structure",
}
"""What the phases and tasks of a training are called in print."""


@dataclass(frozen=True)
class Measure:
    """A column of the result tables.

    Attributes:
        name: Its head.
        ending: What the names of its sets end in within `scores.json`.
        value: The number, from what is said there about a set.
        counts: The same from sentences, for the bootstrap.
        suffix: The ending of the file with the predictions.
        field: The annotation it needs.

    Example:
        >>> MEASURES["LF"].value({"labelled": {"f1": 0.75}})
        0.75
    """

    name: str
    ending: str
    value: Callable[[Any], float]
    counts: Callable[[Sequence[Sentence], Sequence[Sentence]], Counts]
    suffix: str
    field: str


MEASURES = {
    "UF": Measure(
        "UF", "", lambda s: s["unlabelled"]["f1"], lambda g, p: graph_counts(g, p, labelled=False), "sdp", "graph"
    ),
    "LF": Measure("LF", "", lambda s: s["labelled"]["f1"], graph_counts, "sdp", "graph"),
    "UAS": Measure("UAS", " trees", lambda s: s["uas"], tree_counts, "conllu", "heads"),
    "accuracy": Measure("accuracy", "", lambda s: s["accuracy"], label_counts, "jsonl", "label"),
    "UF inside": Measure(
        "UF",
        " graphs",
        lambda s: s["unlabelled"]["f1"],
        lambda g, p: graph_counts(g, p, labelled=False),
        "sdp",
        "graph",
    ),
    "LF inside": Measure("LF", " graphs", lambda s: s["labelled"]["f1"], graph_counts, "sdp", "graph"),
}
"""The end task's measures and those of the parser inside."""

PARTS = {"dev": "dev", "id": "in domain", "ood": "out of domain", "test": "test"}
"""What the sets of sentences are called in print."""


def result_tables(experiment: Experiment) -> list[Table]:
    """The systems by the sets of sentences (Table 1), then the parsers inside them.

    Example:
        >>> from pathlib import Path
        >>> from spigot.config import Config
        >>> f1 = {"f1": 0.75}
        >>> run = Run(Path("runs/dm"), Config(), {"dev": {"labelled": f1, "unlabelled": f1}, "dev trees": {"uas": 0.9}})
        >>> tables = result_tables(Experiment("dm", (System("spigot", (run,), 0),), None))
        >>> [[cell.text for cell in table.rows[0].cells] for table in tables]
        [['75.00', '75.00'], ['90.00']]
    """
    if experiment.task == "parsing":
        tables = [("Semantic graphs", ("UF", "LF")), ("The syntactic trees inside", ("UAS",))]
    else:
        tables = [
            ("Classes", ("accuracy",)),
            ("The semantic graphs inside", ("UF inside", "LF inside")),
            ("The trees inside", ("UAS",)),
        ]
    made = [_table(experiment, title, [MEASURES[name] for name in names]) for title, names in tables]
    return [table for table in made if table is not None]


def _table(experiment: Experiment, title: str, measures: Sequence[Measure]) -> Table | None:
    ending = measures[0].ending
    found = dict.fromkeys(name for run in experiment.runs for name in run.scores if _ending(name) == ending)
    if not found:
        return None
    columns = [(part, measure) for part in found for measure in measures]
    means: dict[tuple[str, str], dict[str, float]] = {}
    rows = []
    for system in experiment.systems:
        numbers = {key: [score(run, *key) for run in system.runs if key[0] in run.scores] for key in columns}
        for (part, measure), values in numbers.items():
            if values:
                means.setdefault((part, measure.name), {})[system.name] = statistics.fmean(values)
        if any(numbers.values()):
            rows.append((system, numbers))
    best = {key: max(values.values()) for key, values in means.items()}
    table_rows = [
        TableRow(
            system.name,
            [_cell(system, part, measure, values, best, len(rows)) for (part, measure), values in numbers.items()],
            system.series,
        )
        for system, numbers in rows
    ]
    heads = [f"{PARTS.get(part.removesuffix(ending), part.removesuffix(ending))} {m.name}" for part, m in columns]
    return Table(["", *heads], table_rows, title, _reading(experiment, measures, table_rows), stacked=True)


def score(run: Run, part: str, measure: Measure) -> float:
    """What a run scored on a set of sentences, between 0 and 1.

    Raises:
        ValueError: If `scores.json` does not say.

    Example:
        >>> from pathlib import Path
        >>> from spigot.config import Config
        >>> score(Run(Path("nowhere"), Config(), {"id": {"labelled": {"f1": 0.75}}}), "id", MEASURES["LF"])
        0.75
    """
    try:
        return measure.value(run.scores[part])
    except (KeyError, TypeError):
        raise ValueError(
            f"{run.path}: scores.json has no {measure.name} of {part}; write it again with spigot train --resume "
            f"{shlex.quote(str(run.path))}."
        ) from None


def _ending(name: str) -> str:
    return name[name.index(" ") :] if " " in name else ""


def _cell(
    system: System, part: str, measure: Measure, values: list[float], best: dict[tuple[str, str], float], rivals: int
) -> Cell:
    if not values:
        return Cell("–")
    mean = statistics.fmean(values)
    if len(values) > 1:
        detail = f"± {100 * statistics.stdev(values):.2f}"
    else:
        bounds = _interval(system.first, part.removesuffix(measure.ending), measure, mean)
        detail = "" if bounds is None else f"{100 * bounds[0]:.1f}–{100 * bounds[1]:.1f}"
    text = f"{100 * mean:.2f}"
    # As printed: of two equal numbers neither is the better one.
    return Cell(text, detail, best=rivals > 1 and text == f"{100 * best[part, measure.name]:.2f}")


def _interval(run: Run, part: str, measure: Measure, value: float) -> tuple[float, float] | None:
    """The bootstrap interval of a score, if the sentences it was measured on were kept."""
    counts = kept_counts(run, part, measure, value)
    if counts is None:
        return None
    found = interval(counts, samples=SAMPLES)
    return found.low, found.high


def kept_counts(run: Run, part: str, measure: Measure, value: float) -> Counts | None:
    """What a score was computed from; `None` if the sentences it was measured on were not kept.

    Args:
        run: The run.
        part: The set of sentences.
        measure: The score.
        value: What `scores.json` says it is; files that give another one are not those it was measured on.

    Example:
        >>> from pathlib import Path
        >>> from spigot.config import Config
        >>> kept_counts(Run(Path("nowhere"), Config(), {}), "dev", MEASURES["LF"], 0.75) is None
        True
    """
    gold, predicted = run.gold(part), run.predictions(part, measure.suffix)
    if not gold or not predicted or any(getattr(s, measure.field) is None for s in (*gold, *predicted)):
        return None
    try:
        counts = measure.counts(gold, predicted)
    except ValueError:  # the parser inside was judged by other sentences than the end task
        return None
    return counts if abs(counts.f1() - value) < 1e-9 else None


def _reading(experiment: Experiment, measures: Sequence[Measure], rows: Sequence[TableRow]) -> str:
    several = any(len(system.runs) > 1 for system in experiment.systems)
    single = any(cell.detail and not cell.detail.startswith("±") for row in rows for cell in row.cells)
    about = {
        "LF": "UF and LF: F1 of unlabelled and of labelled arcs, tops included.",
        "UAS": "UAS: share of words with the right head, punctuation included.",
        "accuracy": "Accuracy: share of sentences with the right class.",
    }[measures[-1].name]
    spread = " ± is the standard deviation over seeds." if several else ""
    bounds = f" Small numbers: 95 % bootstrap interval over sentences ({SAMPLES:,} resamples)." if single else ""
    return f"Per cent. {about}{spread}{bounds} Bold: the best of the column."


def curve_section(experiment: Experiment, key: str) -> Section | None:
    """How the losses fell and the scores on the development data rose; `None` if no steps were kept.

    Args:
        experiment: The systems.
        key: Prefix of the element names, unique on a page.

    Example:
        >>> from pathlib import Path
        >>> from spigot.config import Config
        >>> experiment = Experiment("dm", (System("spigot", (Run(Path("nowhere"), Config(), {}),), 0),), None)
        >>> curve_section(experiment, "a") is None
        True
    """
    pictures = []
    tasks = dict.fromkeys(step["task"] for run in experiment.runs for step in run.steps)
    for task in tasks:
        lines = _lines(experiment, lambda run, task=task: _loss_points(run, task))
        if lines:
            svg = curves(
                lines,
                title=f"Loss of the {PHASES.get(task, task)}, by epoch",
                x_label="epoch",
                y_label="mean loss of a training sentence",
                key=f"{key}-loss-{task}",
                shares=False,
            )
            pictures.append(Picture(svg))
    longest = max((step["seconds"] or 0.0 for run in experiment.runs for step in run.steps), default=0.0)
    clock = ("seconds", 1.0) if longest < _SHORT else ("minutes", 60.0)
    for measure in ("LF", "UAS", "accuracy", "changed"):
        for unit, length in (("epoch", None), clock):
            lines = _lines(experiment, lambda run, m=measure, u=length: _dev_points(run, m, unit=u))
            if lines:
                about = {"changed": "Structures that are new since the epoch before"}.get(measure, measure)
                svg = curves(
                    lines,
                    title=f"{about[0].upper()}{about[1:]} on the development data, by {unit}",
                    x_label=unit if length is None else f"{unit} of training",
                    y_label="sentences, per cent" if measure == "changed" else f"{measure}, per cent",
                    key=f"{key}-{measure}-{unit}",
                )
                pictures.append(Picture(svg))
    if not pictures:
        return None
    several = " Bands are standard deviations over seeds." if any(len(s.runs) > 1 for s in experiment.systems) else ""
    prose = [f"Rest on a name to bring out its curves.{several}"]
    keys = [(system.name, system.series) for system in experiment.systems]
    about = "losses, and scores on the development data, by epoch and by time"
    return Section("Training", prose, pictures, keys=keys, key=f"{key}-training", about=about)


def _lines(experiment: Experiment, points: Callable[[Run], list[tuple[float, float]]]) -> list[Curve]:
    lines = []
    for system in experiment.systems:
        series = [found for run in system.runs if (found := points(run))]
        if not series:
            continue
        length = min(len(found) for found in series)  # seeds may stop at different epochs
        x = [statistics.fmean(found[k][0] for found in series) for k in range(length)]
        values = [[found[k][1] for found in series] for k in range(length)]
        spread = [statistics.stdev(v) if len(v) > 1 else 0.0 for v in values]
        lines.append(Curve(system.name, x, [statistics.fmean(v) for v in values], spread, system.series))
    return lines


def _loss_points(run: Run, task: str, pieces: int = 4) -> list[tuple[float, float]]:
    """The mean loss of each quarter of an epoch; epochs are counted on where a task is trained in several phases."""
    sums: dict[float, tuple[float, int]] = {}
    offset, phase, last = 0, None, 0
    for step in run.steps:
        if step["task"] != task:
            continue
        if step["phase"] != phase:
            offset, phase = offset + last, step["phase"]
        last = step["epoch"]
        piece = (pieces * (step["step"] - 1)) // max(step["of"], 1)
        x = offset + step["epoch"] - 1 + (piece + 1) / pieces
        total, count = sums.get(x, (0.0, 0))
        sums[x] = total + step["loss"] * step["sentences"], count + step["sentences"]
    return [(x, total / count) for x, (total, count) in sums.items()]


def _dev_points(run: Run, measure: str, *, unit: float | None) -> list[tuple[float, float]]:
    """The scores of a run by time, in units of so many seconds, or by epoch."""
    frozen = {"UAS": ("semantics", "classifier"), "LF": ("classifier",)}.get(measure, ())
    # Where a parser stands still while another is trained on top of it, there is nothing to see.
    scored = [s for s in run.steps if s["dev"] and measure in s["dev"] and s["phase"] not in frozen]
    if unit is not None:
        return [(s["seconds"] / unit, s["dev"][measure] / 100) for s in scored if s.get("seconds") is not None]
    return [(epoch, step["dev"][measure] / 100) for epoch, step in enumerate(scored, 1)]
