"""Chains of states, beyond what the conformance suite checks."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import spigot
from spigot import Chains, ChainSimplex, ConvexHull
from spigot._runtime.checks import NoStructureError
from spigot.estimators.spigot import spigot_gradient
from tests.spigot import brute
from tests.spigot.masks import chain_mask

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def draw(seed: int, *batch: int, n: int, k: int, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*batch, n, 1 + k, k, generator=generator, dtype=torch.float64) * scale


def states_of(z: Tensor) -> list[int]:
    return z[:, 0].argmax(-1).tolist()


def matrix_log_partition(scores: Tensor) -> Tensor:
    """A second algorithm: products of whole matrices in log space, pairs of neighbours first, then pairs of pairs."""
    steps = list((scores[..., 1:, 1:, :] + scores[..., 1:, :1, :]).unbind(-3))
    first = scores[..., 0, 0, :]
    while len(steps) > 1:
        pairs = zip(steps[::2], steps[1::2], strict=False)
        rest = steps[len(steps) // 2 * 2 :]
        steps = [(a.unsqueeze(-1) + b.unsqueeze(-3)).logsumexp(-2) for a, b in pairs] + rest
    whole = first.unsqueeze(-1) + steps[0] if steps else first.unsqueeze(-1)
    return whole.flatten(-2).logsumexp(-1)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 8, 9, 16, 20, 33, 40])
@DTYPES
def test_sums_equal_matrix_products(k: int, dtype: torch.dtype) -> None:
    """Widths around whole vectors, where the last one is cut, and more than one group of them."""
    scores = draw(k, 3, n=6, k=k, scale=3.0).to(dtype)
    exact = scores.double().requires_grad_()
    value = matrix_log_partition(exact)
    (mu,) = torch.autograd.grad(value.sum(), exact, create_graph=True)
    along = draw(k + 1, 3, n=6, k=k)
    (curved,) = torch.autograd.grad(mu, exact, along)
    leaf = scores.clone().requires_grad_()
    ours = Chains(k).marginals(leaf, None)
    (back,) = torch.autograd.grad(ours, leaf, along.to(dtype))
    tolerance = 1e-10 if dtype == torch.float64 else 5e-5
    torch.testing.assert_close(Chains(k).log_partition(scores).double(), value, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(ours.double(), mu, rtol=0, atol=tolerance)
    torch.testing.assert_close(back.double(), curved, rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 9, 20, 33])
@DTYPES
def test_argmax_is_where_cold_marginals_are(k: int, dtype: torch.dtype) -> None:
    """A second algorithm for the best chain: max-plus products of whole matrices, and their gradient."""
    scores = draw(k, 4, n=7, k=k).to(dtype)
    leaf = scores.double().requires_grad_()
    steps = leaf[:, 1:, 1:] + leaf[:, 1:, :1]
    best = leaf[:, 0, 0]
    for t in range(steps.shape[1]):
        best = (best.unsqueeze(-1) + steps[:, t]).amax(1)
    (z,) = torch.autograd.grad(best.amax(-1).sum(), leaf)
    assert torch.equal(Chains(k).argmax(scores), z.to(dtype))


@pytest.mark.parametrize("scale", [1.0, 1e4])
@DTYPES
def test_long_chains(scale: float, dtype: torch.dtype) -> None:
    chains, n = Chains(4), 500
    scores = draw(11, 2, n=n, k=4, scale=scale).to(dtype)
    exact = scores.double().requires_grad_()
    value = matrix_log_partition(exact)
    (mu,) = torch.autograd.grad(value.sum(), exact)
    tolerance = 1e-9 if dtype == torch.float64 else 2e-5
    torch.testing.assert_close(chains.log_partition(scores).double(), value, rtol=tolerance, atol=0)
    torch.testing.assert_close(chains.marginals(scores).double(), mu, rtol=0, atol=tolerance)
    leaf = scores.clone().requires_grad_()
    (back,) = torch.autograd.grad(chains.marginals(leaf).square().sum(), leaf)
    assert back.isfinite().all()
    z = chains.argmax(scores)
    assert chains.contains(z).all()
    best, values = chains.k_best(scores, 3)
    assert torch.equal(best[0], z)
    assert (values[:-1] >= values[1:]).all()
    assert chains.contains(chains.sample(scores)[0]).all()
    if scale == 1e4:  # so cold that the best chain is all there is, or nearly
        assert ((chains.marginals(scores) - z).abs() < 0.5).all()


def test_ties_go_to_the_first_state() -> None:
    assert states_of(Chains(4).argmax(torch.zeros(6, 5, 4))) == [0] * 6
    scores = torch.zeros(3, 3, 2)
    scores[2, 0, 1] = 1
    assert states_of(Chains(2).argmax(scores)) == [0, 0, 1]


def test_scores_that_overflow_when_added() -> None:
    chains = Chains(2)
    scores = torch.full((3, 3, 2), -1e308, dtype=torch.float64)
    scores[:, 0, 1] = 1e308
    scores[1:, 2, 1] = 1.5e308
    assert states_of(chains.argmax(scores)) == [1, 1, 1]
    assert states_of(chains.k_best(scores, 2)[0][0]) == [1, 1, 1]
    with pytest.raises(ValueError, match=r"1e\+308 at part \[0, 0, 1\], too large to be summed"):
        chains.marginals(scores)
    mu = chains.marginals(scores * 1e-20)
    assert mu[:, 0].tolist() == [[0, 1]] * 3


def test_infinite_scores() -> None:
    chains = Chains(2)
    scores = torch.zeros(3, 3, 2)
    scores[1, 0, 0] = torch.inf
    scores[1, 0, 1] = 1e30
    assert states_of(chains.argmax(scores)) == [0, 0, 0]
    for verb in (chains.log_partition, chains.marginals):
        with pytest.raises(ValueError, match="infinite"):
            verb(scores)
    scores[:] = -torch.inf
    assert chains.contains(chains.argmax(scores))
    assert chains.log_partition(scores) == -torch.inf
    assert not chains.marginals(scores).any()


def test_nan_is_named_where_it_can_matter() -> None:
    chains = Chains(2)
    scores = torch.zeros(2, 3, 3, 2)
    mask = chains.mask(torch.tensor([3, 3]))
    scores[1, 2, 1, 0] = torch.nan
    verbs = (chains.argmax, chains.log_partition, chains.marginals, chains.sample)
    for verb in (*verbs, chains.relaxation.project, lambda s, m: chains.k_best(s, 2, m)):
        with pytest.raises(ValueError, match=r"instance 1 are NaN at part \[2, 1, 0\]"):
            verb(scores, mask)
    mask[1, 1, 0, 0] = False  # the transition from that state cannot be used, so nobody looks at it
    for verb in verbs:
        assert verb(scores, mask).isfinite().all()
    assert chains.k_best(scores, 2, mask)[1].isfinite().all()


def test_masks_without_a_chain() -> None:
    chains = Chains(2)
    scores, mask = torch.zeros(2, 4, 3, 2), chains.mask(torch.tensor([4, 4]))
    gap = mask.clone()
    gap[1, 1, 0] = False
    cut = mask.clone()
    cut[0, 2, 1:] = False
    verbs = (chains.argmax, chains.log_partition, chains.marginals, chains.sample, lambda s, m: chains.k_best(s, 2, m))
    for verb in verbs:
        with pytest.raises(NoStructureError, match="position 1 of instance 1 has no state in the mask, but a later"):
            verb(scores, gap)
        with pytest.raises(NoStructureError, match=r"instance 0 leaves no chain: .* from position 1 to position 2"):
            verb(scores, cut)
    blocked = mask.clone()  # every step has a transition, but no path goes through
    blocked[0, 1, 1:, 1] = False
    blocked[0, 2, 1] = False
    with pytest.raises(NoStructureError, match="position 1 to position 2"):
        chains.marginals(scores, blocked)


@pytest.mark.parametrize("k", [1, 3])
def test_no_positions_and_one(k: int) -> None:
    chains = Chains(k)
    for shape in ((0, 1 + k, k), (2, 0, 1 + k, k), (0, 4, 1 + k, k)):
        scores = torch.zeros(shape, requires_grad=True)
        batch = shape[:-3]
        assert chains.argmax(scores).shape == shape
        assert chains.marginals(scores).shape == shape
        assert chains.log_partition(scores).shape == batch
        assert (chains.log_partition(scores) == 0).all()
        assert chains.sample(scores, None, 3).shape == (3, *shape)
        z, values = chains.k_best(scores, 2)
        assert z.shape == (2, *shape)
        assert (values[0] == 0).all()
        assert values[1].isneginf().all() or shape[0] == 0
        assert chains.relaxation.project(scores).shape == shape
        spigot.argmax(scores, chains).sum().backward()
    scores = draw(12, 5, n=1, k=k)
    torch.testing.assert_close(chains.log_partition(scores), scores[:, 0, 0].logsumexp(-1))
    torch.testing.assert_close(chains.marginals(scores)[:, 0, 0], scores[:, 0, 0].softmax(-1))
    assert not chains.marginals(scores)[:, 0, 1:].any()


def test_pack_and_unpack() -> None:
    chains, n, k = Chains(3), 4, 3
    unary, transitions = torch.randn(2, 5, n, k), torch.randn(2, 5, n - 1, k, k)
    scores = chains.pack(unary, transitions)
    assert scores.shape == (2, 5, n, 1 + k, k)
    for ours, theirs in zip(chains.unpack(scores), (unary, transitions), strict=True):
        assert torch.equal(ours, theirs)
    z = chains.argmax(scores)
    states, steps = chains.unpack(z)
    assert torch.equal(chains.pack(states, steps), z)
    worth = (states * unary).sum((-2, -1)) + (steps * transitions).sum((-3, -2, -1))
    for b in itertools.product(range(2), range(5)):
        every = [
            sum(float(unary[b][t, s[t]]) for t in range(n))
            + sum(float(transitions[b][t, s[t], s[t + 1]]) for t in range(n - 1))
            for s in itertools.product(range(k), repeat=n)
        ]
        assert float(worth[b]) == pytest.approx(max(every), abs=1e-5)
    shared = transitions[0, 0, 0]
    assert torch.equal(chains.pack(unary, shared), chains.pack(unary, shared.expand_as(transitions)))
    mask = chains.pack(torch.ones(n, k, dtype=torch.bool), torch.ones(k, k, dtype=torch.bool))
    assert mask.dtype == torch.bool
    assert torch.equal(mask, chains.full_mask(scores[0, 0]))
    assert chains.pack(torch.zeros(2, 0, k), shared).shape == (2, 0, 1 + k, k)
    assert chains.pack(torch.zeros(1, k), torch.zeros(0, k, k)).shape == (1, 1 + k, k)
    leaf = shared.clone().requires_grad_()
    chains.log_partition(chains.pack(unary, leaf)).sum().backward()
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad.sum(), torch.tensor(10.0 * (n - 1)))


@pytest.mark.parametrize(
    ("unary", "transitions"), [((4, 2), (3, 3, 3)), ((4, 3), (4, 3, 3)), ((4, 3), (3, 2)), ((3,), (3, 3))]
)
def test_pack_says_what_does_not_fit(unary: tuple[int, ...], transitions: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"do not fit \(\*batch, n, 3\) and \(\*batch, n - 1, 3, 3\) or \(3, 3\)"):
        Chains(3).pack(torch.zeros(unary), torch.zeros(transitions))


def test_what_is_wrong_with_the_arguments() -> None:
    with pytest.raises(ValueError, match="states is 0; a chain needs a whole number of states, at least one"):
        Chains(0)
    with pytest.raises(ValueError, match=r"shape \(4, 3, 3\); it must be \(\*batch, n, 4, 3\)"):
        Chains(3).argmax(torch.zeros(4, 3, 3))
    with pytest.raises(ValueError, match=r"must be \(\*batch, n, 1 \+ states, states\)"):
        ChainSimplex().project(torch.zeros(4, 3, 3))
    with pytest.raises(ValueError, match="samples is -1"):
        Chains(2).sample(torch.zeros(4, 3, 2), samples=-1)
    with pytest.raises(ValueError, match="k is -1"):
        Chains(2).k_best(torch.zeros(4, 3, 2), -1)
    with pytest.raises(ValueError, match="size is 2, but an instance has 3 positions"):
        Chains(2).mask(torch.tensor([3]), 2)


def test_violations_say_what_is_wrong() -> None:
    chains, mask = Chains(5), Chains(5).mask(torch.tensor(5), 6)
    z = chains.argmax(torch.zeros(6, 6, 5), mask)
    assert chains.violations(z, mask) == [[]]
    two = z.clone()
    two[3, 0, 4] = 1
    assert chains.violations(two, mask) == [["position 3 has 2 states: 0, 4"]]
    astray = z.clone()
    astray[4, 1, 0], astray[4, 2, 2] = 0, 1
    assert chains.violations(astray, mask) == [["transition 1->2 between positions 3 and 4 does not fit its states"]]
    none = z.clone()
    none[4], none[5, 0, 1] = 0, 1
    assert chains.violations(none, mask) == [
        [
            "state 1 of position 5 is not in the mask",
            "position 4 has 0 states",
            "0 transitions lead from position 3 to 4",
        ]
    ]
    half = z.clone()
    half[0, 0, 0], half[0, 1, 1] = 0.5, 1
    assert chains.violations(half, mask) == [
        ["state 0 of position 0 is 0.5, not 0 or 1", "transition 0->1 into position 0 is not in the mask"]
    ]


def test_a_mapped_and_a_compiled_chain() -> None:
    chains = Chains(3)
    unary, shared, mask = draw(13, 4, n=5, k=3)[:, :, 0], draw(14, n=1, k=3)[0, 1:], chains.mask(torch.full((4,), 5))

    def all_of_it(unary: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        scores = chains.pack(unary, shared)
        z, values = chains.k_best(scores, 2, mask)
        pulled = spigot_gradient(chains.relaxation, z[0], scores, 0.5, mask)
        return chains.argmax(scores, mask), chains.marginals(scores, mask), z, values, pulled

    whole = all_of_it(unary, mask)
    axes = (0, 0, 1, 1, 0)
    for ours, expected, axis in zip(torch.vmap(all_of_it)(unary, mask), whole, axes, strict=True):
        torch.testing.assert_close(ours, expected.movedim(axis, 0))
    draws = torch.vmap(lambda u, m: chains.sample(chains.pack(u, shared), m, 2), randomness="different")(unary, mask)
    assert chains.contains(draws).all()
    compiled = torch.compile(all_of_it, fullgraph=True, backend="aot_eager")
    for ours, expected in zip(compiled(unary, mask), whole, strict=True):
        torch.testing.assert_close(ours, expected)
    drawn = torch.compile(lambda s: chains.sample(s, None, 2), fullgraph=True, backend="aot_eager")
    assert chains.contains(drawn(chains.pack(unary, shared))).all()


def test_the_hull_of_chains_is_the_set_of_agreeing_marginals() -> None:
    """The local polytope of a chain is its hull: transitions that agree with the states at both ends."""
    chains = Chains(4)
    point = draw(15, 3, n=8, k=4)
    solution = ConvexHull(chains).solve(point)
    states, steps = chains.unpack(solution.point)
    torch.testing.assert_close(steps.sum(-2), states[:, 1:])
    torch.testing.assert_close(steps.sum(-1), states[:, :-1])
    torch.testing.assert_close(states.sum(-1), torch.ones(3, 8, dtype=torch.float64))
    assert (solution.gap < 1e-8).all()
    mu = chains.marginals(point)
    assert ConvexHull(chains).contains(mu).all()
    assert chains.relaxation.contains(mu).all()
    scattered = chains.relaxation.project(point)
    assert not ConvexHull(chains).contains(scattered).any()


def test_the_tangent_of_the_relaxation() -> None:
    """Directions between points of the polytope stay as they are, and those across it vanish."""
    polytope, generator = ChainSimplex(), torch.Generator().manual_seed(16)
    mask = torch.stack([chain_mask(generator, 4, 3) for _ in range(10)])
    a, b = (polytope.project(draw(seed, 10, n=4, k=3), mask) for seed in (17, 18))
    torch.testing.assert_close(polytope.tangent(a - b, mask), a - b)
    direction = draw(19, 10, n=4, k=3)
    along = polytope.tangent(direction, mask)
    torch.testing.assert_close((along * (direction - along)).sum((-3, -2, -1)), torch.zeros(10, dtype=torch.float64))
    assert not along[~mask].any()
    across = torch.ones(10, 4, 4, 3, dtype=torch.float64)
    torch.testing.assert_close(polytope.tangent(across, mask), torch.zeros_like(across))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 10_000), st.sampled_from([1e-3, 1.0, 50.0]))
def test_verbs_agree_with_each_other(n: int, k: int, seed: int, scale: float) -> None:
    chains = Chains(k)
    scores = draw(seed, n=n, k=k, scale=scale)
    z = chains.argmax(scores)
    assert chains.contains(z)
    mu, value = chains.marginals(scores), chains.log_partition(scores)
    states, steps = chains.unpack(mu)
    torch.testing.assert_close(steps.sum(-2), states[1:])
    torch.testing.assert_close(steps.sum(-1), states[:-1])
    every = brute.chains(chains.full_mask(scores))
    assert len(every) == k**n
    torch.testing.assert_close(value, brute.log_partition(every, scores))
    torch.testing.assert_close(mu, brute.marginals(every, scores), rtol=0, atol=1e-11)
    probabilities = chains.log_prob(scores.expand_as(every), every).exp()
    torch.testing.assert_close(probabilities.sum(), torch.ones((), dtype=torch.float64))
    other = draw(seed + 1, n=n, k=k, scale=scale)
    assert chains.kl(scores, other) >= 0
    assert chains.entropy(scores) <= n * math.log(k) + 1e-9
