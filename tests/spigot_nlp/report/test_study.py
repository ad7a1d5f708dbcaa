"""A study's numbers, tables, pictures and page: from run folders written for the purpose."""

import json
import re
import statistics
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from spigot_nlp.config import make_config
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation import Counts, graph_counts, holm, score_graphs, seed_bootstrap, seed_interval
from spigot_nlp.models import checkpoint
from spigot_nlp.report.page import render
from spigot_nlp.report.study import Arm, Study
from spigot_nlp.report.study_page import study_markdown, study_page, study_plain
from spigot_nlp.report.study_pictures import study_pictures
from spigot_nlp.report.study_results import study_results
from spigot_nlp.report.study_runs import study_of
from spigot_nlp.report.study_tables import cost_tables, curve_tables, difference_tables, score_tables, study_tables

GOLD = [
    Sentence(("Rain", "fell"), tags=("_", "_"), lemmas=("_", "_"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]), id=str(k))
    for k in range(40)
]
WRONG = Graph.of([Arc(2, 1, "ARG2")], [2])


def found(right: int) -> list[Sentence]:
    return [
        Sentence(g.forms, tags=g.tags, lemmas=g.lemmas, graph=g.graph if k < right else WRONG, id=g.id)
        for k, g in enumerate(GOLD)
    ]


def counts(right: int) -> Counts:
    return graph_counts(GOLD, found(right))


def run(
    path: Path, right: int, *, system: str = "ste", kept: bool = True, took: float | None = None, seed: int = 0
) -> Path:
    """A finished run that has the roles of the first so many of forty sentences right, on dev and in domain."""
    path.mkdir()
    checkpoint.write_config(path / checkpoint.CONFIG, make_config({"name": "rain", "system": system, "seed": seed}))
    scores = asdict(score_graphs(GOLD, found(right)))
    for part in ("dev", "id") if kept else ():
        write(GOLD, path / f"gold.{part}.jsonl")
        write(found(right), path / f"predictions.{part}.sdp")
    every = {"dev": scores, "id": scores}
    if system != "neurboparser":
        every["dev trees"] = {"uas": right / 50}
    (path / checkpoint.SCORES).write_text(json.dumps(every))
    if took is not None:
        state = {"seconds": took, "processor": 2 * took}
        checkpoint.write_tensors(path / checkpoint.STATE, {"none": torch.zeros(1)}, state)
    return path


def arm(folder: Path, name: str, rights: list[int], point: dict[str, int] | None = None, **options: object) -> Arm:
    where = "-".join(map(str, (point or {}).values()))
    runs = {seed: run(folder / f"{name}-{where}-{seed}", n, **options) for seed, n in enumerate(rights)}  # type: ignore[arg-type] # test options
    return Arm(name, point or {}, runs)


@pytest.fixture
def two(tmp_path: Path) -> Study:
    arms = [
        arm(tmp_path, "plain", [10, 12, 11], system="neurboparser"),
        arm(tmp_path, "better", [30, 33, 31], took=90.0),
        arm(tmp_path, "like", [11, 13, 10], took=30.0),
    ]
    return Study("two", arms)


def test_scores_and_differences_are_those_of_the_counts(two: Study) -> None:
    results = study_results(two)
    scores = results.score("better", {}, "dev")
    assert scores is not None
    runs = {seed: counts(n) for seed, n in enumerate((30, 33, 31))}
    assert list(scores.values.values()) == pytest.approx([each.f1() for each in runs.values()])
    assert scores.interval == seed_interval(runs)
    plain, like = ({seed: counts(n) for seed, n in enumerate(some)} for some in ((10, 12, 11), (11, 13, 10)))
    known = [seed_bootstrap(each, plain) for each in (runs, like)]
    assert [(each.system, each.against) for each in results.differences] == [("better", "plain"), ("like", "plain")]
    assert [each.found for each in results.differences] == known
    assert [each.corrected for each in results.differences] == holm([each.p for each in known])


