"""One parser inside the other: what reaches what."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from spigot import AbstractEstimator
from spigot_nlp.batches import Batch
from spigot_nlp.config import systems
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import System
from tests.spigot_nlp.parsing import (
    ALL_SYSTEMS,
    batch_of,
    corpus,
    gradient_at_the_scores,
    parser,
    scores_and_loss,
    semantics,
    syntax,
)

DATA = corpus()


def joint(system: str, **overrides: Any) -> tuple[System, Batch]:
    whole = parser(system, DATA, **overrides)
    return whole.model.double(), batch_of(DATA["graphs"].train[:4], whole, [1, 2, 3, 4])


def estimator(whole: Parser) -> AbstractEstimator:
    (wire,) = whole.model.all_wires()
    return wire.estimator


def trees(model: System, batch: Batch) -> Tensor:
    """What the semantic parser reads in a step of training."""
    (z,) = model.read("semantics", batch)
    return z


def gradient_at_the_trees(model: System, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Mask, the trees and dL/dz, with z cut out of the network by hand."""
    scores, mask, loss = scores_and_loss(model, batch)
    z = syntax(model).structure.argmax(scores, mask).detach().requires_grad_()
    loss(z).backward()
    assert z.grad is not None
    model.zero_grad()
    return mask, z.detach(), z.grad


def simplex(point: Tensor) -> Tensor:
    """Euclidean projection onto the simplex by bisection."""
    low, high = point.min() - 1, point.max()
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if (point - tau).clamp(min=0).sum() > 1 else (low, tau)
    return (point - (low + high) / 2).clamp(min=0)


@pytest.mark.parametrize("eta", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_equation_4_from_the_semantic_loss_to_the_syntactic_scores(eta: float, loss: str) -> None:
    """Each word's scores get z - proj(z - eta dL/dz), the projection onto the simplex of its heads."""
    model, batch = joint("spigot", estimator__eta=eta, semantics__loss=loss)
    mask, z, grad = gradient_at_the_trees(model, batch)
    found = gradient_at_the_scores(model, batch)
    expected = torch.zeros_like(found)
    for b in range(len(z)):
        for j in range(1, z.shape[-1]):
            heads = mask[b, :, j]
            if heads.any():
                expected[b, heads, j] = z[b, heads, j] - simplex(z[b, heads, j] - eta * grad[b, heads, j])
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-7)
    assert found.abs().max() > 0


def test_straight_through_passes_the_gradient_on() -> None:
    model, batch = joint("ste")
    mask, _, grad = gradient_at_the_trees(model, batch)
    torch.testing.assert_close(gradient_at_the_scores(model, batch), grad.masked_fill(~mask, 0))


def test_the_release_clips_the_gradient_of_a_sentence() -> None:
    model, batch = joint("spigot", estimator__max_norm=0.01, estimator__eta=1.0)
    mask, z, grad = gradient_at_the_trees(model, batch)
    grad = grad.masked_fill(~mask, 0)
    norm = grad.flatten(1).norm(dim=-1)[:, None, None]
    clipped = grad * (0.01 / norm).clamp(max=1)
    expected = z - spigot.HeadSimplex().project(z - clipped, mask)
    torch.testing.assert_close(gradient_at_the_scores(model, batch), expected, atol=1e-9, rtol=1e-7)


def test_attention_reads_marginals_and_has_the_true_gradient() -> None:
    model, batch = joint("attention")
    scores, mask, loss = scores_and_loss(model, batch)
    scores = scores.detach().requires_grad_()
    marginals = syntax(model).structure.marginals(scores, mask)
    torch.testing.assert_close(trees(model, batch), marginals)
    loss(marginals).backward()
    assert scores.grad is not None
    torch.testing.assert_close(gradient_at_the_scores(model, batch), scores.grad)
    tree = model.parse(replace(batch, seeds=None))["syntax"].z
    assert syntax(model).structure.contains(tree, mask).all()  # what is shown is a tree all the same


@pytest.mark.parametrize("system", ["pipeline", "neurboparser"])
def test_some_systems_do_not_train_syntax_through_semantics(system: str) -> None:
    model, batch = joint(system)
    model.loss(batch, "semantics").sum().backward()
    if system == "pipeline":
        assert all(parameter.grad is None for parameter in syntax(model).parameters())
    else:
        assert list(model.stages) == ["semantics"]
        assert not list(model.all_wires())


@pytest.mark.parametrize("system", ["attention", "ste", "spigot", "sparsemap"])
def test_other_systems_do_unless_told_not_to(system: str) -> None:
    model, batch = joint(system)
    model.loss(batch, "semantics", through=False).sum().backward()
    assert all(parameter.grad is None for parameter in syntax(model).parameters())
    model.loss(batch, "semantics").sum().backward()
    assert any(
        parameter.grad is not None and parameter.grad.to_dense().any() for parameter in syntax(model).parameters()
    )
    pruner = semantics(model).pruner
    assert pruner is not None
    assert all(parameter.grad is None for parameter in pruner.parameters())


