"""The numbers of a report: results with their intervals, and how the trainings went."""

import shlex
import statistics
from collections.abc import Callable, Iterable, Sequence

from spigot_nlp.annotations import Measure
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation import Counts, interval
from spigot_nlp.report.figures import Curve, curves
from spigot_nlp.report.material import Contender, Experiment, Run
from spigot_nlp.report.page import Picture, Section
from spigot_nlp.scoring import Target, development_measures
from spigot_nlp.tables import Cell, Table, TableRow
from spigot_nlp.training.development import CHANGED
from spigot_nlp.training.plan import LATENT, changing

SAMPLES = 2000
"""How often the bootstrap draws the sentences anew."""

_SHORT = 180.0  # a training of fewer seconds is drawn by the second

PARTS = {"dev": "dev", "id": "in domain", "ood": "out of domain", "test": "test"}
"""What the sets of sentences are called in print."""

_PLACES = {"dev": "on the development data", "test": "on the test set"}


def place(part: str) -> str:
    """Where a score was measured, in words.

    Example:
        >>> place("dev"), place("id"), place("brown")
        ('on the development data', 'in domain', 'on brown')
    """
    return _PLACES.get(part) or PARTS.get(part, f"on {part}")


def result_tables(experiment: Experiment) -> list[Table]:
    """The systems by the sets of sentences (Table 1), then the stages inside them.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.config import make_config
        >>> scores = {"dev": {"graphs": {"labelled": {"f1": 0.75}, "unlabelled": {"f1": 0.8}}, "trees": {"uas": 0.9}}}
        >>> run = Run(Path("runs/dm"), make_config({}), scores)
        >>> tables = result_tables(Experiment("dm", (Contender("spigot", (run,), 0),), None))
        >>> [(table.title, [cell.text for cell in table.rows[0].cells]) for table in tables]
        [('Graphs', ['80.00', '75.00']), ('The trees inside', ['90.00'])]
    """
    made = [_table(experiment, judge) for judge in stages_of(experiment.runs)]
    return [table for table in made if table is not None]


def stages_of(runs: Iterable[Run]) -> list[Target]:
    """The stages that runs were judged by; those of different systems are one if they are called the same.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.config import make_config
        >>> runs = [Run(Path(name), make_config({"system": name}), {}) for name in ("neurboparser", "ste", "spigot")]
        >>> [judge.title for judge in stages_of(runs)]
        ['Graphs', 'The trees inside']
    """
    groups: dict[tuple[str, str], Target] = {}
    for run in runs:
        for judge in run.targets:
            groups.setdefault(_group(judge), judge)
    return list(groups.values())


def _group(judge: Target) -> tuple[str, str]:
    return judge.key, judge.annotation.nouns


def own_judge(run: Run, judge: Target) -> Target | None:
    """What a run has in the place of a judge of another run; `None` if it has nothing there.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.config import make_config
        >>> ste, alone = (Run(Path(name), make_config({"system": name}), {}) for name in ("ste", "neurboparser"))
        >>> own_judge(alone, ste.targets[1]) is None
        True
    """
    return next((mine for mine in run.targets if _group(mine) == _group(judge)), None)


def printed(judge: Target) -> list[Measure]:
    """The measures of a stage in the order of the paper's tables: what a training goes by comes last.

    Example:
        >>> from spigot_nlp.config import make_config
        >>> from spigot_nlp.scoring import targets
        >>> [measure.name for measure in printed(targets(make_config({}))[0])]
        ['UF', 'LF']
    """
    return list(reversed(judge.annotation.measures))


def _table(experiment: Experiment, judge: Target) -> Table | None:
    runs = [run for run in experiment.runs if own_judge(run, judge)]
    parts = dict.fromkeys(name for run in runs for name, found in run.scores.items() if judge.key in found)
    if not parts:
        return None
    columns = [(part, measure) for part in parts for measure in printed(judge)]
    means: dict[tuple[str, str], dict[str, float]] = {}
    rows = []
    for contender in experiment.contenders:
        judged = [run for run in contender.runs if own_judge(run, judge)]
        numbers = [
            [score(run, part, judge, measure) for run in judged if judge.key in run.scores.get(part, {})]
            for part, measure in columns
        ]
        for (part, measure), values in zip(columns, numbers, strict=True):
            if values:
                means.setdefault((part, measure.name), {})[contender.name] = statistics.fmean(values)
        if any(numbers):
            rows.append((contender, numbers))
    best = {key: max(values.values()) for key, values in means.items()}
    table_rows = [
        TableRow(
            contender.name,
            [
                _cell(contender, part, judge, measure, values, best[part, measure.name] if len(rows) > 1 else None)
                for (part, measure), values in zip(columns, numbers, strict=True)
            ],
            contender.series,
        )
        for contender, numbers in rows
    ]
    heads = [f"{PARTS.get(part, part)} {measure.name}" for part, measure in columns]
    return Table(["", *heads], table_rows, judge.title, _reading(experiment, judge, table_rows), stacked=True)


