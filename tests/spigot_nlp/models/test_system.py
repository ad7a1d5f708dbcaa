"""Stages that read each other, three deep and more: what reaches what, and what belongs to whom."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spigot
from spigot_nlp.batches import Batch
from spigot_nlp.config import make_config
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.models.build import fresh
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import Passed, System, Wire
from spigot_nlp.models.trace import trace_sentence
from spigot_nlp.training.start import build
from tests.spigot_nlp.parsing import batch_of, review_corpus, sentences

DATA = review_corpus()
TRAIN = {**DATA.train, "all": [replace(s, label=k % 2) for k, s in enumerate(sentences(8))]}
ENCODER = {"word_dim": 8, "lemma_dim": 4, "tag_dim": 4, "hidden": 8}
SMALL = {"encoder": ENCODER, "mlp": 8}
PRUNING = {"learned": False, "rare_role": 0}
STAGES = ["syntax", "semantics", "sentiment"]


def wire(stage: str, reader: str, estimator: Any) -> dict[str, Any]:
    return {"stage": stage, "as": reader, "estimator": estimator}


def three(first: Any = "spigot", second: Any = "ste", **more: Any) -> Parser:
    """Trees inside a semantic parser inside a classifier."""
    stages: dict[str, Any] = {
        "syntax": {"annotation": "trees", **SMALL},
        "semantics": {"annotation": "graphs", "reads": wire("syntax", "heads", first), "pruning": PRUNING, **SMALL},
        "sentiment": {"annotation": "label", "reads": wire("semantics", "roles", second), **SMALL},
    }
    for name, changes in more.pop("stages", {}).items():
        stages[name] = {**stages.get(name, {}), **changes}
    given = {"data": {"tags": "columns"}, "training": {"pretrain": 1}, "stages": stages, **more}
    whole = fresh(make_config(given), TRAIN)
    whole.model.double()
    return whole


def labelled(whole: Parser, seeds: list[int] | None = None) -> Batch:
    return batch_of(TRAIN["all"][:4], whole, seeds)


def reached(module: nn.Module) -> bool:
    """Whether any parameter has a gradient other than zero."""
    return any(p.grad is not None and bool(p.grad.to_dense().any()) for p in module.parameters())


def untouched(module: nn.Module) -> bool:
    return all(parameter.grad is None for parameter in module.parameters())


@pytest.mark.parametrize("second", ["ste", "spigot", "identity"])
@pytest.mark.parametrize("first", ["attention", "ste", "spigot"])
def test_the_last_loss_reaches_the_first_stage_through_two_wires(first: str, second: str) -> None:
    whole = three(first, second)
    model = whole.model
    loss = model.loss(labelled(whole, [1, 2, 3, 4]), "sentiment")
    assert loss.shape == (4,)
    loss.sum().backward()
    assert all(reached(model.stages[name]) for name in STAGES)
    assert model.updated("sentiment") == STAGES


def scores_by_stage(model: System, batch: Batch) -> dict[str, Tensor]:
    """The gradients that the last loss sends into the scores of the stages that are read."""
    caught: dict[str, Tensor] = {}
    layer, names = spigot.argmax, iter(["syntax", "semantics"])

    def spy(scores: Tensor, *rest: Any, **named: Any) -> Tensor:
        name = next(names)
        scores.register_hook(lambda gradient: caught.__setitem__(name, gradient))
        return layer(scores, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spigot, "argmax", spy)
        model.loss(batch, "sentiment").sum().backward()
    model.zero_grad()
    return caught


def test_two_wires_are_the_chain_rule_with_an_estimator_at_each_link() -> None:
    """Straight-through behind, Eq. 4 before it, both by hand."""
    whole = three({"name": "spigot", "eta": 0.7}, {"name": "ste", "eta": 0.5})
    model, batch = whole.model, labelled(whole)
    syntax, semantics, sentiment = model.stages.values()
    scores, mask = syntax.evidence(batch)
    trees = syntax.structure.argmax(scores, mask).detach().requires_grad_()
    graph_scores, graph_mask = semantics.evidence(batch, [trees])
    graphs = semantics.structure.argmax(graph_scores, graph_mask).detach().requires_grad_()
    (at_graphs,) = torch.autograd.grad(sentiment.loss(batch, [graphs]).sum(), graphs)
    at_graph_scores = 0.5 * at_graphs.masked_fill(~graph_mask, 0)
    (at_trees,) = torch.autograd.grad(graph_scores, trees, at_graph_scores)
    at_tree_scores = trees - spigot.HeadSimplex().project(trees - 0.7 * at_trees.masked_fill(~mask, 0), mask)
    found = scores_by_stage(model, batch)
    torch.testing.assert_close(found["semantics"], at_graph_scores)
    torch.testing.assert_close(found["syntax"], at_tree_scores.detach(), atol=1e-9, rtol=1e-7)
    assert found["syntax"].any()


@pytest.mark.parametrize(
    ("first", "second", "trained"),
    [
        ("pipeline", "spigot", ["semantics", "sentiment"]),
        ("spigot", "pipeline", ["sentiment"]),
        ("pipeline", "pipeline", ["sentiment"]),
    ],
)
def test_nothing_passes_a_pipeline(first: str, second: str, trained: list[str]) -> None:
    whole = three(first, second)
    whole.model.loss(labelled(whole, [1, 2, 3, 4]), "sentiment").sum().backward()
    for name, stage in whole.model.stages.items():
        assert reached(stage) if name in trained else untouched(stage)
    assert whole.model.updated("sentiment") == trained


def test_nothing_passes_where_it_may_not() -> None:
    whole = three()
    whole.model.loss(labelled(whole, [1, 2, 3, 4]), "sentiment", through=False).sum().backward()
    assert reached(whole.model.stages["sentiment"])
    assert untouched(whole.model.stages["semantics"])
    assert untouched(whole.model.stages["syntax"])


def test_a_stage_trains_those_before_it_and_none_behind() -> None:
    whole = three()
    model = whole.model
    assert model.updated("syntax") == ["syntax"]
    assert model.updated("semantics") == ["syntax", "semantics"]
    model.loss(labelled(whole, [1, 2, 3, 4]), "semantics").sum().backward()
    assert reached(model.stages["syntax"])
    assert reached(model.stages["semantics"])
    assert untouched(model.stages["sentiment"])


def test_a_stage_may_read_two() -> None:
    """Trees both directly and by way of the graphs; one way stays open where the other is a pipeline."""
    both = [wire("syntax", "heads", "ste"), wire("semantics", "roles", "pipeline")]
    whole = three(stages={"sentiment": {"reads": both}})
    model, batch = whole.model, labelled(whole)
    assert [one.name for one in model.all_wires()] == [
        "syntax -> semantics",
        "syntax -> sentiment",
        "semantics -> sentiment",
    ]
    assert model.updated("sentiment") == ["syntax", "sentiment"]
    model.loss(batch, "sentiment").sum().backward()
    assert reached(model.stages["syntax"])
    assert untouched(model.stages["semantics"])
    sentiment, read = model.stages["sentiment"], model.parse(batch)
    z, graph = read["syntax"].z, read["semantics"].z
    found = read["sentiment"].evidence
    assert found is not None
    torch.testing.assert_close(found.scores, sentiment.evidence(batch, [z, graph]).scores)
    assert not torch.allclose(found.scores, sentiment.evidence(batch, [torch.zeros_like(z), graph]).scores)
    assert not torch.allclose(found.scores, sentiment.evidence(batch, [z, torch.zeros_like(graph)]).scores)


def test_answers_come_in_order_of_stages_and_of_sentences() -> None:
    whole = three()
    given = [s.without_annotation() for s in sentences(7, seed=6)]
    found = list(whole.pipe(given))
    assert [s.forms for s in found] == [s.forms for s in given]
    for one, other in zip(whole.pipe(given[::-1]), found[::-1], strict=True):  # in other batches, so but for rounding
        assert one.probabilities == pytest.approx(other.probabilities)
        assert one.put("probabilities", None) == other.put("probabilities", None)
    assert [next(whole.pipe([s])).graph for s in given] == [s.graph for s in found]
    assert list(whole.model.parse(labelled(whole))) == STAGES
    assert whole.finds == whole.gives == ("heads", "graph", "label")
    assert all(None not in (s.heads, s.graph, s.label, s.probabilities) for s in found)
    assert whole.end is whole.model.stages["sentiment"]
    for name, stage in (("heads", "syntax"), ("graph", "semantics"), ("label", "sentiment"), ("mood", None)):
        assert whole.stage_of(name) is (None if stage is None else whole.model.stages[stage])


@pytest.mark.parametrize("first", ["attention", "sparsemap", "spigot"])
def test_what_is_shown_is_the_best_and_what_is_read_is_what_the_wire_says(first: str) -> None:
    whole = three(first)
    model, batch = whole.model, labelled(whole)
    (into,) = model.wires["semantics"]
    syntax, semantics = model.stages["syntax"], model.stages["semantics"]
    scores, mask = syntax.evidence(batch)
    soft = spigot.argmax(scores, syntax.structure, into.estimator, mask=mask)
    found = model.parse(batch)
    best = syntax.structure.argmax(scores, mask)
    assert torch.equal(found["syntax"].z, best)
    assert torch.equal(soft, best) == into.estimator.hard
    expected = semantics.evidence(batch, [soft])
    assert found["semantics"].evidence is not None
    torch.testing.assert_close(found["semantics"].evidence.scores, expected.scores)
    assert torch.equal(found["semantics"].z, semantics.structure.argmax(*expected))


def test_every_wire_has_an_account() -> None:
    whole, given = three(), TRAIN["all"][0]
    told = trace_sentence(whole, given, top=9999)
    assert set(told) == {"syntax -> semantics", "semantics -> sentiment"}
    found = scores_by_stage(whole.model, batch_of([given], whole))
    for name, source in (("syntax -> semantics", "syntax"), ("semantics -> sentiment", "semantics")):
        total = sum(abs(part.gradient) for part in told[name].parts)
        assert total == pytest.approx(float(found[source].abs().sum()))
        assert total > 0
    assert set(trace_sentence(whole, given, task="semantics")) == {"syntax -> semantics"}
    closed = trace_sentence(three("spigot", "pipeline"), given)  # what comes back ends there, and nothing comes further
    assert set(closed) == {"semantics -> sentiment"}
    assert {part.gradient for part in closed["semantics -> sentiment"].parts} == {0}
    assert any(part.grad for part in closed["semantics -> sentiment"].parts)


def shared() -> Parser:
    """Two stages on one encoder, one on its own."""
    names: dict[str, Any] = {"syntax": {"encoder": "words"}, "semantics": {"encoder": "words"}}
    optimiser = {"learning_rate": 0.25}
    return three(stages=names, encoders={"words": {"encoder": ENCODER, "optimiser": optimiser}})


def owners(model: System) -> dict[int, list[str]]:
    """Which parts update each parameter."""
    found: dict[int, list[str]] = {id(parameter): [] for parameter in model.parameters()}
    for name, part in model.parts().items():
        inner = {id(parameter) for other in part.without for parameter in other.parameters()}
        for parameter in part.model.parameters():
            if id(parameter) not in inner:
                found[id(parameter)].append(name)
    return found


def test_a_shared_encoder_belongs_to_no_stage() -> None:
    whole = shared()
    model = whole.model
    encoder = model.encoders["words"]
    assert model.stages["syntax"].encoder is model.stages["semantics"].encoder is encoder
    assert model.stages["sentiment"].encoder is not encoder
    own = {id(parameter) for parameter in encoder.parameters()}
    for stage in model.stages.values():
        assert not own & {id(parameter) for parameter in stage.parameters()}
    assert {name for names in (owners(model)[key] for key in own) for name in names} == {"encoders.words"}
    assert model.parts()["encoders.words"].optimiser.learning_rate == 0.25
    assert model.updated("syntax") == ["syntax", "encoders.words"]
    assert model.updated("sentiment") == [*STAGES, "encoders.words"]


def test_a_shared_encoder_is_trained_by_all_that_read_it() -> None:
    whole = shared()
    model = whole.model
    for task in STAGES:
        model.loss(labelled(whole, [1, 2, 3, 4]), task).sum().backward()
        assert reached(model.encoders["words"])
        model.zero_grad()
    model.loss(labelled(whole), "sentiment", through=False).sum().backward()
    assert not reached(model.encoders["words"])


@pytest.mark.parametrize("make", [three, shared, lambda: three(stages={"semantics": {"pruning": {"rare_role": 0}}})])
def test_every_parameter_has_one_optimiser(make: Any) -> None:
    assert all(len(names) == 1 for names in owners(make().model).values())


def test_two_graphs_are_no_different_from_a_tree_and_a_graph() -> None:
    text = [s.put("second", s.graph) for s in TRAIN["all"]]
    stages = {
        "one": {"annotation": "graphs", "data": "all", "pruning": PRUNING, **SMALL},
        "two": {
            "annotation": "graphs",
            "field": "second",
            "data": "all",
            "reads": wire("one", "heads", "ste"),
            "pruning": PRUNING,
            **SMALL,
        },
    }
    whole = fresh(make_config({"stages": stages}), {"all": text})
    assert whole.finds == ("graph", "second")
    for found in whole.pipe(text[:3]):
        assert None not in (found.graph, found.get("second"))
        assert found.heads is None
    batch = batch_of(text[:3], whole)
    assert list(batch.gold) == ["one", "two"]
    whole.model.loss(batch, "two").sum().backward()
    assert reached(whole.model.stages["one"])


def test_tags_that_a_stage_finds_can_be_read_by_another() -> None:
    plain = {**ENCODER, "tag_dim": 0, "lemma_dim": 0}
    stages: dict[str, Any] = {
        "tagger": {"annotation": "tags", "encoder": plain, "mlp": 8},
        "syntax": {
            "annotation": "trees",
            "encoder": plain,
            "mlp": 8,
            "reads": wire("tagger", "embedded", "spigot"),
        },
    }
    whole = fresh(make_config({"stages": stages}), {"trees": TRAIN["all"]})
    batch = batch_of(TRAIN["all"][:4], whole)
    whole.model.loss(batch, "syntax").sum().backward()
    assert reached(whole.model.stages["tagger"])
    assert whole.model.updated("syntax") == ["tagger", "syntax"]
    (found,) = whole.pipe([Sentence(("The", "dog", "sees"))])
    assert found.tags is not None
    assert found.heads is not None


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ({"semantics": {"reads": wire("sentiment", "heads", "ste")}}, "reads 'sentiment', which is no stage before it"),
        ({"syntax": {"reads": wire("syntax", "heads", "ste")}}, "reads 'syntax', which is no stage before it; .* none"),
        ({"syntax": {"encoder": "words"}}, "names 'words', and there is no encoders.words"),
        ({"sentiment": {"reads": wire("semantics", "embedded", "ste")}}, "'embedded' reads choices, and the stage sem"),
        ({"sentiment": {"reads": wire("semantics", "roles", "attention")}}, "'attention' needs marginals"),
        ({"semantics": {"reads": wire("syntax", "heads", {"name": "spigot", "polytope": "sequential"})}}, "sequential"),
        (
            {"more": {"annotation": "trees", "field": "more", "reads": wire("sentiment", "heads", "ste")}},
            "reads arcs, and the stage sent",
        ),
    ],
)
def test_wires_that_lead_nowhere_are_refused(stages: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        three(stages=stages)


def test_what_is_not_there_cannot_be_trained() -> None:
    whole = three()
    with pytest.raises(ValueError, match="has no mood to train; it has syntax, semantics, sentiment"):
        whole.model.loss(labelled(whole), "mood")
    with pytest.raises(ValueError, match="The loss of sentiment needs classes, and this batch has none"):
        whole.model.loss(batch_of(sentences(2), whole), "sentiment")


def test_equal_seeds_give_equal_systems() -> None:
    one, same, other = (fresh(three(seed=seed).config, TRAIN).model.state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(value, same[name]) for name, value in one.items())
    assert not all(torch.equal(value, other[name]) for name, value in one.items())


def test_a_source_that_is_read_by_several_paths_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what comes back by all of them is what came back by its wire."""
    tables = {
        "syntax": {"annotation": "trees"},
        "semantics": {"annotation": "graphs", "reads": {"stage": "syntax", "as": "heads", "estimator": "ste"}},
        "mood": {
            "annotation": "label",
            "reads": [
                {"stage": "syntax", "as": "roles", "estimator": "ste"},
                {"stage": "semantics", "as": "roles", "estimator": "ste"},
            ],
        },
    }
    data = review_corpus(train=4, dev=2)
    whole = build(make_config({"stages": tables, "data": {"tags": "columns"}}), data)
    syntax, calls = whole.model.stages["syntax"], []
    evidence = syntax.evidence
    monkeypatch.setattr(syntax, "evidence", lambda *given, **more: calls.append(1) or evidence(*given, **more))
    batch = batch_of(data["labels"].train, whole)
    watched: dict[Wire, Passed] = {}
    whole.model.loss(batch, "mood", watched=watched).sum().backward()
    assert len(calls) == 1
    first, last = (passed for wire, passed in watched.items() if wire.source == "syntax")
    assert first.z is last.z
    assert first.z.grad is not None
