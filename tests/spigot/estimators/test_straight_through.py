"""Estimators that need the argmax and nothing else."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch

import spigot
from spigot import (
    IMLE,
    BlackBox,
    Identity,
    OneOf,
    Perturbed,
    Pipeline,
    ProjectiveTrees,
    SparseMAP,
    Spigot,
    StraightThrough,
    StructuredAttention,
)

SOFT = [StructuredAttention(), SparseMAP(), Perturbed()]
ALL = [Pipeline(), StraightThrough(), Identity(), Spigot(), BlackBox(), IMLE(), *SOFT]
CLIPPED = [type(rule) for rule in ALL if not isinstance(rule, StructuredAttention)]


@pytest.mark.parametrize("rule", ALL, ids=str)
def test_every_estimator_constructs_without_arguments_and_says_its_forward(rule: spigot.AbstractEstimator) -> None:
    assert type(rule)() == rule
    assert rule.hard is (rule not in SOFT)
    assert isinstance(rule, spigot.AbstractEstimator)


def test_straight_through_is_the_identity() -> None:
    trees = ProjectiveTrees()
    scores = torch.randn(3, 6, 6, dtype=torch.float64, requires_grad=True)
    g = torch.randn(3, 6, 6, dtype=torch.float64)
    spigot.argmax(scores, trees, StraightThrough()).backward(g)
    assert scores.grad is not None
    assert torch.equal(scores.grad, g.masked_fill(~trees.full_mask(g), 0))


def test_pipeline_sends_nothing_back() -> None:
    scores = torch.randn(3, 6, 6, requires_grad=True)
    other = torch.randn(3, 6, 6, requires_grad=True)
    z = spigot.argmax(scores, ProjectiveTrees(), Pipeline())
    (z * other).sum().backward()
    assert scores.grad is None or not scores.grad.any()
    assert other.grad is not None
    assert torch.equal(other.grad, z)


@pytest.mark.parametrize("rule", [rule for rule in ALL if rule != Pipeline()], ids=str)
def test_gradients_reach_the_scorer(rule: spigot.AbstractEstimator) -> None:
    scorer = torch.nn.Linear(4, 5)
    z = spigot.argmax(scorer(torch.randn(8, 4)), OneOf(), rule)
    (z * torch.randn(8, 5)).sum().backward()
    assert scorer.weight.grad is not None
    assert scorer.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("rule", CLIPPED)
def test_max_norm_is_the_same_option_everywhere(rule: type[Spigot]) -> None:
    assert {field.name for field in dataclasses.fields(rule)} >= {"max_norm"}
    assert rule().max_norm is None
    assert rule(max_norm=2.0).max_norm == 2.0


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
@pytest.mark.parametrize("rule", CLIPPED)
def test_max_norm_must_be_positive(rule: type[Spigot], value: float) -> None:
    with pytest.raises(ValueError, match="max_norm"):
        rule(max_norm=value)


@pytest.mark.parametrize("value", [-1.0, float("nan")])
@pytest.mark.parametrize("rule", [StraightThrough, Identity, Spigot])
def test_step_must_not_be_negative(rule: type[Spigot], value: float) -> None:
    with pytest.raises(ValueError, match="eta"):
        rule(eta=value)


@pytest.mark.parametrize("max_norm", [None, 1.0])
@pytest.mark.parametrize("rule", [Spigot, spigot.LPGD, spigot.BlackBox, spigot.IMLE, spigot.SpigotEG])
def test_a_gradient_that_is_not_finite_is_called_a_gradient(rule: type[Spigot], max_norm: float | None) -> None:
    """The step that it leads to is refused, and neither the scores nor a point of the user's is at fault."""
    estimator = rule(max_norm=max_norm)
    scores, grad = torch.randn(3, 4, requires_grad=True), torch.zeros(3, 4)
    grad[2, 1] = torch.nan
    z = spigot.argmax(scores, OneOf(), estimator)
    with pytest.raises(ValueError, match=rf"gradient that reaches {rule.__name__} is NaN at part \[1\] of instance 2"):
        z.backward(grad)
    with pytest.raises(ValueError, match="gradient that reaches"):
        estimator.explain(OneOf(), scores.detach(), torch.full((3, 4), torch.nan))


