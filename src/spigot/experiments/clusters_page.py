"""The page of the latent-cluster experiment: curves, tables, and a map of who chose what."""

from collections.abc import Sequence

import torch

import spigot
from spigot.experiments.clusters import CONTENDERS, Epoch, Row, Settings, make_task, mean_and_spread, summarise
from spigot.report.figures import Curve, curves, dots
from spigot.report.page import Page, Picture, Section
from spigot.tables import Cell, Table, TableRow

GOLD = next(contender.name for contender in CONTENDERS if contender.estimator is None)
FLOOR = next(contender.name for contender in CONTENDERS if isinstance(contender.estimator, spigot.Pipeline))

COLUMNS = ("", "accuracy", "argmax at test", "true clusters")
"""The heads of the result table, on the page and on a terminal."""

_MAP_POINTS = 250
_MAP_COLOURS = (9, 8, 6, 3, 4, 5, 2, 1, 0, 7)  # those that no contender has come first


def cluster_page(settings: Settings, epochs: Sequence[Epoch]) -> Page:
    """Everything that the experiment shows, as one page.

    Args:
        settings: What was run.
        epochs: What `run` yielded.

    Example:
        >>> from spigot.experiments.clusters import run
        >>> tiny = Settings(clusters=(3,), seeds=2, epochs=1, train=100, test=50)
        >>> page = cluster_page(tiny, list(run(tiny)))
        >>> [section.title for section in page.sections]
        ['K = 3 clusters', 'Who chose what', 'How to read this']
    """
    rows = summarise(epochs)
    sections = [_task_section(k, settings, epochs, rows, len(settings.clusters) > 1) for k in settings.clusters]
    return Page(
        title="Learning a hidden choice from the final label",
        lead=(
            "Points come from K hidden clusters, and each cluster has its own rule for the label. A scorer picks one "
            "of K for each point, a classifier of that choice predicts the label, and only the label is ever given. "
            "The hard choice has no gradient: each estimator replaces it in its own way."
        ),
        sections=[*sections, _maps(settings, epochs), _reading()],
        facts=_facts(settings),
    )


def result_rows(rows: Sequence[Row]) -> list[tuple[str, list[Cell], bool]]:
    """Name, numbers and whether it is a bound or floor, for each row of one task; the best learnt numbers are marked.

    Example:
        >>> rows = [Row(3, "StraightThrough", (0.9, 0.01), (0.9, 0.01), (0.8, 0.02))]
        >>> [(cell.text, cell.detail) for cell in result_rows(rows)[0][1]]
        [('90.0', '± 1.0'), ('90.0', '± 1.0'), ('80.0', '± 2.0')]
    """
    measures = ("accuracy", "hard_accuracy", "agreement")
    learnt = [row for row in rows if row.contender != GOLD]
    best = {m: max((getattr(row, m)[0] for row in learnt), default=0.0) for m in measures}
    table = []
    for row in rows:
        cells = []
        for measure in measures:
            mean, spread = getattr(row, measure)
            winner = row.contender != GOLD and mean == best[measure]
            cells.append(Cell(f"{100 * mean:.1f}", f"± {100 * spread:.1f}", mean, winner))
        table.append((row.contender, cells, row.contender in (GOLD, FLOOR)))
    return table


def _series(name: str) -> int:
    return [contender.name for contender in CONTENDERS].index(name)


def _task_section(k: int, settings: Settings, epochs: Sequence[Epoch], rows: Sequence[Row], half: bool) -> Section:
    here = [row for row in rows if row.clusters == k]
    table = Table(COLUMNS, [TableRow(name, cells, _series(name), aside) for name, cells, aside in result_rows(here)])
    pictures = [
        Picture(_chart(k, epochs, "accuracy", "test accuracy, %"), "Labels predicted rightly, on unseen points."),
        Picture(
            _chart(k, epochs, "agreement", "true clusters found, %"),
            "Points whose chosen cluster is the true one, under the best matching.",
        ),
    ]
    return Section(f"K = {k} clusters", [_headline(here)], pictures, table=table, half=half)


def _headline(rows: Sequence[Row]) -> str:
    """What came out, in words, whoever won."""
    by_name = {row.contender: row for row in rows}
    learnt = [row for row in rows if row.contender not in (GOLD, FLOOR)]
    winner = max(learnt, key=lambda row: row.accuracy[0])
    finder = max(learnt, key=lambda row: row.agreement[0])
    text = f"Most accurate: {winner.contender}, {100 * winner.accuracy[0]:.1f}%"
    if GOLD in by_name and FLOOR in by_name:
        text += (
            f", between the untrained choice of {FLOOR} ({100 * by_name[FLOOR].accuracy[0]:.1f}%) and classifiers that "
            f"are told the true cluster ({100 * by_name[GOLD].accuracy[0]:.1f}%)"
        )
    # A lead smaller than the spread over seeds is no lead: say who is level with the winner.
    level = [
        row.contender for row in learnt if row != winner and row.accuracy[0] >= winner.accuracy[0] - winner.accuracy[1]
    ]
    if level:
        text += f"; within one standard deviation of it: {', '.join(level)}"
    text += f". Closest to the true clusters: {finder.contender}, {100 * finder.agreement[0]:.1f}%."
    if FLOOR in by_name:
        floor = by_name[FLOOR].accuracy[0]
        below = [row.contender for row in learnt if row.accuracy[0] < floor]
        if below:
            text += f" Below the floor: {', '.join(below)}."
    return text


