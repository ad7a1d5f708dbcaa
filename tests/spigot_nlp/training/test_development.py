"""What the development data say during training."""

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from spigot_nlp.config import make_config
from spigot_nlp.corpora.corpus import Corpus, Split
from spigot_nlp.data.sentence import Graph, Sentence
from spigot_nlp.evaluation.metrics import accuracy, graph_counts, tree_counts
from spigot_nlp.models.parser import Parser
from spigot_nlp.training.development import development_scores, judging_measure
from spigot_nlp.training.plan import Phase, phases
from spigot_nlp.training.start import build
from tests.spigot_nlp.parsing import classifier, review_corpus, sentences

DATA = review_corpus()
TREES: dict[str, Any] = {"classifier__structure": "trees"}
LATENT: dict[str, Any] = {"classifier__latent": True}


@dataclass
class Judge:
    """What scores a system after each epoch."""

    parser: Parser
    corpus: Corpus

    def scores(self, phase: Phase, before: dict[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
        return development_scores(self.parser, self.corpus, phase, before)

    def measure(self, stage: str) -> str:
        return judging_measure(self.parser, stage)


def development(system: str = "spigot", data: Corpus = DATA, **overrides: Any) -> tuple[Judge, Phase]:
    whole = classifier(system, data, **overrides)
    return Judge(whole, data), phases(whole.config)[-1]


def annotated(data: Corpus = DATA) -> Corpus:
    """The same, but the sentences to classify come with gold trees and graphs in the development set."""
    dev = [replace(sentence, label=k % 2) for k, sentence in enumerate(sentences(4, seed=5))]
    return with_dev(dev, data)


def with_dev(dev: list[Sentence], data: Corpus = DATA) -> Corpus:
    """The same with other labelled sentences to choose by."""
    return Corpus({**data.sets, "labels": replace(data["labels"], dev=dev)})


def structure_of(parser: Parser) -> str:
    """The stage whose structures the classifier reads."""
    (wire,) = parser.model.all_wires()
    return wire.source


def test_a_joint_phase_is_judged_by_both_tasks_the_end_task_first() -> None:
    judge, phase = development()
    scores, _ = judge.scores(phase, {})
    assert list(scores) == ["accuracy", "LF", "UF"]
    predicted = list(judge.parser.pipe(DATA["labels"].dev, tagged=True))
    assert scores["accuracy"] == pytest.approx(100 * accuracy(DATA["labels"].dev, predicted))
    parsed = list(judge.parser.pipe(DATA["graphs"].dev, tagged=True))
    assert scores["LF"] == pytest.approx(100 * graph_counts(DATA["graphs"].dev, parsed).f1())
    assert scores["UF"] == pytest.approx(100 * graph_counts(DATA["graphs"].dev, parsed, labelled=False).f1())


def test_trees_are_judged_by_their_own_measure() -> None:
    judge, phase = development(**TREES)
    scores, _ = judge.scores(phase, {})
    assert list(scores) == ["accuracy", "UAS"]
    parsed = list(judge.parser.pipe(DATA["trees"].dev, tagged=True))
    assert scores["UAS"] == pytest.approx(100 * tree_counts(DATA["trees"].dev, parsed).accuracy())


def test_a_parser_in_pretraining_is_judged_by_its_own_data() -> None:
    for overrides, measures in (({}, ["LF", "UF"]), (TREES, ["UAS"])):
        judge, _ = development(**overrides)
        plan = phases(judge.parser.config)
        scores, structures = judge.scores(plan[-2], {})
        assert list(scores) == measures
        assert structures == {}
    judge, _ = development()
    scores, structures = judge.scores(phases(judge.parser.config)[0], {})
    assert set(scores) == {"arcs_a_token", "parts_a_token", "recall"}
    assert structures == {}


def test_a_system_without_parser_has_an_accuracy_and_nothing_else() -> None:
    for system, structure in (("bilstm", "graphs"), ("spigot", "random")):
        judge, phase = development(system, classifier__structure=structure)
        scores, structures = judge.scores(phase, {})
        assert list(scores) == ["accuracy"]
        assert structures == {}


def test_a_latent_parser_is_not_judged_by_data_it_does_not_have() -> None:
    for overrides in (LATENT, {**LATENT, **TREES}):
        judge, phase = development(**overrides)
        assert list(judge.scores(phase, {})[0]) == ["accuracy"]


def test_a_latent_tree_is_held_against_the_right_one_where_it_is_known() -> None:
    data = annotated()
    judge, phase = development(data=data, **TREES, **LATENT)
    scores, _ = judge.scores(phase, {})
    assert list(scores) == ["accuracy", "UAS"]
    predicted = list(judge.parser.pipe(data["labels"].dev))
    assert scores["UAS"] == pytest.approx(100 * tree_counts(data["labels"].dev, predicted).accuracy())
    half = [data["labels"].dev[0], *DATA["labels"].dev]
    judge, phase = development(data=with_dev(half), **TREES, **LATENT)
    assert list(judge.scores(phase, {})[0]) == ["accuracy"]


@pytest.mark.parametrize("kind", [{}, TREES, LATENT, {**TREES, **LATENT}], ids=["graphs", "trees", "graphs?", "trees?"])
@pytest.mark.parametrize("data", [DATA, annotated()], ids=["bare", "annotated"])
def test_how_much_is_new_since_the_last_epoch(data: Corpus, kind: dict[str, Any]) -> None:
    """Of the structures the system finds, whatever gold ones stand beside them."""
    judge, phase = development(data=data, **kind)
    first, structures = judge.scores(phase, {})
    assert "changed" not in first
    (inside,) = structures
    assert inside == structure_of(judge.parser)
    assert len(structures[inside]) == len(data["labels"].dev)
    kept = json.loads(json.dumps(structures))  # as in a checkpoint
    again, _ = judge.scores(phase, kept)
    assert again["changed"] == 0
    predicted = list(judge.parser.pipe(data["labels"].dev))
    other = [_moved(sentence, judge.parser) for sentence in predicted]
    scores, after = judge.scores(phase, json.loads(json.dumps({inside: [moved for moved, _, _ in other]})))
    differ, total = (sum(column) for column in zip(*(counts for _, *counts in other), strict=True))
    assert differ > 0
    assert scores["changed"] == pytest.approx(100 * differ / total)
    assert json.loads(json.dumps(after)) == kept


def _moved(sentence: Sentence, parser: Parser) -> tuple[list[Any], int, int]:
    """Another structure, in how many places it differs, and of how many."""
    if structure_of(parser) == "syntax":
        assert sentence.heads is not None
        return [(sentence.heads[0] + 1) % (len(sentence) + 1), *sentence.heads[1:]], 1, len(sentence)
    graph = sentence.graph
    assert graph is not None
    if not graph.arcs:
        return [(1, 2, "role 1"), *((0, top, "TOP") for top in graph.tops)], 1, 1 + len(graph.tops)
    # Without its first arc, with another role for its second, and with all its tops.
    arcs = [(i, j, role + "?" if k == 1 else role) for k, (i, j, role) in enumerate(graph.arcs)][1:]
    total = len({arc[:2] for arc in graph.arcs}) + len(graph.tops)
    return [*arcs, *((0, top, "TOP") for top in graph.tops)], min(len(graph.arcs), 2), total


def test_without_development_data_there_are_no_scores() -> None:
    bare = DATA.apply(lambda _, split: Split(split.train))
    for system, overrides in (("spigot", {}), ("spigot", TREES), ("spigot", LATENT), ("bilstm", {})):
        judge, phase = development(system, bare, **overrides)
        assert judge.scores(phase, {}) == ({}, {})


def test_a_class_that_training_never_saw_counts_as_wrong() -> None:
    strange = [replace(sentence, label=17) for sentence in DATA["labels"].dev]
    judge, phase = development("bilstm", with_dev(strange))
    assert judge.scores(phase, {})[0] == {"accuracy": 0.0}
    mixed = [strange[0], *(replace(s, label=s.label) for s in judge.parser.pipe(DATA["labels"].dev[1:]))]
    judge, phase = development("bilstm", with_dev(mixed))
    assert judge.scores(phase, {})[0]["accuracy"] == pytest.approx(75)


def test_an_empty_sentence_has_a_structure_too() -> None:
    data = with_dev([Sentence((), label=0), *DATA["labels"].dev])
    for overrides in ({}, TREES):
        judge, phase = development(data=data, **overrides)
        _, structures = judge.scores(phase, {})
        assert [list(values[0]) for values in structures.values()] == [[]]
        assert judge.scores(phase, structures)[0]["changed"] == 0


def test_what_the_system_does_not_find_is_left_out() -> None:
    (found,) = classifier("spigot", DATA).pipe([Sentence(("cat",), heads=(0,))])
    assert found.heads is None
    assert isinstance(found.graph, Graph)


def stages_of(tables: dict[str, Any], data: Corpus = DATA) -> tuple[Judge, Phase]:
    whole = build(make_config({"data": {"tags": "columns"}, "stages": tables}), data)
    return Judge(whole, data), phases(whole.config)[-1]


def two_graphs(data: Corpus = DATA) -> Corpus:
    """Sentences whose trees are a second graph."""

    def both(sentence: Sentence) -> Sentence:
        return sentence.put("other", sentence.graph)

    return data.apply(lambda _, split: split.apply(lambda some: list(map(both, some))))


def test_a_measure_that_two_stages_share_is_named_after_the_earlier_one() -> None:
    plain = {"annotation": "graphs", "pruning": {"learned": False}}
    judge, phase = stages_of({"other": {**plain, "field": "other"}, "main": plain}, two_graphs())
    scores, _ = judge.scores(phase, {})
    assert list(scores) == ["LF", "UF", "other LF", "other UF"]
    assert (judge.measure("main"), judge.measure("other")) == ("LF", "other LF")
    gold = judge.corpus["graphs"].dev
    predicted = list(judge.parser.pipe(gold, tagged=True))
    assert scores["LF"] == pytest.approx(100 * graph_counts(gold, predicted).f1())
    assert scores["other LF"] == pytest.approx(100 * graph_counts(gold, predicted, field="other").f1())


def test_three_stages_are_judged_the_last_one_first() -> None:
    tables = {
        "syntax": {"annotation": "trees"},
        "semantics": {"annotation": "graphs", "reads": {"stage": "syntax", "as": "heads"}},
        "mood": {"annotation": "label", "reads": {"stage": "semantics", "as": "roles"}},
    }
    judge, phase = stages_of(tables)
    scores, structures = judge.scores(phase, {})
    assert list(scores) == ["accuracy", "LF", "UF", "UAS"]
    assert list(structures) == ["syntax", "semantics"]  # which the labelled sentences do not have
    again, _ = judge.scores(phase, json.loads(json.dumps(structures)))
    assert (again["changed"], again["semantics changed"]) == (0, 0)
    # A stage in pretraining is judged with those before it.
    early = Phase("semantics", ("semantics",), 1, "semantics", through=False)
    assert list(judge.scores(early, {})[0]) == ["LF", "UF", "UAS"]


@pytest.mark.parametrize(("annotation", "measures"), [("trees", ["UAS"]), ("tags", ["tagging"])])
def test_a_stage_alone_has_its_own_measure(annotation: str, measures: list[str]) -> None:
    judge, phase = stages_of({"only": {"annotation": annotation}})
    scores, structures = judge.scores(phase, {})
    assert list(scores) == measures == [judge.measure("only")]
    assert structures == {}
