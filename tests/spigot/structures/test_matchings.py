"""Matchings against enumeration, scipy and a linear program."""

import math

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import spigot
from spigot import Birkhoff, Matchings
from spigot._runtime.checks import NoStructureError
from tests.spigot import brute
from tests.spigot.cases import STRUCTURES, StructureCase

MATCHINGS = [case for case in STRUCTURES if isinstance(case.structure, Matchings)]
every_case = pytest.mark.parametrize("case", MATCHINGS, ids=str)


def value(z: Tensor, scores: Tensor) -> Tensor:
    return torch.where(z != 0, scores, 0).sum((-2, -1))


def scipy_value(scores: Tensor) -> float:
    numbers = scores.double().numpy()
    return float(numbers[scipy.optimize.linear_sum_assignment(numbers, maximize=True)].sum())


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 12), st.sampled_from([1.0, 1e-6, 1e6]), st.booleans())
def test_as_good_as_scipy(seed: int, n: int, m: int, scale: float, ties: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(5, n, m, generator=generator, dtype=torch.float64)
    scores = (scores.round() if ties else scores) * scale
    z = Matchings().argmax(scores)
    assert Matchings().contains(z).all()
    expected = torch.tensor([scipy_value(s) for s in scores], dtype=torch.float64)
    torch.testing.assert_close(value(z, scores), expected, rtol=1e-12, atol=1e-12 * scale)
    part = Matchings(complete=False)
    z = part.argmax(scores)
    assert part.contains(z).all()
    expected = torch.tensor([scipy_value(s.clamp(min=0)) for s in scores], dtype=torch.float64)
    torch.testing.assert_close(value(z, scores), expected, rtol=1e-12, atol=1e-12 * scale)
    assert (scores[z > 0] > 0).all(), "what gains nothing is left out"


@pytest.mark.parametrize("complete", [True, False])
def test_as_good_as_a_linear_program(complete: bool) -> None:
    """The program over the sums of rows and columns has matchings for its vertices."""
    generator = torch.Generator().manual_seed(0)
    for n, m in ((6, 6), (4, 7), (7, 5)):
        scores = torch.randn(n, m, generator=generator, dtype=torch.float64)
        mask = torch.rand(n, m, generator=generator) < 0.9
        mask |= torch.eye(n, m, dtype=torch.bool)
        rows = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
        short, long = rows if n <= m else rows[::-1]
        sums = {"A_ub": np.concatenate(rows), "b_ub": np.ones(n + m)}
        if complete:
            sums = {"A_ub": long, "b_ub": np.ones(len(long)), "A_eq": short, "b_eq": np.ones(len(short))}
        bounds = [(0, float(exists)) for exists in mask.flatten().tolist()]
        program = scipy.optimize.linprog(-scores.flatten().numpy(), bounds=bounds, method="highs", **sums)
        z = Matchings(complete).argmax(scores, mask)
        assert float(value(z, scores)) == pytest.approx(-program.fun, abs=1e-9)


def test_large_ones() -> None:
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(2, 500, 500, generator=generator)
    z = Matchings().argmax(scores)
    assert Matchings().contains(z).all()
    assert value(z, scores.double()).tolist() == pytest.approx([scipy_value(s) for s in scores], rel=1e-9)
    wide = scores[0, :20]
    assert float(value(Matchings().argmax(wide), wide)) == pytest.approx(scipy_value(wide), rel=1e-5)
    alike = Matchings().argmax(torch.zeros(1, 300, 300))
    assert Matchings().contains(alike).all()


def test_a_known_answer() -> None:
    """Both rows like column 0 best; it is worth more to the second."""
    scores = torch.tensor([[2.0, 1.0, 0.0], [2.0, 0.0, -1.0]])
    assert Matchings().argmax(scores).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert Matchings().argmax(scores.T).tolist() == [[0, 1], [1, 0], [0, 0]]
    assert Matchings(complete=False).argmax(-scores).tolist() == [[0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("complete", [True, False])
def test_no_rows_no_columns_and_one_part(complete: bool) -> None:
    structure = Matchings(complete)
    for n, m in ((0, 0), (0, 3), (3, 0)):
        assert structure.argmax(torch.zeros(2, n, m)).shape == (2, n, m)
        assert structure.relaxation.project(torch.zeros(2, n, m)).shape == (2, n, m)
        z, values = structure.k_best(torch.zeros(2, n, m), 2)
        assert z.shape == (2, 2, n, m)
        assert values.tolist() == [[0, 0], [-math.inf, -math.inf]]
    assert structure.argmax(torch.tensor([[-2.0]])).item() == (1 if complete else 0)
    nothing = torch.zeros(3, 3, dtype=torch.bool)
    assert not structure.argmax(torch.full((3, 3), torch.nan), nothing).any()
    assert not structure.relaxation.project(torch.full((3, 3), torch.nan), nothing).any()
    assert structure.contains(torch.zeros(3, 3), nothing)


def test_a_mask_without_a_complete_matching_is_refused() -> None:
    mask = torch.ones(2, 3, 3, dtype=torch.bool)
    mask[1, :2, 1:] = False  # rows 0 and 1 have column 0 only
    sentence = "the mask of instance 1 leaves no complete matching; unmask more parts"
    for call in (
        lambda: Matchings().argmax(torch.zeros(2, 3, 3), mask),
        lambda: Matchings().k_best(torch.zeros(2, 3, 3), 2, mask),
        lambda: Birkhoff().project(torch.zeros(2, 3, 3), mask),
    ):
        with pytest.raises(NoStructureError, match=sentence):
            call()
    assert Matchings(complete=False).argmax(torch.ones(2, 3, 3), mask).sum((1, 2)).tolist() == [3, 2]
    assert Matchings().violations(torch.zeros(3, 3), mask[1])[0]


@pytest.mark.parametrize("complete", [True, False])
def test_nan_is_refused_by_name(complete: bool) -> None:
    scores = torch.zeros(2, 3, 4)
    scores[1, 2, 3] = torch.nan
    for call in (
        lambda: Matchings(complete).argmax(scores),
        lambda: Matchings(complete).k_best(scores, 2),
    ):
        with pytest.raises(ValueError, match=r"scores of instance 1 are NaN at part \[2, 3\]"):
            call()
    with pytest.raises(ValueError, match=r"points of instance 1 are NaN at part \[2, 3\]"):
        Birkhoff(complete).project(scores)


def test_infinite_scores() -> None:
    """As few -inf and as many +inf as possible, then the best finite sum."""
    low, high = -torch.inf, torch.inf
    scores = torch.tensor([[low, low, 1.0], [low, 5.0, 9.0], [0.0, 2.0, 3.0]], dtype=torch.float64)
    assert Matchings().argmax(scores).argmax(-1).tolist() == [2, 1, 0]
    scores = torch.tensor([[low, low, 1.0], [low, low, 4.0], [0.0, 2.0, 3.0]], dtype=torch.float64)
    assert Matchings().argmax(scores)[1, 2] == 1, "one -inf cannot be avoided, and the 4 is kept"
    scores = torch.tensor([[high, 1.0], [2.0, -7.0]], dtype=torch.float64)
    assert Matchings().argmax(scores).tolist() == [[1, 0], [0, 1]]
    assert Matchings(complete=False).argmax(scores).tolist() == [[1, 0], [0, 0]]
    giants = torch.tensor([[1e308, 9e307], [1e308, 1e307]], dtype=torch.float64)
    assert Matchings().argmax(giants).tolist() == [[0, 1], [1, 0]]
    assert Matchings(complete=False).argmax(giants).tolist() == [[0, 1], [1, 0]]
    assert Matchings(complete=False).argmax(torch.full((2, 2), low)).sum() == 0
    assert Matchings().contains(Matchings().argmax(torch.full((3, 5), low)))


@every_case
@pytest.mark.parametrize("integers", [False, True])
def test_k_best_against_enumeration(case: StructureCase, integers: bool) -> None:
    structure = case.structure
    assert isinstance(structure, Matchings)
    scores, mask = case.draw(60, 10, integers=integers)
    k = 9
    z, values = structure.k_best(scores, k, mask)
    assert z.shape == (k, *scores.shape)
    assert values.shape == (k, 10)
    torch.testing.assert_close(value(z[0], scores), value(structure.argmax(scores, mask), scores))
    for b, (s, m) in enumerate(zip(scores, mask, strict=True)):
        vertices = case.vertices(m)
        expected = brute.values(vertices, s).sort(descending=True).values[:k]
        count = len(expected)
        torch.testing.assert_close(values[:count, b], expected)
        found = {tuple(member.flatten().tolist()) for member in z[:count, b]}
        assert len(found) == count, "no member twice"
        assert found <= {tuple(vertex.flatten().tolist()) for vertex in vertices}
        assert values[count:, b].isneginf().all()
        assert not z[count:, b].any()


def test_k_best_lists_everything() -> None:
    """All 24 permutations of four, and all 34 partial matchings of three rows and columns."""
    scores = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    for structure, part, count in ((Matchings(), scores, 24), (Matchings(complete=False), scores[:3, :3], 34)):
        z, values = structure.k_best(part, count + 2)
        assert len({tuple(member.flatten().tolist()) for member in z[:count]}) == count
        assert structure.contains(z[:count]).all()
        assert values[:count].isfinite().all()
        assert values[count:].isneginf().all()


def test_k_best_has_a_gradient_and_keeps_infinities_last() -> None:
    scores = torch.tensor([[1.0, 0.0], [0.5, -torch.inf]], requires_grad=True)
    z, values = Matchings().k_best(scores, 2)
    assert values.tolist() == [0.5, -math.inf]
    (gradient,) = torch.autograd.grad(values[0], scores)
    assert torch.equal(gradient, z[0])
    assert not z.requires_grad
    with pytest.raises(ValueError, match="k is -1"):
        Matchings().k_best(scores, -1)
    assert Matchings().k_best(scores, 0)[0].shape == (0, 2, 2)


def test_padding_changes_nothing() -> None:
    generator = torch.Generator().manual_seed(3)
    rows, columns = torch.tensor([3, 1, 4, 0]), torch.tensor([2, 4, 4, 3])
    for structure in (Matchings(), Matchings(complete=False)):
        mask = structure.mask(rows, columns=columns)
        assert mask.shape == (4, 4, 4)
        assert mask.sum((1, 2)).tolist() == [6, 4, 16, 0]
        scores = torch.randn(4, 4, 4, generator=generator).masked_fill(~mask, torch.nan)
        z, p = structure.argmax(scores, mask), structure.relaxation.project(scores, mask)
        for b, (n, m) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            assert torch.equal(z[b, :n, :m], structure.argmax(scores[b, :n, :m]))
            torch.testing.assert_close(p[b, :n, :m], structure.relaxation.project(scores[b, :n, :m]))


def test_masks_from_lengths() -> None:
    structure = Matchings()
    square = structure.mask(torch.tensor([2, 3]))
    assert square.shape == (2, 3, 3)
    assert square.sum((1, 2)).tolist() == [4, 9]
    assert structure.mask(torch.tensor([2, 3]), 5).shape == (2, 5, 5)
    assert structure.mask(torch.tensor(2), (3, 6), columns=torch.tensor(4)).shape == (3, 6)
    with pytest.raises(ValueError, match="size is 2, but an instance has 3 rows"):
        structure.mask(torch.tensor([2, 3]), 2)
    with pytest.raises(ValueError, match=r"\(2,\).*\(1,\)"):
        structure.mask(torch.tensor([2, 3]), columns=torch.tensor([2]))


def test_violations_in_words() -> None:
    z = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 0.0]])
    mask = torch.tensor([[True, True, True], [True, False, True], [True, True, True]])
    assert Matchings().violations(z, mask) == [
        [
            "part [1, 1] is not in the mask",
            "part [1, 2] is 0.5, not 0 or 1",
            "row 0 is matched 2 times: columns 0, 1",
            "row 1 is matched 2 times: columns 1, 2",
            "row 2 is not matched",
            "column 1 is matched 2 times: rows 0, 1",
        ]
    ]
    assert Matchings(complete=False).violations(torch.zeros(2, 2)) == [[]]
    assert Matchings().violations(torch.zeros(2, 1)) == [["column 0 is not matched"]]


