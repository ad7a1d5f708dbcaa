"""Projection onto linear polytopes: closed forms, the variational inequality, a second solver, shadows."""

import builtins
import itertools
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog, minimize
from torch import Tensor

from spigot import Box, ConvexHull, LinearPolytope, Simplex, ZeroOneProgram

WHOLE = st.integers(-3, 4).map(float)
REAL = st.integers(-128, 128).map(lambda i: i / 61)  # no numbers so small that feasibility is a matter of taste


@st.composite
def systems(draw, entries=st.one_of(WHOLE, REAL)):
    d, auxiliary, m = draw(st.integers(1, 6)), draw(st.integers(0, 3)), draw(st.integers(0, 4))
    n = d + auxiliary
    A = np.array(draw(st.lists(entries, min_size=m * n, max_size=m * n))).reshape(m, n)
    b = np.array(draw(st.lists(entries, min_size=m, max_size=m)))
    equality = [0] if m and draw(st.booleans()) else []
    mask = np.array(draw(st.lists(st.sampled_from([True, True, True, False]), min_size=d, max_size=d)))
    return A, b, auxiliary, equality, mask


def best(cost: np.ndarray, A: np.ndarray, b: np.ndarray, equality: list[int], top: np.ndarray):
    """The minimum of a cost over the joint polytope, by another route to an LP solver."""
    less = [row for row in range(len(b)) if row not in equality]
    return linprog(
        cost,
        A_ub=A[less] if less else None,
        b_ub=b[less] if less else None,
        A_eq=A[equality] if equality else None,
        b_eq=b[equality] if equality else None,
        bounds=np.stack([np.zeros_like(top), top], axis=1),
    )


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8])
@settings(max_examples=40)
@given(data=st.data())
def test_variational_inequality(scale: float, data) -> None:
    """p is the projection of v if and only if no point of the polytope is further than p in the direction v - p."""
    A, b, auxiliary, equality, mask = data.draw(systems())
    v = np.array(data.draw(st.lists(st.one_of(WHOLE, REAL), min_size=len(mask), max_size=len(mask)))) * scale
    if not mask.any():
        return
    top = np.append(mask.astype(float), np.ones(auxiliary))
    polytope = LinearPolytope(A, b, auxiliary, equality)
    if best(np.zeros_like(top), A, b, equality, top).status == 2:
        with pytest.raises(ValueError, match="no solution"):
            polytope.project(torch.tensor(v), torch.tensor(mask))
        return
    p = polytope.project(torch.tensor(v), torch.tensor(mask))
    assert polytope.contains(p, torch.tensor(mask), atol=1e-8)
    residual = np.where(mask, v - p.numpy(), 0.0)
    furthest = -best(np.append(-residual, np.zeros(auxiliary)), A, b, equality, top).fun
    assert furthest - residual @ p.numpy() <= 1e-10 * scale


def test_simplex_and_box() -> None:
    point = torch.randn(30, 6, dtype=torch.float64) * 2
    mask = torch.rand(30, 6) < 0.8
    simplex = LinearPolytope(np.ones((1, 6)), np.ones(1), equality=[0])
    torch.testing.assert_close(simplex.project(point, mask), Simplex().project(point, mask), atol=1e-11, rtol=0)
    box = LinearPolytope(np.zeros((0, 6)), np.zeros(0))
    torch.testing.assert_close(box.project(point, mask), Box().project(point, mask), atol=0, rtol=0)
    assert torch.equal(simplex.contains(Simplex().project(point, mask), mask), torch.ones(30, dtype=torch.bool))


def test_degenerate_points_are_exact() -> None:
    """Whole-numbered points put many constraints at their limit without a multiplier, where interior points stall."""
    point = torch.tensor(list(itertools.product([-1.0, 0.0, 1.0, 2.0], repeat=4)), dtype=torch.float64)
    simplex = LinearPolytope(np.ones((1, 4)), np.ones(1), equality=[0])
    torch.testing.assert_close(simplex.project(point), Simplex().project(point), atol=1e-11, rtol=0)


