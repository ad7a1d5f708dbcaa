"""The identity without what the argmax cannot see."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import spigot
from spigot import Identity, OneOf, Oracle, ProjectiveTrees, SemanticGraphs, StraightThrough
from tests.spigot import brute
from tests.spigot.cases import POLYTOPES, STRUCTURES, Case, StructureCase
from tests.spigot.estimators.test_perturbed import backward, direction
from tests.spigot.estimators.test_soft import face_projector
from tests.spigot.masks import any_mask, at_most_two, best_two

BLOCKS = {
    "OneOf": "Simplex",
    "LabelledTrees": "LabelledHeadSimplex",
    "ConstituencyTrees": "SpanSimplex",
    "Trees": "HeadSimplex",
    "Chains": "ChainSimplex",
    "SemanticGraphs": "ArcLabel",
    "Alignments": "DiagonalSimplex",
}
every_case = pytest.mark.parametrize("case", STRUCTURES, ids=str)


def blocks(case: StructureCase) -> Case:
    """What lists the vertices of the relaxation: the polytope's own case, or the structure where they agree."""
    found = [polytope for part, polytope in BLOCKS.items() if part in case.name]
    return next(polytope for polytope in POLYTOPES if polytope.name == found[0]) if found else case


@every_case
def test_gradient_is_the_nearest_along_the_affine_hull(case: StructureCase) -> None:
    """Sahoo et al. (2023): N projects onto the directions between solutions; here those of the relaxation's list."""
    scores, mask = case.draw(95, 8)
    g = direction(scores)
    _, mine = backward(scores, case.structure, Identity(), g, mask)
    for m, d, gradient in zip(mask, g, mine, strict=True):
        vertices = blocks(case).vertices(m)
        flat = d.masked_fill(~m, 0).flatten()
        expected = face_projector(vertices) @ flat if len(vertices) > 1 else torch.zeros_like(flat)
        torch.testing.assert_close(gradient.flatten(), expected, rtol=0, atol=1e-8)
    assert mine.any()


@every_case
def test_normalised_is_the_jacobian_of_the_normalised_scores(case: StructureCase) -> None:
    """N(s) = P s / |P s|, differentiated by autograd; P from the list of vertices."""
    scores, mask = case.draw(96, 6)
    g = direction(scores)
    _, mine = backward(scores, case.structure, Identity(eta=0.5, normalise=True), g, mask)
    for s, m, d, gradient in zip(scores, mask, g, mine, strict=True):
        vertices = blocks(case).vertices(m)
        if len(vertices) < 2:
            assert (gradient.abs() < 1e-12).all()
            continue
        leaf = s.nan_to_num().masked_fill(~m, 0).flatten().requires_grad_()
        centred = face_projector(vertices) @ leaf
        (expected,) = torch.autograd.grad(centred / centred.norm(), leaf, d.masked_fill(~m, 0).flatten())
        torch.testing.assert_close(gradient.flatten(), 0.5 * expected, rtol=0, atol=1e-7)


def test_trees_are_centred_over_the_heads_of_each_word() -> None:
    trees = ProjectiveTrees()
    scores, g = torch.randn(2, 3, 6, 6, dtype=torch.float64)
    mask = trees.mask(torch.tensor([5, 4, 2]))
    _, mine = backward(scores, trees, Identity(), g, mask)
    for b, i, j in mask.nonzero().tolist():
        heads = mask[b, :, j]
        assert float(mine[b, i, j]) == pytest.approx(float(g[b, i, j] - g[b, heads, j].mean()))
    assert not mine[~mask].any()