def test_the_syntactic_loss_leaves_the_semantic_parser_alone() -> None:
    whole = parser("spigot", DATA)
    whole.model.loss(batch_of(DATA["trees"].train[:3], whole, [1, 2, 3]), "syntax").sum().backward()
    assert all(parameter.grad is None for parameter in semantics(whole).parameters())


@pytest.mark.parametrize("system", ["spigot", "pipeline"])
def test_no_words_are_dropped_in_the_trees_of_an_end_task_step(system: str) -> None:
    model, batch = joint(system, syntax__encoder__word_dropout=1000.0, syntax__encoder__dropout=0.5)
    assert torch.equal(trees(model, batch), trees(model, replace(batch, seeds=None)))


def test_nothing_is_dropped_in_evaluation() -> None:
    noisy, seeded = joint("spigot", semantics__encoder__word_dropout=1000.0, semantics__encoder__dropout=0.5)
    quiet = replace(seeded, seeds=None)
    for name, answer in noisy.parse(quiet).items():
        assert torch.equal(answer.z, noisy.parse(quiet)[name].z)
    z = trees(noisy, quiet)
    stage = semantics(noisy)
    assert torch.equal(stage.evidence(quiet, [z]).scores, stage.evidence(seeded, [z]).scores)
    assert torch.equal(stage.loss(quiet, [z]), stage.loss(quiet, [z]))
    assert not torch.equal(stage.states(seeded, [z], noisy=True), stage.states(quiet, [z], noisy=True))


def test_each_system_has_its_estimator() -> None:
    expected = {
        "pipeline": spigot.Pipeline(max_norm=2.0),
        "attention": spigot.StructuredAttention(),
        "ste": spigot.StraightThrough(0.5, max_norm=2.0),
        "spigot": spigot.Spigot(0.5, max_norm=2.0),
        "sparsemap": spigot.SparseMAP(max_norm=2.0),
        "identity": spigot.Identity(0.5, normalise=True, max_norm=2.0),
        "blackbox": spigot.BlackBox(3.0, max_norm=2.0),
        "imle": spigot.IMLE(3.0, 0.7, 2, 5, max_norm=2.0),
        "perturbed": spigot.Perturbed(0.7, 2, 5, max_norm=2.0),
        "lpgd": spigot.LPGD(0.5, max_norm=2.0),
        "spigot-ce": spigot.SpigotCE(0.5, max_norm=2.0),
        "spigot-eg": spigot.SpigotEG(0.5, max_norm=2.0),
        "adaptive-imle": spigot.AdaptiveIMLE(temperature=0.7, samples=2, seed=5, max_norm=2.0),
        "marginal-ste": spigot.MarginalStraightThrough(seed=5, max_norm=2.0),
        "score-function": spigot.ScoreFunction(2, 5, max_norm=2.0),
    }
    unwired = {"neurboparser", "shared1", "freda1", "shared3", "freda3"}
    assert {*unwired, "reinmax", *expected} == set(systems("parsing")) > set(ALL_SYSTEMS)
    with pytest.raises(TypeError, match="ReinMax is for OneOf, and ProjectiveTrees"):
        parser("reinmax", DATA)
    values = {"eta": 0.5, "max_norm": 2.0, "strength": 3.0, "temperature": 0.7, "samples": 2, "normalise": True}
    settings = {f"estimator__{name}": value for name, value in values.items()}
    for system, rule in expected.items():
        assert estimator(parser(system, DATA, seed=5, **settings)) == rule
    assert not list(parser("neurboparser", DATA, **settings).model.all_wires())
    for kind, structure in (("projective", spigot.ProjectiveTrees), ("nonprojective", spigot.NonProjectiveTrees)):
        hull = estimator(parser("spigot", DATA, estimator__polytope="hull", syntax__trees=kind))
        assert hull == spigot.Spigot(1.0, spigot.ConvexHull(structure(single_root=True)))


def test_a_system_without_an_estimator_is_refused() -> None:
    """It used to be trained without a word as a pipeline."""
    with pytest.raises(ValueError, match=r"system = 'spigott' is none of .*; choose one of neurboparser, "):
        parser("spigott", DATA)


def test_the_semantic_parser_is_wider_with_heads() -> None:
    alone, with_heads = (semantics(parser(system, DATA)) for system in ("neurboparser", "spigot"))
    assert with_heads.pairs.head.in_features == 2 * alone.pairs.head.in_features == 2 * alone.encoder.outputs


@pytest.mark.parametrize(("system", "task"), [("neurboparser", "syntax"), ("spigot", "semantics.pruner")])
def test_a_model_that_is_not_there_cannot_be_trained(system: str, task: str) -> None:
    model, batch = joint(system, semantics__pruning__learned=False)
    with pytest.raises(ValueError, match="has no "):
        model.loss(batch, task)
