"""The capped simplex, the hull of subsets."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

import spigot
from spigot import CappedSimplex, ConvexHull, Subsets
from spigot.estimators.spigot import spigot_gradient

BOUNDS = [(2, 2), (0, 2), (1, 3), (4, None), (0, None)]


def bisected(point: Tensor, minimum: int, maximum: int | None) -> Tensor:
    """The projection by halving the interval that the threshold is in, two hundred times."""
    most = len(point) if maximum is None else min(maximum, len(point))
    total = point.clamp(0, 1).sum()
    if minimum <= total <= most:
        return point.clamp(0, 1)
    goal = minimum if total < minimum else most
    low, high = point.min() - 2, point.max() + 1
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (point - middle).clamp(0, 1).sum() > goal else (low, middle)
    return (point - low).clamp(0, 1)


@pytest.mark.parametrize(("minimum", "maximum"), BOUNDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_against_bisection(minimum: int, maximum: int | None, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    for k in (4, 5, 16, 33, 500):
        for scale in (0.01, 1.0, 100.0):
            point = (torch.randn(6, k, generator=generator, dtype=torch.float64) * scale).to(dtype)
            ours = CappedSimplex(minimum, maximum).project(point)
            theirs = torch.stack([bisected(row.double(), minimum, maximum) for row in point])
            torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=1e-11 if dtype == torch.float64 else 1e-5)


@pytest.mark.parametrize("k", [1, 10, 100, 5000, 9999, 10_000])
def test_ten_thousand_entries(k: int) -> None:
    generator = torch.Generator().manual_seed(k)
    for scale, shift in ((1.0, 0.0), (0.001, 0.0), (1e4, 0.0), (1.0, 1e4)):
        point = torch.randn(10_000, generator=generator) * scale + shift
        p = CappedSimplex(k, k).project(point)
        torch.testing.assert_close(p.double(), bisected(point.double(), k, k), rtol=0, atol=2e-6)
        assert p.double().sum().item() == pytest.approx(k, abs=1e-3)


@given(
    st.lists(st.floats(-50, 50) | st.integers(-2, 3).map(float), min_size=1, max_size=20),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_kinks_and_ties(values: list[float], a: int, b: int) -> None:
    minimum, maximum = sorted((min(a, len(values)), min(b, len(values))))
    point = torch.tensor(values, dtype=torch.float64)
    p = CappedSimplex(minimum, maximum).project(point)
    torch.testing.assert_close(p, bisected(point, minimum, maximum), rtol=0, atol=1e-9)


def test_far_apart_and_far_from_zero() -> None:
    point = torch.tensor([1e30, 3.0, 2.75, -1e30, 2.5, -torch.inf])
    assert CappedSimplex(2, 2).project(point).tolist() == pytest.approx([1, 0.5833333, 0.3333333, 0, 0.0833333, 0])
    near = torch.tensor([1e7, 1e7 + 1, 1e7 - 1, 1e7 + 1])
    torch.testing.assert_close(CappedSimplex(2, 2).project(near), torch.tensor([0.0, 1.0, 0.0, 1.0]))
    assert CappedSimplex(2, 2).project(torch.tensor([1.0, 1.0, -torch.inf])).tolist() == [1, 1, 0]


def test_points_without_a_nearest_point() -> None:
    for point in ([torch.inf, 0.0, 0.0], [0.0, -torch.inf, -torch.inf]):
        with pytest.raises(ValueError, match="points of the instance are infinite"):
            CappedSimplex(2, 2).project(torch.tensor(point))


@pytest.mark.parametrize(("minimum", "maximum"), BOUNDS)
def test_gradient(minimum: int, maximum: int | None) -> None:
    generator = torch.Generator().manual_seed(1)
    for scale in (0.5, 3.0):
        point = (torch.randn(4, 7, generator=generator, dtype=torch.float64) * scale).requires_grad_()
        assert gradcheck(CappedSimplex(minimum, maximum).project, point)


@pytest.mark.parametrize(("minimum", "maximum"), [(2, 2), (0, 2), (1, 3), (3, None), (0, None)])
def test_the_support_mixes_to_the_point_and_spans_its_face(minimum: int, maximum: int | None) -> None:
    structure, generator = Subsets(minimum=minimum, maximum=maximum), torch.Generator().manual_seed(2)
    level = torch.zeros(1, 6, dtype=torch.float64)
    points = torch.cat((torch.randn(20, 6, generator=generator, dtype=torch.float64), level, level + 0.5, level + 2))
    solution = ConvexHull(structure).solve(points)
    for point, support in zip(solution.point, solution.support, strict=True):
        torch.testing.assert_close(support.weights @ support.vertices, point, rtol=0, atol=1e-12)
        assert support.weights.min() >= 0
        assert support.weights.sum().item() == pytest.approx(1)
        assert structure.contains(support.vertices).all()
        inside = ((point > 0) & (point < 1)).sum().item()
        assert len(support.weights) <= inside + 1
        differences = support.vertices[1:] - support.vertices[:1]
        whole = abs(point.sum().item() - round(point.sum().item())) < 1e-9
        held = whole and round(point.sum().item()) in (minimum, maximum)
        assert torch.linalg.matrix_rank(differences).item() == (max(inside - 1, 0) if held else inside)


def test_sparsemap_has_the_gradient_of_the_projection() -> None:
    generator = torch.Generator().manual_seed(3)
    scores = torch.cat((torch.randn(8, 9, generator=generator), torch.zeros(1, 9))).double().requires_grad_()
    direction = torch.randn(9, 9, generator=generator).double()
    z = spigot.argmax(scores, Subsets(3), spigot.SparseMAP())
    (ours,) = torch.autograd.grad((z * direction).sum(), scores)
    projected = CappedSimplex(3, 3).project(scores)
    (theirs,) = torch.autograd.grad((projected * direction).sum(), scores)
    torch.testing.assert_close(z, projected)
    torch.testing.assert_close(ours, theirs)


def test_tangent_is_what_differences_of_subsets_span() -> None:
    generator = torch.Generator().manual_seed(4)
    for minimum, maximum in [*BOUNDS, (0, 0), (3, 3)]:
        structure = Subsets(minimum=minimum, maximum=maximum)
        direction = torch.randn(4, 5, generator=generator, dtype=torch.float64)
        mask = torch.tensor([[True] * 5, [True] * 4 + [False], [False, True, True, True, True], [False] * 5])
        if minimum == 3:
            mask[1] = torch.tensor([True, True, True, False, False])  # one subset only
        ours = structure.relaxation.tangent(direction, mask)
        assert ours is not None
        torch.testing.assert_close(ours, ConvexHull(structure).tangent(direction, mask))


def test_contains() -> None:
    points = torch.tensor([[1.0, 0.5, 0.5], [1.5, 0.5, 0.0], [1.0, 0.2, 0.2], [1.0, 1.0, 1.0], [-0.1, 1.0, 1.0]])
    assert CappedSimplex(2, 2).contains(points).tolist() == [True, False, False, False, False]
    assert CappedSimplex(0, 2).contains(points).tolist() == [True, False, True, False, False]
    assert CappedSimplex(2).contains(points).tolist() == [True, False, False, True, False]


def test_pull_stays_small_in_single_precision() -> None:
    z = torch.tensor([1.0, 1.0, 0.0, 0.0])
    grad = torch.tensor([1e-9, 2e-9, 3e-9, -1e-9])
    pulled = spigot_gradient(CappedSimplex(2, 2), z, grad, 1.0, torch.ones(4, dtype=torch.bool))
    assert pulled.abs().max() > 0
    assert pulled.abs().max() < 1e-8
