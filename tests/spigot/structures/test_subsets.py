"""Subsets of entries: top-k, at most k, any number."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import spigot
from spigot import Subsets
from spigot._runtime.checks import NoStructureError
from tests.spigot.cases import SUBSETS, StructureCase

SETTINGS = [(2, 2), (0, 2), (1, 3), (3, None), (0, None)]


def polynomial(scores: Tensor, minimum: int, maximum: int | None) -> float:
    """The logarithm of the sum, by multiplying out the generating polynomial in exact fractions."""
    coefficients = [Fraction(1)]
    for score in scores.tolist():
        weight = Fraction(math.exp(score))
        coefficients = [
            a + weight * b for a, b in zip([*coefficients, Fraction(0)], [Fraction(0), *coefficients], strict=True)
        ]
    total = sum(coefficients[minimum : None if maximum is None else maximum + 1])
    return math.log(total.numerator) - math.log(total.denominator)


def test_argmax_of_each_kind() -> None:
    scores = torch.tensor([2.0, -1.0, 1.0, 0.5, -3.0])
    assert Subsets(2).argmax(scores).tolist() == [1, 0, 1, 0, 0]
    assert Subsets(maximum=2).argmax(scores).tolist() == [1, 0, 1, 0, 0]
    assert Subsets(maximum=2).argmax(-scores).tolist() == [0, 1, 0, 0, 1]
    assert Subsets(minimum=4).argmax(scores).tolist() == [1, 1, 1, 1, 0]
    assert Subsets().argmax(scores).tolist() == [1, 0, 1, 1, 0]
    assert Subsets(0).argmax(scores).tolist() == [0] * 5


def test_ties_go_to_the_first_and_what_gains_nothing_is_left_out() -> None:
    level = torch.zeros(3, 20)
    assert not Subsets(maximum=3).argmax(level).any()
    assert Subsets(minimum=3, maximum=5).argmax(level).tolist() == [[1.0] * 3 + [0.0] * 17] * 3
    scores = torch.tensor([0.0, 1.0, 0.0, 1.0, 1.0])
    assert Subsets(maximum=2).argmax(scores).tolist() == [0, 1, 0, 1, 0]
    assert Subsets(minimum=4).argmax(scores).tolist() == [1, 1, 0, 1, 1]
    mask = torch.tensor([False, True, True, True, True])
    assert Subsets(minimum=4).argmax(scores, mask).tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("setting", SETTINGS)
def test_infinite_scores_have_a_best_subset(setting: tuple[int, int | None]) -> None:
    low, high = Subsets(minimum=setting[0], maximum=setting[1]), torch.inf
    z = low.argmax(torch.full((6,), -high))
    assert z.tolist() == [1.0] * setting[0] + [0.0] * (6 - setting[0])
    assert low.argmax(torch.tensor([-high, 1.0, high, -high, 2.0, 0.5]))[2] == 1


@pytest.mark.parametrize("k", [1, 2, 17, 1000, 5000])
def test_the_largest_of_many(k: int) -> None:
    scores = torch.randn(3, 5000, generator=torch.Generator().manual_seed(k)).round(decimals=2)  # with ties
    for count in (k, (k + 1) // 2):
        z = Subsets(count).argmax(scores)
        order = scores.sort(dim=-1, descending=True, stable=True).indices[:, :count]
        assert torch.equal(z, torch.zeros_like(scores).scatter(-1, order, 1.0))


@pytest.mark.parametrize(("minimum", "maximum"), SETTINGS)
def test_sums_against_the_polynomial(minimum: int, maximum: int | None) -> None:
    generator = torch.Generator().manual_seed(0)
    for k in (3, 8, 40):
        for scale in (1.0, 8.0):
            scores = torch.randn(k, generator=generator, dtype=torch.float64) * scale
            value = Subsets(minimum=minimum, maximum=maximum).log_partition(scores).item()
            assert value == pytest.approx(polynomial(scores, minimum, maximum), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("k", [1, 7, 60, 1000])
def test_how_many_there_are(k: int) -> None:
    mask = torch.ones(k, dtype=torch.bool)
    for low, high in ((0, 0), (1, 1), (k // 2, k // 2), (k, k), (0, k // 3), (k // 2, None), (0, None)):
        most = k if high is None else high
        exact = math.log(sum(math.comb(k, size) for size in range(low, most + 1)))
        assert Subsets(minimum=low, maximum=high).log_count(mask).item() == pytest.approx(exact, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("shares", [(0.001, 0.001), (0.5, 0.5), (0.9999, 1), (0, 0.3), (0.7, None), (0.001, None)])
def test_ten_thousand_entries(shares: tuple[float, float | None]) -> None:
    count = 10_000 if spigot.kernels.available else 600  # in torch each entry is a step
    setting = int(shares[0] * count), None if shares[1] is None else int(shares[1] * count)
    structure = Subsets(minimum=setting[0], maximum=setting[1])
    generator = torch.Generator().manual_seed(1)
    direction = torch.randn(count, generator=generator, dtype=torch.float64)
    most = count if setting[1] is None else setting[1]
    for scale in (0.0, 1.0, 1e4):
        scores = (torch.randn(count, generator=generator, dtype=torch.float64) * scale).requires_grad_()
        value = structure.log_partition(scores)
        (mu,) = torch.autograd.grad(value, scores, create_graph=True)
        (curved,) = torch.autograd.grad((mu * direction).sum(), scores)
        size = mu.detach().sum().item()
        assert setting[0] - 1e-8 <= size <= most + 1e-8
        best = structure.argmax(scores.detach())
        assert value.item() >= (best * scores.detach()).sum().item() - 1e-6
        assert curved.isfinite().all()
        if setting[0] == setting[1]:
            assert abs(curved.sum().item()) < 1e-6  # the size cannot change
        if scale == 0:
            torch.testing.assert_close(mu, torch.full_like(mu, size / count), rtol=0, atol=1e-10)
        if scale == 1e4:
            assert ((mu.detach() > 0.5) == (best > 0)).float().mean() > 0.99
        z = structure.sample(scores.detach(), samples=2, generator=generator)
        assert structure.contains(z).all()


def test_shifting_all_scores_of_a_fixed_size_changes_nothing() -> None:
    scores = torch.randn(50, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    structure = Subsets(7)
    mu = structure.marginals(scores)
    for shift in (1e3, -1e3, 2.0**40):
        moved = structure.marginals((scores * 2.0**10).round() / 2.0**10 + shift)
        torch.testing.assert_close(moved, structure.marginals((scores * 2.0**10).round() / 2.0**10), rtol=0, atol=1e-9)
    assert mu.sum().item() == pytest.approx(7)


@given(
    st.lists(st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float), min_size=1, max_size=9),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_sums_against_enumeration(values: list[float], a: int, b: int) -> None:
    minimum, maximum = sorted((min(a, len(values)), min(b, len(values))))
    scores = torch.tensor(values, dtype=torch.float64)
    members = torch.tensor(list(itertools.product([0.0, 1.0], repeat=len(values))), dtype=torch.float64)
    size = members.sum(-1)
    members = members[(size >= minimum) & (size <= maximum)]
    worth = members @ scores
    structure = Subsets(minimum=minimum, maximum=maximum)
    torch.testing.assert_close(structure.log_partition(scores), worth.logsumexp(0), rtol=1e-12, atol=1e-9)
    torch.testing.assert_close(structure.marginals(scores), worth.softmax(0) @ members, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("minimum", "maximum"), [(2, 2), (0, 3), (2, None)])
@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
def test_entropy_in_many_digits(minimum: int, maximum: int | None, scale: float) -> None:
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(6, generator=generator, dtype=torch.float64) * scale
    scores[1] = scores[0] + 0.3  # something to be unsure about at every scale
    most = 6 if maximum is None else maximum
    with mpmath.workdps(60):
        worth = [
            mpmath.fsum(mpmath.mpf(scores[i].item()) for i in chosen)
            for size in range(minimum, most + 1)
            for chosen in itertools.combinations(range(6), size)
        ]
        weights = [mpmath.exp(w - max(worth)) for w in worth]
        total = mpmath.fsum(weights)
        exact = -mpmath.fsum(w / total * mpmath.log(w / total) for w in weights if w > 0)
    ours = Subsets(minimum=minimum, maximum=maximum).entropy(scores).item()
    assert ours == pytest.approx(float(exact), abs=1e-14 * max(1, 30 * scale))


@pytest.mark.parametrize("case", SUBSETS, ids=str)
def test_k_best_against_enumeration(case: StructureCase) -> None:
    structure = case.structure
    assert isinstance(structure, Subsets)
    for integers in (False, True):
        scores, mask = case.draw(5, 12, integers=integers)
        scores.requires_grad_()
        z, values = structure.k_best(scores, 9, mask)
        assert z.shape == (9, 12, 5)
        assert not z.requires_grad
        for b in range(12):
            vertices = case.vertices(mask[b])
            worth = (vertices * scores[b].detach().nan_to_num()).sum(-1).sort(descending=True).values
            count = min(9, len(worth))
            torch.testing.assert_close(values[:count, b].detach(), worth[:count])
            assert (values[count:, b] == -torch.inf).all()
            assert not z[count:, b].any()
            listed = {tuple(row) for row in z[:count, b].tolist()}
            assert len(listed) == count
            assert listed <= {tuple(row) for row in vertices.tolist()}
        assert torch.equal(z[0], structure.argmax(scores.detach(), mask))
        (gradient,) = torch.autograd.grad(values[0].sum(), scores)
        assert torch.equal(gradient, z[0])


def test_k_best_of_many_entries() -> None:
    scores = torch.randn(300, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    for minimum, maximum in ((3, 3), (0, 4), (290, None), (0, None)):
        z, values = Subsets(minimum=minimum, maximum=maximum).k_best(scores, 40)
        assert Subsets(minimum=minimum, maximum=maximum).contains(z).all()
        assert len({tuple(row) for row in z.tolist()}) == 40
        assert (values.diff() <= 1e-12).all()
    top = scores.sort(descending=True).values[:60]
    triples = torch.tensor([sum(triple) for triple in itertools.combinations(top.tolist(), 3)], dtype=torch.float64)
    torch.testing.assert_close(Subsets(3).k_best(scores, 40)[1], triples.sort(descending=True).values[:40])
    # Any number: the best, and what it costs to change entries of the smallest size.
    costs = scores.abs().sort().values[:14].tolist()
    changes = sorted(sum(some) for size in range(15) for some in itertools.combinations(costs, size))[:40]
    expected = scores.clamp(min=0).sum() - torch.tensor(changes, dtype=torch.float64)
    torch.testing.assert_close(Subsets().k_best(scores, 40)[1], expected)


def test_members_worth_minus_infinity_are_not_listed() -> None:
    scores = torch.tensor([1.0, -torch.inf, 2.0])
    z, values = Subsets(minimum=2).k_best(scores, 3)
    assert values.tolist() == [3.0, -torch.inf, -torch.inf]
    assert not z[1:].any()
    with pytest.raises(ValueError, match="whole number, zero or more"):
        Subsets().k_best(scores, -1)


@pytest.mark.parametrize("case", SUBSETS, ids=str)
def test_frequencies_are_the_chances(case: StructureCase) -> None:
    structure = case.structure
    assert isinstance(structure, Subsets)
    scores, mask = case.draw(7, 3)
    draws = structure.sample(scores, mask, samples=4000, generator=torch.Generator().manual_seed(8))
    assert draws.shape == (4000, 3, 5)
    for b in range(3):
        vertices = case.vertices(mask[b])
        chances = (vertices * scores[b].nan_to_num()).sum(-1).softmax(0)
        counts = (draws[:, b].unsqueeze(1) == vertices).all(-1).double().sum(0)
        assert counts.sum() == 4000
        spread = (4000 * chances * (1 - chances)).sqrt()
        assert ((counts - 4000 * chances).abs() <= 5 * spread + 5).all()


def test_a_generator_repeats_and_its_state_does_not_depend_on_scores() -> None:
    states = []
    for scale in (0.0, 50.0):
        generator = torch.Generator().manual_seed(9)
        scores = torch.randn(4, 30, generator=torch.Generator().manual_seed(1)) * scale
        first = Subsets(minimum=2, maximum=5).sample(scores, samples=3, generator=generator)
        states.append(generator.get_state())
        again = Subsets(minimum=2, maximum=5).sample(scores, samples=3, generator=torch.Generator().manual_seed(9))
        assert torch.equal(first, again)
    assert torch.equal(*states)
    assert Subsets(minimum=2, maximum=5).sample(torch.zeros(0, 4), samples=3).shape == (3, 0, 4)


def test_kernel_and_torch_draw_and_rank_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = torch.randn(5, 40, generator=torch.Generator().manual_seed(10), dtype=torch.float64) * 3
    answers = []
    for available in (spigot.kernels.available, False):
        monkeypatch.setattr("spigot._runtime.native.available", available)
        structure = Subsets(minimum=3, maximum=9)
        generator = torch.Generator().manual_seed(11)
        answers.append((structure.sample(scores, samples=20, generator=generator), *structure.k_best(scores, 7)))
    for ours, theirs in zip(*answers, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("verb", ["argmax", "log_partition", "marginals", "sample"])
def test_too_few_entries_are_named(verb: str) -> None:
    mask = torch.tensor([[True, True, True], [True, False, False]])
    with pytest.raises(NoStructureError, match="instance 1 leaves 1 of the 2 entries"):
        getattr(Subsets(2), verb)(torch.zeros(2, 3), mask)
    with pytest.raises(NoStructureError, match="instance 1 leaves 1 of the 2"):
        Subsets(minimum=2).k_best(torch.zeros(2, 3), 2, mask)
    with pytest.raises(NoStructureError, match="instance 1 leaves 1 of the 2"):
        Subsets(minimum=2).relaxation.project(torch.zeros(2, 3), mask)
    with pytest.raises(ValueError, match="instance 1 are NaN at part \\[2\\]"):
        getattr(Subsets(2), verb)(torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, torch.nan]]))


def test_padding_is_the_empty_subset() -> None:
    structure, nothing = Subsets(2), torch.zeros(2, 3, dtype=torch.bool)
    scores = torch.full((2, 3), torch.nan)
    for verb in (structure.argmax, structure.marginals, structure.relaxation.project):
        assert not verb(scores, nothing).any()
    assert structure.log_partition(scores, nothing).tolist() == [0, 0]
    assert not structure.sample(scores, nothing).any()
    assert structure.contains(torch.zeros(2, 3), nothing).all()
    assert structure.k_best(scores.nan_to_num(), 2, nothing)[1].tolist() == [[0, 0], [-torch.inf, -torch.inf]]


@pytest.mark.parametrize("shape", [(3, 0), (0,), (0, 4), (2, 1)])
def test_small_shapes(shape: tuple[int, ...]) -> None:
    scores = torch.zeros(shape, requires_grad=True)
    structure = Subsets(maximum=1)
    for value in (structure.argmax(scores.detach()), structure.marginals(scores), structure.relaxation.project(scores)):
        assert value.shape == shape
    assert structure.log_partition(scores).shape == shape[:-1]
    assert structure.sample(scores, samples=2).shape == (2, *shape)
    assert structure.k_best(scores, 2)[0].shape == (2, *shape)
    spigot.argmax(scores, structure, spigot.SparseMAP()).sum().backward()
    assert scores.grad is not None


def test_scores_of_minus_infinity_have_no_mass() -> None:
    scores = torch.tensor([-torch.inf, 0.0, 1.0, -torch.inf], dtype=torch.float64, requires_grad=True)
    mu = Subsets(2).marginals(scores)
    assert mu.tolist() == pytest.approx([0, 1, 1, 0])
    assert Subsets(2).log_partition(scores).item() == pytest.approx(1)
    (gradient,) = torch.autograd.grad(mu[1], scores)
    assert gradient.isfinite().all()
    assert Subsets(3).log_partition(scores).item() == -torch.inf
    assert not Subsets(3).marginals(scores).any()
    with pytest.raises(ValueError, match="every subset of the instance has a score of -inf"):
        Subsets(3).sample(scores)
    with pytest.raises(ValueError, match="infinite"):
        Subsets(1).log_partition(-scores)


def test_settings_that_make_no_sense() -> None:
    for minimum, maximum in ((-1, None), (2, 1), (0, -1), (1.5, 2), (True, 2)):
        with pytest.raises(ValueError, match=r"whole number|cannot be the larger"):
            Subsets(minimum=minimum, maximum=maximum)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ValueError, match=r"whole number|cannot be the larger"):
            spigot.CappedSimplex(minimum, maximum)  # pyright: ignore[reportArgumentType]


def test_violations_say_what_is_wrong() -> None:
    z = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.5, 1.0, 0.0], [1.0, 0.0, 0.0]])
    messages = Subsets(minimum=1, maximum=2).violations(z)
    assert messages[0] == ["3 entries are chosen, more than 2"]
    assert messages[1] == ["0 entries are chosen, fewer than 1"]
    assert messages[2] == ["entry 0 is 0.5, not 0 or 1"]
    assert messages[3] == []
    assert Subsets(minimum=1, maximum=2).violations(z[3], torch.tensor([False, True, True]))[0] == [
        "entry 0 is chosen but masked"
    ]


def test_verbs_inside_a_compiled_graph_and_a_map() -> None:
    structure = Subsets(minimum=2, maximum=3)
    scores = torch.randn(4, 6, generator=torch.Generator().manual_seed(12), dtype=torch.float64)

    def verbs(s: Tensor) -> tuple[Tensor, ...]:
        return structure.argmax(s), structure.log_partition(s), structure.marginals(s), *structure.k_best(s, 3)

    plain = verbs(scores)
    for theirs, ours in zip(torch.compile(verbs, fullgraph=True, backend="aot_eager")(scores), plain, strict=True):
        torch.testing.assert_close(theirs, ours)
    mapped = torch.vmap(lambda s: (structure.marginals(s), structure.relaxation.project(s)))(scores)
    torch.testing.assert_close(mapped[0], plain[2])
    torch.testing.assert_close(mapped[1], structure.relaxation.project(scores))


def test_poisson_binomial() -> None:
    """Chances of each size by numpy's polynomials: a second way to the same sums."""
    scores = torch.randn(25, generator=torch.Generator().manual_seed(13), dtype=torch.float64) * 2
    chances = torch.sigmoid(scores).tolist()
    product = np.array([1.0])
    for p in chances:
        product = np.polymul(product, [p, 1 - p])
    sizes = product[::-1]  # numpy puts the highest power first
    free = Subsets().log_partition(scores)
    for minimum, maximum in ((4, 4), (0, 10), (12, None)):
        most = 25 if maximum is None else maximum
        expected = math.log(sum(sizes[minimum : most + 1]))
        ours = (Subsets(minimum=minimum, maximum=maximum).log_partition(scores) - free).item()
        assert ours == pytest.approx(expected, rel=1e-11)


def test_the_first_argument_is_the_size() -> None:
    assert Subsets(2) == Subsets(minimum=2, maximum=2)
    with pytest.raises(ValueError, match="size is 2, and minimum or maximum are given"):
        Subsets(2, maximum=3)
