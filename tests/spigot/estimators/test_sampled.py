"""Estimators that send a sample forward: their expectations, by enumeration and by many draws."""

import numpy as np
import pytest
import torch
from torch import Tensor

import spigot
from spigot import (
    MarginalStraightThrough,
    OneOf,
    ProjectiveTrees,
    ReinMax,
    ScoreFunction,
    SemanticGraphs,
    StructuredAttention,
    score_function,
)
from tests.spigot.estimators.test_spigot import backward, draw

SCORES = torch.tensor([0.5, -0.3, 1.1, 0.0], dtype=torch.float64)


def quadratic(z: Tensor) -> Tensor:
    """A loss of one-of-4 with all the interactions a quadratic one can have."""
    generator = torch.Generator().manual_seed(4)
    matrix, vector = torch.randn(4, 4, generator=generator).double(), torch.randn(4, generator=generator).double()
    return 0.5 * (z @ matrix * z).sum(-1) + z @ vector


def cubic(z: Tensor) -> Tensor:
    return quadratic(z) + 2.0 * (z @ torch.tensor([0.2, -0.4, 0.9, 0.5], dtype=torch.float64)) ** 3


def exact_gradient(loss, scores: Tensor) -> Tensor:
    """Of the expected loss, by enumeration."""
    leaf = scores.clone().requires_grad_()
    (leaf.softmax(-1) * loss(torch.eye(len(scores), dtype=scores.dtype))).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


def expected_gradient(loss, scores: Tensor, rule) -> Tensor:
    """The mean of what an estimator sends back when each member goes forward, by enumeration."""
    total = torch.zeros_like(scores)
    for z, chance in zip(torch.eye(len(scores), dtype=scores.dtype), scores.softmax(-1), strict=True):
        leaf = z.clone().requires_grad_()
        (grad,) = torch.autograd.grad(loss(leaf), leaf)
        total += chance * rule(scores, z, grad)
    return total


def reinmax(temperature: float):
    mask = torch.ones(4, dtype=torch.bool)
    return lambda scores, z, grad: ReinMax(temperature).pullback(OneOf(), scores, z, (), grad, mask)


def straight_through(scores: Tensor, z: Tensor, grad: Tensor) -> Tensor:
    q = scores.softmax(-1)
    return q * (grad - q @ grad)


def test_reinmax_is_exact_for_quadratic_losses_and_straight_through_is_not() -> None:
    exact = exact_gradient(quadratic, SCORES)
    torch.testing.assert_close(expected_gradient(quadratic, SCORES, reinmax(1.0)), exact, rtol=0, atol=1e-12)
    assert (expected_gradient(quadratic, SCORES, straight_through) - exact).abs().max() > 0.05
    assert (expected_gradient(quadratic, SCORES, reinmax(2.0)) - exact).abs().max() > 1e-3


def test_reinmax_misses_what_is_beyond_second_order() -> None:
    """The bias of a loss whose curvature changes by h falls as h^2 squared; straight-through's as h."""
    scores = SCORES

    def gentle(h: float):
        slope = torch.tensor([0.2, -0.4, 0.9, 0.5], dtype=torch.float64)
        return lambda z: torch.exp(h * (z @ slope)) / h  # derivatives of order k have size h^(k-1)

    biases = {}
    for name, rule in (("reinmax", reinmax(1.0)), ("ste", straight_through)):
        for h in (0.2, 0.1):
            bias = expected_gradient(gentle(h), scores, rule) - exact_gradient(gentle(h), scores)
            biases[name, h] = float(bias.abs().max())
    assert biases["reinmax", 0.2] / biases["reinmax", 0.1] == pytest.approx(4, rel=0.2)
    assert biases["ste", 0.2] / biases["ste", 0.1] == pytest.approx(2, rel=0.2)
    assert biases["reinmax", 0.1] < biases["ste", 0.1] / 10


