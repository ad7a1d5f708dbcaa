"""Hulls of trees at flat points, where hundreds of trees share the mass or inequalities decide without any."""

import pytest
import torch
from torch import Tensor

from spigot import AbstractStructure, ConvexHull, HeadSimplex, NonProjectiveTrees, ProjectiveTrees
from spigot._algorithms.active_set import project_hull
from spigot._runtime import native

TREES = [
    ProjectiveTrees(),
    ProjectiveTrees(single_root=False),
    NonProjectiveTrees(),
    NonProjectiveTrees(single_root=False),
]

every_kind = pytest.mark.parametrize("trees", TREES, ids=str)
both_precisions = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def promised(point: Tensor) -> float:
    return 1e-9 if point.dtype == torch.float64 else 1e-6


def one_by_one(trees: AbstractStructure, point: Tensor, mask: Tensor) -> Tensor:
    """The search in Python, one tree a round, through nothing but the argmax."""
    flat = (len(point), point[0].numel())
    start = trees.argmax(point, mask)
    result = project_hull(point.reshape(flat), mask.reshape(flat), start.reshape(flat), trees.argmax, point.shape)
    return result.point.reshape(point.shape)


def reach(trees: AbstractStructure, point: Tensor, projected: Tensor, mask: Tensor) -> Tensor:
    """How far the residual sees beyond the projection: zero, by the variational inequality."""
    outward = torch.where(mask, point - projected, 0)
    return (outward * (trees.argmax(outward, mask) - projected)).sum((-2, -1))


@every_kind
@both_precisions
@pytest.mark.parametrize("scale", [0.0, 0.01, 0.1])
def test_solution_proves_itself(trees: AbstractStructure, dtype: torch.dtype, scale: float) -> None:
    whole = trees.mask(torch.tensor([12, 0, 10]))
    mask = whole & (torch.rand(whole.shape) < 0.95)
    mask[:, 0] = whole[:, 0]  # whatever is missing, a tree is left: a chain
    mask[:, torch.arange(1, 12), torch.arange(2, 13)] = whole[:, 0, 2:]
    point = (scale * torch.randn(mask.shape, dtype=torch.float64)).to(dtype).masked_fill(~mask, torch.nan)
    hull = ConvexHull(trees)
    solution = hull.solve(point, mask)
    assert torch.equal(solution.point, hull.project(point, mask))
    assert (solution.gap <= promised(point)).all()
    assert not solution.point[~mask].any()
    assert (reach(trees, point.double(), solution.point.double(), mask) <= 20 * promised(point)).all()
    for p, m, support in zip(solution.point, mask, solution.support, strict=True):
        assert trees.contains(support.vertices, m.expand_as(support.vertices)).all()
        assert (support.weights > 0).all()
        mixed = torch.einsum("k,kij->ij", support.weights.double(), support.vertices.double())
        torch.testing.assert_close(p.double(), mixed, rtol=0, atol=1e-8 if dtype == torch.float64 else 1e-6)
        differences = support.vertices.double().flatten(1)[1:] - support.vertices[0].double().flatten()
        assert int(torch.linalg.matrix_rank(differences)) == len(support.weights) - 1


@every_kind
@pytest.mark.parametrize("scale", [0.01, 0.1, 0.3])
def test_agrees_with_the_search_tree_by_tree(trees: AbstractStructure, scale: float) -> None:
    mask = trees.mask(torch.tensor([10, 9]))
    point = scale * torch.randn(mask.shape, dtype=torch.float64)
    torch.testing.assert_close(
        ConvexHull(trees).project(point, mask), one_by_one(trees, point, mask), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("single_root", [True, False])
def test_relaxed_projection_is_refused_where_words_would_part_from_the_root(single_root: bool) -> None:
    """Nine words that would rather hang on one another, and nine more: without the root, either is a bundle of cycles.

    Every word still has its one head and the root gives its 1, so only the flow from the root can tell.
    """
    trees = NonProjectiveTrees(single_root=single_root)
    point = 0.01 * torch.randn(2, 19, 19, dtype=torch.float64)
    point[:, 1:10, 10:] -= 0.3
    point[:, 10:, 1:10] -= 0.3
    point[:, 0, 10:] -= 0.6
    mask = trees.full_mask(point)
    projected = ConvexHull(trees).project(point)
    assert (HeadSimplex().project(point, mask)[:, :10, 10:].sum((1, 2)) < 0.9).all()
    assert (projected[:, :10, 10:].sum((1, 2)) >= 1 - 1e-9).all()
    assert (reach(trees, point, projected, mask) <= 1e-8).all()


def test_flat_relaxed_projection_is_the_answer_where_the_root_has_many_children() -> None:
    """With more than its due from the root there is nothing to correct: the hull's answer is each word's own."""
    trees = NonProjectiveTrees(single_root=False)
    point = 0.01 * torch.randn(2, 13, 13, dtype=torch.float64)
    point[:, 0] += 0.07
    mask = trees.full_mask(point)
    torch.testing.assert_close(ConvexHull(trees).project(point), HeadSimplex().project(point, mask), rtol=0, atol=1e-8)


@both_precisions
@pytest.mark.skipif(not native.available, reason="the search in Python takes minutes")
def test_two_hundred_words(dtype: torch.dtype) -> None:
    for trees in (NonProjectiveTrees(), NonProjectiveTrees(single_root=False)):
        point = (0.01 * torch.randn(1, 201, 201, dtype=torch.float64)).to(dtype)
        mask = trees.full_mask(point)
        projected = ConvexHull(trees).project(point)
        assert HeadSimplex().contains(projected, mask).all()
        assert (projected[:, 0].sum(-1) >= 1 - 1e-5).all()
        assert (reach(trees, point.double(), projected.double(), mask) <= 100 * promised(point)).all()
