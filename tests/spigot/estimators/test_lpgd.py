"""LPGD: what it tends to, what it does by hand, and what its scale follows."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import spigot
from spigot import (
    LPGD,
    AbstractStructure,
    ArcLabel,
    BlackBox,
    Box,
    ConvexHull,
    NonProjectiveTrees,
    OneOf,
    Oracle,
    ProjectiveTrees,
    SemanticGraphs,
    Spigot,
    StraightThrough,
)
from tests.spigot.estimators.test_spigot import STRUCTURES, Everywhere, backward, draw, every_structure
from tests.spigot.masks import best_two


@every_structure
@pytest.mark.parametrize("two_sided", [False, True])
def test_by_hand(structure: AbstractStructure, two_sided: bool) -> None:
    scores, g = draw(structure, 6)
    mask = structure.full_mask(scores)
    inside = g.masked_fill(~mask, 0)
    centre = structure.argmax(scores) + scores / 3
    polytope = structure.relaxation
    low = polytope.project(centre - 0.5 * inside, mask)
    high = polytope.project(centre + 0.5 * inside if two_sided else centre, mask)
    expected = (high - low) / (2 if two_sided else 1)
    found = backward(scores, structure, LPGD(0.5, 3.0, two_sided=two_sided), g)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert found.any()


@given(st.integers(0, 10_000), st.integers(1, 8), st.sampled_from([0.1, 1.0, 5.0]))
def test_tends_to_spigot_at_the_rate_of_one_over_rho(seed: int, k: int, eta: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores, g = torch.randn(2, k, generator=generator, dtype=torch.float64)
    limit = backward(scores, OneOf(), Spigot(eta), g)
    for rho in (1e2, 1e4, 1e6):
        apart = (backward(scores, OneOf(), LPGD(eta, rho), g) - limit).abs().max()
        assert apart <= 2 * (scores.max() - scores.min()) / rho + 1e-12


@every_structure
def test_tends_to_spigot(structure: AbstractStructure) -> None:
    scores, g = draw(structure, 6)
    limit = backward(scores, structure, Spigot(0.7), g)
    errors = [float((backward(scores, structure, LPGD(0.7, rho), g) - limit).abs().max()) for rho in (1e1, 1e3, 1e7)]
    assert errors[2] <= 1e-5 < errors[0]
    assert errors[1] <= max(errors[0] / 10, 1e-3)


@pytest.mark.parametrize(
    "structure", [OneOf(), ProjectiveTrees(), NonProjectiveTrees(), SemanticGraphs(labels=2)], ids=str
)
def test_tends_to_blackbox_on_the_hull(structure: AbstractStructure) -> None:
    scores, g = draw(structure, 5)
    for tau in (0.5, 2.0):
        rho = 1e-4
        found = backward(scores, structure, LPGD(tau / rho, rho, ConvexHull(structure)), g)
        limit = tau * backward(scores, structure, BlackBox(tau), g)
        torch.testing.assert_close(found, limit, rtol=0, atol=1e-5)
    assert limit.any()


@every_structure
def test_without_a_polytope_it_is_straight_through(structure: AbstractStructure) -> None:
    scores, g = draw(structure, 4)
    for rule in (LPGD(0.5, 2.0, Everywhere()), LPGD(0.5, "auto", Everywhere(), two_sided=True)):
        found = backward(scores, structure, rule, g)
        torch.testing.assert_close(found, backward(scores, structure, StraightThrough(0.5), g), rtol=0, atol=1e-12)


@every_structure
@pytest.mark.parametrize("rule", [LPGD(), LPGD(2.0, 0.5, two_sided=True), LPGD(rho="auto")], ids=str)
def test_no_gradient_gives_exactly_none(structure: AbstractStructure, rule: LPGD) -> None:
    scores, g = draw(structure, 4)
    assert not backward(scores, structure, rule, torch.zeros_like(g)).any()
    assert not backward(scores, structure, LPGD(0.0, rule.rho), g).any()


def test_a_small_step_is_the_jacobian_of_the_regularised_argmax() -> None:
    """On trees the relaxation's own optimum lies inside it, where the projection has a derivative."""
    trees = ProjectiveTrees()
    torch.manual_seed(0)
    scores, g = draw(trees, 6)
    rho, eta = 2.0, 1e-6
    z = trees.argmax(scores)
    at = scores.clone().requires_grad_()
    point = trees.relaxation.project(z + at / rho, trees.full_mask(scores))
    (jacobian,) = torch.autograd.grad(rho * point, at, g.masked_fill(~trees.full_mask(g), 0))
    assert jacobian.abs().max() > 0.1
    torch.testing.assert_close(backward(scores, trees, LPGD(eta, rho), g) / eta, jacobian, rtol=0, atol=1e-6)


