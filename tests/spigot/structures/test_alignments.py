"""Monotone alignments: dynamic time warping, Delannoy's numbers, and what only paths can be tested by."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spigot import Alignments, ConvexHull, DiagonalSimplex
from tests.spigot import brute
from tests.spigot.twins import without_kernels

ALIGNMENTS = Alignments()


def draw(seed: int, *shape: int, scale: float = 1.0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).to(dtype)


def delannoy(n: int, m: int) -> int:
    return sum(math.comb(m, k) * math.comb(n, k) * 2**k for k in range(min(n, m) + 1))


def warped(costs: Tensor) -> float:
    """Dynamic time warping as it is always written."""
    n, m = costs.shape
    total = torch.full((n + 1, m + 1), torch.inf, dtype=torch.float64)
    total[0, 0] = 0
    for i in range(n):
        for j in range(m):
            total[i + 1, j + 1] = costs[i, j] + min(total[i, j], total[i, j + 1], total[i + 1, j])
    return float(total[n, m])


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 9), (9, 1), (2, 3), (7, 20), (33, 30)])
def test_the_best_path_is_that_of_time_warping(n: int, m: int) -> None:
    costs = draw(n, 3, n, m).abs()
    z = ALIGNMENTS.argmax(-costs)
    assert ALIGNMENTS.contains(z).all()
    assert [float(v) for v in (costs * z).sum((-2, -1))] == pytest.approx([warped(c) for c in costs])


def test_paths_are_counted_by_the_numbers_of_delannoy() -> None:
    rows, columns = torch.tensor([1, 2, 4, 30, 200, 5]), torch.tensor([1, 2, 4, 40, 100, 1])
    counts = ALIGNMENTS.log_count(ALIGNMENTS.mask(rows, columns=columns))
    theirs = [math.log(delannoy(n - 1, m - 1)) for n, m in zip(rows.tolist(), columns.tolist(), strict=True)]
    assert counts.tolist() == pytest.approx(theirs, rel=1e-12)


def test_a_band_is_a_mask() -> None:
    place = torch.arange(6)
    band = (place[:, None] - place).abs() <= 1
    z = ALIGNMENTS.argmax(draw(1, 6, 6), band)
    assert not z[~band].any()
    assert ALIGNMENTS.contains(z, band)
    diagonal = torch.eye(6, dtype=torch.bool)
    assert torch.equal(ALIGNMENTS.argmax(draw(1, 6, 6), diagonal), diagonal.double())


def test_ties_go_to_the_diagonal_and_then_down() -> None:
    assert ALIGNMENTS.argmax(torch.zeros(3, 3)).tolist() == torch.eye(3).tolist()
    assert ALIGNMENTS.argmax(torch.zeros(2, 3)).tolist() == [[1, 1, 0], [0, 0, 1]], "decided from the last cell back"
    assert ALIGNMENTS.argmax(torch.tensor([[0.0, 1.0], [1.0, 0.0]])).tolist() == [[1, 1], [0, 1]]


def test_what_is_wrong_is_said() -> None:
    z = torch.zeros(3, 3)
    assert ALIGNMENTS.violations(z) == [["the path has no cells"]]
    z[0, 0] = z[2, 2] = 1
    assert ALIGNMENTS.violations(z) == [["no step leads from [0, 0] to [2, 2]"]]
    z[0, 1] = z[1, 0] = 1
    z[2, 2] = 0
    assert ALIGNMENTS.violations(z) == [
        ["the path ends at [1, 0], not at [2, 2]", "no step leads from [0, 1] to [1, 0]"]
    ]
    first = torch.ones(3, 3, dtype=torch.bool)
    first[0, 0] = False
    for verb in (ALIGNMENTS.argmax, ALIGNMENTS.log_partition, ALIGNMENTS.marginals, ALIGNMENTS.sample):
        with pytest.raises(ValueError, match="the mask of instance 1 leaves no path; unmask more cells"):
            verb(torch.zeros(2, 3, 3), torch.stack((~torch.zeros_like(first), first)))
    with pytest.raises(ValueError, match=r"scores of instance 0 are NaN at part \[1, 2\]"):
        ALIGNMENTS.argmax(torch.tensor([[[0.0] * 3, [0.0, 0.0, torch.nan]]]))
    with pytest.raises(ValueError, match="every path of the instance has a score of -inf"):
        ALIGNMENTS.sample(torch.full((2, 2), -torch.inf))
    with pytest.raises(ValueError, match=r"scores has shape \(3,\); its last 2 axes must be parts"):
        ALIGNMENTS.argmax(torch.zeros(3))


def test_the_hull_is_inside_the_relaxation() -> None:
    point = draw(2, 4, 5, 6)
    hull, loose = ConvexHull(ALIGNMENTS).solve(point), DiagonalSimplex().project(point)
    assert (hull.gap < 1e-8).all()
    assert DiagonalSimplex().contains(hull.point).all()
    assert ((loose - point).square().sum((-2, -1)) <= (hull.point - point).square().sum((-2, -1)) + 1e-9).all()
    mu = ALIGNMENTS.marginals(point)
    assert ConvexHull(ALIGNMENTS).contains(mu).all()
    assert (mu.sum(-1) >= 1 - 1e-12).all(), "a path goes through every row"
    assert (mu.sum(-2) >= 1 - 1e-12).all(), "and through every column"


def test_the_tangent_of_the_relaxation() -> None:
    a, b = (DiagonalSimplex().project(draw(seed, 3, 4, 5)) for seed in (3, 4))
    mask = ALIGNMENTS.full_mask(a)
    torch.testing.assert_close(DiagonalSimplex().tangent(a - b, mask), a - b)
    given = DiagonalSimplex().tangent(torch.ones_like(a), mask)
    assert given[0].tolist() == [[0, *[1] * 4], [1] * 5, [1] * 5, [*[1] * 4, 0]]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 10_000), st.sampled_from([1e-3, 1.0, 50.0, 1e4]))
def test_verbs_agree_with_enumeration(n: int, m: int, seed: int, scale: float) -> None:
    scores = draw(seed, n, m, scale=scale)
    every = brute.alignments(ALIGNMENTS.full_mask(scores))
    assert len(every) == delannoy(n - 1, m - 1)
    torch.testing.assert_close(ALIGNMENTS.log_partition(scores), brute.log_partition(every, scores))
    torch.testing.assert_close(ALIGNMENTS.marginals(scores), brute.marginals(every, scores), rtol=0, atol=1e-9)
    z, values = ALIGNMENTS.k_best(scores, len(every) + 1)
    torch.testing.assert_close(values[:-1], brute.values(every, scores).sort(descending=True).values)
    assert values[-1] == -torch.inf
    assert ALIGNMENTS.contains(z[:-1]).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernels_equal_their_twins(dtype: torch.dtype) -> None:
    for n, m in ((1, 1), (2, 3), (7, 8), (9, 17), (16, 15), (33, 5)):
        scores = draw(n, 4, n, m, dtype=dtype)
        mask = torch.rand(4, n, m, generator=torch.Generator().manual_seed(m)) < 0.9
        mask[:, torch.arange(max(n, m)).clamp(max=n - 1), torch.arange(max(n, m)).clamp(max=m - 1)] = True
        mask[1, :, m // 2 + 1 :] = mask[2, n // 2 + 1 :] = False
        mask[1, :, m // 2] = mask[2, n // 2] = mask[1, 0, : m // 2] = mask[2, : n // 2, 0] = True
        mask[3] = False
        with without_kernels():
            wide = scores.double()
            best, log_z = ALIGNMENTS.argmax(wide, mask), ALIGNMENTS.log_partition(wide, mask)
            z, values = ALIGNMENTS.k_best(wide, 5, mask)
        assert torch.equal(ALIGNMENTS.argmax(scores, mask).double(), best)
        torch.testing.assert_close(ALIGNMENTS.log_partition(scores, mask).double(), log_z, rtol=1e-6, atol=1e-5)
        ours, theirs = ALIGNMENTS.k_best(scores, 5, mask)
        assert torch.equal(ours.double(), z)
        torch.testing.assert_close(theirs.double(), values, rtol=1e-5, atol=1e-5)


def test_long_sequences_and_threads() -> None:
    scores = draw(5, 2, 500, 400, scale=30.0, dtype=torch.float32)
    mu, z = ALIGNMENTS.marginals(scores), ALIGNMENTS.argmax(scores)
    assert mu.isfinite().all()
    assert (mu.double().sum(-1) >= 1 - 1e-4).all()
    assert ALIGNMENTS.contains(ALIGNMENTS.sample(scores, samples=2)).all()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert torch.equal(ALIGNMENTS.argmax(scores), z)
        assert torch.equal(ALIGNMENTS.marginals(scores), mu)
    finally:
        torch.set_num_threads(threads)
