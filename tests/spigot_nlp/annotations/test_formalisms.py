"""Several graphs as one annotation: what is encoded comes back, and counts are those of its graphs together."""

import json

import torch

from spigot import SemanticGraphs
from spigot_nlp.annotations import Formalisms
from spigot_nlp.annotations.graphs import graph_parts
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation import graph_counts
from spigot_nlp.stages import FormalismSettings

DM = Graph.of([Arc(2, 1, "ARG1"), Arc(3, 2, "ARG1")], tops=[2])
PSD = Graph.of([Arc(2, 1, "ACT"), Arc(2, 3, "MANN")], tops=[2])
BOTH = Sentence(("Rain", "fell", "fast"), annotations={"dm": DM, "psd": PSD})
ONE = BOTH.put("psd", None)
SETTINGS = FormalismSettings.model_validate(
    {"annotation": "formalisms", "graphs": ("dm", "psd"), "minimum": 2, "pruning": {"rare_role": 0}}
)
LEARNED = Formalisms.learn("formalisms", [BOTH, BOTH, ONE], SETTINGS)


def test_graphs_come_back_from_their_structures() -> None:
    values = [LEARNED.value(sentence) for sentence in (BOTH, ONE)]
    assert values == [{"dm": DM, "psd": PSD}, {"dm": DM}]
    gold = LEARNED.collate([LEARNED.encode(value or {}, BOTH) for value in values], 4)
    assert gold.present.tolist() == [[True, True], [True, False]]
    parts = [
        graph_parts(graphs, SemanticGraphs(len(task.roles)), torch.float32)
        for graphs, task in zip(gold.graphs, LEARNED.tasks, strict=True)
    ]
    found = LEARNED.decode(torch.cat(parts, -1), [3, 3])
    assert found == [{"dm": DM, "psd": PSD}, {"dm": DM, "psd": Graph()}]


def test_all_that_it_knows_is_json() -> None:
    assert LEARNED.combinations
    assert Formalisms.restored(json.loads(json.dumps(LEARNED.names()))) == LEARNED
    value = LEARNED.value(BOTH)
    assert value is not None
    assert LEARNED.from_plain(json.loads(json.dumps(LEARNED.plain(value)))) == value


def test_a_graph_that_is_missing_is_not_counted() -> None:
    gold, found = [BOTH, ONE], [BOTH.put("dm", PSD), BOTH]
    scores = LEARNED.score(gold, found)
    whole = graph_counts(gold, found, field="dm").total(), graph_counts(gold[:1], found[:1], field="psd").total()
    assert scores.labelled.correct == sum(each.correct for each in whole)
    assert scores.labelled.predicted == sum(each.predicted for each in whole)
    assert scores.graphs["psd"].labelled.f1 == 1 > scores.graphs["dm"].labelled.f1
    micro = LEARNED.measures[0]
    assert micro.counts(gold, found).total() == scores.labelled