def test_parts_move_whose_margin_the_step_outweighs() -> None:
    """An entry of one-of-k alone against the chosen one, around the margin."""
    scores = torch.tensor([1.0, 0.0], dtype=torch.float64)
    for difference, moves in ((0.9, False), (1.1, True)):
        g = torch.tensor([difference, 0.0], dtype=torch.float64)
        assert backward(scores, OneOf(), LPGD(0.25, 4.0), g).any() == moves
        assert backward(scores, OneOf(), Spigot(0.25), g).any()


def test_an_arc_that_is_far_from_the_decision_gets_nothing() -> None:
    graphs = SemanticGraphs(labels=2)
    scores = torch.full((3, 3, 3), -12.0)
    scores[1, 2] = torch.tensor([-0.5, 0.0, -1.0])
    g = torch.full((3, 3, 3), -0.1)
    spigot_too = backward(scores, graphs, Spigot(), g)
    found = backward(scores, graphs, LPGD(rho=10.0), g)
    assert (spigot_too != 0).sum() > 10
    assert found.nonzero()[:, :2].unique(dim=0).tolist() == [[1, 2]]


INFINITE: list[tuple[AbstractStructure, Any]] = [
    (OneOf(), [0.3, -torch.inf, 0.1, torch.inf]),
    (OneOf(), [-torch.inf, -torch.inf, -torch.inf, -torch.inf]),
    (OneOf(), [torch.inf, torch.inf, 0.0, 1.0]),
    (Oracle(best_two, batched=True), [torch.inf, -torch.inf, 1.0, 0.5]),
]


@pytest.mark.parametrize(("structure", "values"), INFINITE, ids=str)
@pytest.mark.parametrize("rule", [LPGD(rho=2.0), LPGD(rho="auto", two_sided=True)], ids=str)
def test_infinite_scores_make_no_nan(structure: AbstractStructure, values: list[float], rule: LPGD) -> None:
    scores = torch.tensor(values, dtype=torch.float64)
    g = torch.tensor([0.5, -2.0, 0.3, 1.0], dtype=torch.float64)
    found = backward(scores, structure, rule, g)
    assert found.isfinite().all()
    assert not found[scores.isneginf() & (structure.argmax(scores) == 0)].any()
    if int(scores.isposinf().sum()) == 1:
        assert not found[scores.isposinf()].any(), "what outdoes the rest stays chosen"


@pytest.mark.parametrize("structure", STRUCTURES[1:], ids=str)
@pytest.mark.parametrize("rule", [LPGD(rho=2.0), LPGD(rho="auto", two_sided=True)], ids=str)
def test_infinite_scores_are_missing_parts(structure: AbstractStructure, rule: LPGD) -> None:
    """As if the mask had left them out; and a part of +inf is as one that leads by far."""
    scores, g = draw(structure, 8)
    mask = structure.full_mask(scores)
    z = structure.argmax(scores)
    out = (torch.rand(scores.shape, generator=torch.Generator().manual_seed(3)) < 0.3) & (z == 0) & mask
    if isinstance(structure, SemanticGraphs):
        out[..., 0] = False  # an arc without its labels is another matter
    removed = scores.masked_fill(out, -torch.inf)
    found = backward(removed, structure, rule, g)
    leaf = scores.clone().requires_grad_()
    spigot.argmax(leaf, structure, rule, mask=mask & ~out).backward(g)
    assert leaf.grad is not None
    torch.testing.assert_close(found, leaf.grad, rtol=0, atol=1e-12)
    assert found.any()
    sure, certain = scores.clone(), scores.clone()
    first = tuple(z[0].nonzero()[0].tolist())
    sure[0][first], certain[0][first] = 1e5, torch.inf
    if rule.rho != "auto":  # whose scale is that of the finite scores
        limit = backward(sure, structure, rule, g)
        torch.testing.assert_close(backward(certain, structure, rule, g), limit, rtol=0, atol=1e-9)


