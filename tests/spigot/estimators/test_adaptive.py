"""Adaptive I-MLE: its step by hand, and a state that lives in the module and nowhere else."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

import spigot
from spigot import IMLE, AdaptiveIMLE, Argmax, OneOf, ProjectiveTrees
from tests.spigot.estimators.test_spigot import backward, draw


def gradient(layer: Argmax, scores: Tensor, g: Tensor) -> Tensor:
    leaf = scores.clone().requires_grad_()
    layer(leaf).backward(g)
    assert leaf.grad is not None
    return leaf.grad


def test_it_is_imle_with_a_step_of_its_own_for_each_instance() -> None:
    trees = ProjectiveTrees()
    scores, g = draw(trees, 5)
    mask = trees.full_mask(scores)
    g = g.masked_fill(~mask, 0)
    rule = AdaptiveIMLE(start=0.7, temperature=0.5, samples=3, seed=4)
    found = gradient(Argmax(trees, rule), scores, g)
    for s, d, mine in zip(scores, g, found, strict=True):
        strength = 0.7 * float(torch.linalg.vector_norm(s[mask[0]]) / torch.linalg.vector_norm(d))
        theirs = backward(s, trees, IMLE(strength, temperature=0.5, samples=3, seed=4), d)
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-6)  # 0.7 is kept in float32
    assert found.any()


def test_what_comes_back_scales_with_the_loss_and_not_with_the_scores_unit() -> None:
    scores, g = draw(OneOf(), 40)
    layer = Argmax(OneOf(), AdaptiveIMLE(temperature=0.0)).eval()
    found = gradient(layer, scores, g)
    assert found.any()
    torch.testing.assert_close(gradient(layer, scores, 7 * g), 7 * found)
    torch.testing.assert_close(gradient(layer, 7 * scores, g), found / 7)
    assert not gradient(layer, scores, torch.zeros_like(g)).any()
    assert gradient(layer, torch.zeros_like(scores), g).isfinite().all()


def test_two_sided_by_hand() -> None:
    scores, g = draw(OneOf(), 20)
    found = gradient(Argmax(OneOf(), AdaptiveIMLE(temperature=0.0, two_sided=True)), scores, g)
    norms = [torch.linalg.vector_norm(values, dim=-1, keepdim=True) for values in (scores, g)]
    strength = norms[0] / norms[1]
    above, below = (OneOf().argmax(scores + sign * strength * g) for sign in (1, -1))
    torch.testing.assert_close(found, (above - below) / (2 * strength))


def test_beta_is_moved_until_the_target_is_held() -> None:
    """From both sides, on instances whose margins say which beta that is."""
    generator = torch.Generator().manual_seed(0)
    scores, g = torch.randn(2, 200, 6, generator=generator)
    betas = []
    for start in (1e-3, 1e3):
        layer = Argmax(OneOf(), AdaptiveIMLE(target=0.5, rate=0.1, start=start, temperature=0.0))
        counts = []
        for _ in range(120):
            counts.append(float((gradient(layer, scores, g) != 0).sum(-1).float().mean()))
        assert abs(counts[0] - 0.5) > 0.3
        assert sum(counts[-20:]) / 20 == pytest.approx(0.5, abs=0.1)
        betas.append(float(layer.get_buffer("beta")))
    assert betas[0] == pytest.approx(betas[1], rel=0.5)


def test_the_state_is_a_buffer_and_nothing_else_is() -> None:
    layer = Argmax(OneOf(), AdaptiveIMLE(start=2.0))
    assert sorted(layer.state_dict()) == ["average", "beta"]
    assert not list(layer.parameters())
    assert not Argmax(OneOf(), IMLE()).state_dict()
    scores, g = torch.randn(2, 8, 5)
    gradient(layer, scores, g)
    moved = copy.deepcopy(layer.state_dict())
    assert float(moved["beta"]) in (pytest.approx(2 * 1.01), pytest.approx(2 / 1.01))
    assert layer.estimator == AdaptiveIMLE(start=2.0)
    with torch.no_grad():
        layer(scores)
    layer.eval()
    expected = gradient(layer, scores, g)
    layer.with_state().explain(OneOf(), scores, g)
    layer.train().with_state().explain(OneOf(), scores, g)
    gradient(layer, scores, torch.zeros_like(g))  # which says nothing about the step
    gradient(layer, scores[:0], g[:0])
    assert {name: float(value) for name, value in layer.state_dict().items()} == {
        name: float(value) for name, value in moved.items()
    }
    again = Argmax(OneOf(), AdaptiveIMLE(start=2.0)).eval()
    again.load_state_dict(moved)
    assert torch.equal(gradient(again, scores, g), expected)
    torch.testing.assert_close(layer.with_state().explain(OneOf(), scores, g).gradient, expected)


def test_a_resumed_training_goes_on_as_it_was() -> None:
    scores, g = torch.randn(2, 30, 8, 5)
    whole = Argmax(OneOf(), AdaptiveIMLE(rate=0.2))
    there = [gradient(whole, *pair) for pair in zip(scores, g, strict=True)]
    half = Argmax(OneOf(), AdaptiveIMLE(rate=0.2))
    for pair in zip(scores[:15], g[:15], strict=True):
        gradient(half, *pair)
    resumed = Argmax(OneOf(), AdaptiveIMLE(rate=0.2))
    resumed.load_state_dict(half.state_dict())
    for pair, expected in zip(zip(scores[15:], g[15:], strict=True), there[15:], strict=True):
        assert torch.equal(gradient(resumed, *pair), expected)
    assert resumed.state_dict() == whole.state_dict()


def test_a_function_has_nowhere_to_keep_it() -> None:
    scores = torch.randn(4)
    assert torch.equal(spigot.argmax(scores, OneOf(), AdaptiveIMLE()), OneOf().argmax(scores))
    with pytest.raises(TypeError, match=r"needs a place to keep it; use it in a module, spigot\.Argmax"):
        spigot.argmax(scores.requires_grad_(), OneOf(), AdaptiveIMLE())
    layer = Argmax(OneOf(), AdaptiveIMLE())
    spigot.argmax(scores, OneOf(), layer.with_state(training=True))[0].backward()
    assert float(layer.get_buffer("beta")) != 1


@pytest.mark.parametrize("cast", [Argmax.half, Argmax.bfloat16, Argmax.double], ids=lambda cast: cast.__name__)
def test_a_cast_of_the_module_leaves_its_state_alone(cast: Any) -> None:
    layer = cast(Argmax(OneOf(), AdaptiveIMLE(start=0.1)))
    assert layer.get_buffer("beta").dtype == layer.get_buffer("average").dtype == torch.float32
    assert float(layer.get_buffer("beta")) == float(torch.tensor(0.1)), "and it never was anything else"


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile, about itself
def test_compiled_it_learns_as_well() -> None:
    plain, traced = (Argmax(OneOf(), AdaptiveIMLE(rate=0.2, temperature=0.0)) for _ in range(2))
    compiled = torch.compile(traced, fullgraph=True, backend="aot_eager")
    scores, g = torch.randn(2, 5, 8, 6)
    for s, d in zip(scores, g, strict=True):
        leaf = s.clone().requires_grad_()
        compiled(leaf).backward(d)
        assert leaf.grad is not None
        torch.testing.assert_close(leaf.grad, gradient(plain, s, d))
    torch.testing.assert_close(dict(traced.state_dict()), dict(plain.state_dict()))
    assert float(plain.get_buffer("beta")) != 1


@pytest.mark.parametrize(
    "settings",
    [{"target": 0.0}, {"rate": -0.1}, {"start": float("inf")}, {"temperature": -1.0}, {"samples": 0}, {"seed": -1}],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"^{next(iter(settings))} is "):
        AdaptiveIMLE(**settings)


@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e20])
def test_gradients_of_any_size_are_sent_back(scale: float) -> None:
    """Their lengths overflow or vanish in float32; what comes back is linear in them all the same."""
    layer = Argmax(OneOf(), AdaptiveIMLE(start=10.0))
    scores = torch.tensor([[0.3, 0.1, 0.2]], requires_grad=True)
    layer(scores).backward(scale * torch.tensor([[0.0, -1.0, 1.0]]))
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad.any()


def test_a_layer_in_half_precision_learns() -> None:
    layer = Argmax(OneOf(), AdaptiveIMLE(start=10.0)).half()
    scores = torch.tensor([[0.3, 0.1, 0.2]], dtype=torch.float16, requires_grad=True)
    layer(scores).backward(torch.tensor([[0.0, -1.0, 1.0]], dtype=torch.float16))
    assert scores.grad is not None
    assert scores.grad.any()
