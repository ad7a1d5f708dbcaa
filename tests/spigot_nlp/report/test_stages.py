"""Reports of systems that the paper does not have: three stages, two graphs, tags."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spigot_nlp.config import make_config
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.models import checkpoint
from spigot_nlp.models.build import fresh
from spigot_nlp.models.trace import trace_sentence
from spigot_nlp.report.accounts import account_markup, estimators, live_wires
from spigot_nlp.report.answers import Answers, answers, judge
from spigot_nlp.report.material import Contender, Run, experiments, read_run
from spigot_nlp.report.page import Page, render
from spigot_nlp.report.runs import report
from spigot_nlp.report.speed import Pace
from spigot_nlp.scoring import targets
from spigot_nlp.training import train
from tests.spigot_nlp.parsing import load

SMALL = {"encoder": {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 8}, "mlp": 8}
GRAPHS = {**SMALL, "annotation": "graphs", "loss": "log", "pruning": {"learned": False, "rare_role": 0}}
STAGES: dict[str, dict[str, Any]] = {
    "three": {
        "syntax": {**SMALL, "annotation": "trees"},
        "semantics": {**GRAPHS, "reads": {"stage": "syntax", "as": "heads"}},
        "mood": {**SMALL, "annotation": "label", "reads": {"stage": "semantics", "as": "roles", "estimator": "ste"}},
    },
    "two": {"dependencies": {**GRAPHS, "field": "dependencies"}, "semantics": GRAPHS},
    "tags": {
        "tagger": {**SMALL, "annotation": "tags"},
        "syntax": {**SMALL, "annotation": "trees", "reads": {"stage": "tagger", "as": "embedded", "estimator": "ste"}},
    },
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each, trained for a moment. Tests may read them, not change them."""
    folder = tmp_path_factory.mktemp("runs")
    for name, stages in STAGES.items():
        given = {
            "name": name,
            "data": {"source": "synthetic", "synthetic": {"train": 12, "dev": 6, "test": 4}, "tags": "columns"},
            "stages": stages,
            "training": {"epochs": 1, "batch": 4},
        }
        train(make_config(given), folder / name)
    return {name: folder / name for name in STAGES}


@pytest.fixture(scope="module")
def pages(runs: dict[str, Path]) -> dict[str, Page]:
    with pytest.MonkeyPatch.context() as patch:  # drawn by other tests
        patch.setattr("spigot_nlp.report.results.curves", lambda *_, title, **__: f"<svg>{title}</svg>")
        return {name: report([run], sentences=2) for name, run in runs.items()}


def section(page: Page, ending: str) -> Any:
    (found,) = (each for each in page.sections if each.key.endswith(ending))
    return found


@pytest.mark.parametrize("name", STAGES)
def test_a_run_is_read_under_the_names_it_was_written_under(runs: dict[str, Path], name: str) -> None:
    run = read_run(runs[name])
    keys = {target.key for target in run.targets}
    assert list(run.scores) == ["dev", "id", "ood"]
    assert all(set(found) == keys for found in run.scores.values())
    for one in run.targets:
        predicted = run.predictions("id", one)
        assert predicted is not None
        assert all(sentence.get(one.annotation.name) is not None for sentence in predicted)
        measure = one.annotation.measures[0]
        gold = run.gold("id")
        assert gold is not None
        assert measure.counts(gold, predicted).f1() == pytest.approx(measure.value(run.scores["id"][one.key]))


def test_there_is_a_table_for_each_stage_the_last_one_first(pages: dict[str, Page], runs: dict[str, Path]) -> None:
    titles = {name: [table.title for table in section(page, "-results").tables] for name, page in pages.items()}
    assert titles == {
        "three": ["Classes", "The trees inside", "The graphs inside"],
        "two": ["Graphs", "Graphs: dependencies"],
        "tags": ["Trees", "The tags inside"],
    }
    scores = json.loads((runs["two"] / "scores.json").read_text())
    cells = section(pages["two"], "-results").tables[1].rows[0].cells
    assert cells[1].text == f"{100 * scores['dev']['dependencies']['labelled']['f1']:.2f}"
    assert cells[1].detail  # the interval, from predictions.dev.dependencies.sdp
    assert pages["three"].lead == "Classes with trees and graphs inside: spigot+ste (1 run)."


def test_there_are_curves_of_whatever_the_steps_have(pages: dict[str, Page]) -> None:
    titles = {
        name: {picture.svg[5:-6] for picture in section(page, "-training").pictures} for name, page in pages.items()
    }
    assert {f"Loss of {stage}, by epoch" for stage in STAGES["three"]} <= titles["three"]
    dev = "on the development data, by epoch"
    assert {f"Accuracy {dev}", f"LF {dev}", f"UAS {dev}"} <= titles["three"]
    assert {f"LF {dev}", f"Dependencies LF {dev}"} <= titles["two"]
    assert f"Tagging {dev}" in titles["tags"]


