"""The tables of a study: scores at each point, differences, scores by a setting, and what the trainings took."""

from collections.abc import Iterator, Sequence

from spigot_nlp.report.results import PARTS, place
from spigot_nlp.report.speed import duration
from spigot_nlp.report.study import Arm, Difference, Point, Results, Scores, point_name, value_text
from spigot_nlp.report.study_curves import curves_of
from spigot_nlp.tables import Cell, Table, TableRow

_UNKNOWN = "–"


def study_tables(results: Results) -> list[Table]:
    """Every table of a study: scores, differences, scores by setting, cost.

    Example:
        >>> from spigot_nlp.report.study import Study
        >>> arms = [Arm("pipeline"), Arm("spigot")]
        >>> scores = [Scores(arm, "Graphs", "dev", "LF", {0: 0.75, 1: 0.7}) for arm in arms]
        >>> stages = {"Graphs": ["LF"]}
        >>> results = Results(Study("two", arms), ["dev"], ["dev"], stages, "LF", {}, scores, [], [])
        >>> [cell.text + cell.detail for cell in study_tables(results)[0].rows[0].cells]
        ['72.50± 3.54', '2']
    """
    return [*score_tables(results), *difference_tables(results), *curve_tables(results), *cost_tables(results)]


def score_tables(results: Results) -> list[Table]:
    """Mean and standard deviation of every score: a table for each stage at each point.

    Example:
        >>> from spigot_nlp.report.study import Study
        >>> study = Study("one", [Arm("spigot", {"limit": 250})])
        >>> scores = [Scores(study.arms[0], "Graphs", "dev", "LF", {0: 0.75})]
        >>> results = Results(study, ["dev"], ["dev"], {"Graphs": ["LF"]}, "LF", {}, scores, [], [])
        >>> [table.title for table in score_tables(results)]
        ['Graphs, limit 250']
    """
    made = [_score_table(results, stage, point) for point in results.study.points for stage in results.stages]
    return [table for table in made if table is not None]


def difference_tables(results: Results) -> list[Table]:
    """Who is better than whom, and how sure that is: a table for each set of sentences at each point.

    Example:
        >>> from spigot_nlp.report.study import Study
        >>> found = [Difference("spigot", "ste", {}, "dev", "LF", 0.01)]
        >>> study = Study("two", [Arm("ste"), Arm("spigot")])
        >>> (table,) = difference_tables(Results(study, ["dev"], ["dev"], {}, "LF", {}, [], found, []))
        >>> table.title, [cell.text for cell in table.rows[0].cells]
        ('Differences in LF on the development data', ['+1.00', '–', '–', '–'])
    """
    return list(_difference_tables(results))


def curve_tables(results: Results) -> list[Table]:
    """The scores by each setting that is a number with three values or more: what the pictures show.

    Example:
        >>> from spigot_nlp.report.study import Study
        >>> arms = [Arm("spigot", {"limit": size}) for size in (250, 500, 1000)]
        >>> scores = [Scores(arm, "Graphs", "dev", "LF", {0: 0.75}) for arm in arms]
        >>> results = Results(Study("c", arms), ["dev"], ["dev"], {"Graphs": ["LF"]}, "LF", {}, scores, [], [])
        >>> [table.columns for table in curve_tables(results)]
        [['limit', '250', '500', '1,000']]
    """
    found = []
    for curve in curves_of(results.study):
        for part in results.compared:
            rows = []
            for system in results.study.order:
                cells = [_mean_cell(results.score(system, point, part)) for point in curve.points]
                if any(cell.text != _UNKNOWN for cell in cells):
                    rows.append(TableRow(system, cells, results.study.order.index(system)))
            heads = [value_text(point[curve.setting]) for point in curve.points]
            title = f"{results.measure} {place(part)} by {curve.name}{f', {curve.rest}' if curve.rest else ''}"
            if rows:
                found.append(Table([curve.name, *heads], rows, title, "Per cent, ± standard deviation over seeds."))
    return found


def cost_tables(results: Results) -> list[Table]:
    """What a training took, on average; none if no run says.

    Example:
        >>> from spigot_nlp.report.study import Cost, Study
        >>> study = Study("one", [Arm("spigot")])
        >>> (table,) = cost_tables(Results(study, [], [], {}, "LF", {}, [], [], [Cost(study.arms[0], [90.0], [50.0])]))
        >>> [cell.text for cell in table.rows[0].cells]
        ['1 min 30 s', '50.0 s', '1']
    """
    rows = []
    for cost in sorted(results.costs, key=lambda cost: _order(results, cost.arm)):
        times = [cost.mean("processor"), cost.mean("wall")]
        if any(time is not None for time in times):
            cells = [Cell(_UNKNOWN if time is None else duration(time)) for time in times]
            series = results.study.order.index(cost.arm.system)
            rows.append(
                TableRow(_arm_name(cost.arm), [*cells, Cell(str(max(map(len, (cost.processor, cost.wall)))))], series)
            )
    if not rows:
        return []
    note = "Means. Training only: without reading data, the scores at the end, and stages taken from other runs."
    return [Table(["", "processor time a run", "time a run", "runs"], rows, "Cost", note)]


def _order(results: Results, arm: Arm) -> tuple[int, int]:
    return results.study.points.index(dict(arm.point)), results.study.order.index(arm.system)


def _arm_name(arm: Arm) -> str:
    return f"{arm.system}, {point_name(arm.point)}" if arm.point else arm.system


