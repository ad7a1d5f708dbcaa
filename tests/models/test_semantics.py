"""The semantic parser: losses and graphs against the core, and against brute force."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from spigot.data.batch import Batch, encode
from spigot.data.sentence import Graph, Sentence
from spigot.data.vocab import Vocab
from spigot.models.semantics import Scored, SemanticParser, gold_parts
from tests import brute
from tests.parsing import batch_of, experiment, of_lengths, parser

CHOSEN = of_lengths([2, 1, 2, 0])
ALL_ARCS = {"semantics__pruning__dictionary": False, "semantics__pruning__distance": False}


def semantic(**overrides: Any) -> tuple[SemanticParser, Batch]:
    """A parser of the vocabulary of these sentences, in float64, and a training batch of them."""
    vocab = Vocab.of(CHOSEN)
    model = SemanticParser(experiment(**overrides).semantics, vocab).double()
    return model, batch_of(CHOSEN, vocab, [1, 2, 3, 4])


def dense(model: SemanticParser, batch: Batch, scored: Scored) -> tuple[Tensor, Tensor, Tensor]:
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
    assert batch.arcs is not None
    assert batch.predicates is not None
    for b, i, j, l in batch.arcs.tolist():
        gold[b, i, j, 0] = gold[b, i, j, 1 + l] = 1
    for b, i in batch.predicates.nonzero().tolist():
        gold[b, i, i, 0] = 1
    return scores, mask, gold


@pytest.mark.parametrize("pruned", [False, True])
def test_log_loss_is_the_crf_over_dense_parts(pruned: bool) -> None:
    model, batch = semantic(semantics__loss="log", **({} if pruned else ALL_ARCS))
    if pruned:
        model.seen.learn([encode(sentence, Vocab.of(CHOSEN)) for sentence in CHOSEN[:1]])
    scored = model(batch, None)
    scores, mask, gold = dense(model, batch, scored)
    loss = model.loss(batch, scored)
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
    scored = model(batch, None)
    scores, mask = model.parts(batch, scored)
    expected_scores, expected_mask, gold = dense(model, batch, scored)
    assert torch.equal(mask, expected_mask)
    torch.testing.assert_close(scores.masked_fill(~mask, 0), expected_scores.masked_fill(~mask, 0))
    assert batch.predicates is not None
    assert batch.arcs is not None
    assert torch.equal(gold_parts(batch.predicates, batch.arcs, scores), gold)


@pytest.mark.parametrize("determinism", [False, True])
def test_hinge_costs_labelled_arcs_0_4_and_0_6(determinism: bool) -> None:
    model, batch = semantic(semantics__determinism=determinism, **ALL_ARCS)
    scored = model(batch, None)
    scores, mask, gold = dense(model, batch, scored)
    losses = model.loss(batch, scored)
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
    model = whole.model.double()
    parameters = list(model.semantics.parameters())
    with torch.no_grad():  # predicates that like to be on, so that padding would show
        model.semantics.predicates.out.bias.fill_(3.0)
    seeds = [4, 5, 6, 7]
    together = model.loss(batch_of(data, whole.vocab, seeds), "semantics")
    expected = torch.autograd.grad(together.sum(), parameters)
    alone = torch.cat([model.loss(batch_of([data[k]], whole.vocab, [seeds[k]]), "semantics") for k in range(4)])
    torch.testing.assert_close(together, alone)
    found = torch.autograd.grad(alone.sum(), parameters)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.to_dense(), other.to_dense())


def test_decoding_is_the_best_graph() -> None:
    model, batch = semantic(**ALL_ARCS)
    scored = model(batch, None)
    z = model.decode(batch, scored)
    scores, mask, _ = dense(model, batch, scored)
    assert model.structure.contains(z, mask).all()
    for k in range(4):
        size = int(batch.lengths[k]) + 1
        part = (k, slice(size), slice(size))
        vertices = brute.graphs(mask[part], model.structure.deterministic)
        assert torch.equal(z[part], vertices[brute.values(vertices, scores[part]).argmax()])


def test_gold_arcs_and_labels_are_kept_in_training_only() -> None:
    model, batch = semantic()
    model.seen.roles.fill_(False)  # a dictionary that rules everything out
    scored = model(batch, None)
    assert batch.arcs is not None
    assert scored.pairs.tolist() == batch.arcs[:, :3].unique(dim=0).tolist()
    assert scored.possible.sum() == len(batch.arcs)
    assert len(model(replace(batch, seeds=None), None).pairs) == 0


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_a_loss_leaves_out_gold_that_was_pruned(loss: str) -> None:
    model, batch = semantic(semantics__loss=loss)
    model.seen.roles.fill_(False)
    quiet = replace(batch, seeds=None)
    losses = model.loss(quiet, model(quiet, None))
    assert losses.isfinite().all()


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_sentences_without_arcs_are_learned_from(loss: str) -> None:
    whole = parser("neurboparser", semantics__loss=loss, semantics__pruning__learned=False)
    batch = batch_of([Sentence(("cat", "sees"), tags=("NN", "VBZ"), graph=Graph())], whole.vocab, [1])
    value = whole.model.loss(batch, "semantics")
    value.sum().backward()
    assert value.item() > 0
    assert value.isfinite().all()


def test_a_batch_without_graphs_is_refused() -> None:
    model, batch = semantic()
    scored = model(batch, None)
    with pytest.raises(ValueError, match="needs graphs"):
        model.loss(replace(batch, arcs=None), scored)


def test_determinism_comes_from_the_vocabulary() -> None:
    vocab = parser().vocab
    assert parser().model.semantics.structure.deterministic == vocab.deterministic
    assert parser(semantics__determinism=False).model.semantics.structure.deterministic == ()
