"""SPIGOT: the facts that follow from Eq. 4, block by block and as a whole."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import spigot
from spigot import (
    AbstractPolytope,
    AbstractStructure,
    ArcLabel,
    ConvexHull,
    HeadSimplex,
    NonProjectiveTrees,
    OneOf,
    ProjectiveTrees,
    SemanticGraphs,
    Simplex,
    Spigot,
    StraightThrough,
)

TREES = [
    ProjectiveTrees(),
    ProjectiveTrees(single_root=False),
    NonProjectiveTrees(),
    NonProjectiveTrees(single_root=False),
]
STRUCTURES: list[AbstractStructure] = [OneOf(), *TREES, SemanticGraphs(labels=2)]
SHAPES = {OneOf: (7,), ProjectiveTrees: (6, 6), NonProjectiveTrees: (6, 6), SemanticGraphs: (4, 4, 3)}

every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=str)


def backward(scores: Tensor, structure: AbstractStructure, rule: spigot.AbstractEstimator, grad: Tensor) -> Tensor:
    """dL/ds for a given dL/dz."""
    leaf = scores.detach().clone().requires_grad_()
    spigot.argmax(leaf, structure, rule).backward(grad)
    assert leaf.grad is not None
    return leaf.grad


def draw(structure: AbstractStructure, *batch: int) -> tuple[Tensor, Tensor]:
    shape = (*batch, *next(parts for kind, parts in SHAPES.items() if isinstance(structure, kind)))
    return torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)


class Everywhere(AbstractPolytope):
    """The whole space: nothing to project onto."""

    def project(self, point: Tensor, mask: Tensor | None = None) -> Tensor:
        return point if mask is None else point.masked_fill(~mask, 0)

    def contains(self, point: Tensor, mask: Tensor | None = None, *, atol: float = 1e-5) -> Tensor:
        raise NotImplementedError


@given(st.integers(0, 10_000), st.integers(1, 8), st.sampled_from([0.01, 0.3, 1.0, 10.0]))
def test_one_simplex_block(seed: int, k: int, eta: float) -> None:
    """All facts about one block: sums, signs, bounds, and the centred gradient on the support."""
    generator = torch.Generator().manual_seed(seed)
    scores, g = torch.randn(2, k, generator=generator, dtype=torch.float64)
    z = OneOf().argmax(scores)
    head = int(z.argmax())
    out = backward(scores, OneOf(), Spigot(eta), g)
    others = torch.arange(k) != head
    assert abs(float(out.sum())) <= 1e-12
    assert out[head] >= 0
    assert (out[others] <= 0).all()
    assert out.abs().max() <= 1
    assert out.abs().sum() <= 2 + 1e-12
    moved = z - out
    on = moved > 1e-12
    if on[head]:
        torch.testing.assert_close(out[on], eta * (g[on] - g[on].mean()), rtol=0, atol=1e-10)
        assert (out[~on] * 1.0).abs().max() <= 1e-12 if bool((~on).any()) else True
    if head == int(g.argmin()):
        assert not out.any(), "the current choice is already the best of the linearised loss"


@pytest.mark.parametrize("trees", TREES, ids=str)
def test_gradient_sums_to_zero_over_the_heads_of_each_word(trees: AbstractStructure) -> None:
    scores, g = draw(trees, 10)
    out = backward(scores, trees, Spigot(), g)
    assert out.abs().max() > 0.1
    torch.testing.assert_close(out.sum(-2), torch.zeros(10, 6, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("trees", TREES, ids=str)
def test_no_gradient_when_every_head_is_already_best(trees: AbstractStructure) -> None:
    scores, g = draw(trees, 10)
    z = trees.argmax(scores)
    g = torch.where(z > 0, torch.full_like(g, -5.0), g.abs())
    assert not backward(scores, trees, Spigot(eta=3.0), g).any()


def test_zero_gradient_for_the_words_that_are_right_only() -> None:
    trees = ProjectiveTrees()
    scores, g = draw(trees, 20)
    z = trees.argmax(scores)
    possible = trees.full_mask(g)
    best = g.masked_fill(~possible, torch.inf).argmin(-2)
    right = z.argmax(-2) == best
    out = backward(scores, trees, Spigot(), g)
    assert not out.movedim(-2, -1)[right].any()
    wrong = ~right
    wrong[:, 0] = False
    assert (out.movedim(-2, -1)[wrong].abs().sum(-1) > 0).all()


def test_eta_to_infinity_is_a_perceptron_update_towards_the_best_head() -> None:
    trees = ProjectiveTrees()
    scores, g = draw(trees, 20)
    z = trees.argmax(scores)
    best = torch.zeros_like(z)
    possible = trees.full_mask(g)
    best.scatter_(-2, g.masked_fill(~possible, torch.inf).argmin(-2, keepdim=True), 1.0)
    best[..., 0] = 0
    torch.testing.assert_close(backward(scores, trees, Spigot(eta=1e9), g), z - best, rtol=0, atol=1e-9)


def test_eta_to_infinity_on_the_hull_is_a_perceptron_update_towards_the_best_tree() -> None:
    trees = ProjectiveTrees()
    scores, g = draw(trees, 5)
    out = backward(scores, trees, Spigot(eta=1e6, polytope=ConvexHull(trees)), g)
    torch.testing.assert_close(out, trees.argmax(scores) - trees.argmax(-g), rtol=0, atol=1e-6)


@every_structure
def test_without_a_polytope_it_is_straight_through(structure: AbstractStructure) -> None:
    scores, g = draw(structure, 4)
    free = backward(scores, structure, Spigot(eta=1.0, polytope=Everywhere()), g)
    torch.testing.assert_close(free, backward(scores, structure, StraightThrough(), g), rtol=0, atol=1e-12)


def test_a_step_that_stays_inside_is_eta_times_the_gradient() -> None:
    """On the simplex this needs a gradient that sums to zero and moves mass away from the choice only."""
    scores = torch.tensor([0.0, 2.0, 1.0], dtype=torch.float64)
    g = torch.tensor([-0.3, 0.8, -0.5], dtype=torch.float64)
    torch.testing.assert_close(backward(scores, OneOf(), Spigot(eta=0.5), g), 0.5 * g)


@every_structure
def test_equation_4_by_hand(structure: AbstractStructure) -> None:
    scores, g = draw(structure, 4)
    mask = structure.full_mask(scores)
    for eta in (0.25, 1.0, 5 / 32):
        z = structure.argmax(scores)
        expected = z - structure.relaxation.project(z - eta * g.masked_fill(~mask, 0), mask)
        torch.testing.assert_close(backward(scores, structure, Spigot(eta), g), expected, rtol=0, atol=1e-12)


@every_structure
def test_not_linear_in_the_loss(structure: AbstractStructure) -> None:
    """Scaling the loss scales the step, not the gradient: the mean and the sum of a loss differ in direction."""
    scores, g = draw(structure, 16)
    once, tenth = (backward(scores, structure, Spigot(), c * g).flatten(1) for c in (1.0, 0.1))
    cosine = torch.nn.functional.cosine_similarity(once, tenth)
    assert float(cosine.min()) < 0.98, "directions differ"
    assert not torch.allclose(once, 10 * tenth)
    linear = backward(scores, structure, StraightThrough(), 0.1 * g)
    torch.testing.assert_close(10 * linear, backward(scores, structure, StraightThrough(), g))


def test_summed_losses_keep_instances_apart() -> None:
    """The convention: with a summed loss, each instance gets the gradient it would get alone."""
    trees = ProjectiveTrees()
    scores = torch.randn(4, 6, 6, dtype=torch.float64)
    target = torch.randn(4, 6, 6, dtype=torch.float64)

    def gradient(rows: slice, reduce: str) -> Tensor:
        leaf = scores[rows].clone().requires_grad_()
        each = ((spigot.argmax(leaf, trees) - target[rows]) ** 2).sum((1, 2))
        (each.sum() if reduce == "sum" else each.mean()).backward()
        assert leaf.grad is not None
        return leaf.grad

    alone = torch.cat([gradient(slice(i, i + 1), "sum") for i in range(4)])
    torch.testing.assert_close(gradient(slice(None), "sum"), alone, rtol=0, atol=1e-12)
    assert not torch.allclose(4 * gradient(slice(None), "mean"), alone)


@every_structure
@pytest.mark.parametrize("rule", [Spigot(max_norm=0.5), StraightThrough(max_norm=0.5)], ids=str)
def test_max_norm_clips_each_instance(structure: AbstractStructure, rule: Spigot | StraightThrough) -> None:
    scores, g = draw(structure, 5)
    mask = structure.full_mask(scores)
    g = g.masked_fill(~mask, 0)
    g[0] *= 0.3 / torch.linalg.vector_norm(g[0])  # short enough already
    g[1] = 0
    norm = torch.linalg.vector_norm(g.flatten(1), dim=1).reshape(5, *[1] * structure.event_ndim)
    clipped = torch.where(norm > 0.5, 0.5 * g / norm.clamp(min=1e-30), g)
    free = dataclasses.replace(rule, max_norm=None)
    expected = backward(scores, structure, free, clipped)
    torch.testing.assert_close(backward(scores, structure, rule, g), expected, rtol=0, atol=1e-12)


def test_the_release_is_a_clip_and_no_step_size() -> None:
    """The published program: p = z - g min(1, T / ||g||)."""
    trees = ProjectiveTrees()
    scores, g = draw(trees, 3)
    g = g.masked_fill(~trees.full_mask(g), 0)
    for threshold in (1.0, 5 / 32):
        rule = Spigot(eta=1.0, max_norm=threshold)
        z = trees.argmax(scores)
        norm = torch.linalg.vector_norm(g, dim=(1, 2), keepdim=True)
        expected = z - HeadSimplex().project(z - g * (threshold / norm).clamp(max=1.0))
        torch.testing.assert_close(backward(scores, trees, rule, g), expected, rtol=0, atol=1e-12)


def test_polytope_can_be_chosen() -> None:
    graphs = SemanticGraphs(labels=2)
    scores, g = draw(graphs, 6)
    results = [
        backward(scores, graphs, Spigot(polytope=polytope), g)
        for polytope in (None, ArcLabel(), ArcLabel(sequential=True), ConvexHull(graphs))
    ]
    assert torch.equal(results[0], results[1])
    assert not torch.allclose(results[0], results[2])
    assert not torch.allclose(results[0], results[3])


def test_exact_hull_moves_towards_trees_only() -> None:
    """z minus the gradient is a mixture of trees, so its marginal over each cut of words is a tree's."""
    trees = NonProjectiveTrees(single_root=False)
    scores, g = draw(trees, 6)
    target = trees.argmax(scores) - backward(scores, trees, Spigot(polytope=ConvexHull(trees)), g)
    assert ConvexHull(trees).contains(target).all()
    entering = target.sum((-2, -1))
    torch.testing.assert_close(entering, torch.full((6,), 5.0, dtype=torch.float64))
    pairs = target[:, 1:, 1:]
    assert (pairs + pairs.mT <= 1 + 1e-7).all(), "a cycle of two words can hold at most one arc's worth"