def _chart(k: int, epochs: Sequence[Epoch], measure: str, label: str) -> str:
    lines = []
    for contender in CONTENDERS:
        mine = [e for e in epochs if e.clusters == k and e.contender == contender.name]
        if not mine or (measure == "agreement" and contender.name == GOLD):
            continue
        values = [mean_and_spread(getattr(e, measure)) for e in mine]
        lines.append(
            Curve(
                name=contender.name,
                x=[e.epoch for e in mine],
                mean=[mean for mean, _ in values],
                spread=[spread for _, spread in values],
                series=_series(contender.name),
                dashed=contender.name in (GOLD, FLOOR),
            )
        )
    about = {"accuracy": "Labels predicted rightly", "agreement": "True clusters found"}[measure]
    return curves(lines, title=f"{about}, K = {k}", x_label="epoch", y_label=label, key=f"k{k}-{measure}")


def _maps(settings: Settings, epochs: Sequence[Epoch]) -> Section:
    k = settings.clusters[0]
    last = {e.contender: e for e in epochs if e.clusters == k}
    task = make_task(settings, k)
    # The centres span this plane (exactly for three of them), so the clusters lie apart in it as far as they do at all.
    origin = task.centres[0].mean(0)
    plane = torch.linalg.svd(task.centres[0] - origin)[2][:2].T
    flat = ((task.test.x[0] - origin) @ plane)[:_MAP_POINTS]
    points = [(float(x), float(y)) for x, y in flat]
    pictures = []
    for name, epoch in last.items():
        caption = "true clusters" if name == GOLD else f"{name}: {100 * epoch.agreement[0]:.0f}%"
        pictures.append(
            Picture(dots(points, [_MAP_COLOURS[c % len(_MAP_COLOURS)] for c in epoch.choices[:_MAP_POINTS]]), caption)
        )
    return Section(
        "Who chose what",
        [
            f"Test points of the first seed, K = {k}, seen in the plane of the cluster centres; the colour is the "
            "chosen cluster. A choice can be useful for the label without being the true cluster."
        ],
        pictures,
        small=True,
    )


def _reading() -> Section:
    return Section(
        "How to read this",
        [
            f"{GOLD.capitalize()}: classifiers that are told the true cluster, an upper bound. {FLOOR}: the scorer "
            "gets no gradient and keeps its random choice while the classifiers learn, a floor. All contenders share "
            "data, initial parameters, order of batches, optimiser and learning rate; the step sizes η are those "
            "tried in the literature.",
            "The default data were chosen among a few dozen settings tried beforehand (dimensions, distances, label "
            "noise, learning rates), so that bound, floor and estimators lie apart and Spigot beats the floor at "
            "K = 3. That last part depends on the setting. With 5% of the labels flipped (K = 3, eight seeds) its lead "
            "at η = 0.1 was four points, with 10% one point, within the spread; at η = 1 one point either way, "
            "at η = 2 it was below the floor. Settings(noise=0.1) repeats it.",
            "Soft estimators (StructuredAttention, SparseMAP) mix the classifiers, and can use the mixture without "
            "committing to a cluster: compare their accuracy with that of their argmax at test, and with the share of "
            "true clusters they find.",
            "SPIGOT sends back exactly zero when the current choice is already the best for the linearised loss: "
            "it corrects a choice but never confirms one. When the choice is learnt from the final label alone, as "
            "here, nothing holds a good choice in place; an intermediate loss on z, as in the paper's pipelines, "
            "would. StraightThrough sends its gradient either way.",
            "Mihaylova, Niculae, Martins (2020), Understanding the mechanics of SPIGOT, describe the problem; "
            "the data here are our own.",
        ],
    )


def _facts(settings: Settings) -> list[tuple[str, str]]:
    return [
        ("spread", f"standard deviation over {settings.seeds} seeds, each with data and parameters of its own"),
        ("training", f"{settings.epochs} epochs of {settings.train} points, batches of {settings.batch}, summed loss"),
        ("optimiser", f"Adam, learning rate {settings.learning_rate:g}"),
        ("data", f"{settings.half} features of place and {settings.half} of content; centres {settings.separation:g} "
                 f"standard deviations from the origin; {settings.noise:.0%} of labels flipped; "
                 f"{settings.test} test points"),
        ("first seed", str(settings.seed)),
        ("versions", f"spigot {spigot.__version__}, torch {torch.__version__}; {spigot.native.status()}"),
    ]  # fmt: skip
