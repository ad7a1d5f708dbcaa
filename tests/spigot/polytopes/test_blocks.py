"""Simplex, box, head simplices, arcs with labels: second algorithms, closed forms, properties."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from torch import Tensor

from spigot import ArcLabel, Box, HeadSimplex, SemanticGraphs, Simplex
from spigot.estimators.spigot import spigot_gradient
from tests.spigot.twins import without_kernels

entries = st.lists(st.floats(-20, 20), min_size=1, max_size=9)


def bisected(v: Tensor) -> Tensor:
    """Simplex projection by root finding: tau with sum max(0, v - tau) = 1."""
    top = float(v.max())
    tau = brentq(lambda t: float((v - t).clamp(min=0).sum()) - 1, top - 1.5, top, xtol=1e-14)
    return (v - float(tau)).clamp(min=0)  # pyright: ignore[reportArgumentType] (a number unless full output is asked for)


@given(entries)
def test_simplex_against_bisection(values: list[float]) -> None:
    v = torch.tensor(values, dtype=torch.float64)
    torch.testing.assert_close(Simplex().project(v), bisected(v), rtol=0, atol=1e-10)


@given(entries)
def test_simplex_optimality_conditions(values: list[float]) -> None:
    """p = max(0, v - tau) for one tau: equal differences on the support, no smaller ones elsewhere."""
    v = torch.tensor(values, dtype=torch.float64)
    p = Simplex().project(v)
    on = p > 0
    tau = (v - p)[on]
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    assert (p >= 0).all()
    assert float(tau.max() - tau.min()) <= 1e-12
    assert (v[~on] <= tau.min() + 1e-12).all()


@given(entries, st.floats(-100, 100), st.permutations(range(9)))
def test_simplex_shift_and_permutation(values: list[float], shift: float, order: list[int]) -> None:
    v = torch.tensor(values, dtype=torch.float64)
    index = [i for i in order if i < len(values)]
    torch.testing.assert_close(Simplex().project(v[index]), Simplex().project(v)[index], rtol=0, atol=1e-12)
    torch.testing.assert_close(Simplex().project(v + shift), Simplex().project(v), rtol=0, atol=1e-11)


@given(st.integers(0, 10_000))
def test_masked_is_removed(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    v = torch.randn(7, generator=generator, dtype=torch.float64)
    mask = torch.rand(7, generator=generator) < 0.6
    p = Simplex().project(v.masked_fill(~mask, torch.nan), mask)
    assert not p[~mask].any()
    if mask.any():
        torch.testing.assert_close(p[mask], Simplex().project(v[mask]), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1.0, 1e8, 1e30])
def test_simplex_at_any_scale(dtype: torch.dtype, scale: float) -> None:
    v = scale * torch.randn(50, 12, dtype=torch.float64).to(dtype)
    p = Simplex().project(v)
    assert p.isfinite().all()
    torch.testing.assert_close(p.sum(-1), torch.ones(50, dtype=dtype), rtol=0, atol=1e-6)
    if scale >= 1e8:
        assert torch.equal(p, torch.nn.functional.one_hot(v.argmax(-1), 12).to(dtype))
    if scale <= 1e-8:
        torch.testing.assert_close(p, torch.full_like(p, 1 / 12), rtol=1e-5, atol=1e-7)


def test_simplex_ties_and_single_entries() -> None:
    assert Simplex().project(torch.tensor([3.0, 3.0, 3.0, -9.0])).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert Simplex().project(torch.tensor([1e8, 1e8])).tolist() == [0.5, 0.5]
    for value in (-1e8, -3.0, 0.0, 1e8):
        assert Simplex().project(torch.tensor([value])).tolist() == [1]


def test_simplex_with_minus_infinity() -> None:
    assert Simplex().project(torch.tensor([-torch.inf, 0.0, 0.5])).tolist() == [0, 0.25, 0.75]


def test_simplex_jacobian() -> None:
    """diag(on) - on on^T / |on|, on the support."""
    v = torch.tensor([0.5, 0.2, -1.0, 0.4], dtype=torch.float64)
    on = (Simplex().project(v) > 0).double()
    step = 1e-6 * torch.randn(4, dtype=torch.float64)
    moved = Simplex().project(v + step) - Simplex().project(v)
    torch.testing.assert_close(moved, on * step - on * (on @ step) / on.sum(), rtol=0, atol=1e-15)


def test_simplex_float32_follows_float64() -> None:
    v = 3 * torch.randn(200, 30, dtype=torch.float64)
    torch.testing.assert_close(Simplex().project(v.float()).double(), Simplex().project(v), rtol=0, atol=2e-6)


def test_simplex_contains() -> None:
    points = torch.tensor([[0.5, 0.5], [1.1, -0.1], [0.5, 0.4], [torch.nan, 1.0], [1.0, 0.0]])
    assert Simplex().contains(points).tolist() == [True, False, False, False, True]
    assert Simplex().contains(points[2], atol=0.2)


def test_box_clips() -> None:
    assert Box().project(torch.tensor([1.5, 0.25, -1.0])).tolist() == [1, 0.25, 0]
    assert Box().contains(torch.tensor([[1.5, 0.5], [0.0, 1.0]])).tolist() == [False, True]


def test_head_simplex_is_one_simplex_for_each_modifier() -> None:
    point = torch.randn(4, 6, 6, dtype=torch.float64)
    p = HeadSimplex().project(point)
    for instance, j in itertools.product(range(4), range(6)):
        heads = [i for i in range(6) if i != j]
        assert p[instance, j, j] == 0
        if j == 0:
            assert not p[instance, :, 0].any()
        else:
            torch.testing.assert_close(p[instance, heads, j], Simplex().project(point[instance, heads, j]))


def test_head_simplex_contains() -> None:
    p = torch.tensor([[0.0, 0.3, 0.5], [0.0, 0.0, 0.5], [0.0, 0.7, 0.0]])
    assert HeadSimplex().contains(p)
    for head, modifier in ((0, 1), (1, 0), (2, 2)):
        off = p.clone()
        off[head, modifier] += 0.1
        assert not HeadSimplex().contains(off)


def arc(v: list[float], w: float, **options: bool) -> tuple[list[float], float]:
    """Project one arc 0 -> 1 with label targets v and arc target w."""
    point = torch.zeros(2, 2, 1 + len(v), dtype=torch.float64)
    point[0, 1] = torch.tensor([w, *v], dtype=torch.float64)
    y, *x = ArcLabel(**options).project(point)[0, 1].tolist()
    return x, y


def test_arc_label_numbers() -> None:
    assert arc([0.6, 0.0], 0.2) == (pytest.approx([0.4, 0.0]), pytest.approx(0.4))
    assert arc([0.15], -0.01) == (pytest.approx([0.07]), pytest.approx(0.07))
    assert arc([0.6, 0.0], 0.2, sequential=True) == (pytest.approx([0.2, 0.0]), pytest.approx(0.2))
    assert arc([0.15], -0.01, sequential=True) == ([0.0], 0.0)


def active_sets(v: Tensor, w: float) -> tuple[Tensor, float]:
    """min ||x - v||^2 + (y - w)^2 s.t. sum x = y, x >= 0, 0 <= y <= 1, by trying every set of active bounds."""
    best, answer = float("inf"), (torch.zeros_like(v), 0.0)
    for size in range(len(v) + 1):
        for kept in itertools.combinations(range(len(v)), size):
            on = torch.zeros(len(v), dtype=torch.bool)
            on[list(kept)] = True
            for y_fixed in (None, 0.0, 1.0):
                total = v[on].sum()
                if y_fixed is None:
                    tau = (total - w) / (size + 1)
                    y = float(w + tau)
                elif size:
                    tau, y = (total - y_fixed) / size, y_fixed
                else:
                    tau, y = v.new_zeros(()), y_fixed
                x = torch.where(on, v - tau, 0.0)
                feasible = (x >= -1e-12).all() and -1e-12 <= y <= 1 + 1e-12 and abs(float(x.sum()) - y) < 1e-9
                cost = float((x - v).square().sum()) + (y - w) ** 2
                if feasible and cost < best:
                    best, answer = cost, (x, y)
    return answer


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=5), st.floats(-2, 2))
def test_arc_label_against_active_set_enumeration(values: list[float], w: float) -> None:
    x, y = arc(values, w)
    expected_x, expected_y = active_sets(torch.tensor(values, dtype=torch.float64), w)
    assert x == pytest.approx(expected_x.tolist(), abs=1e-9)
    assert y == pytest.approx(expected_y, abs=1e-9)
    assert sum(x) == pytest.approx(y, abs=1e-6)
    assert 0 <= y <= 1


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=5), st.floats(-2, 2))
def test_sequential_arc_label(values: list[float], w: float) -> None:
    """Clip the arc first; then the labels are projected onto those that sum to it, or vanish with it."""
    x, y = arc(values, w, sequential=True)
    assert y == pytest.approx(min(max(w, 0.0), 1.0))
    if y > 1e-6:
        v = torch.tensor(values, dtype=torch.float64)
        assert x == pytest.approx((y * bisected(v / y)).tolist(), abs=1e-8)
    elif w <= 0:
        assert x == [0.0] * len(x)


def test_arc_label_clips_predicates() -> None:
    point = torch.zeros(3, 3, 2)
    point[range(3), range(3), 0] = torch.tensor([-0.5, 0.25, 3.0])
    p = ArcLabel().project(point)
    assert p[range(3), range(3), 0].tolist() == [0, 0.25, 1]
    assert p.sum() == 1.25


def test_arc_label_with_pruned_parts() -> None:
    """An arc without labels is off, and labels without an arc are off."""
    point = torch.ones(2, 2, 3)
    mask = torch.zeros(2, 2, 3, dtype=torch.bool)
    mask[0, 1, 0] = True
    assert not ArcLabel().project(point, mask).any()
    mask[0, 1] = torch.tensor([False, True, True])
    assert not ArcLabel().project(point, mask).any()
    mask[0, 1] = torch.tensor([True, True, False])
    assert ArcLabel().project(point, mask)[0, 1].tolist() == [1, 1, 0]


def test_projections_have_their_true_gradient() -> None:
    rows = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    arcs = torch.randn(2, 5, 5, dtype=torch.float64, requires_grad=True)
    parts = (0.7 * torch.randn(2, 3, 3, 4, dtype=torch.float64)).requires_grad_()
    mask = torch.rand(2, 3, 3, 4) < 0.8
    assert torch.autograd.gradcheck(Simplex().project, rows)
    assert torch.autograd.gradcheck(HeadSimplex().project, arcs)
    assert torch.autograd.gradcheck(lambda point: ArcLabel().project(point), parts)
    assert torch.autograd.gradcheck(lambda point: ArcLabel().project(point, mask), parts)
    with pytest.raises(NotImplementedError, match="sequential"):
        ArcLabel(sequential=True).project(parts).sum().backward()


@pytest.mark.parametrize("kernels", [True, False], ids=["native", "torch"])
@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("eta", [0.05, 1.0, 30.0])
def test_the_pull_on_graphs_is_the_step_the_projection_and_the_difference(
    kernels: bool, sequential: bool, dtype: torch.dtype, eta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernels:
        monkeypatch.setattr("spigot._runtime.native.serves", lambda *_: False)
    torch.manual_seed(0)
    graphs, polytope = SemanticGraphs(5, deterministic=(1,)), ArcLabel(sequential)
    mask = graphs.full_mask(torch.zeros(6, 7, 7, 6)) & (torch.rand(6, 7, 7, 6) < 0.7)
    mask[..., 1:] &= mask[..., :1]
    z = graphs.argmax(torch.randn(6, 7, 7, 6, dtype=dtype), mask)
    grad = torch.randn(6, 7, 7, 6, dtype=dtype)
    expected = z.double() - polytope.project(z.double() - eta * grad.double(), mask)
    found = spigot_gradient(polytope, z, torch.where(mask, grad, torch.nan), eta, mask)
    torch.testing.assert_close(found, torch.where(mask, expected, 0).to(dtype))
    assert not found[~mask].any()
    assert found.abs().sum() > 1


def test_the_pull_keeps_small_gradients() -> None:
    """In float32 alone, 1 - 1e-9 is 1."""
    graphs = SemanticGraphs(2)
    z = graphs.pack(
        torch.ones(2), torch.tensor([[0.0, 1], [0, 0]]), torch.tensor([[[0.0, 0], [1, 0]], [[0, 0], [0, 0]]])
    )
    grad = torch.zeros_like(z)
    grad[0, 1, 2] = -3e-9
    pulled = spigot_gradient(ArcLabel(), z, grad, 1.0, graphs.full_mask(z))
    torch.testing.assert_close(pulled[0, 1], torch.tensor([0, 1.5e-9, -1.5e-9]), rtol=1e-4, atol=0)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_the_pull_refuses_what_is_no_number(value: float) -> None:
    z, grad = torch.zeros(2, 3, 3, 3), torch.zeros(2, 3, 3, 3)
    grad[1, 0, 2, 1] = value
    with pytest.raises(ValueError, match=r"instance 1"):
        spigot_gradient(ArcLabel(), z, grad, -1.0, torch.ones_like(z, dtype=torch.bool))


@pytest.mark.parametrize(("part", "value"), [((0, 2, 0), -torch.inf), ((0, 2, 1), torch.inf)])
def test_a_point_without_a_nearest_is_refused_with_and_without_kernels(part: tuple[int, ...], value: float) -> None:
    point = torch.zeros(2, 3, 3, 3)
    point[(1, *part)] = value
    with pytest.raises(ValueError, match=r"instance 1 are infinite"):
        ArcLabel().project(point)
    with without_kernels(), pytest.raises(ValueError, match=r"instance 1 are infinite"):
        ArcLabel().project(point)
