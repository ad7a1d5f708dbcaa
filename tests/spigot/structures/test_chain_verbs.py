"""The k best chains, draws from them, their number and their entropy, beyond what the conformance suite checks."""

import math

import mpmath
import pytest
import torch

from spigot import Chains
from tests.spigot import brute
from tests.spigot.masks import chain_mask
from tests.spigot.structures.test_chains import draw, states_of


def test_log_count_is_a_power_and_a_matrix_power() -> None:
    for n, k in ((0, 3), (1, 4), (5, 1), (7, 3), (500, 20)):
        count = Chains(k).log_count(Chains(k).mask(torch.tensor([n])))
        torch.testing.assert_close(count, torch.tensor([n * math.log(k)], dtype=torch.float64))
    chains, n = Chains(3), 12
    allowed = torch.tensor([[True, True, False], [False, True, True], [True, False, False]])
    mask = chains.pack(torch.ones(n, 3, dtype=torch.bool), allowed)
    ways = torch.linalg.matrix_power(allowed.double(), n - 1).sum()
    torch.testing.assert_close(chains.log_count(mask), ways.log())


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
def test_entropy_equals_enumeration_in_many_digits(scale: float) -> None:
    chains = Chains(3)
    scores, mask = draw(5, 6, n=5, k=3, scale=scale), chains.mask(torch.tensor([5, 5, 4, 3, 1, 0]), 5)
    scores[0] = (scores[0] * 4 / scale).round() / 4 * scale  # ties among the best
    ours = chains.entropy(scores, mask)
    with mpmath.workdps(60):
        for s, m, entropy in zip(scores, mask, ours.tolist(), strict=True):
            members = brute.chains(m)
            values = [mpmath.fsum(mpmath.mpf(x) for x in s[z > 0].tolist()) for z in members]
            top = max(values)
            weights = [mpmath.exp(value - top) for value in values]
            total = mpmath.fsum(weights)
            each = mpmath.fsum(w / total * (mpmath.log(total) + top - v) for w, v in zip(weights, values, strict=True))
            assert abs(entropy - each) <= 1e-12 * scale + 1e-11


@pytest.mark.parametrize("integers", [False, True])
def test_k_best_equals_enumeration(integers: bool) -> None:
    chains, generator = Chains(3), torch.Generator().manual_seed(8)
    scores = draw(6, 30, n=4, k=3)
    scores = scores.round() if integers else scores
    mask = torch.stack([chain_mask(generator, 4, 3) for _ in range(30)])
    for count in (0, 1, 4, 100):
        z, values = chains.k_best(scores.masked_fill(~mask, torch.nan), count, mask)
        assert z.shape == (count, *scores.shape)
        assert values.shape == (count, 30)
        for b in range(30):
            members = brute.chains(mask[b])
            expected = brute.values(members, scores[b]).sort(descending=True).values[:count]
            some = len(expected)
            torch.testing.assert_close(values[:some, b], expected)
            assert values[some:, b].isneginf().all()
            assert not z[some:, b].any()
            assert chains.contains(z[:some, b], mask[b].expand_as(z[:some, b])).all()
            assert len({tuple(row) for row in z[:some, b].flatten(1).tolist()}) == some
            torch.testing.assert_close(brute.values(z[:some, b], scores[b]), expected)
        if count:
            assert torch.equal(z[0], chains.argmax(scores, mask))


def test_values_of_the_k_best_have_a_gradient() -> None:
    chains = Chains(2)
    scores = draw(7, 2, 3, n=4, k=2).requires_grad_()
    z, values = chains.k_best(scores, 3)
    assert not z.requires_grad
    (back,) = torch.autograd.grad(values[1].sum(), scores)
    assert torch.equal(back, z[1])


def test_the_k_best_with_infinite_scores() -> None:
    chains = Chains(2)
    scores = torch.zeros(2, 3, 2)
    scores[1, 0, 0] = -torch.inf
    scores[0, 0, 1] = -1
    z, values = chains.k_best(scores, 5)
    assert [states_of(one) for one in z[:2]] == [[0, 1], [1, 1]]
    assert values.tolist() == [0, -1, -math.inf, -math.inf, -math.inf]
    assert chains.contains(z[:4]).all(), "chains of score -inf are chains"
    assert not z[4].any()


def test_frequencies_of_draws_are_the_marginals() -> None:
    chains = Chains(4)
    scores, mask = draw(9, 3, n=6, k=4, scale=1.5), chains.mask(torch.tensor([6, 4, 0]))
    mask[0, 2, 0, 1] = mask[0, 3, 2, 0] = False
    samples = 20_000
    z = chains.sample(scores, mask, samples, torch.Generator().manual_seed(1))
    assert z.shape == (samples, *scores.shape)
    assert chains.contains(z[:50], mask.expand(50, *mask.shape)).all()
    mu = chains.marginals(scores, mask)
    spread = (mu * (1 - mu) / samples).sqrt()
    assert ((z.mean(0) - mu).abs() <= 6 * spread + 1e-12).all()
    # Whole chains, too: neighbours are not drawn on their own.
    whole = brute.chains(mask[1])
    p = brute.values(whole, scores[1]).softmax(0)
    counts = (whole.flatten(1).unsqueeze(1) == z[:2000, 1].flatten(1)).all(-1).double().mean(1)
    assert ((counts - p).abs() <= 6 * (p * (1 - p) / 2000).sqrt() + 1e-12).all()


def test_draws_are_those_of_the_generator_and_of_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    chains = Chains(5)
    scores, mask = draw(10, 2, 3, n=7, k=5), chains.mask(torch.tensor([[7, 5, 1], [0, 2, 3]]))
    draws = [chains.sample(scores, mask, 40, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    generator = torch.Generator().manual_seed(3)
    states = []
    for some in (scores, 1e3 * scores):
        generator.manual_seed(3)
        chains.sample(some, mask, 2, generator)
        states.append(generator.get_state())
    assert torch.equal(*states)
    monkeypatch.setattr("spigot._runtime.native.available", False)
    twin = chains.sample(scores, mask, 40, torch.Generator().manual_seed(1))
    differ = (twin != draws[0]).flatten(-3).any(-1).double().mean()
    assert differ < 0.02, "the same but where a number falls next to the edge between two states"


def test_draws_follow_minus_infinity_and_need_some_probability() -> None:
    chains = Chains(2)
    scores = torch.zeros(2, 3, 3, 2)
    scores[0, 1, 0, 0] = -torch.inf
    z = chains.sample(scores, None, 50, torch.Generator().manual_seed(0))
    assert not z[:, 0, 1, 0, 0].any()
    assert z[:, 1, 1, 0, 0].any()
    scores[1, 1, 0] = -torch.inf
    with pytest.raises(ValueError, match="every chain of instance 1 has a score of -inf"):
        chains.sample(scores)
    scores[1, 1, 0, 0] = torch.inf
    with pytest.raises(ValueError, match="instance 1 are infinite"):
        chains.sample(scores)