def test_a_surrogate_gradient_cannot_be_differentiated_again() -> None:
    scores = torch.randn(4, requires_grad=True)
    z = spigot.argmax(scores, OneOf())
    (g,) = torch.autograd.grad((z * torch.randn(4, requires_grad=True)).sum(), scores, create_graph=True)
    with pytest.raises(RuntimeError):
        g.sum().backward()


def test_own_estimator_is_one_class() -> None:
    """An estimator that perturbs: its noise travels from the forward to the backward pass."""

    @dataclasses.dataclass(frozen=True)
    class Noisy(spigot.AbstractSurrogate):
        scale: float = 1.0
        max_norm: float | None = None

        hard = True

        def forward(self, structure, scores, mask):
            noise = self.scale * torch.randn_like(scores)
            return structure.argmax(scores + noise, mask), (noise,)

        def pullback(self, structure, scores, z, saved, grad, mask):
            (noise,) = saved
            return z - structure.argmax(scores + noise - grad, mask)

        def explain(self, structure, scores, grad, mask=None):
            raise NotImplementedError

    torch.manual_seed(3)
    scores = torch.zeros(50, 6, requires_grad=True)
    z = spigot.argmax(scores, OneOf(), Noisy())
    assert z.sum(-1).tolist() == [1] * 50
    assert (z.sum(0) > 0).all(), "the noise decides between equal scores"
    z.backward(torch.zeros_like(z))
    assert scores.grad is not None
    assert not scores.grad.any(), "the same noise in both passes: no gradient, no change"


@pytest.mark.parametrize("name", sorted(spigot.ESTIMATORS))
def test_every_estimator_that_projects_or_invents_clips_the_same_way(name: str) -> None:
    kind = spigot.ESTIMATORS[name]
    fields = [field.name for field in dataclasses.fields(kind)]  # pyright: ignore[reportArgumentType]
    if name == "attention":  # its gradient is a true one
        assert "max_norm" not in fields
        return
    rule = kind(max_norm=np.float32(0.25), clip_per="block", centred="block")  # pyright: ignore[reportCallIssue]
    trees, grad = ProjectiveTrees(), torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(2))
    mask = trees.full_mask(grad)
    clipped = rule.clip(trees, grad, mask)  # pyright: ignore[reportAttributeAccessIssue]
    assert torch.linalg.vector_norm(clipped, dim=-2).max() <= 0.25 + 1e-6
    torch.testing.assert_close(clipped.sum(-2), torch.zeros(3, 5))
    for wrong in ({"max_norm": 0.0}, {"clip_per": "block"}, {"centred": "some"}, {"max_norm": True}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
            kind(**wrong)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (spigot.Spigot, "eta"),
        (spigot.LPGD, "rho"),
        (spigot.AdaptiveIMLE, "target"),
        (spigot.BlackBox, "strength"),
        (spigot.Perturbed, "temperature"),
    ],
)
def test_settings_that_are_numbers_may_be_of_numpy_and_must_not_be_truth_values(kind: Any, name: str) -> None:
    rule = kind(**{name: np.float32(0.5)})
    assert type(getattr(rule, name)) is float
    assert rule == kind(**{name: 0.5})
    for wrong in (True, "a", math.nan, math.inf, -1, torch.tensor(0.5)):
        with pytest.raises(ValueError, match=rf"{name} is .*; it must be a"):
            kind(**{name: wrong})


class Scaled(spigot.AbstractSurrogate):
    """An estimator of a user's own, without fields."""

    def __init__(self, eta: float) -> None:
        object.__setattr__(self, "eta", eta)

    def pullback(self, structure, scores, z, saved, grad, mask):
        return grad


def test_estimators_with_attributes_of_their_own_are_told_apart() -> None:
    assert len({Scaled(1.0): 1, Scaled(5.0): 5}) == 2
