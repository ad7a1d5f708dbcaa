"""One parser inside the other: what reaches what."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from spigot.config import SYSTEMS
from spigot.data.batch import Batch
from spigot.models.estimators import ESTIMATORS, estimator
from spigot.models.joint import JointParser
from spigot.models.semantics import SemanticParser
from tests.parsing import ALL_SYSTEMS, batch_of, corpus, experiment, parser

DATA = corpus()


def joint(system: str, **overrides: Any) -> tuple[JointParser, Batch]:
    whole = parser(system, DATA, **overrides)
    batch = batch_of(DATA.graphs.train[:4], whole.vocab, [1, 2, 3, 4])
    return whole.model.double(), batch


def gradient_at_the_trees(model: JointParser, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores, mask, the trees and dL/dz, with z cut out of the network by hand."""
    assert model.syntax is not None
    scores, mask = model.syntax(batch)
    z = model.syntax.structure.argmax(scores, mask).detach().requires_grad_()
    scored = model.semantics(batch, model.pruner, z)
    model.semantics.loss(batch, scored).sum().backward()
    assert z.grad is not None
    model.zero_grad()
    return scores, mask, z.detach(), z.grad


def gradient_at_the_scores(model: JointParser, batch: Batch) -> Tensor:
    """What the end task sends into the arc scores of the syntactic parser."""
    caught: list[Tensor] = []
    assert model.syntax is not None

    def catch(module: object, given: object, scores: Tensor) -> None:
        scores.register_hook(caught.append)

    handle = model.syntax.arcs.register_forward_hook(catch)
    model.loss(batch, "semantics").sum().backward()
    handle.remove()
    model.zero_grad()
    return caught[0].squeeze(-1)


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
    _, mask, z, grad = gradient_at_the_trees(model, batch)
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
    _, mask, _, grad = gradient_at_the_trees(model, batch)
    torch.testing.assert_close(gradient_at_the_scores(model, batch), grad.masked_fill(~mask, 0))


def test_the_release_clips_the_gradient_of_a_sentence() -> None:
    model, batch = joint("spigot", estimator__max_norm=0.01, estimator__eta=1.0)
    _, mask, z, grad = gradient_at_the_trees(model, batch)
    grad = grad.masked_fill(~mask, 0)
    norm = grad.flatten(1).norm(dim=-1)[:, None, None]
    clipped = grad * (0.01 / norm).clamp(max=1)
    expected = z - spigot.HeadSimplex().project(z - clipped, mask)
    torch.testing.assert_close(gradient_at_the_scores(model, batch), expected, atol=1e-9, rtol=1e-7)


def test_attention_reads_marginals_and_has_the_true_gradient() -> None:
    model, batch = joint("attention")
    assert model.syntax is not None
    scores, mask = model.syntax(batch)
    scores = scores.detach().requires_grad_()
    marginals = model.syntax.structure.marginals(scores, mask)
    torch.testing.assert_close(model.trees(batch), marginals)
    scored = model.semantics(batch, model.pruner, marginals)
    model.semantics.loss(batch, scored).sum().backward()
    assert scores.grad is not None
    torch.testing.assert_close(gradient_at_the_scores(model, batch), scores.grad)
    tree = model.parse(replace(batch, seeds=None)).tree
    assert tree is not None
    assert model.syntax.structure.contains(tree, mask).all()  # what is shown is a tree all the same


@pytest.mark.parametrize("system", ["pipeline", "neurboparser"])
def test_some_systems_do_not_train_syntax_through_semantics(system: str) -> None:
    model, batch = joint(system)
    model.loss(batch, "semantics").sum().backward()
    if system == "pipeline":
        assert model.syntax is not None
        assert all(parameter.grad is None for parameter in model.syntax.parameters())
    else:
        assert model.syntax is None
        assert model.trees(batch) is None


@pytest.mark.parametrize("system", ["attention", "ste", "spigot", "sparsemap"])
def test_other_systems_do_unless_told_not_to(system: str) -> None:
    model, batch = joint(system)
    assert model.syntax is not None
    model.loss(batch, "semantics", through=False).sum().backward()
    assert all(parameter.grad is None for parameter in model.syntax.parameters())
    model.loss(batch, "semantics").sum().backward()
    assert any(
        parameter.grad is not None and parameter.grad.to_dense().any() for parameter in model.syntax.parameters()
    )
    assert all(parameter.grad is None for parameter in (model.pruner or model).parameters())


