"""Systems that find graphs of several formalisms: their names, and wires to and from them."""

from collections.abc import Iterator

import pytest
import torch

from spigot_nlp.batches import collate
from spigot_nlp.config import load_config, make_config
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation import graph_counts
from spigot_nlp.models.build import fresh
from spigot_nlp.models.parser import Parser
from spigot_nlp.scoring import development_measures, targets
from spigot_nlp.stages import FormalismStage, TreeStage

SMALL = {"mlp": 8, "encoder": {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 6, "layers": 1}}
SENTENCES = splits(train=6).train


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """What is computed is far too small to be shared: threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def system(name: str = "freda3", **more):
    stages = {
        "syntax": {"annotation": "trees", **SMALL},
        "semantics": {
            "annotation": "formalisms",
            "graphs": ["graph", "dependencies", "valency"],
            "reads": {"stage": "syntax", "as": "heads", "estimator": "spigot"},
            "minimum": 1,
            "rank": 3,
            "pruning": {"learned": False, "rare_role": 0},
            **SMALL,
        },
        **more,
    }
    config = make_config({"system": name, "data": {"tags": "columns"}, "stages": stages})
    return fresh(config, {"trees": SENTENCES, "graphs": SENTENCES, "labels": SENTENCES})


def parser_of_graphs(parser: Parser) -> FormalismStage:
    stage = parser.model.stages["semantics"]
    assert isinstance(stage, FormalismStage)
    return stage


def batch_of(parser, task):
    annotations = {task: parser.model.annotations[task]}
    return collate([parser.encoded(sentence, annotations) for sentence in SENTENCES[:2]], annotations)


@pytest.mark.parametrize("name", ["shared1", "freda1", "shared3", "freda3"])
def test_syntax_learns_through_its_heads(name) -> None:
    parser = system(name)
    assert parser.config.system == f"{name}+spigot"
    stage, syntax = parser_of_graphs(parser), parser.model.stages["syntax"]
    assert isinstance(syntax, TreeStage)
    assert bool(stage.structure.arcs) == name.endswith("3")
    assert bool(len(stage.branches)) == name.startswith("freda")
    parser.model.loss(batch_of(parser, "semantics"), "semantics").sum().backward()
    assert syntax.scorer.out.weight.grad is not None
    (answer,) = parser.pipe([Sentence(("Rain", "fell"), tags=("NN", "VBD"))])
    assert set(answer.annotations) == {"heads", "graph", "dependencies", "valency"}


@pytest.mark.parametrize("estimator", ["ste", "spigot"])
def test_a_classifier_reads_the_arcs_of_all_graphs(estimator) -> None:
    wire = {"stage": "semantics", "as": "roles", "estimator": estimator}
    parser = system("shared3", mood={"annotation": "label", "reads": wire, **SMALL})
    parser.model.loss(batch_of(parser, "mood"), "mood").sum().backward()
    stage = parser_of_graphs(parser)
    for task in range(3):
        gradient = stage._task(task).labels.out.weight.grad
        assert gradient is not None
        assert gradient.any()


def test_the_first_graph_judges_and_training_goes_by_all_of_them() -> None:
    config = load_config("synthetic-multitask")
    assert [judge.called for judge in targets(config)] == ["graph", "dependencies", "valency", "micro"]
    name, (_, measure) = next(iter(development_measures(config).items()))
    assert name == "micro LF"
    other = [sentence.put("graph", sentence.get("valency")) for sentence in SENTENCES]
    counts = measure.counts(SENTENCES, other)
    whole = [graph_counts(SENTENCES, other, field=field) for field in ("graph", "dependencies", "valency")]
    assert counts.total().correct == sum(each.total().correct for each in whole)
    alone = load_config("synthetic-multitask", {"system": "neurboparser"})
    assert [(judge.title, judge.key) for judge in targets(alone)] == [("Graphs", "graphs")]


@pytest.mark.parametrize("name", ["shared1", "freda1", "shared3", "freda3"])
def test_in_the_task_of_parsing_they_take_the_place_of_syntax_and_semantics(name) -> None:
    """As in the paper's Table 1: a file with settings of both stages serves all of its rows."""
    row = {"system": name, "semantics.graphs": ["graph", "dependencies"], "semantics.decoding": "marginals"}
    config, alone = load_config("synthetic", row), load_config("synthetic", {"system": "neurboparser"})
    assert list(config.stages) == list(alone.stages) == ["semantics"]
    assert config.system == name
    assert config.data == alone.data
    stage, other = (each.stages["semantics"].model_dump() for each in (config, alone))
    assert stage["annotation"] == "formalisms"
    assert (stage["loss"], stage["mlp"]) == (other["loss"], other["mlp"])
    with pytest.raises(ValueError, match="choose one of bilstm, pipeline"):
        load_config("synthetic-sentiment", {"system": name})