def test_against_another_solver() -> None:
    generator = np.random.default_rng(0)
    for _ in range(10):
        A, b = generator.normal(size=(3, 5)), generator.uniform(0.2, 1.0, size=3)
        v = generator.normal(size=5) * 2
        slow = minimize(
            lambda p, v=v: 0.5 * ((p - v) ** 2).sum(),
            np.zeros(5),
            jac=lambda p, v=v: p - v,
            bounds=[(0, 1)] * 5,
            constraints=[{"type": "ineq", "fun": lambda p, A=A, b=b: b - A @ p, "jac": lambda p, A=A: -A}],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(LinearPolytope(A, b).project(torch.tensor(v)).numpy(), slow.x, atol=1e-6)


def test_shadow_is_the_hull_where_the_rows_say_so() -> None:
    """The convex hull of the union of two intervals of faces, by one auxiliary variable that chooses between them.

    Either the first two parts are on, or the last two: z1 = z2 = psi, z3 = z4 = 1 - psi.
    """
    A = np.array([[1, 0, 0, 0, -1], [0, 1, 0, 0, -1], [0, 0, 1, 0, 1], [0, 0, 0, 1, 1]], dtype=float)
    b = np.array([0, 0, 1, 1], dtype=float)
    program = ZeroOneProgram(A, b, 1, equality=[0, 1, 2, 3])
    point = torch.randn(20, 4, dtype=torch.float64) * 2
    shadow = program.relaxation.project(point)
    # By hand: a point t (1,1,0,0) + (1-t) (0,0,1,1) of the segment.
    t = ((point[:, 0] + point[:, 1] - point[:, 2] - point[:, 3] + 2) / 4).clamp(0, 1)
    expected = torch.stack([t, t, 1 - t, 1 - t], -1)
    torch.testing.assert_close(shadow, expected, atol=1e-10, rtol=0)
    torch.testing.assert_close(shadow, ConvexHull(program).project(point), atol=1e-6, rtol=0)


def test_auxiliary_variables_cost_nothing() -> None:
    """At most one group may be used: p_i <= psi_g. The shadow does not depend on where psi is."""
    A = np.array([[1, 0, 0, -1, 0], [0, 1, 0, -1, 0], [0, 0, 1, 0, -1], [0, 0, 0, 1, 1]], dtype=float)
    b = np.array([0, 0, 0, 1], dtype=float)
    polytope = LinearPolytope(A, b, auxiliary=2)
    inside = torch.tensor([0.6, 0.2, 0.4], dtype=torch.float64)
    torch.testing.assert_close(polytope.project(inside), inside, atol=1e-11, rtol=0)
    assert polytope.contains(inside)
    assert not polytope.contains(torch.tensor([0.6, 0.2, 0.5]))
    outside = torch.tensor([2.0, 2.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(polytope.project(outside), torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))


@settings(max_examples=20)
@given(data=st.data())
def test_idempotent_and_nonexpansive(data) -> None:
    A, b, auxiliary, _, mask = data.draw(systems())
    b = np.abs(b)  # zero is inside
    polytope = LinearPolytope(A, b, auxiliary)
    points = torch.tensor(
        data.draw(st.lists(REAL, min_size=2 * len(mask), max_size=2 * len(mask))), dtype=torch.float64
    )
    points, exists = points.reshape(2, -1), torch.tensor(mask).expand(2, -1)
    p = polytope.project(points, exists)
    torch.testing.assert_close(polytope.project(p, exists), p, atol=1e-9, rtol=0)
    assert (p[0] - p[1]).norm() <= (points[0] - points[1])[exists[0]].norm() + 1e-7
    assert not p[~exists].any()


def test_redundant_and_empty_rows() -> None:
    A = np.array([[1, 1, 1], [1, 1, 1], [2, 2, 2], [0, 0, 0]], dtype=float)
    polytope = LinearPolytope(A, np.array([1, 1, 2, 0], dtype=float), equality=[0, 1, 2, 3])
    point = torch.randn(10, 3, dtype=torch.float64)
    torch.testing.assert_close(polytope.project(point), Simplex().project(point), atol=1e-10, rtol=0)
    mask = torch.tensor([True, False, False])
    assert polytope.project(point[0], mask).tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="the program of the instance has no solution"):
        LinearPolytope(np.array([[0.0, 1.0]]), np.ones(1), equality=[0]).project(point[0, :2], mask[:2])


def test_float32_and_batches() -> None:
    polytope = LinearPolytope(sparse.csr_array(np.ones((1, 5))), np.array([2.0]))
    point = torch.randn(2, 3, 5)
    p = polytope.project(point)
    assert p.dtype == torch.float32
    assert p.shape == point.shape
    assert polytope.contains(p).shape == (2, 3)
    torch.testing.assert_close(p[1, 2], polytope.project(point[1, 2]))
    assert polytope.project(point[:0]).shape == (0, 3, 5)


def test_zeros_are_zeros() -> None:
    """What has no mass has exactly none, so that the support can be read off."""
    polytope = LinearPolytope(np.ones((1, 4)), np.ones(1), equality=[0])
    p = polytope.project(torch.tensor([0.9, 0.7, -0.5, -1.0], dtype=torch.float64))
    assert (p != 0).tolist() == [True, True, False, False]


def test_larger_problem() -> None:
    generator = np.random.default_rng(1)
    A = sparse.random_array((60, 150), density=0.1, rng=generator)
    polytope = LinearPolytope(A, np.full(60, 0.5), auxiliary=50)
    point = torch.tensor(generator.normal(size=(2, 100)) + 1)
    p = polytope.project(point)
    assert polytope.contains(p, atol=1e-8).all()
    for v, q in zip(point.numpy(), p.numpy(), strict=True):
        answer = best(np.append(q - v, np.zeros(50)), A.toarray(), np.full(60, 0.5), [], np.ones(150))
        assert (v - q) @ q + answer.fun >= -1e-9


def test_piqp_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *rest):
        if name == "piqp":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.delitem(sys.modules, "piqp", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    polytope = LinearPolytope(np.ones((1, 3)), np.ones(1))
    assert polytope.contains(torch.zeros(3))
    with pytest.raises(ImportError, match=r'pip install "torch-spigot\[piqp\]"'):
        polytope.project(torch.ones(3))


def test_errors_say_what_is_wrong() -> None:
    polytope = LinearPolytope(torch.ones(1, 3), torch.ones(1))
    with pytest.raises(ValueError, match=r"points? of instance 1 are NaN at part \[2\]"):
        polytope.project(torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, torch.nan]]))
    with pytest.raises(ValueError, match=r"point of instance 1 is inf at part \[2\]"):
        polytope.project(torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, torch.inf]]))
    with pytest.raises(ValueError, match=r"point has shape \(4,\)"):
        polytope.project(torch.ones(4))
    with pytest.raises(NotImplementedError, match="has no gradient"):
        polytope.project(torch.ones(3, requires_grad=True)).sum().backward()


def test_contains_tolerance() -> None:
    polytope = LinearPolytope(torch.ones(1, 2), torch.ones(1))
    point = torch.tensor([[0.5, 0.5 + 1e-3], [-1e-3, 0.0], [1 + 1e-3, -1e-3]], dtype=torch.float64)
    assert polytope.contains(point).tolist() == [False, False, False]
    assert polytope.contains(point, atol=1e-2).tolist() == [True, True, True]
    stray: Tensor = torch.tensor([0.0, 1e-9], dtype=torch.float64)
    assert not polytope.contains(stray, torch.tensor([True, False]))