def test_tables_have_means_deviations_and_seeds(two: Study) -> None:
    results = study_results(two)
    graphs, trees = score_tables(results)
    assert graphs.columns == ["", "dev UF", "dev LF", "n"]
    values = [counts(n).f1() for n in (30, 33, 31)]
    cell = graphs.rows[1].cells[1]
    assert (cell.text, cell.detail, cell.best) == (
        f"{100 * statistics.fmean(values):.2f}",
        f"± {100 * statistics.stdev(values):.2f}",
        True,
    )
    assert [row.cells[-1].text for row in graphs.rows] == ["3", "3", "3"]
    assert (trees.title, [row.name for row in trees.rows]) == ("The trees inside", ["better", "like"])
    (differences,) = difference_tables(results)
    assert differences.columns == ["", "difference", "95 % interval", "p", "p, corrected", "seeds"]
    assert differences.rows[0].name == "better − plain"
    assert differences.rows[0].cells[0].best
    assert not differences.rows[1].cells[0].best
    assert "over seeds and sentences" in differences.note
    assert "for the 2 comparisons of this table" in differences.note


def test_tests_are_shown_only_if_asked_for(two: Study) -> None:
    assert study_results(two).parts == ["dev"]
    asked = study_results(two, tests=True)
    assert (asked.parts, asked.compared) == (["dev", "id"], ["id"])
    assert score_tables(asked)[0].columns == ["", "dev UF", "dev LF", "in domain UF", "in domain LF", "n"]
    assert [table.title for table in difference_tables(asked)] == ["Differences in LF in domain"]
    assert "in domain" not in study_markdown(study_results(two))


def test_cost_is_the_mean_of_what_is_known(two: Study) -> None:
    (table,) = cost_tables(study_results(two))
    assert [(row.name, [cell.text for cell in row.cells]) for row in table.rows] == [
        ("better", ["3 min 00 s", "1 min 30 s", "3"]),
        ("like", ["1 min 00 s", "30.0 s", "3"]),
    ]


def test_what_is_not_kept_leaves_seeds_alone(tmp_path: Path) -> None:
    arms = [arm(tmp_path, "plain", [10, 12, 11]), arm(tmp_path, "bare", [30, 33, 31], kept=False)]
    results = study_results(Study("bare", arms))
    (difference,) = results.differences
    assert difference.found is not None
    assert (difference.found.over, difference.found.sentences) == ("seeds", 0)
    assert difference.found.low > 0
    assert "of bare are over seeds alone, since what some runs were judged by was not kept" in (
        difference_tables(results)[0].note
    )


def test_single_runs_without_sentences_claim_nothing(tmp_path: Path) -> None:
    arms = [arm(tmp_path, name, [n], kept=False) for name, n in (("plain", 10), ("bare", 30))]
    results = study_results(Study("bare", arms))
    assert results.differences[0].found is None
    (table,) = difference_tables(results)
    assert [cell.text for cell in table.rows[0].cells] == ["+25.00", "–", "–", "–"]
    assert "how sure it is cannot be said" in table.note


def test_one_seed_says_so(tmp_path: Path) -> None:
    results = study_results(Study("one", [arm(tmp_path, name, [n]) for name, n in (("plain", 10), ("best", 30))]))
    assert "over sentences alone, since there is one seed" in difference_tables(results)[0].note
    assert "–" in score_tables(results)[0].rows[0].cells[1].detail
    assert "Of a single seed: 95 % bootstrap interval over sentences." in score_tables(results)[0].note


def test_a_quick_look_reads_scores_only(two: Study) -> None:
    results = study_results(two, sure=False)
    assert results.differences == []
    assert all(scores.interval is None for scores in results.scores)
    assert len(score_tables(results)) == 2