def _score_table(results: Results, stage: str, point: Point) -> Table | None:
    columns = [(part, measure) for part in results.parts for measure in results.stages[stage]]
    found = [
        (system, [results.score(system, point, part, measure, stage) for part, measure in columns])
        for system in results.study.order
    ]
    found = [(system, row) for system, row in found if any(row)]
    known = [k for k in range(len(columns)) if any(row[k] for _, row in found)]
    if not known:
        return None
    means = [[each.mean for _, row in found if (each := row[k]) is not None] for k in known]
    best = [f"{100 * max(column):.2f}" for column in means]
    rows = []
    for system, row in found:
        cells = [_mean_cell(row[k], best[at] if len(found) > 1 else "") for at, k in enumerate(known)]
        runs = max(len(scores.values) for scores in row if scores)
        rows.append(TableRow(system, [*cells, Cell(str(runs))], results.study.order.index(system)))
    heads = [f"{PARTS.get(columns[k][0], columns[k][0])} {columns[k][1]}" for k in known]
    title = f"{stage}, {point_name(point)}" if point else stage
    note = " ".join(_reading(results, stage, point, [system for system, _ in found], rows))
    return Table(["", *heads, "n"], rows, title, note, stacked=True)


def _mean_cell(scores: Scores | None, best: str = "") -> Cell:
    if scores is None:
        return Cell(_UNKNOWN)
    text = f"{100 * scores.mean:.2f}"
    detail = ""
    if scores.deviation is not None:
        detail = f"± {100 * scores.deviation:.2f}"
    elif scores.interval is not None:
        detail = f"{100 * scores.interval.low:.1f}–{100 * scores.interval.high:.1f}"
    return Cell(text, detail, best=text == best)


def _reading(
    results: Results, stage: str, point: Point, systems: Sequence[str], rows: Sequence[TableRow]
) -> Iterator[str]:
    details = [cell.detail for row in rows for cell in row.cells if cell.detail]
    yield "Per cent."
    if results.about.get(stage):
        yield results.about[stage]
    if any(detail.startswith("±") for detail in details):
        yield "± is the standard deviation over n seeds."
    if any(not detail.startswith("±") for detail in details):
        yield "Of a single seed: 95 % bootstrap interval over sentences."
    if len(rows) > 1:
        yield "Bold: the best of the column."
    arms = [results.study.arm(system, point) for system in systems]
    open_ones = [arm.system for arm in arms if arm is not None and not arm.complete]
    if open_ones:
        yield f"Runs are still to come of {', '.join(open_ones)}."


def _difference_tables(results: Results) -> Iterator[Table]:
    for point in results.study.points:
        for part in results.compared:
            found = [each for each in results.differences if each.part == part and dict(each.point) == dict(point)]
            if not found:
                continue
            several = sum(each.corrected is not None for each in found) > 1
            heads = ["", "difference", "95 % interval", "p", *(["p, corrected"] if several else []), "seeds"]
            rows = [
                TableRow(
                    f"{each.system} − {each.against}",
                    _difference_cells(each, several),
                    results.study.order.index(each.system),
                )
                for each in found
            ]
            where = f", {point_name(point)}" if point else ""
            title = f"Differences in {results.measure} {place(part)}{where}"
            yield Table(heads, rows, title, " ".join(_difference_reading(found, several)))


def _difference_cells(difference: Difference, several: bool) -> list[Cell]:
    found, corrected = difference.found, difference.corrected
    value = signed(difference.value)
    if found is None:
        return [Cell(value), Cell(_UNKNOWN), Cell(_UNKNOWN), *([Cell(_UNKNOWN)] if several else []), Cell(_UNKNOWN)]
    seeds = str(found.seeds[0]) if found.paired else f"{found.seeds[0]} and {found.seeds[1]}"
    return [
        Cell(value, best=(found.p if corrected is None else corrected) < 1 - found.level),
        Cell(f"{signed(found.low)} to {signed(found.high)}"),
        Cell(f"{found.p:.4f}"),
        *([Cell(_UNKNOWN if corrected is None else f"{corrected:.4f}")] if several else []),
        Cell(seeds),
    ]


def signed(share: float) -> str:
    """A difference of shares in points, always with its sign.

    Example:
        >>> signed(0.0123), signed(-0.0123), signed(-1e-9)
        ('+1.23', '−1.23', '+0.00')
    """
    return f"{round(100 * share, 2) + 0.0:+.2f}".replace("-", "−")


def _difference_reading(found: Sequence[Difference], several: bool) -> Iterator[str]:
    known = [each for each in found if each.found is not None]
    yield "Points, row minus the other."
    kinds = dict.fromkeys(each.found.over for each in known if each.found is not None)
    if list(kinds) == ["seeds and sentences"]:
        yield "Intervals and two-sided p are over seeds and sentences."
    else:
        why = {
            "seeds and sentences": "over seeds and sentences",
            "seeds": "over seeds alone, since what some runs were judged by was not kept",
            "sentences": "over sentences alone, since there is one seed: another may say otherwise",
        }
        for kind in kinds:
            names = ", ".join(each.system for each in known if each.found is not None and each.found.over == kind)
            yield f"Intervals and two-sided p of {names} are {why[kind]}."
    if len(known) < len(found):
        yield "Of the others nothing is known but one score of each: how sure it is cannot be said."
    if any(each.found is not None and not each.found.paired and each.found.over != "sentences" for each in known):
        yield "Two numbers of seeds: the seeds are not the same ones, and are not paired."
    if several:
        count = sum(each.corrected is not None for each in found)
        yield f"Corrected: by Holm's method, for the {count} comparisons of this table. Bold: below 0.05."
    elif known:
        yield "Bold: below 0.05."