@given(st.integers(0, 10_000))
def test_labels_get_together_what_their_arc_gets(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    graphs = SemanticGraphs(labels=3)
    scores, g = torch.randn(2, 5, 5, 4, generator=generator, dtype=torch.float64)
    _, mine = backward(scores, graphs, Identity(), g)
    arcs = ~torch.eye(5, dtype=torch.bool)
    torch.testing.assert_close(mine[..., 1:].sum(-1)[arcs], mine[..., 0][arcs], rtol=0, atol=1e-12)
    assert torch.equal(mine.diagonal()[0], g.diagonal()[0]), "predicates stand alone"


@every_case
def test_projecting_twice_changes_nothing(case: StructureCase) -> None:
    scores, mask = case.draw(97, 6)
    _, once = backward(scores, case.structure, Identity(), direction(scores), mask)
    _, twice = backward(scores, case.structure, Identity(), once, mask)
    torch.testing.assert_close(twice, once, rtol=0, atol=1e-7)


@every_case
def test_what_is_taken_out_changes_no_decision(case: StructureCase) -> None:
    """The difference to straight-through has the same value on every structure."""
    scores, mask = case.draw(98, 6)
    g = direction(scores)
    _, all_of_it = backward(scores, case.structure, StraightThrough(), g, mask)
    _, kept = backward(scores, case.structure, Identity(), g, mask)
    for m, rest in zip(mask, all_of_it - kept, strict=True):
        values = brute.values(case.vertices(m), rest)
        assert float(values.max() - values.min()) <= 1e-7


def test_normalising_holds_back_scores_that_are_large_already() -> None:
    scores, g = torch.randn(2, 5, 6, dtype=torch.float64)
    _, small = backward(scores, OneOf(), Identity(normalise=True), g)
    _, large = backward(100 * scores, OneOf(), Identity(normalise=True), g)
    torch.testing.assert_close(100 * large, small)
    assert ((small * scores).sum(-1).abs() <= 1e-12).all(), "orthogonal to the scores: they do not grow"


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6, -3.3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_equal_scores_have_no_scale_to_divide_by(value: float, dtype: torch.dtype) -> None:
    scores = torch.full((2, 7), value, dtype=dtype)
    g = torch.randn(2, 7, dtype=dtype)
    _, mine = backward(scores, OneOf(), Identity(normalise=True), g)
    torch.testing.assert_close(mine, g - g.mean(-1, keepdim=True))


def test_infinite_scores_do_not_spoil_the_norm() -> None:
    scores = torch.tensor([[1.0, -torch.inf, 0.5, 0.0]])
    _, mine = backward(scores, OneOf(), Identity(normalise=True), torch.randn(1, 4))
    assert mine.isfinite().all()
    assert mine.any()


def test_a_box_has_nothing_to_take_out() -> None:
    """A structure of the user's whose parts are independent: the whole gradient is kept."""

    class Free(spigot.AbstractStructure):
        event_ndim = 1

        @property
        def relaxation(self) -> spigot.Box:
            return spigot.Box()

        def argmax(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
            return ((scores > 0) & (True if mask is None else mask)).to(scores.dtype)

        def violations(self, z: Tensor, mask: Tensor | None = None) -> list[list[str]]:
            return [[]]

        def mask(self, lengths: Tensor, size: int | None = None) -> Tensor:
            raise NotImplementedError

        def full_mask(self, parts: Tensor) -> Tensor:
            return torch.ones_like(parts, dtype=torch.bool)

    g = torch.randn(3, 4)
    assert torch.equal(backward(torch.randn(3, 4), Free(), Identity(), g)[1], g)


def test_an_oracle_is_asked_no_more_than_it_must() -> None:
    """Two calls for each dimension of the hull and one to be sure."""
    calls = 0

    def pick(scores: Tensor, mask: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return best_two(scores, mask)

    mask = any_mask(torch.Generator().manual_seed(0), 5)
    dimensions = int(torch.linalg.matrix_rank(at_most_two(mask)))
    scores = torch.randn(5, dtype=torch.float64)
    backward(scores, Oracle(pick, batched=True), Identity(), torch.randn(5, dtype=torch.float64), mask)
    assert calls <= 1 + 2 * (dimensions + 1)