def test_every_arc_of_minus_infinity() -> None:
    graphs = SemanticGraphs(labels=2)
    scores, g = draw(graphs, 4)
    scores[0] = -torch.inf
    scores[1, ..., 0] = -torch.inf
    scores[2, 1, 2, 0] = torch.inf
    for polytope in (None, ArcLabel(sequential=True), ConvexHull(graphs)):
        found = backward(scores, graphs, LPGD(rho=2.0, polytope=polytope), g)
        assert found.isfinite().all()
        assert not found[:2].any()


@pytest.mark.parametrize("structure", [*STRUCTURES, Oracle(best_two, batched=True)], ids=str)
def test_auto_follows_the_scale_of_scores_and_losses(structure: AbstractStructure) -> None:
    """Which parts move depends on neither; how far, on the loss."""
    scores, g = draw(structure, 30) if not isinstance(structure, Oracle) else torch.randn(2, 30, 5, dtype=torch.float64)
    polytope = Box(structure.event_ndim) if isinstance(structure, Oracle) else None
    rule = LPGD(0.01, "auto", polytope)
    found = backward(scores, structure, rule, g)
    assert found.any()
    torch.testing.assert_close(backward(1000 * scores, structure, rule, g), found, rtol=1e-6, atol=1e-14)
    torch.testing.assert_close(backward(0.001 * scores, structure, rule, g), found, rtol=1e-6, atol=1e-14)
    assert torch.equal(backward(scores, structure, rule, 0.1 * g) != 0, found != 0)
    if polytope is None:
        fewer = (found != 0).sum()
        assert fewer < (backward(scores, structure, Spigot(0.01), g) != 0).sum(), "SPIGOT moves all it can"


def test_auto_sees_what_the_decision_sees() -> None:
    trees = ProjectiveTrees()
    scores, g = draw(trees, 4)
    shift = 100 * torch.randn(4, 1, 6, dtype=torch.float64)  # of all heads of a word
    found = backward(scores, trees, LPGD(rho="auto"), g)
    torch.testing.assert_close(backward(scores + shift, trees, LPGD(rho="auto"), g), found, rtol=0, atol=1e-9)
    torch.testing.assert_close(backward(scores, trees, LPGD(rho="auto"), g + shift), found, rtol=0, atol=1e-9)
    level = torch.full_like(scores, 3.0)
    torch.testing.assert_close(backward(level, trees, LPGD(rho="auto"), g), backward(level, trees, Spigot(), g))


def test_nothing_to_choose_from() -> None:
    for shape in ((0,), (3, 0)):
        empty = torch.zeros(shape, requires_grad=True)
        spigot.argmax(empty, OneOf(), LPGD(rho="auto")).sum().backward()
        assert empty.grad is not None
        assert empty.grad.shape == shape


@pytest.mark.parametrize("rho", [0.0, -1.0, float("nan"), float("inf"), "much"])
def test_a_rho_that_makes_no_sense_is_refused(rho: Any) -> None:
    with pytest.raises(ValueError, match=r"rho is .*; it must be a positive number"):
        LPGD(rho=rho)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile, about itself
@pytest.mark.parametrize(
    ("structure", "rule"),
    [(ProjectiveTrees(), LPGD(0.5, 3.0)), (SemanticGraphs(labels=2), LPGD(0.5, "auto", two_sided=True))],
    ids=str,
)
def test_compiled_and_mapped_it_is_the_same(structure: AbstractStructure, rule: Spigot | LPGD) -> None:
    scores, g = draw(structure, 4)

    def loss(s: Tensor, g: Tensor) -> Tensor:
        return (spigot.argmax(s, structure, rule) * g.masked_fill(~structure.full_mask(g), 0)).sum()

    expected = backward(scores, structure, rule, g)
    mapped = torch.vmap(torch.func.grad(loss))(scores, g)
    torch.testing.assert_close(mapped, expected, rtol=0, atol=1e-12)
    leaf = scores.clone().requires_grad_()
    torch.compile(loss, fullgraph=True, backend="aot_eager")(leaf, g).backward()
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad, expected, rtol=0, atol=1e-12)
