"""A study shown: on a page of its own, as text for a document, and as plain values."""

import datetime
from dataclasses import asdict
from typing import Any

from spigot_nlp.report.origin import origin
from spigot_nlp.report.page import Page, Section
from spigot_nlp.report.study import Results
from spigot_nlp.report.study_pictures import study_pictures
from spigot_nlp.report.study_tables import cost_tables, curve_tables, difference_tables, score_tables, study_tables
from spigot_nlp.tables import markdown


def study_page(results: Results) -> Page:
    """The page of a study: pictures and the last stage's scores first, then differences, the stages inside, and cost.

    Args:
        results: What the study found.

    Returns:
        The page; `spigot_nlp.report.page.render` makes it text.

    Example:
        >>> from spigot_nlp.report.study import Arm, Scores, Study
        >>> study = Study("alone", [Arm("spigot")])
        >>> scores = [Scores(study.arms[0], "Graphs", "dev", "LF", {0: 0.75})]
        >>> page = study_page(Results(study, ["dev"], ["dev"], {"Graphs": ["LF"]}, "LF", {}, scores, [], []))
        >>> page.title, [section.title for section in page.sections]
        ('alone', ['Scores'])
    """
    study, end = results.study, next(iter(results.stages))
    pictures, tables, differences = study_pictures(results), score_tables(results), difference_tables(results)
    last = [table for table in tables if _is_of(table.title, end)]
    inside = [table for table in tables if not _is_of(table.title, end)]
    keys = [(system, number) for number, system in enumerate(study.order)]
    sections = [
        Section("Along the settings", pictures=pictures, tables=curve_tables(results), keys=keys, key="curves"),
        Section("Scores", tables=last, key="scores"),
        Section("Differences", tables=differences, key="differences"),
        Section("Inside", tables=inside, key="inside", about="the stages that others read", folded=True),
        Section("Cost", tables=cost_tables(results), key="cost", about="what a training took", folded=True),
    ]
    return Page(
        title=study.name,
        lead=" ".join(filter(None, (study.about, _lead(results)))),
        sections=[section for section in sections if section.pictures or section.all_tables()],
        facts=[
            (f"{arm.system}{''.join(f', {key} {value}' for key, value in arm.point.items())}, seed {seed}", str(path))
            for arm in study.arms
            for seed, path in sorted(arm.runs.items())
        ],
        made=[f"made on {datetime.date.today().isoformat()}", f"by {origin()}"],
        foot="The runs",
    )


def _is_of(title: str, stage: str) -> bool:
    return title == stage or title.startswith(f"{stage}, ")


def _lead(results: Results) -> str:
    study = results.study
    runs = sum(len(arm.runs) for arm in study.arms)
    points = f" at {len(study.points)} points" if len(study.points) > 1 else ""
    said = f"{len(study.order)} systems{points}, {runs} runs, compared by {results.measure}."
    waiting = sum(not arm.complete for arm in study.arms)
    return said + (
        f" Not finished: runs are still to come in {waiting} of {len(study.arms)} places." if waiting else ""
    )


def study_markdown(results: Results) -> str:
    """All tables of a study as text for a document.

    Example:
        >>> from spigot_nlp.report.study import Arm, Scores, Study
        >>> study = Study("alone", [Arm("spigot")])
        >>> scores = [Scores(study.arms[0], "Graphs", "dev", "LF", {0: 0.75})]
        >>> print(study_markdown(Results(study, ["dev"], ["dev"], {"Graphs": ["LF"]}, "LF", {}, scores, [], [])))
        **Graphs**
        <BLANKLINE>
        |  | dev LF | n |
        |---|---:|---:|
        | spigot | 75.00 | 1 |
        <BLANKLINE>
        Per cent.
        <BLANKLINE>
    """
    return "".join(f"{markdown(table)}\n\n" for table in study_tables(results)).removesuffix("\n")


def study_plain(results: Results) -> dict[str, Any]:
    """All numbers of a study as plain values, ready for JSON. Scores are shares between 0 and 1.

    Example:
        >>> from spigot_nlp.report.study import Arm, Scores, Study
        >>> study = Study("alone", [Arm("spigot")])
        >>> scores = [Scores(study.arms[0], "Graphs", "dev", "LF", {0: 0.75, 1: 0.25})]
        >>> plain = study_plain(Results(study, ["dev"], ["dev"], {"Graphs": ["LF"]}, "LF", {}, scores, [], []))
        >>> plain["arms"][0]["scores"][0]["mean"], plain["arms"][0]["complete"]
        (0.5, True)
    """
    study = results.study
    arms = []
    for arm in study.arms:
        cost = next((each for each in results.costs if each.arm == arm), None)
        arms.append(
            {
                "system": arm.system,
                "point": dict(arm.point),
                "complete": arm.complete,
                "runs": {str(seed): str(path) for seed, path in sorted(arm.runs.items())},
                "scores": [
                    {
                        "stage": each.stage,
                        "part": each.part,
                        "measure": each.measure,
                        "mean": each.mean,
                        "deviation": each.deviation,
                        "n": len(each.values),
                        "values": {str(seed): value for seed, value in each.values.items()},
                        "interval": None
                        if each.interval is None
                        else {**asdict(each.interval), "over": each.interval.over},
                    }
                    for each in results.scores
                    if each.arm == arm
                ],
                "processor_seconds": None if cost is None else cost.mean("processor"),
                "seconds": None if cost is None else cost.mean("wall"),
            }
        )
    differences = [
        {
            "system": each.system,
            "against": each.against,
            "point": dict(each.point),
            "part": each.part,
            "measure": each.measure,
            "difference": each.value,
            "found": None if each.found is None else {**asdict(each.found), "over": each.found.over},
            "corrected_p": each.corrected,
        }
        for each in results.differences
    ]
    about = {"name": study.name, "about": study.about, "systems": study.order, "baseline": study.baseline}
    return {**about, "measure": results.measure, "parts": list(results.parts), "arms": arms, "differences": differences}
