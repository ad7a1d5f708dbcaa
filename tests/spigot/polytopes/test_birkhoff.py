"""Doubly stochastic matrices: closed forms, quadratic programs, extreme points."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from spigot import Birkhoff, ConvexHull, LinearPolytope, Matchings, Simplex, Spigot
from tests.spigot import brute
from tests.spigot.cases import POLYTOPES, PolytopeCase

BIRKHOFF = [case for case in POLYTOPES if isinstance(case.polytope, Birkhoff)]


def gap(point: Tensor, projected: Tensor, mask: Tensor, complete: bool) -> Tensor:
    """What a matching still gains along the way outward: zero at the nearest point, and nowhere else."""
    outward = torch.where(mask, point - projected, 0)
    return (outward * (Matchings(complete).argmax(outward, mask) - projected)).sum((-2, -1))


def rows_and_columns(n: int, m: int) -> np.ndarray:
    return np.concatenate((np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))))


@given(
    st.integers(0, 10_000),
    st.integers(1, 8),
    st.integers(1, 8),
    st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e4]),
    st.booleans(),
    st.booleans(),
)
def test_exact_to_the_stated_tolerance(seed: int, n: int, m: int, scale: float, complete: bool, integers: bool) -> None:
    """Sums to 1e-12, and with them nothing is nearer: at any scale, with ties and holes."""
    generator = torch.Generator().manual_seed(seed)
    point = torch.randn(4, n, m, generator=generator, dtype=torch.float64) * scale
    point = point.round() if integers else point
    mask = (torch.rand(4, n, m, generator=generator) < 0.8) | torch.eye(n, m, dtype=torch.bool)
    projected = Birkhoff(complete).project(point, mask)
    assert Birkhoff(complete).contains(projected, mask, atol=2e-12).all()
    assert (gap(point, projected, mask, complete) <= 1e-11 * (1 + scale)).all()


@pytest.mark.parametrize("case", BIRKHOFF, ids=str)
def test_variational_inequality_at_every_vertex(case: PolytopeCase) -> None:
    points, mask = case.draw(70, 20, scale=2.0)
    projected = case.polytope.project(points, mask)
    for x, m, p in zip(points, mask, projected, strict=True):
        outward = torch.where(m, x - p, 0)
        assert brute.values(case.vertices(m), outward).max() - (outward * p).sum() <= 1e-11


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(("n", "m"), [(5, 5), (3, 6), (6, 4)])
def test_against_quadratic_programming(n: int, m: int, complete: bool) -> None:
    pytest.importorskip("piqp")
    short = range(n) if n <= m else range(n, n + m)
    equal = [*short, *(range(n, n + m) if n == m else ())] if complete else []
    program = LinearPolytope(rows_and_columns(n, m), np.ones(n + m), equality=np.array(equal, dtype=np.int64))
    point = torch.randn(4, n, m, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    mask = torch.ones(4, n, m, dtype=torch.bool)
    mask[:, 0, -1] = False
    theirs = program.project(point.flatten(1), mask.flatten(1)).reshape(point.shape)
    torch.testing.assert_close(Birkhoff(complete).project(point, mask), theirs, rtol=0, atol=1e-7)


def test_closed_forms() -> None:
    """One row is a simplex; a flat point goes to the middle; a point inside stays; a far one goes to its vertex."""
    generator = torch.Generator().manual_seed(0)
    row = torch.randn(3, 1, 6, generator=generator, dtype=torch.float64)

    torch.testing.assert_close(Birkhoff().project(row), Simplex().project(row))
    torch.testing.assert_close(Birkhoff().project(row.mT), Simplex().project(row).mT)
    flat = torch.full((7, 7), 3.0, dtype=torch.float64)
    torch.testing.assert_close(Birkhoff().project(flat), torch.full_like(flat, 1 / 7))
    inside = torch.full((4, 9), 0.1, dtype=torch.float64)
    torch.testing.assert_close(Birkhoff(complete=False).project(inside), inside)
    scores = 1e6 * torch.randn(5, 12, 12, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(Birkhoff().project(scores), Matchings().argmax(scores), rtol=0, atol=1e-9)
    mixed = torch.eye(3, dtype=torch.float64)[[1, 2, 0]] * 0.3 + torch.eye(3, dtype=torch.float64) * 0.7
    torch.testing.assert_close(Birkhoff().project(mixed), mixed, rtol=0, atol=1e-14)


def test_shifts_of_rows_and_columns_change_nothing() -> None:
    generator = torch.Generator().manual_seed(1)
    point = torch.randn(4, 9, 9, generator=generator, dtype=torch.float64)
    shift = 50 * torch.randn(2, 4, 9, generator=generator, dtype=torch.float64)
    moved = point + shift[0].unsqueeze(-1) + shift[1].unsqueeze(-2)
    torch.testing.assert_close(Birkhoff().project(moved), Birkhoff().project(point), rtol=0, atol=1e-11)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_large_ones(scale: float) -> None:
    point = scale * torch.randn(1, 120, 100, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    for p, complete in ((point, True), (point, False), (point[:, :100], True)):
        projected = Birkhoff(complete).project(p)
        assert Birkhoff(complete).contains(projected, atol=2e-12).all()
        assert (gap(p, projected, torch.ones_like(p, dtype=torch.bool), complete) <= 1e-10 * (1 + scale)).all()


def test_five_hundred() -> None:
    point = torch.randn(1, 500, 500, generator=torch.Generator().manual_seed(3))
    projected = Birkhoff().project(point)
    assert Birkhoff().contains(projected).all()
    everything = torch.ones_like(point, dtype=torch.bool)
    assert gap(point.double(), projected.double(), everything, complete=True).item() <= 1e-4


def test_points_without_a_nearest_are_refused() -> None:
    point = torch.zeros(2, 3, 3)
    point[1, 0, 0] = torch.inf
    with pytest.raises(ValueError, match="points of instance 1 are infinite"):
        Birkhoff().project(point)
    point[1, 0] = -torch.inf
    with pytest.raises(ValueError, match="points of instance 1 are infinite"):
        Birkhoff().project(point)
    assert not Birkhoff(complete=False).project(point)[1, 0].any()
    point[1, 0, 2] = 0
    projected = Birkhoff().project(point)
    torch.testing.assert_close(projected[1, 0], torch.tensor([0.0, 0.0, 1.0]))


@pytest.mark.parametrize("case", BIRKHOFF, ids=str)
def test_tangents_are_those_of_the_members(case: PolytopeCase) -> None:
    """By differences of two matchings, found one after another."""
    complete = isinstance(case.polytope, Birkhoff) and case.polytope.complete
    direction, mask = case.draw(71, 30)
    ours = case.polytope.tangent(direction, mask)
    assert ours is not None
    assert not ours[~mask].any()
    theirs = ConvexHull(Matchings(complete)).tangent(torch.where(mask, direction, 0), mask)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


def test_tangents_in_closed_form() -> None:
    direction = torch.randn(4, 5, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    square, wide = direction[:, :4], direction
    tangent = Birkhoff().tangent(square, torch.ones(4, 4, dtype=torch.bool))
    centre = torch.eye(4, dtype=torch.float64) - 0.25
    torch.testing.assert_close(tangent, centre @ square @ centre)
    tangent = Birkhoff().tangent(wide, torch.ones(4, 5, dtype=torch.bool))
    torch.testing.assert_close(tangent, wide - wide.mean(1, keepdim=True))
    tangent = Birkhoff().tangent(wide.T, torch.ones(5, 4, dtype=torch.bool))
    torch.testing.assert_close(tangent, (wide - wide.mean(1, keepdim=True)).T)


def test_the_hull_agrees() -> None:
    """The generic search through the argmax ends at the same point."""
    point = torch.randn(4, 6, 6, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    for structure in (Matchings(), Matchings(complete=False)):
        solution = ConvexHull(structure).solve(point)
        torch.testing.assert_close(structure.relaxation.project(point), solution.point, rtol=0, atol=1e-5)


def test_spigot_moves_mass_to_the_better_pair() -> None:
    scores = torch.tensor([[1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    z = Spigot(eta=0.25)(Matchings(), scores, torch.ones(2, 2, dtype=torch.bool))
    (z * torch.tensor([[1.0, -1.0], [0.0, 0.0]])).sum().backward()
    quarter = torch.tensor([[0.125, -0.125], [-0.125, 0.125]])
    assert scores.grad is not None
    torch.testing.assert_close(scores.grad, quarter)
