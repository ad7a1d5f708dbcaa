"""What came of a study: means over seeds, differences with intervals over seeds and sentences, tuning, cost."""

import csv
import io
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from research.study.plan import Plan, Training, short_names, shown
from spigot_nlp.evaluation import Counts, Drawn, SeedComparison, draw_scores, holm, seed_bootstrap
from spigot_nlp.models.checkpoint import write_text
from spigot_nlp.report.material import Run, read_run
from spigot_nlp.report.results import PARTS, place, printed
from spigot_nlp.report.speed import duration
from spigot_nlp.scoring import Target
from spigot_nlp.tables import Cell, Table, TableRow


@dataclass(frozen=True)
class Score:
    """One number of one training."""

    system: str
    point: str
    seed: int
    stage: str
    part: str
    measure: str
    value: float


@dataclass(frozen=True)
class Difference:
    """How much better a system is than another, at one point, on one set of sentences; p corrected by Holm's method."""

    system: str
    against: str
    point: str
    part: str
    measure: str
    over: str
    difference: float
    low: float
    high: float
    p: float
    corrected: float


class Results:
    """What the finished trainings of a study say.

    Args:
        plan: The study.
        finals: Its finished trainings that count.
        tests: Whether to look at test sets.

    Attributes:
        scores: Every score of every training.
        differences: The comparisons with the systems of `against`.
    """

    def __init__(self, plan: Plan, finals: Sequence[Training], *, tests: bool = False) -> None:
        self.plan = plan
        self._runs = {(t.system, t.point, t.seed): read_run(plan.out / t.name) for t in finals}
        title = self.end.title if self._runs else ""
        self.scores = [score for key, run in self._runs.items() for score in _scores(run, key, title, tests)]
        self.differences = list(self._differences())

    @property
    def end(self) -> Target:
        """What all systems are judged by in the end."""
        return next(iter(self._runs.values())).targets[0]

    @property
    def compared(self) -> list[str]:
        """The sets of sentences that differences are of: test sets, or else the development data."""
        parts = list(dict.fromkeys(score.part for score in self.scores if score.stage == self.end.title))
        return [part for part in parts if part != "dev"] or parts

    def tables(self) -> Iterator[Table]:
        """Scores and differences at each point, scores by point, and what the trainings took."""
        if not self.scores:
            return
        for point in self.plan.points:
            for stage in dict.fromkeys(score.stage for score in self.scores):
                yield from self._score_table(point, stage)
            yield from self._difference_tables(point)
        if len(self.plan.points) > 2:
            yield from self._point_tables()
        yield self._cost_table()

    def _score_table(self, point: str, stage: str) -> Iterator[Table]:
        found: dict[tuple[str, str], dict[str, list[float]]] = {}
        for score in self.scores:
            if (score.point, score.stage) == (point, stage):
                found.setdefault((score.part, score.measure), {}).setdefault(score.system, []).append(score.value)
        systems = [name for name in self.plan.systems if any(name in some for some in found.values())]
        rows = []
        for system in systems:
            cells = [_mean_cell(some.get(system, []), some.values()) for some in found.values()]
            seeds = max(len(some.get(system, [])) for some in found.values())
            rows.append(TableRow(system, [*cells, Cell(str(seeds))]))
        if rows:
            heads = [f"{PARTS.get(part, part)} {measure}" for part, measure in found]
            note = "Per cent, ± standard deviation over n seeds. Bold: the best of the column."
            yield Table(["", *heads, "n"], rows, _at(stage, point), note, stacked=True)

    def _difference_tables(self, point: str) -> Iterator[Table]:
        for part in self.compared:
            some = [each for each in self.differences if (each.point, each.part) == (point, part)]
            rows = [
                TableRow(
                    f"{each.system} − {each.against}",
                    [
                        Cell(_signed(each.difference), best=each.corrected < 0.05),
                        Cell(f"{_signed(each.low)} to {_signed(each.high)}"),
                        *(Cell(f"{p:.4f}") for p in (each.p, each.corrected)),
                        Cell(each.over),
                    ],
                )
                for each in some
            ]
            if rows:
                heads = ["", "difference", "95 % interval", "p", "p, corrected", "over"]
                note = "Points, row minus the other; p two-sided, then corrected by Holm's method. Bold: below 0.05."
                yield Table(heads, rows, _at(f"Differences in {some[0].measure} {place(part)}", point), note)

    def _point_tables(self) -> Iterator[Table]:
        measure = self.end.annotation.measures[0].name
        for part in self.compared:
            rows = []
            for system in self.plan.systems:
                columns = [self._values(system, point, part, measure) for point in self.plan.points]
                rows.append(TableRow(system, [_mean_cell(list(values.values()), []) for values in columns]))
            yield Table(
                ["", *self.plan.points], rows, f"{measure} {place(part)} by point", "Per cent, ± standard deviation."
            )

    def _cost_table(self) -> Table:
        rows = []
        for point in self.plan.points:
            for system in self.plan.systems:
                runs = [run for (name, at, _), run in self._runs.items() if (name, at) == (system, point)]
                times = [[run.processor for run in runs], [run.seconds for run in runs]]
                known = [[time for time in some if time is not None] for some in times]
                if any(known):
                    cells = [Cell(duration(statistics.fmean(some)) if some else "–") for some in known]
                    rows.append(TableRow(_at(system, point), [*cells, Cell(str(len(runs)))]))
        return Table(["", "processor time a run", "time a run", "runs"], rows, "Cost", "Means, of training only.")

    def _values(self, system: str, point: str, part: str, measure: str) -> dict[int, float]:
        """The scores of a system's runs by seed."""
        wanted = system, point, self.end.title, part, measure
        return {s.seed: s.value for s in self.scores if (s.system, s.point, s.stage, s.part, s.measure) == wanted}

    def _differences(self) -> Iterator[Difference]:
        study = self.plan.study
        pairs = [(one, other) for other in study.against for one in self.plan.systems if one != other]
        if not pairs or not self.scores:
            return
        for point in self.plan.points:
            for part in self.compared:
                drawn = self._drawn(point, part)
                known = [pair for pair in pairs if drawn.keys() >= set(pair)]
                found = [comparison for pair in known if (comparison := _compared(*(drawn[name] for name in pair)))]
                corrected = holm([comparison.p for comparison in found])
                measure = self.end.annotation.measures[0].name
                for pair, comparison, p in zip(known, found, corrected, strict=False):
                    c = comparison
                    yield Difference(*pair, point, part, measure, c.over, c.difference, c.low, c.high, c.p, p)

    def _drawn(self, point: str, part: str) -> dict[str, Drawn]:
        """The scores of each system on resampled sentences; as they are where a run did not keep its sentences."""
        measure = self.end.annotation.measures[0].name
        scores = {name: self._values(name, point, part, measure) for name in self.plan.systems}
        counts = {
            name: {seed: self._counts(self._runs[name, point, seed], part) for seed in values}
            for name, values in scores.items()
            if values
        }
        whole = {name: {seed: c for seed, c in some.items() if c is not None} for name, some in counts.items()}
        if all(len(whole[name]) == len(counts[name]) for name in counts):
            return dict(zip(whole, draw_scores(list(whole.values())), strict=True))
        return {name: Drawn.given(scores[name]) for name in counts}

    def _counts(self, run: Run, part: str) -> Counts | None:
        judge = run.targets[0]
        gold, predicted = run.gold(part), run.predictions(part, judge)
        return None if gold is None or predicted is None else judge.annotation.measures[0].counts(gold, predicted)