def test_the_syntactic_loss_leaves_the_semantic_parser_alone() -> None:
    model, _ = joint("spigot")
    batch = batch_of(DATA.trees.train[:3], parser("spigot", DATA).vocab, [1, 2, 3])
    model.loss(batch, "syntax").sum().backward()
    assert all(parameter.grad is None for parameter in model.semantics.parameters())


@pytest.mark.parametrize("system", ["spigot", "pipeline"])
def test_no_words_are_dropped_in_the_trees_of_an_end_task_step(system: str) -> None:
    model, batch = joint(system, syntax__encoder__word_dropout=1000.0, syntax__encoder__dropout=0.5)
    trees = model.trees(batch)
    quiet = model.trees(replace(batch, seeds=None))
    assert trees is not None
    assert quiet is not None
    assert torch.equal(trees, quiet)


def test_nothing_is_dropped_in_evaluation() -> None:
    noisy, _ = joint("spigot", semantics__encoder__word_dropout=1000.0, semantics__encoder__dropout=0.5)
    batch = batch_of(DATA.graphs.train[:4], parser("spigot", DATA).vocab)
    assert all(
        torch.equal(a, b)
        for a, b in zip(noisy.parse(batch)[:2], noisy.parse(batch)[:2], strict=True)
        if a is not None and b is not None
    )
    first, second = (noisy.semantics(batch, None, noisy.trees(batch)).labelled for _ in range(2))
    assert torch.equal(first, second)
    seeded = replace(batch, seeds=torch.arange(4))
    assert not torch.equal(noisy.semantics(seeded, None, noisy.trees(batch)).predicates[0], first[0])


def test_each_system_has_its_estimator() -> None:
    expected = {
        "neurboparser": spigot.Pipeline(),
        "pipeline": spigot.Pipeline(),
        "attention": spigot.StructuredAttention(),
        "ste": spigot.StraightThrough(0.5, max_norm=2.0),
        "spigot": spigot.Spigot(0.5, max_norm=2.0),
        "sparsemap": spigot.SparseMAP(),
        "identity": spigot.Identity(0.5, normalise=True, max_norm=2.0),
        "blackbox": spigot.BlackBox(3.0, max_norm=2.0),
        "imle": spigot.IMLE(3.0, 0.7, 2, 5, max_norm=2.0),
        "perturbed": spigot.Perturbed(0.7, 2, 5, max_norm=2.0),
    }
    assert set(expected) == set(ALL_SYSTEMS) == set(SYSTEMS["parsing"])
    values = {"eta": 0.5, "max_norm": 2.0, "strength": 3.0, "temperature": 0.7, "samples": 2, "normalise": True}
    for system, rule in expected.items():
        settings = {f"estimator__{name}": value for name, value in values.items()}
        assert estimator(experiment(system, seed=5, **settings)) == rule
    trees = spigot.NonProjectiveTrees()
    hull = estimator(experiment("spigot", estimator__polytope="hull"), trees)
    assert hull == spigot.Spigot(1.0, spigot.ConvexHull(trees))
    assert JointParser(experiment("spigot", estimator__polytope="hull"), parser().vocab).estimator == spigot.Spigot(
        1.0, spigot.ConvexHull(spigot.ProjectiveTrees(single_root=True))
    )


def test_a_system_without_an_estimator_is_refused() -> None:
    """It used to be trained without a word as a pipeline."""
    assert set(ESTIMATORS) == {*SYSTEMS["parsing"], *SYSTEMS["classification"]}
    unknown = experiment("spigot").model_copy(update={"system": "spigott"})
    with pytest.raises(ValueError, match=r"system = 'spigott' stands for no estimator; choose one of neurboparser, "):
        estimator(unknown)
    with pytest.raises(ValueError, match="spigott"):
        JointParser(unknown, parser().vocab)


def test_the_semantic_parser_is_wider_with_heads() -> None:
    config, vocab = experiment(), parser().vocab
    alone, with_heads = (SemanticParser(config.semantics, vocab, heads=heads) for heads in (False, True))
    assert with_heads.arcs.head.in_features == 2 * alone.arcs.head.in_features == 4 * config.semantics.encoder.hidden


@pytest.mark.parametrize(("system", "task"), [("neurboparser", "syntax"), ("spigot", "pruner")])
def test_a_model_that_is_not_there_cannot_be_trained(system: str, task: str) -> None:
    model, batch = joint(system, semantics__pruning__learned=False)
    with pytest.raises(ValueError, match="no "):
        model.loss(batch, task)
