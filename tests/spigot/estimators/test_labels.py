"""Labels pulled back from the loss, in one step and in several."""

from typing import Any

import pytest
import torch

import spigot
from spigot import (
    AbstractStructure,
    NonProjectiveTrees,
    OneOf,
    ProjectiveTrees,
    SemanticGraphs,
    SparseMAP,
    Spigot,
    SpigotCE,
    SpigotEG,
    StructuredAttention,
    crf_nll,
    pulled_back_label,
)
from tests.spigot.estimators.test_spigot import backward, draw, every_structure

GRAPHS = SemanticGraphs(labels=2, deterministic=(0,))


@every_structure
def test_from_the_vertex_it_is_spigot(structure: AbstractStructure) -> None:
    scores, g = draw(structure, 6)
    found = backward(scores, structure, SpigotCE(0.7, "vertex"), g)
    torch.testing.assert_close(found, backward(scores, structure, Spigot(0.7), g), rtol=0, atol=1e-12)
    assert found.any()


@every_structure
@pytest.mark.parametrize("start", ["marginals", "sparsemap"])
def test_one_step_by_hand(structure: Any, start: Any) -> None:
    scores, g = draw(structure, 4)
    mask = structure.full_mask(scores)
    soft = StructuredAttention() if start == "marginals" else SparseMAP()
    p = spigot.argmax(scores, structure, soft)
    expected = p - structure.relaxation.project(p - 0.3 * g.masked_fill(~mask, 0), mask)
    torch.testing.assert_close(backward(scores, structure, SpigotCE(0.3, start), g), expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(spigot.argmax(scores, structure, SpigotCE(0.3, start, soft=True)), p)
    assert torch.equal(spigot.argmax(scores, structure, SpigotCE(0.3, start)), structure.argmax(scores))


@every_structure
def test_a_short_exponentiated_step_is_the_gradient_of_attention(structure: Any) -> None:
    scores, g = draw(structure, 5)
    found = backward(scores, structure, SpigotEG(1e-5), g) / 1e-5
    torch.testing.assert_close(found, backward(scores, structure, StructuredAttention(), g), rtol=0, atol=1e-4)


def test_one_independent_part() -> None:
    """A predicate of a graph: on or off, whatever else is."""
    graphs = SemanticGraphs(labels=0)
    for score in (-4.0, 0.0, 1.5):
        scores = torch.tensor([[[score]]], dtype=torch.float64)
        mu = float(torch.tensor(score, dtype=torch.float64).sigmoid())
        for g in (1.0, -1.0):
            back = float(backward(scores, graphs, SpigotEG(1e-6), torch.full_like(scores, g)))
            assert back == pytest.approx(mu * (1 - mu) * 1e-6 * g, rel=1e-5)
            # Where SPIGOT is blind in one direction, a step from the marginals is not.
            inside = float(backward(scores, graphs, SpigotCE(1e-3), torch.full_like(scores, g)))
            assert inside == pytest.approx(1e-3 * g, rel=1e-6)


@every_structure
@pytest.mark.parametrize("rule", [SpigotCE(), SpigotCE(start="vertex"), SpigotEG(), SpigotEG(soft=True)], ids=str)
def test_no_gradient_gives_none(structure: AbstractStructure, rule: SpigotCE | SpigotEG) -> None:
    scores, g = draw(structure, 4)
    assert backward(scores.float(), structure, rule, torch.zeros_like(g).float()).abs().max() < 1e-12


def test_hard_and_soft() -> None:
    assert SpigotCE().hard
    assert SpigotEG().hard
    assert not SpigotCE(soft=True).hard
    assert not SpigotEG(soft=True).hard


@pytest.mark.parametrize("rule", [SpigotCE(), SpigotEG(), SpigotEG(soft=True)], ids=str)
def test_without_marginals_it_says_what_to_do(rule: SpigotCE | SpigotEG) -> None:
    with pytest.raises(TypeError, match=r"needs marginals, and SemanticGraphs.* Use SpigotCE\(start=\"sparsemap\"\)"):
        spigot.argmax(torch.zeros(3, 3, 3), GRAPHS, rule)
    scores = torch.randn(3, 3, 3, requires_grad=True)
    spigot.argmax(scores, GRAPHS, SpigotCE(start="sparsemap")).sum().backward()
    assert scores.grad is not None


@pytest.mark.parametrize("structure", [OneOf(), ProjectiveTrees(), NonProjectiveTrees()], ids=str)
def test_one_step_towards_the_label_is_the_estimator(structure: Any) -> None:
    scores, target = draw(structure, 5)
    target = target.masked_fill(~structure.full_mask(target), 0)

    def loss(p):
        return (p - target).square().flatten(-structure.event_ndim).sum(-1)

    for method, rule in (("projected", SpigotCE(0.2, soft=True)), ("exponentiated", SpigotEG(0.2, soft=True))):
        label = pulled_back_label(loss, structure, scores, eta=0.2, method=method)  # pyright: ignore[reportArgumentType]
        assert not label.requires_grad
        leaf, other = scores.clone().requires_grad_(), scores.clone().requires_grad_()
        crf_nll(leaf, label, structure).sum().backward()
        loss(spigot.argmax(other, structure, rule)).sum().backward()
        assert leaf.grad is not None
        assert other.grad is not None
        torch.testing.assert_close(leaf.grad, other.grad, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["projected", "exponentiated"])
def test_many_steps_find_what_the_loss_would_like(method: Any) -> None:
    trees = ProjectiveTrees()
    scores, _ = draw(trees, 4)
    wanted = trees.argmax(torch.randn(4, 6, 6, dtype=torch.float64))
    losses = [
        float((pulled_back_label(loss, trees, scores, steps=steps, eta=0.3, method=method) - wanted).square().sum())
        for steps in (1, 4, 40)
        for loss in [lambda p: (p - wanted).square().sum()]
    ]
    assert losses[0] > losses[1] > losses[2]
    assert losses[2] < (0.01 if method == "projected" else 2.0)


def test_masks_and_half_precision() -> None:
    scores, mask = torch.randn(3, 4), torch.tensor([True, True, False, True])
    label = pulled_back_label(lambda p: (p * scores).sum(-1), OneOf(), scores, mask=mask, start="sparsemap")
    assert not label[:, 2].any()
    torch.testing.assert_close(label.sum(-1), torch.ones(3))
    half = pulled_back_label(lambda p: p.square().sum(), OneOf(), scores.half(), start="vertex", polytope=spigot.Box())
    assert half.dtype == torch.float16


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps is 0; it must be a whole number, 1 or more"),
        ({"eta": -1.0}, r"eta is -1\.0; it must be a finite number"),
        ({"method": "newton"}, "method is 'newton'; it must be 'projected' or 'exponentiated'"),
        ({"start": "middle"}, "start is 'middle'; it must be 'marginals', 'vertex' or 'sparsemap'"),
        ({"method": "exponentiated", "start": "vertex"}, "exponentiated steps go from marginals to marginals"),
        (
            {"loss": lambda p: torch.tensor(1.0)},
            "loss returned .*; it must be a tensor that is computed from the point",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    loss = settings.pop("loss", lambda p: p.sum())
    with pytest.raises(ValueError, match=message):
        pulled_back_label(loss, OneOf(), torch.zeros(3), **settings)


def test_a_start_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="start is 'here'"):
        SpigotCE(start="here")  # pyright: ignore[reportArgumentType]