def test_explain_shows_the_three_steps() -> None:
    scores = torch.tensor([[0.1, 0.2, 0.3]])
    g = torch.tensor([[0.0, -0.5, 0.5]])
    account = Spigot(eta=2.0).explain(OneOf(), scores, g)
    assert account.stepped is not None
    assert account.projected is not None
    assert account.z.tolist() == [[0, 0, 1]]
    torch.testing.assert_close(account.stepped, torch.tensor([[0.0, 1.0, 0.0]]))
    torch.testing.assert_close(account.projected, torch.tensor([[0.0, 1.0, 0.0]]))
    torch.testing.assert_close(account.gradient, torch.tensor([[0.0, -1.0, 1.0]]))
    assert account.support.tolist() == [[False, True, False]]
    assert account.distance.tolist() == pytest.approx([0.0], abs=1e-6)
    assert account.gap.tolist() == [0]
    clipped = Spigot(max_norm=0.1).explain(OneOf(), scores, g)
    assert float(torch.linalg.vector_norm(clipped.grad)) == pytest.approx(0.1)


def test_estimators_are_values() -> None:
    assert Spigot() == Spigot(eta=1.0)
    assert Spigot(eta=0.5) != Spigot()
    assert "0.5" in repr(Spigot(eta=0.5))
    assert len({Spigot(), Spigot(1.0), Spigot(polytope=Simplex())}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Spigot().eta = 2.0  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("scale", [1e-4, 1e-6, 1e-8])
def test_small_gradients_survive_float32(scale: float) -> None:
    """While the step stays on the face of z, the gradient scales with the loss, down to any size."""
    trees = spigot.ProjectiveTrees()
    scores = torch.randn(4, 7, 7)
    z = trees.argmax(scores)
    grad = torch.randn(4, 7, 7)
    whole = spigot.Spigot(eta=1e-3).explain(trees, scores.double(), grad.double()).gradient / 1e-3
    small = spigot.Spigot(eta=1.0).explain(trees, scores, scale * grad).gradient / scale
    assert (z > 0).any()
    torch.testing.assert_close(small, whole.float(), rtol=1e-3, atol=1e-4)
