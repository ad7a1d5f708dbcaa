"""The semantic parser: losses and graphs against the core, and against brute force."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from spigot_nlp.annotations.graphs import GoldGraph, Graphs, graph_parts
from spigot_nlp.batches import Batch, Encoded, collate, encode
from spigot_nlp.data.sentence import Graph, Sentence
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.stages import GraphStage, Surroundings
from spigot_nlp.stages.graph_scores import graph_marginals
from spigot_nlp.stages.graphs import GraphSettings, Scored
from spigot_nlp.stages.joint_likelihood import marginals as joint_marginals
from spigot_nlp.stages.stage import HelperPlan
from spigot_nlp.wires.estimators import estimator_settings
from tests.spigot import brute
from tests.spigot_nlp.parsing import batch_of, experiment, of_lengths, parser, semantics

CHOSEN = of_lengths([2, 1, 2, 0])
ALL_ARCS = {"semantics__pruning__dictionary": False, "semantics__pruning__distance": False}


VOCAB = Vocab.of(CHOSEN)
STAGE = "semantics"


def encoded(chosen: list[Sentence], annotation: Graphs) -> list[Encoded]:
    return [encode(sentence, VOCAB, {STAGE: annotation}) for sentence in chosen]


def semantic(**overrides: Any) -> tuple[GraphStage, Batch]:
    """A parser of the vocabulary of these sentences without a learned pruner, in float64, and a training batch."""
    settings = experiment("neurboparser", semantics__pruning__learned=False, **overrides).stages[STAGE]
    assert isinstance(settings, GraphSettings)
    graphs = Graphs.learn("graph", CHOSEN, settings)
    model = GraphStage(STAGE, settings, graphs, Surroundings(VOCAB)).double()
    return model, collate(encoded(CHOSEN, graphs), {STAGE: graphs}, [1, 2, 3, 4])


def scored_parts(model: GraphStage, batch: Batch) -> Scored:
    """What the loss of a batch scores: gold arcs survive if the batch is one of training."""
    kept = model.gold(batch) if batch.seeds is not None else None
    return model._scored(batch, (), model.surviving(batch, kept), kept, noisy=True)


def dense(model: GraphStage, batch: Batch, scored: Scored) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, mask and gold of all parts, filled in one by one."""
    labels = model.structure.labels
    shape = (len(batch), batch.size, batch.size, 1 + labels)
    scores, mask, gold = torch.zeros(shape).double(), torch.zeros(shape, dtype=torch.bool), torch.zeros(shape).double()
    for p, (b, i, j) in enumerate(scored.pairs.tolist()):
        mask[b, i, j, 0] = True
        scores[b, i, j, 0] = scored.arcs[p]
        for l in range(labels):
            mask[b, i, j, 1 + l] = scored.possible[p, l]
            scores[b, i, j, 1 + l] = scored.labelled[p, l]
    for b, length in enumerate(batch.lengths.tolist()):
        for i in range(length + 1):
            mask[b, i, i, 0] = True
            scores[b, i, i, 0] = scored.predicates[b, i]
    right: GoldGraph = model.gold(batch)
    for b, i, j, l in right.arcs.tolist():
        gold[b, i, j, 0] = gold[b, i, j, 1 + l] = 1
    for b, i in right.predicates.nonzero().tolist():
        gold[b, i, i, 0] = 1
    return scores, mask, gold