@pytest.fixture
def curve(tmp_path: Path) -> Study:
    arms = [
        arm(tmp_path, name, [n + size // 200, n + 1 + size // 200], {"data.graphs.limit": size})
        for size in (250, 1000, 4000)
        for name, n in (("plain", 10), ("better", 14))
    ]
    return Study("curve", arms)


def test_curves_are_drawn_with_their_differences(curve: Study) -> None:
    results = study_results(curve)
    assert [table.title for table in study_tables(results)] == [
        *(f"Graphs, limit {size}" if k == 0 else f"The trees inside, limit {size}"
          for size in ("250", "1,000", "4,000") for k in (0, 1)),
        *(f"Differences in LF on the development data, limit {size}" for size in ("250", "1,000", "4,000")),
        "LF on the development data by limit",
    ]  # fmt: skip
    levels, gaps = study_pictures(results)
    for picture, lines in ((levels, 2), (gaps, 1)):
        tree = ElementTree.fromstring(picture.svg)
        texts = {"".join(element.itertext()).strip() for element in tree.iter("{http://www.w3.org/2000/svg}text")}
        assert {"250", "1,000", "4,000", "limit", "better"} <= texts
        assert picture.svg.count('class="band series-') == lines
        assert "The axis is logarithmic." in picture.caption
        assert "95 % intervals over seeds and sentences" in picture.caption
    assert "Difference to plain" in gaps.caption
    assert curve_tables(results)[0].columns == ["limit", "250", "1,000", "4,000"]


def test_two_values_make_no_curve(curve: Study) -> None:
    few = Study("few", [arm for arm in curve.arms if arm.point["data.graphs.limit"] != 250])
    assert study_pictures(study_results(few)) == []


def test_the_page_stands_alone_and_says_what_is_missing(curve: Study) -> None:
    waiting = Study("curve", [*curve.arms[:-1], Arm("better", curve.arms[-1].point, curve.arms[-1].runs, False)])
    results = study_results(waiting)
    html = render(study_page(results))
    assert "src=" not in html
    assert html.count("<svg") == 2
    assert "runs are still to come in 1 of 6 places" in html
    assert "Runs are still to come of better." in score_tables(results)[4].note
    assert all(heading in html for heading in ("Along the settings", "Scores", "Differences", "Inside"))


def test_plain_values_are_json_and_markdown_has_every_table(curve: Study) -> None:
    results = study_results(curve)
    plain = json.loads(json.dumps(study_plain(results)))
    assert plain["arms"][0]["point"] == {"data.graphs.limit": 250}
    lf = next(each for each in plain["arms"][0]["scores"] if each["measure"] == "LF")
    assert (lf["n"], lf["interval"]["over"]) == (2, "seeds and sentences")
    assert lf["mean"] == pytest.approx(statistics.fmean(counts(n).f1() for n in (11, 12)))
    assert plain["differences"][0]["found"]["seeds"] == [2, 2]
    text = study_markdown(results)
    assert len(re.findall(r"^\*\*.*\*\*$", text, re.MULTILINE)) == len(study_tables(results))
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_comparisons_can_be_chosen(two: Study) -> None:
    chosen = Study("two", two.arms, systems=["like", "plain", "better"], comparisons=[("better", "like")])
    results = study_results(chosen)
    assert [(each.system, each.against) for each in results.differences] == [("better", "like")]
    assert results.differences[0].corrected == results.differences[0].found.p  # type: ignore[union-attr] # it is known
    (table,) = difference_tables(results)
    assert table.columns == ["", "difference", "95 % interval", "p", "seeds"]
    assert [row.name for row in score_tables(results)[0].rows] == ["like", "plain", "better"]


def test_runs_that_nobody_planned_are_a_study(tmp_path: Path) -> None:
    runs = [
        run(tmp_path / f"{system}-{seed}", n + seed, system=system, seed=seed)
        for system, n in (("pipeline", 10), ("spigot", 30))
        for seed in (1, 0)
    ]
    study = study_of(runs)
    assert [(arm.system, list(arm.runs)) for arm in study.arms] == [("pipeline", [0, 1]), ("spigot", [0, 1])]
    assert study.baseline == "pipeline"
    assert study_of(runs, baseline=runs[2]).baseline == "spigot"
    again = run(tmp_path / "again", 9, system="spigot", seed=1)
    with pytest.raises(ValueError, match="again has the seed of another run of spigot; leave one of them out"):
        study_of([*runs, again])


def test_bad_studies_are_refused(two: Study) -> None:
    with pytest.raises(ValueError, match="the study x has no system 'spigot'; it has better, like, plain"):
        Study("x", two.arms, against="spigot")
    with pytest.raises(ValueError, match="the study x has like twice; give all its runs in one arm"):
        Study("x", [*two.arms, two.arms[2]])
    with pytest.raises(ValueError, match="the study x has no arms"):
        Study("x", [])