def test_there_are_no_sums() -> None:
    with pytest.raises(TypeError, match="permanents"):
        Matchings().marginals(torch.zeros(2, 2))  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile, about itself
@pytest.mark.parametrize("complete", [True, False])
def test_vmap_and_compile(complete: bool) -> None:
    structure = Matchings(complete)
    scores = torch.randn(3, 2, 4, 5, generator=torch.Generator().manual_seed(4))
    z = torch.vmap(structure.argmax, in_dims=1, out_dims=1)(scores)
    assert torch.equal(z, structure.argmax(scores))
    p = torch.vmap(structure.relaxation.project)(scores)
    torch.testing.assert_close(p, structure.relaxation.project(scores))
    best, values = torch.vmap(lambda s: structure.k_best(s, 3), out_dims=1)(scores)
    torch.testing.assert_close((best, values), structure.k_best(scores, 3))

    def network(s: Tensor) -> Tensor:
        ranked, worth = structure.k_best(s, 2)
        once = spigot.argmax(s, structure, spigot.Spigot()) + spigot.argmax(s, structure, spigot.Identity())
        return (once * s.detach()).sum() + worth.sum() + ranked.sum()

    gradients = []
    for call in (network, torch.compile(network, fullgraph=True, backend="aot_eager")):
        leaf = scores.clone().requires_grad_()
        call(leaf).backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients)
    torch.compiler.reset()


def test_two_threads_give_what_one_gives() -> None:
    scores = torch.randn(40, 30, 30, generator=torch.Generator().manual_seed(5))
    before = torch.get_num_threads()
    answers = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            answers.append((Matchings().argmax(scores), Birkhoff().project(scores)))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(*pair) for pair in zip(*answers, strict=True))