def test_a_wire_can_be_looked_at(runs: dict[str, Path], pages: dict[str, Page]) -> None:
    parser = load(runs["three"])
    wires = live_wires(parser)
    assert list(wires) == ["syntax -> semantics", "semantics -> mood"]
    sentence = next(read(runs["three"] / "gold.train.jsonl"))
    for name, wire in wires.items():
        told = trace_sentence(parser, sentence, {name: estimators(wire)["spigot"]}, top=10_000)
        assert set(told) == set(wires)
        assert told[name].estimator.startswith("Spigot(")
        other = next(each for each in wires if each != name)
        assert told[other].estimator == repr(wires[other].estimator)  # it keeps its own
        assert any(part.gradient for part in told[name].parts)
    markup = account_markup(parser, "mine", [sentence], count=1)
    assert "<h4>syntax → semantics <small>spigot, from the loss of mood</small></h4>" in markup
    assert "<h4>semantics → mood <small>ste, from the loss of mood</small></h4>" in markup
    assert markup.count('<details class="account"') == 2
    tree, graph = markup.split("<h4>semantics")
    assert 'data-side="below"' in tree
    assert 'data-side="above"' not in tree
    assert 'data-side="below"' not in graph
    assert "semantics → mood" in section(pages["three"], "-estimator").markup
    assert "nan" not in markup


def test_tags_that_passed_are_written_under_the_words(runs: dict[str, Path]) -> None:
    sentence = next(read(runs["tags"] / "gold.train.jsonl"))
    markup = account_markup(load(runs["tags"]), "mine", [sentence], count=1)
    assert "<h4>" not in markup  # there is one wire
    assert markup.count('class="tag') >= len(sentence)
    assert "is a predicate" not in markup


def test_sentences_show_all_annotations(pages: dict[str, Page]) -> None:
    found = {name: page.data["e1-data"] for name, page in pages.items()}
    says = {name: data["sentences"][0]["says"][0] for name, data in found.items()}  # pyright: ignore[reportIndexIssue]
    assert [part.split()[0] for part in says["three"].split("; ")] == ["class", "graph:", "tree:"]
    assert [part.split()[0] for part in says["two"].split("; ")] == ["graph:", "dependencies:"]
    assert [part.split()[0] for part in says["tags"].split("; ")] == ["tree:", "tags:"]
    assert all(render(page).startswith("<!doctype html>") for page in pages.values())


def test_systems_of_other_stages_are_compared_where_the_same_is_judged(runs: dict[str, Path], tmp_path: Path) -> None:
    config = make_config(
        {
            "task": "classification",
            "system": "pipeline",
            "data": {"source": "synthetic", "synthetic": {"train": 12, "dev": 6, "test": 4}, "tags": "columns"},
            "training": {"pretrain": 1},
        }
    )
    tmp_path.joinpath("paper").mkdir()
    checkpoint.write_config(tmp_path / "paper" / checkpoint.CONFIG, config)
    (tmp_path / "paper" / "scores.json").write_text('{"dev": {"labels": {"accuracy": 0.5}}}')
    first, second = experiments([read_run(run) for run in (runs["three"], runs["two"], tmp_path / "paper")])
    assert [contender.name for contender in first.contenders] == ["pipeline", "spigot+ste"]  # unknown ones last
    assert first.baseline is not None
    assert first.baseline.name == "pipeline"
    assert [contender.name for contender in second.contenders] == ["graphs"]


def test_any_structure_inside_may_have_changed(runs: dict[str, Path]) -> None:
    run = read_run(runs["three"])
    gold = run.gold("dev")
    assert gold is not None
    mine = answers(Contender("mine", (run,), 0), load(run.path), gold[:1])
    assert not judge(mine, mine)[0].changed
    for name, value in (("heads", gold[0].heads), ("graph", gold[0].graph)):
        other = mine.found[0].put(name, value)
        assert other.get(name) != mine.found[0].get(name)
        changed = judge(mine, type(mine)(mine.contender, mine.parser, mine.gold, [other], mine.pace))[0]
        assert changed.changed
        assert not changed.flipped
    other = mine.found[0].put("label", 1 - mine.found[0].get("label"))
    flipped = judge(mine, type(mine)(mine.contender, mine.parser, mine.gold, [other], mine.pace))[0]
    assert flipped.flipped
    assert abs(flipped.gain) == 2
    assert [one.stage for one in targets(run.config)] == ["mood", "syntax", "semantics"]


def test_trees_with_other_relations_have_changed() -> None:
    syntax = {**SMALL, "annotation": "trees", "labelled": True}
    stages = {"syntax": syntax, "semantics": {**GRAPHS, "reads": {"stage": "syntax", "as": "heads"}}}
    config = make_config({"data": {"tags": "columns"}, "stages": stages})
    graph = Graph.of([Arc(2, 1, "ARG1")], tops=[2])
    rain = Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj", "root"), graph=graph)
    contender = Contender("mine", (Run(Path("nowhere"), config, {}),), 0)
    mine = Answers(contender, fresh(config, {"trees": [rain], "graphs": [rain]}), [rain], [rain], Pace(1, 2, 0.5))
    told = {}
    for relations in (("obj", "root"), ("nsubj", "root"), None):
        other = replace(mine, found=[rain.put("relations", relations)])
        told[relations] = judge(other, mine)[0].changed
    assert list(told.values()) == [True, False, False]  # without any on one side there is nothing to compare
