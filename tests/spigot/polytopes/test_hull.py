"""The convex hull of a structure: optimality, gap, support, warm start, second algorithms."""

import piqp
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from spigot import (
    AbstractStructure,
    ConvexHull,
    HeadSimplex,
    NonProjectiveTrees,
    OneOf,
    ProjectiveTrees,
    SemanticGraphs,
    Simplex,
)
from tests.spigot import brute
from tests.spigot.cases import STRUCTURES, StructureCase

TREES = [
    ProjectiveTrees(),
    ProjectiveTrees(single_root=False),
    NonProjectiveTrees(),
    NonProjectiveTrees(single_root=False),
]

every_case = pytest.mark.parametrize("case", STRUCTURES, ids=str)


def promised(point: Tensor) -> float:
    """The duality gap the hull guarantees for points of this size."""
    return (1e-9 if point.dtype == torch.float64 else 1e-6) * max(1.0, float(point.nan_to_num().abs().max()))


@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_solution_proves_itself(case: StructureCase, dtype: torch.dtype, scale: float) -> None:
    """The support is made of members with positive weights, mixes to the point, and the gap bounds the true one."""
    points, mask = case.draw(1, 6, dtype=dtype, scale=scale)
    solution = ConvexHull(case.structure).solve(points, mask)
    assert torch.equal(solution.point, ConvexHull(case.structure).project(points, mask))
    assert solution.gap.shape == (6,)
    assert solution.gap.dtype == dtype
    assert (solution.gap <= promised(points)).all()
    for x, m, p, support in zip(points, mask, solution.point, solution.support, strict=True):
        vertices = case.vertices(m)
        known = {tuple(v.flatten().tolist()) for v in vertices}
        assert all(tuple(v.flatten().double().tolist()) in known for v in support.vertices)
        assert (support.weights > 0).all()
        assert float(support.weights.sum()) == pytest.approx(1, abs=1e-6)
        mixed = torch.einsum("k,k...->...", support.weights.double(), support.vertices.double())
        torch.testing.assert_close(p.double(), mixed, rtol=0, atol=1e-6)
        residual = (x.double().nan_to_num() - mixed).masked_fill(~m, 0)
        true_gap = brute.values(vertices, residual).max() - (residual * mixed).sum()
        assert true_gap <= (1.01 * promised(points) if dtype == torch.float64 else 3 * promised(points))
        rank = torch.linalg.matrix_rank(
            support.vertices.double().flatten(1)[1:] - support.vertices[0].double().flatten()
        )
        assert int(rank) == len(support.weights) - 1, "the structures of the support must be affinely independent"


@every_case
def test_hull_against_quadratic_program(case: StructureCase) -> None:
    """min || sum_v w_v v - x ||^2 over weights of all enumerated vertices, by an interior-point solver."""
    points, mask = case.draw(2, 5)
    projected = ConvexHull(case.structure).project(points, mask)
    for x, m, p in zip(points, mask, projected, strict=True):
        vertices = case.vertices(m)
        if len(vertices) > 300:
            continue
        rows = vertices.flatten(1)
        k = len(rows)
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
        solver.setup(
            (rows @ rows.T + 1e-12 * torch.eye(k, dtype=torch.float64)).numpy(),
            -(rows @ x.nan_to_num().masked_fill(~m, 0).flatten()).numpy(),
            torch.ones(1, k, dtype=torch.float64).numpy(),
            torch.ones(1, dtype=torch.float64).numpy(),
            None,
            None,
            None,
            torch.zeros(k, dtype=torch.float64).numpy(),
            torch.ones(k, dtype=torch.float64).numpy(),
        )
        solver.solve()
        weights = torch.from_numpy(solver.result.x.copy())
        torch.testing.assert_close(p, (weights @ rows).reshape(p.shape), rtol=0, atol=1e-5)


def test_hull_of_one_of_k_is_the_simplex() -> None:
    v = 2 * torch.randn(20, 9, dtype=torch.float64)
    torch.testing.assert_close(ConvexHull(OneOf()).project(v), Simplex().project(v), rtol=0, atol=1e-9)


@pytest.mark.parametrize("trees", TREES, ids=str)
def test_hull_of_trees_lies_inside_the_head_simplices(trees: AbstractStructure) -> None:
    point = 2 * torch.randn(8, 9, 9, dtype=torch.float64)
    tight, loose = ConvexHull(trees).project(point), HeadSimplex().project(point)
    possible = trees.full_mask(point)
    assert HeadSimplex().contains(tight).all()
    distance = [((point - p) * possible).square().sum((1, 2)) for p in (tight, loose)]
    assert (distance[0] >= distance[1] - 1e-9).all()
    assert (tight - loose).abs().max() > 1e-2, "the tree constraints must matter somewhere"


@pytest.mark.parametrize("trees", TREES, ids=str)
def test_start_changes_the_road_not_the_end(trees: AbstractStructure) -> None:
    point = torch.randn(6, 8, 8, dtype=torch.float64)
    plain = ConvexHull(trees).project(point)
    start = trees.argmax(torch.randn(6, 8, 8, dtype=torch.float64))
    torch.testing.assert_close(ConvexHull(trees).project(point, None, start=start), plain, rtol=0, atol=1e-6)
    best = trees.argmax(point)
    torch.testing.assert_close(ConvexHull(trees).project(point, None, start=best), plain, rtol=0, atol=1e-6)