def score(run: Run, part: str, judge: Target, measure: Measure) -> float:
    """What a run scored on a set of sentences, between 0 and 1.

    Raises:
        ValueError: If `scores.json` does not say.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.config import make_config
        >>> run = Run(Path("nowhere"), make_config({}), {"id": {"graphs": {"labelled": {"f1": 0.75}}}})
        >>> score(run, "id", run.targets[0], run.targets[0].annotation.measures[0])
        0.75
    """
    try:
        return measure.value(run.scores[part][judge.key])
    except (KeyError, TypeError):
        raise ValueError(
            f"{run.path}: scores.json has no {measure.name} of {judge.key} in {part}; write it again with spigot train "
            f"--resume {shlex.quote(str(run.path))}."
        ) from None


def _cell(
    contender: Contender, part: str, judge: Target, measure: Measure, values: list[float], best: float | None
) -> Cell:
    if not values:
        return Cell("–")
    mean = statistics.fmean(values)
    if len(values) > 1:
        detail = f"± {100 * statistics.stdev(values):.2f}"
    else:
        bounds = _interval(contender.first, part, judge, measure, mean)
        detail = "" if bounds is None else f"{100 * bounds[0]:.1f}–{100 * bounds[1]:.1f}"
    text = f"{100 * mean:.2f}"
    # As printed: of two equal numbers neither is the better one.
    return Cell(text, detail, best=best is not None and text == f"{100 * best:.2f}")


def _interval(run: Run, part: str, judge: Target, measure: Measure, value: float) -> tuple[float, float] | None:
    """The bootstrap interval of a score, if the sentences it was measured on were kept."""
    counts = kept_counts(run, part, judge, measure, value)
    if counts is None:
        return None
    found = interval(counts, samples=SAMPLES)
    return found.low, found.high


def kept_counts(run: Run, part: str, judge: Target, measure: Measure, value: float) -> Counts | None:
    """What a score was computed from; `None` if the sentences it was measured on were not kept.

    Args:
        run: The run.
        part: The set of sentences.
        judge: Whose score it is; a run that has another stage in its place is asked for that one.
        measure: The score.
        value: What `scores.json` says it is; files that give another one are not those it was measured on.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.config import make_config
        >>> run = Run(Path("nowhere"), make_config({}), {})
        >>> kept_counts(run, "dev", run.targets[0], run.targets[0].annotation.measures[0], 0.75) is None
        True
    """
    mine = own_judge(run, judge)
    gold, predicted = run.gold(part), None if mine is None else run.predictions(part, mine)
    return checked_counts(judge, measure, gold, predicted, value)


def checked_counts(
    judge: Target, measure: Measure, gold: list[Sentence] | None, predicted: list[Sentence] | None, value: float
) -> Counts | None:
    """The counts of sentences that a score may have been computed from; `None` if they are not those.

    Args:
        judge: Whose score it is.
        measure: The score.
        gold: The right annotation; `None` if it was not kept.
        predicted: What was found.
        value: What the score is.

    Example:
        >>> from spigot_nlp.annotations import Classes
        >>> rain = [Sentence(("Rain",), label=1)]
        >>> judge = Target("labels", Classes(), "mood", file="jsonl")
        >>> measure = judge.annotation.measures[0]
        >>> len(checked_counts(judge, measure, rain, rain, 1.0)), checked_counts(judge, measure, rain, rain, 0.5)
        (1, None)
    """
    name = judge.annotation.name
    if not gold or not predicted or any(s.get(name) is None for s in (*gold, *predicted)):
        return None
    try:
        counts = measure.counts(gold, predicted)
    except ValueError:  # the stage inside was judged by other sentences than the end task
        return None
    return counts if abs(counts.f1() - value) < 1e-9 else None


def _reading(experiment: Experiment, judge: Target, rows: Sequence[TableRow]) -> str:
    several = any(len(contender.runs) > 1 for contender in experiment.contenders)
    single = any(cell.detail and not cell.detail.startswith("±") for row in rows for cell in row.cells)
    about = "".join(f" {said}" for said in dict.fromkeys(m.about for m in judge.annotation.measures) if said)
    spread = " ± is the standard deviation over seeds." if several else ""
    bounds = f" Small numbers: 95 % bootstrap interval over sentences ({SAMPLES:,} resamples)." if single else ""
    return f"Per cent.{about}{spread}{bounds} Bold: the best of the column."