@pytest.mark.parametrize("pruned", [False, True])
def test_log_loss_is_the_crf_over_dense_parts(pruned: bool) -> None:
    model, batch = semantic(semantics__loss="log", **({} if pruned else ALL_ARCS))
    if pruned:
        model.seen.learn(STAGE, encoded(CHOSEN[:1], model.annotation))
    scored = scored_parts(model, batch)
    scores, mask, gold = dense(model, batch, scored)
    loss = model.loss(batch)
    expected = spigot.crf_nll(scores, gold, spigot.SemanticGraphs(model.structure.labels), mask=mask)
    torch.testing.assert_close(loss, expected)
    parameters = list(model.parameters())
    for one, other in zip(
        torch.autograd.grad(loss.sum(), parameters, retain_graph=True),
        torch.autograd.grad(expected.sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(one.to_dense(), other.to_dense())


def test_parts_are_laid_out_one_by_one() -> None:
    model, batch = semantic(**ALL_ARCS)
    scored = scored_parts(model, batch)
    scores, mask = model.parts(batch, scored)
    expected_scores, expected_mask, gold = dense(model, batch, scored)
    assert torch.equal(mask, expected_mask)
    torch.testing.assert_close(scores.masked_fill(~mask, 0), expected_scores.masked_fill(~mask, 0))
    assert torch.equal(graph_parts(model.gold(batch), model.structure, scores.dtype), gold)


@pytest.mark.parametrize("determinism", [False, True])
def test_hinge_costs_labelled_arcs_0_4_and_0_6(determinism: bool) -> None:
    model, batch = semantic(semantics__determinism=determinism, **ALL_ARCS)
    scored = scored_parts(model, batch)
    scores, mask, gold = dense(model, batch, scored)
    losses = model.loss(batch)
    for k in range(4):
        size = int(batch.lengths[k]) + 1
        part = (k, slice(size), slice(size))
        vertices = brute.graphs(mask[part], model.structure.deterministic)
        values = []
        for z in vertices:
            more = ((z == 1) & (gold[part] == 0))[..., 1:].sum()
            fewer = ((z == 0) & (gold[part] == 1))[..., 1:].sum()
            values.append((scores[part] * z).sum() + 0.4 * more + 0.6 * fewer)
        expected = torch.stack(values).max() - (scores[part] * gold[part]).sum()
        torch.testing.assert_close(losses[k], expected)


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_scores_losses_and_gradients_do_not_depend_on_the_batch(loss: str) -> None:
    data = of_lengths([5, 2, 1, 4], seed=3)
    whole = parser("spigot", semantics__loss=loss)
    model, stage = whole.model.double(), semantics(whole)
    assert stage.pruner is not None
    parameters = [value for name, value in stage.named_parameters() if not name.startswith("pruner.")]
    assert len(parameters) == len(list(stage.parameters())) - len(list(stage.pruner.parameters()))
    with torch.no_grad():  # predicates that like to be on, so that padding would show
        stage.predicates.out.bias.fill_(3.0)
    seeds = [4, 5, 6, 7]
    together = model.loss(batch_of(data, whole, seeds), "semantics")
    expected = torch.autograd.grad(together.sum(), parameters)
    alone = torch.cat([model.loss(batch_of([data[k]], whole, [seeds[k]]), "semantics") for k in range(4)])
    torch.testing.assert_close(together, alone)
    found = torch.autograd.grad(alone.sum(), parameters)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.to_dense(), other.to_dense())


def test_decoding_is_the_best_graph() -> None:
    model, batch = semantic(**ALL_ARCS)
    scored = scored_parts(model, replace(batch, seeds=None))
    scores, mask, _ = dense(model, batch, scored)
    z = model.structure.argmax(*model.evidence(replace(batch, seeds=None)))
    assert model.structure.contains(z, mask).all()
    for k in range(4):
        size = int(batch.lengths[k]) + 1
        part = (k, slice(size), slice(size))
        vertices = brute.graphs(mask[part], model.structure.deterministic)
        assert torch.equal(z[part], vertices[brute.values(vertices, scores[part]).argmax()])


def test_marginals_are_those_of_the_core_and_of_several_graphs() -> None:
    """Three ways: in closed form, by the structure's sums over all graphs, and as the first of several graphs."""
    model, batch = semantic(semantics__loss="log", semantics__determinism=False, **ALL_ARCS)
    quiet = replace(batch, seeds=None)
    scored = scored_parts(model, quiet)
    likely = graph_marginals(scored)
    torch.testing.assert_close(likely, joint_marginals([scored], [], batch.lengths)[0])
    scores, mask, _ = dense(model, batch, scored)
    _, _, labelled = model.structure.unpack(model.structure.marginals(scores, mask))
    torch.testing.assert_close(likely.masked_fill(~scored.possible, 0), labelled[scored.pairs.unbind(-1)])


def test_marginals_decode_into_what_is_likely_one_by_one() -> None:
    model, batch = semantic(semantics__loss="log", semantics__decoding="marginals", **ALL_ARCS)
    with torch.no_grad():
        model.predicates.out.bias.fill_(2.0)  # so that labels can be likely
    quiet = replace(batch, seeds=None)
    scored = scored_parts(model, quiet)
    likely = graph_marginals(scored)
    threshold = float(likely[scored.possible].detach().median())  # so that some are worth something, and some are not
    model.settings = model.settings.model_copy(update={"threshold": threshold})
    mask = dense(model, batch, scored)[1]
    worth = torch.zeros(mask.shape, dtype=likely.dtype)
    worth[..., 1:][scored.pairs.unbind(-1)] = likely - threshold
    z = model.structure.argmax(*model.evidence(quiet))
    assert (z * worth).sum() > 0
    for k in range(4):
        size = int(batch.lengths[k]) + 1
        part = (k, slice(size), slice(size))
        values = brute.values(brute.graphs(mask[part], model.structure.deterministic), worth[part])
        torch.testing.assert_close((z[part] * worth[part]).sum(), values.max())


def test_roles_that_constraints_bring_back_are_worth_their_scores_and_less_than_others() -> None:
    model, batch = semantic(semantics__loss="log", **ALL_ARCS)
    scored = scored_parts(model, replace(batch, seeds=None))
    known = torch.zeros_like(scored.possible)
    known[:, 0] = True
    scored = replace(scored, possible=known)
    worth = scored.worth(graph_marginals(scored), 0.35).labelled
    assert (worth[:, 1:] < worth[:, :1]).all()
    assert torch.equal(worth[:, 1:].argsort(-1), scored.labelled[:, 1:].argsort(-1))


def test_attention_needs_scores() -> None:
    refused = GraphSettings(annotation="graphs", loss="log", decoding="marginals", determinism=False)
    assert "use decoding = 'best'" in GraphStage.refusal(refused, estimator_settings("attention"))


@pytest.mark.parametrize("lacks", [{"semantics__loss": "hinge"}, {"semantics__loss": "log", "semantics__latent": True}])
def test_marginals_need_probabilities(lacks: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="decoding = 'marginals' needs probabilities, which"):
        semantic(semantics__decoding="marginals", **lacks)


def test_gold_arcs_and_labels_are_kept_in_training_only() -> None:
    model, batch = semantic()
    model.seen.roles.fill_(False)  # a dictionary that rules everything out
    scored = scored_parts(model, batch)
    arcs = model.gold(batch).arcs
    assert scored.pairs.tolist() == arcs[:, :3].unique(dim=0).tolist()
    assert scored.possible.sum() == len(arcs)
    quiet = replace(batch, seeds=None)
    assert len(scored_parts(model, quiet).pairs) == 0
    for given in (batch, quiet):  # evidence never looks at what is right
        assert not model.evidence(given).mask[..., 1:].any()


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_a_loss_leaves_out_gold_that_was_pruned(loss: str) -> None:
    model, batch = semantic(semantics__loss=loss)
    model.seen.roles.fill_(False)
    quiet = replace(batch, seeds=None)
    losses = model.loss(quiet)
    assert losses.isfinite().all()


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_sentences_without_arcs_are_learned_from(loss: str) -> None:
    whole = parser("neurboparser", semantics__loss=loss, semantics__pruning__learned=False)
    batch = batch_of([Sentence(("cat", "sees"), tags=("NN", "VBZ"), graph=Graph())], whole, [1])
    value = whole.model.loss(batch, "semantics")
    value.sum().backward()
    assert value.item() > 0
    assert value.isfinite().all()


def test_a_batch_without_graphs_is_refused() -> None:
    model, batch = semantic()
    with pytest.raises(ValueError, match="The loss of semantics needs graphs, and this batch has none"):
        model.loss(replace(batch, gold={}))


def test_determinism_comes_from_the_training_graphs() -> None:
    stage = semantics(parser())
    assert stage.annotation.deterministic
    assert stage.structure.deterministic == stage.annotation.deterministic
    assert semantics(parser(semantics__determinism=False)).structure.deterministic == ()


def test_graphs_without_roles_are_refused() -> None:
    settings = experiment().stages[STAGE]
    assert isinstance(settings, GraphSettings)
    with pytest.raises(ValueError, match="no arcs and no tops, so there is nothing a parser could find"):
        GraphStage(STAGE, settings, Graphs(), Surroundings(VOCAB))


def test_the_pruner_is_a_helper_with_an_optimiser_of_its_own() -> None:
    stage = semantics(parser(semantics__pruning__epochs=7, semantics__pruning__optimiser__learning_rate=0.25))
    (helper,) = stage.helpers().values()
    assert helper.model is stage.pruner
    assert helper.optimiser.learning_rate == 0.25
    assert stage.helper_plans(stage.settings) == {"pruner": HelperPlan(7)}
    model, batch = semantic()
    assert model.helpers() == model.helper_plans(model.settings) == {}
    with pytest.raises(ValueError, match="semantics has no pruner to train"):
        model.helper_loss("pruner", batch)
