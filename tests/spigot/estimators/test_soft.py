"""Structured attention and SparseMAP: soft forward, true gradient."""

import pytest
import torch
from torch import Tensor

import spigot
from spigot import ConvexHull, OneOf, ProjectiveTrees, SemanticGraphs, Simplex, SparseMAP, StructuredAttention
from tests.spigot import brute
from tests.spigot.cases import STRUCTURES, StructureCase


def test_attention_over_choices_is_softmax() -> None:
    scores = torch.randn(4, 6, dtype=torch.float64)
    torch.testing.assert_close(spigot.argmax(scores, OneOf(), StructuredAttention()), scores.softmax(-1))


def test_attention_names_the_alternative() -> None:
    graphs = SemanticGraphs(labels=2, deterministic=(0,))
    with pytest.raises((TypeError, ValueError), match=r"(?s)StructuredAttention.*(Spigot|StraightThrough)"):
        spigot.argmax(torch.zeros(3, 3, 3), graphs, StructuredAttention())
    with pytest.raises((TypeError, ValueError), match=r"(?s)(Spigot|StraightThrough)"):
        StructuredAttention().explain(graphs, torch.zeros(3, 3, 3), torch.zeros(3, 3, 3))


def test_attention_needs_marginals() -> None:
    oracle = spigot.Oracle(OneOf().argmax)
    with pytest.raises((TypeError, ValueError), match=r"StructuredAttention needs marginals, and Oracle.* has none"):
        spigot.argmax(torch.zeros(3), oracle, StructuredAttention())


def test_sparsemap_over_choices_is_sparsemax() -> None:
    scores = torch.randn(4, 6, dtype=torch.float64)
    torch.testing.assert_close(spigot.argmax(scores, OneOf(), SparseMAP()), Simplex().project(scores))


@pytest.mark.parametrize("case", STRUCTURES, ids=str)
def test_sparsemap_is_the_projection_of_the_scores(case: StructureCase) -> None:
    scores, mask = case.draw(40, 8)
    z = spigot.argmax(scores, case.structure, SparseMAP(), mask=mask)
    for s, m, p in zip(scores, mask, z, strict=True):
        nearest = brute.project(case.vertices(m), s.nan_to_num().masked_fill(~m, 0))
        torch.testing.assert_close(p, nearest, rtol=0, atol=1e-6)


def face_projector(vertices: Tensor) -> Tensor:
    """The matrix that projects onto the directions along the affine hull of some vertices."""
    flat = vertices.flatten(1)
    directions = flat[1:] - flat[0]
    return torch.linalg.pinv(directions) @ directions


@pytest.mark.parametrize("case", STRUCTURES, ids=str)
def test_sparsemap_jacobian_is_the_projector_onto_its_face(case: StructureCase) -> None:
    scores, mask = case.draw(41, 6)
    g = torch.randn(scores.shape, dtype=torch.float64)
    leaf = scores.clone().requires_grad_()
    spigot.argmax(leaf, case.structure, SparseMAP(), mask=mask).backward(g)
    assert leaf.grad is not None
    solution = ConvexHull(case.structure).solve(scores, mask)
    for index, support in enumerate(solution.support):
        if len(support.weights) == 1:
            assert leaf.grad[index].abs().max() <= 1e-12
            continue
        expected = face_projector(support.vertices) @ g[index].masked_fill(~mask[index], 0).flatten()
        torch.testing.assert_close(leaf.grad[index].flatten(), expected, rtol=0, atol=1e-8)


def test_sparsemap_between_attention_and_argmax() -> None:
    """Sparse but not hard: few trees, and for large scores exactly one."""
    trees = ProjectiveTrees()
    scores = torch.randn(5, 9, 9, dtype=torch.float64)
    z = spigot.argmax(scores, trees, SparseMAP())
    mu = spigot.argmax(scores, trees, StructuredAttention())
    assert (z > 0).sum() < (mu > 0).sum()
    torch.testing.assert_close(spigot.argmax(1e5 * scores, trees, SparseMAP()), trees.argmax(scores))


def test_sparsemap_max_norm() -> None:
    scores = torch.zeros(2, 4, requires_grad=True)
    g = torch.tensor([[3.0, 0.0, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0]])
    spigot.argmax(scores, OneOf(), SparseMAP(max_norm=1.0)).backward(g)
    assert scores.grad is not None
    torch.testing.assert_close(scores.grad[0], torch.tensor([0.75, -0.25, -0.25, -0.25]))
    torch.testing.assert_close(scores.grad[1], 0.1 * torch.tensor([0.75, -0.25, -0.25, -0.25]))


def test_attention_at_low_temperature_is_the_argmax() -> None:
    trees = ProjectiveTrees()
    scores = torch.randn(5, 9, 9, dtype=torch.float64)
    soft = spigot.argmax(1e5 * scores, trees, StructuredAttention())
    torch.testing.assert_close(soft, trees.argmax(scores), rtol=0, atol=1e-6)