def phase_name(name: str) -> str:
    """What a phase or task of a training is called in print: a stage by its name, a helper as that of its stage.

    Example:
        >>> phase_name("semantics.pruner"), phase_name("latent"), phase_name("syntax")
        ('pruner of semantics', 'latent structure', 'syntax')
    """
    stage, _, helper = name.partition(".")
    return f"{helper} of {stage}" if helper else {LATENT: "latent structure"}.get(name, name)


def curve_section(experiment: Experiment, key: str) -> Section | None:
    """How the losses fell and the scores on the development data rose; `None` if no steps were kept.

    Args:
        experiment: The systems.
        key: Prefix of the element names, unique on a page.

    Example:
        >>> from pathlib import Path
        >>> from spigot_nlp.config import make_config
        >>> run = Run(Path("nowhere"), make_config({}), {})
        >>> experiment = Experiment("dm", (Contender("spigot", (run,), 0),), None)
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
                title=f"Loss of {'the ' if '.' in task else ''}{phase_name(task)}, by epoch",
                x_label="epoch",
                y_label="mean loss of a training sentence",
                key=f"{key}-loss-{task}",
                shares=False,
            )
            pictures.append(Picture(svg))
    longest = max((step["seconds"] or 0.0 for run in experiment.runs for step in run.steps), default=0.0)
    clock = ("seconds", 1.0) if longest < _SHORT else ("minutes", 60.0)
    for measure in _dev_measures(experiment):
        for unit, length in (("epoch", None), clock):
            lines = _lines(experiment, lambda run, m=measure, u=length: _dev_points(run, m, unit=u))
            if lines:
                about = _new(measure) or f"{measure} on the development data"
                svg = curves(
                    lines,
                    title=f"{about[0].upper()}{about[1:]}, by {unit}",
                    x_label=unit if length is None else f"{unit} of training",
                    y_label="sentences, per cent" if _new(measure) else f"{measure}, per cent",
                    key=f"{key}-{measure.replace(' ', '-')}-{unit}",
                )
                pictures.append(Picture(svg))
    if not pictures:
        return None
    several = any(len(contender.runs) > 1 for contender in experiment.contenders)
    prose = [
        f"Rest on a name to bring out its curves.{' Bands are standard deviations over seeds.' if several else ''}"
    ]
    keys = [(contender.name, contender.series) for contender in experiment.contenders]
    about = "losses, and scores on the development data, by epoch and by time"
    return Section("Training", prose, pictures, keys=keys, key=f"{key}-training", about=about)


def _dev_measures(experiment: Experiment) -> list[str]:
    """What the scores of the development data are drawn of: what a training of each stage goes by, and what is new."""
    found: dict[str, None] = {}
    changes: dict[str, None] = {}
    for run in experiment.runs:
        first = {judge.stage: judge.annotation.measures[0] for judge in run.targets}
        own = development_measures(run.config)
        found.update(dict.fromkeys(name for name, (s, m) in own.items() if m.name == getattr(first.get(s), "name", "")))
        changes.update(dict.fromkeys(name for step in run.steps for name in step["dev"] or () if _new(name)))
    return [*found, *changes]


def _new(measure: str) -> str:
    """What is said of a score that is about what changed; empty if it is about something else."""
    stage, _, kind = measure.rpartition(" ")
    if kind != CHANGED:
        return ""
    return f"Structures {f'of {stage} ' if stage else ''}new since the epoch before"


def _lines(experiment: Experiment, points: Callable[[Run], list[tuple[float, float]]]) -> list[Curve]:
    lines = []
    for contender in experiment.contenders:
        series = [found for run in contender.runs if (found := points(run))]
        if not series:
            continue
        length = min(len(found) for found in series)  # seeds may stop at different epochs
        x = [statistics.fmean(found[k][0] for found in series) for k in range(length)]
        values = [[found[k][1] for found in series] for k in range(length)]
        spread = [statistics.stdev(v) if len(v) > 1 else 0.0 for v in values]
        lines.append(Curve(contender.name, x, [statistics.fmean(v) for v in values], spread, contender.series))
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
    own = development_measures(run.config)
    stage, changed = own[measure][0] if measure in own else None, changing(run.config)

    def moves(phase: str) -> bool:
        """Where a stage stands still while another is trained on top of it, there is nothing to see."""
        return stage is None or phase not in changed or stage in changed[phase]

    scored = [s for s in run.steps if s["dev"] and measure in s["dev"] and moves(s["phase"])]
    if unit is not None:
        return [(s["seconds"] / unit, s["dev"][measure] / 100) for s in scored if s.get("seconds") is not None]
    return [(epoch, step["dev"][measure] / 100) for epoch, step in enumerate(scored, 1)]