def test_reinmax_in_numpy() -> None:
    s, g, t = SCORES.numpy(), np.array([0.3, -1.0, 0.5, 2.0]), 1.7
    leaf = SCORES.clone().requires_grad_()
    z = spigot.argmax(leaf, OneOf(), ReinMax(t, seed=5))
    z.backward(torch.from_numpy(g))
    soft = [np.exp(s / u) / np.exp(s / u).sum() for u in (1.0, t)]
    mixed = (soft[1] + z.detach().numpy()) / 2
    jacobians = [np.diag(q) - np.outer(q, q) for q in (mixed, soft[0])]
    assert leaf.grad is not None
    np.testing.assert_allclose(leaf.grad.numpy(), 2 * jacobians[0] @ g - jacobians[1] @ g / 2, rtol=1e-12)


def test_reinmax_draws_from_the_softmax() -> None:
    many = SCORES + 1e-9 * torch.arange(20_000).unsqueeze(-1)  # scores of their own, so draws of their own
    z = spigot.argmax(many.requires_grad_(), OneOf(), ReinMax(seed=3)).detach()
    torch.testing.assert_close(z.mean(0), SCORES.softmax(-1), rtol=0, atol=0.02)
    with torch.no_grad():
        assert torch.equal(spigot.argmax(many, OneOf(), ReinMax()), OneOf().argmax(many))


def test_reinmax_is_for_one_of_k() -> None:
    with pytest.raises(TypeError, match=r"ReinMax is for OneOf, and ProjectiveTrees.* Use Marginal.* or Spigot"):
        spigot.argmax(torch.zeros(3, 3), ProjectiveTrees(), ReinMax())


@pytest.mark.parametrize("structure", [OneOf(), ProjectiveTrees(), SemanticGraphs(labels=2)], ids=str)
def test_marginal_straight_through_has_the_gradient_of_attention(structure: spigot.AbstractStructure) -> None:
    scores, g = draw(structure, 5)
    found = backward(scores, structure, MarginalStraightThrough(sampled=False), g)
    expected = backward(scores, structure, StructuredAttention(), g)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    cooled = backward(scores, structure, MarginalStraightThrough(backward_temperature=4.0, sampled=False), g)
    torch.testing.assert_close(4 * cooled, backward(scores / 4, structure, StructuredAttention(), g))