def _scores(run: Run, key: tuple[str, str, int], end: str, tests: bool) -> Iterator[Score]:
    """The scores of a run; what systems are judged by in the end is called the same for all of them."""
    for target in run.targets:
        title = end if target is run.targets[0] else target.title
        for part, found in run.scores.items():
            if target.key in found and (tests or part == "dev"):
                for measure in printed(target):
                    yield Score(*key, title, part, measure.name, measure.value(found[target.key]))


def _compared(one: Drawn, other: Drawn) -> SeedComparison | None:
    try:
        return seed_bootstrap(one, other)
    except ValueError:  # one score of each, and nothing known of sentences
        return None


def _mean_cell(values: Sequence[float], rivals: Iterable[Sequence[float]]) -> Cell:
    if not values:
        return Cell("–")
    text = f"{100 * statistics.fmean(values):.2f}"
    detail = f"± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else ""
    others = [f"{100 * statistics.fmean(some):.2f}" for some in rivals]
    return Cell(text, detail, best=len(others) > 1 and text == max(others, key=float))


def _at(name: str, point: str) -> str:
    return f"{name}, {point}" if point else name


def _signed(share: float) -> str:
    return f"{round(100 * share, 2) + 0.0:+.2f}".replace("-", "−")


def tuning_rows(
    plan: Plan, tried: Mapping[tuple[str, str], Sequence[tuple[Mapping[str, Any], Sequence[float]]]]
) -> list[dict[str, Any]]:
    """What was tried for each system, the best first, as plain values."""
    rows: list[dict[str, Any]] = []
    for (system, point), combinations in tried.items():
        whole = [(v, s) for v, s in combinations if len(s) == len(plan.study.tune.seeds)]
        whole.sort(key=lambda each: -statistics.fmean(each[1]))
        for values, scores in [*whole, *((v, s) for v, s in combinations if (v, s) not in whole)]:
            mean = statistics.fmean(scores) if scores else None
            chosen = bool(whole) and values == whole[0][0]
            rows.append({"system": system, "point": point, "values": dict(values), "dev": mean, "chosen": chosen})
    return rows


def tuning_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """What was tried, for people."""
    made = []
    for row in rows:
        short = short_names(row["values"])
        values = ", ".join(f"{short[name]} {shown(value)}" for name, value in row["values"].items())
        dev = Cell("failed" if row["dev"] is None else f"{100 * row['dev']:.2f}", best=row["chosen"])
        made.append(TableRow(_at(row["system"], row["point"]), [Cell(values), dev]))
    return Table(["", "values", "dev"], made, "Tuning", "Development scores, per cent. Bold: chosen.")


def write_csv(rows: Sequence[Any], path: Path) -> None:
    """Write dataclasses of one kind, or dictionaries with the same names, as a table for programs."""
    plain = [row if isinstance(row, dict) else asdict(row) for row in rows]
    text = io.StringIO()
    table = csv.DictWriter(text, list(plain[0]) if plain else [], lineterminator="\n")
    table.writeheader()
    table.writerows(plain)
    write_text(path, text.getvalue())