@pytest.mark.parametrize("trees", TREES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_spigot_step_from_a_vertex_with_mixed_lengths(trees: AbstractStructure, dtype: torch.dtype) -> None:
    """The use in the backward pass: z - g with z the start, sentences of many lengths, gap as promised."""
    lengths = torch.tensor([14, 0, 1, 9, 5, 14])
    mask = trees.mask(lengths)
    scores = torch.randn(mask.shape, dtype=torch.float64).to(dtype)
    z = trees.argmax(scores, mask)
    point = (z - 0.5 * torch.randn(mask.shape, dtype=torch.float64).to(dtype)).masked_fill(~mask, torch.nan)
    solution = ConvexHull(trees).solve(point, mask, start=z)
    assert (solution.gap <= promised(point)).all()
    assert not solution.point[~mask].any()
    outward = (point - solution.point).masked_fill(~mask, 0)
    best = trees.argmax(outward, mask)
    reach = (outward * (best - solution.point)).double().sum((1, 2))
    assert (reach <= (1e-8 if dtype == torch.float64 else 1e-4)).all()
    for index, support in enumerate(solution.support):
        assert trees.contains(support.vertices, mask[index].expand_as(support.vertices)).all()


@given(st.integers(0, 10_000), st.booleans())
def test_integer_points_have_many_ties(seed: int, projective: bool) -> None:
    """Ties make active-set methods cycle; points on a grid are full of them."""
    generator = torch.Generator().manual_seed(seed)
    trees = ProjectiveTrees() if projective else NonProjectiveTrees()
    point = torch.randint(-2, 3, (1, 5, 5), generator=generator).double()
    vertices = brute.trees(trees.full_mask(point)[0], projective=projective, single_root=True)
    torch.testing.assert_close(
        ConvexHull(trees).project(point)[0], brute.project(vertices, point[0]), rtol=0, atol=1e-6
    )


def test_all_equal_point_is_the_best_average() -> None:
    """The projection of a constant over trees is the minimum-norm point, the same for every constant."""
    for trees in TREES:
        zero = ConvexHull(trees).project(torch.zeros(6, 6, dtype=torch.float64))
        far = ConvexHull(trees).project(torch.full((6, 6), 7.0, dtype=torch.float64))
        torch.testing.assert_close(zero, far, rtol=0, atol=1e-5)


def test_large_points_are_vertices() -> None:
    scores = 1e6 * torch.randn(5, 10, 10, dtype=torch.float64)
    for trees in TREES:
        torch.testing.assert_close(ConvexHull(trees).project(scores), trees.argmax(scores), rtol=0, atol=1e-9)


def test_contains() -> None:
    hull = ConvexHull(ProjectiveTrees())
    vertices = brute.trees(ProjectiveTrees().full_mask(torch.zeros(5, 5)), projective=True, single_root=True)
    middle = torch.einsum("v,vij->ij", torch.rand(len(vertices), dtype=torch.float64).softmax(0), vertices)
    assert hull.contains(middle)
    cycle = torch.zeros(5, 5, dtype=torch.float64)
    cycle[0, 1] = cycle[1, 2] = cycle[4, 3] = cycle[3, 4] = 1
    assert HeadSimplex().contains(cycle)
    assert not hull.contains(cycle)


def test_deterministic_roles_are_part_of_the_hull() -> None:
    """Two arguments that want the same role share it, which the relaxation of Eq. 6 would not make them do."""
    graphs = SemanticGraphs(labels=1, deterministic=(0,))
    mask = torch.zeros(3, 3, 2, dtype=torch.bool)
    mask[0, 1:] = True
    mask[0, 0, 0] = True
    point = mask.double()
    p = ConvexHull(graphs).project(point, mask)
    assert float(p[0, 1:, 1].sum()) <= 1 + 1e-9
    assert float(graphs.relaxation.project(point, mask)[0, 1:, 1].sum()) == pytest.approx(2)
    torch.testing.assert_close(p, brute.project(brute.graphs(mask, (0,)), point), rtol=0, atol=1e-7)


def test_hull_refuses_what_it_cannot_use() -> None:
    hull = ConvexHull(ProjectiveTrees())
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        hull.project(torch.zeros(3, 3), start=torch.zeros(2, 2))
    with pytest.raises(ValueError, match="NaN"):
        hull.project(torch.full((3, 3), torch.nan))


def test_a_start_that_is_no_member_is_ignored() -> None:
    """Taken into the support, a cycle would pull the answer out of the hull while the gap said zero."""
    point = torch.zeros(4, 4, dtype=torch.float64)
    point[2, 1] = point[1, 2] = point[0, 3] = 3
    hull = ConvexHull(ProjectiveTrees())
    cycle = (point > 0).double()
    torch.testing.assert_close(hull.project(point, start=cycle), hull.project(point))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_giant_parts_without_mass_do_not_loosen_the_projection(dtype: torch.dtype) -> None:
    """Arcs at -1e8, as a soft mask, give what the mask itself gives."""
    trees = NonProjectiveTrees()
    point = torch.randn(16, 8, 8, dtype=dtype)
    mask = trees.full_mask(point) & (torch.rand(16, 8, 8) < 0.8)
    mask[:, 0, 1:] = True
    hull = ConvexHull(trees)
    soft = hull.project(point.masked_fill(~mask, -1e8))
    torch.testing.assert_close(soft, hull.project(point, mask), atol=1e-3 if dtype == torch.float32 else 1e-4, rtol=0)