@pytest.mark.parametrize("structure", [OneOf(), spigot.Subsets(2)], ids=str)
def test_draws_belong_to_the_instance(structure: spigot.AbstractStructure) -> None:
    scores = torch.randn(50, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()
    rule = MarginalStraightThrough(seed=2)
    z = spigot.argmax(scores, structure, rule)
    assert structure.contains(z.detach()).all()
    assert not torch.equal(z, structure.argmax(scores))
    torch.manual_seed(9)
    assert torch.equal(spigot.argmax(scores, structure, rule), z)
    assert torch.equal(spigot.argmax(scores[7:9], structure, rule), z[7:9])
    assert not torch.equal(spigot.argmax(scores, structure, MarginalStraightThrough(seed=3)), z)
    assert torch.equal(rule.explain(structure, scores, torch.ones_like(scores)).z, z)
    with torch.no_grad():
        assert torch.equal(spigot.argmax(scores, structure, rule), structure.argmax(scores))


def test_the_forward_temperature_is_that_of_the_draw() -> None:
    many = SCORES.float() + 1e-5 * torch.arange(20_000).unsqueeze(-1)
    for temperature in (0.5, 3.0):
        z = spigot.argmax(many.clone().requires_grad_(), OneOf(), MarginalStraightThrough(temperature))
        torch.testing.assert_close(z.detach().mean(0), (SCORES.float() / temperature).softmax(-1), rtol=0, atol=0.02)


@pytest.mark.parametrize("loss", [quadratic, cubic])
def test_the_score_function_is_unbiased(loss) -> None:
    leaf = (SCORES + torch.zeros(20_000, 1)).requires_grad_()
    each = 1e-12 * torch.arange(20_000, dtype=torch.float64).unsqueeze(-1)
    value = score_function(loss, OneOf(), leaf + each, samples=3, seed=1)
    value.sum().backward()
    assert leaf.grad is not None
    exact = exact_gradient(loss, SCORES)
    error = leaf.grad.std(0) / 20_000**0.5
    assert exact.abs().max() > 10 * error.max(), "there is something to see"
    assert ((leaf.grad.mean(0) - exact).abs() < 5 * error).all()
    mean = (SCORES.softmax(-1) * loss(torch.eye(4, dtype=torch.float64))).sum()
    assert abs(float(value.detach().mean() - mean)) < 5 * float(value.detach().std()) / 20_000**0.5


def test_the_score_function_by_hand_and_with_parameters() -> None:
    leaf, weight = SCORES.clone().requires_grad_(), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    seen = []

    def loss(z: Tensor) -> Tensor:
        seen.append(z)
        return weight * quadratic(z)

    value = score_function(loss, OneOf(), leaf, samples=5)
    value.backward()
    (z,) = seen
    losses, mu = 2 * quadratic(z), SCORES.softmax(-1)
    by_hand = sum((losses[i] - losses.mean()) * (z[i] - mu) for i in range(5)) / 4
    assert leaf.grad is not None
    assert weight.grad is not None
    torch.testing.assert_close(leaf.grad, by_hand, rtol=0, atol=1e-12)
    torch.testing.assert_close(weight.grad, quadratic(z).mean())
    torch.testing.assert_close(value.detach(), losses.mean())


def test_nothing_to_learn_has_no_variance() -> None:
    """A constant loss, and a distribution that leaves no choice."""
    leaf = torch.randn(10, 4, dtype=torch.float64).requires_grad_()
    score_function(lambda z: torch.full(z.shape[:-1], 3.0), OneOf(), leaf, samples=4).sum().backward()
    assert leaf.grad is not None
    assert not leaf.grad.any()
    sure = torch.tensor([0.0, -torch.inf, -torch.inf, -torch.inf], dtype=torch.float64).requires_grad_()
    score_function(lambda z: z @ torch.arange(4.0, dtype=torch.float64), OneOf(), sure).backward()
    assert sure.grad is not None
    assert not sure.grad.any()
    one = torch.randn(4, dtype=torch.float64).requires_grad_()
    only = torch.tensor([False, True, False, False])
    score_function(lambda z: z.sum(-1), OneOf(), one, mask=only).backward()
    assert one.grad is not None
    assert not one.grad.any()


def test_the_estimator_is_unbiased_for_linear_losses() -> None:
    g = torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64)
    many = SCORES + 1e-12 * torch.arange(20_000).unsqueeze(-1)
    found = backward(many, OneOf(), ScoreFunction(samples=4, seed=2), g.expand(20_000, 4))
    q = SCORES.softmax(-1)
    error = found.std(0) / 20_000**0.5
    assert ((found.mean(0) - q * (g - q @ g)).abs() < 5 * error).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: score_function(lambda z: z.sum(), OneOf(), SCORES), r"loss returned \(\); it must be one value for"),
        (
            lambda: score_function(quadratic, OneOf(), SCORES, samples=1),
            "samples is 1; it must be a whole number, 2 or",
        ),
        (lambda: ScoreFunction(samples=1), "samples is 1; it must be a whole number, 2 or more"),
        (
            lambda: MarginalStraightThrough(backward_temperature=0.0),
            r"backward_temperature is 0\.0; it must be a positive",
        ),
        (lambda: ReinMax(-1.0), r"temperature is -1\.0; it must be a positive"),
        (lambda: ReinMax(seed=-1), "seed is -1"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_cannot_be_drawn_from_is_told() -> None:
    graphs = SemanticGraphs(labels=2, deterministic=(0,))
    scores = torch.zeros(3, 3, 3, requires_grad=True)
    with pytest.raises(TypeError, match=r"MarginalStraightThrough needs marginals, and SemanticGraphs.* has none"):
        spigot.argmax(scores, graphs, MarginalStraightThrough())
    for call in (
        lambda: spigot.argmax(scores, graphs, ScoreFunction()),
        lambda: score_function(lambda z: z.sum((-1, -2, -3)), graphs, scores),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(TypeError, match=r"draws samples, and SemanticGraphs.* cannot be drawn from\. Use"):
            call()


def test_losses_may_be_counts() -> None:
    scores = torch.zeros(4, 5, requires_grad=True)
    value = score_function(lambda z: z[..., 0] != 0, OneOf(), scores, samples=50)
    assert value.dtype == torch.float32
    value.sum().backward()
    assert scores.grad is not None
    assert (scores.grad[:, 0] > 0).all()
