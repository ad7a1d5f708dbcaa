"""Losses against brute force."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import spigot
from spigot import crf_nll, structured_hinge
from tests.spigot import brute
from tests.spigot.cases import STRUCTURES, StructureCase

every_case = pytest.mark.parametrize("case", STRUCTURES, ids=str)
MARGINAL = [case for case in STRUCTURES if case.marginal]


def draw_gold(case: StructureCase, mask: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(11)
    picks = []
    for m in mask:
        vertices = case.vertices(m)
        picks.append(vertices[torch.randint(len(vertices), (), generator=generator)])
    return torch.stack(picks).to(dtype)


def hamming(z: Tensor, gold: Tensor, wrong: float, missing: float, weight: Tensor) -> Tensor:
    return (weight * (wrong * z * (1 - gold) + missing * (1 - z) * gold)).flatten(1).sum(1)


@every_case
@pytest.mark.parametrize(("wrong", "missing"), [(0.5, 0.5), (0.4, 0.6), (0.0, 0.0), (2.0, 0.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_hinge_against_enumeration(case: StructureCase, wrong: float, missing: float, weighted: bool) -> None:
    scores, mask = case.draw(31, 12)
    gold = draw_gold(case, mask)
    weight = torch.rand(scores.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    scores.requires_grad_()
    loss = structured_hinge(
        scores,
        gold,
        case.structure,
        mask=mask,
        false_positive=wrong,
        false_negative=missing,
        weight=weight if weighted else None,
    )
    assert loss.shape == (12,)
    loss.sum().backward()
    assert scores.grad is not None
    for index, (s, m) in enumerate(zip(scores.detach(), mask, strict=True)):
        vertices = case.vertices(m)
        w = weight[index] if weighted else torch.ones_like(s)
        augmented = brute.values(vertices, s) + hamming(vertices, gold[index], wrong, missing, w)
        expected = augmented.max() - brute.values(gold[index : index + 1], s)[0]
        assert loss[index].item() == pytest.approx(expected.item(), abs=1e-10)
        rival = vertices[augmented.argmax()]
        assert torch.equal(scores.grad[index], rival - gold[index])
        assert loss[index] >= -1e-12


@every_case
def test_hinge_vanishes_with_a_margin(case: StructureCase) -> None:
    _, mask = case.draw(32, 6)
    gold = draw_gold(case, mask)
    scores = (10 * gold - 5).requires_grad_()
    loss = structured_hinge(scores, gold, case.structure, mask=mask)
    assert not loss.any()
    loss.sum().backward()
    assert scores.grad is not None
    assert not scores.grad.any()


def test_default_cost_is_one_for_each_wrong_head() -> None:
    """0.5 for the wrong arc and 0.5 for the missing one."""
    trees = spigot.ProjectiveTrees()
    gold = torch.zeros(4, 4)
    gold[0, 1] = gold[1, 2] = gold[2, 3] = 1
    loss = structured_hinge(torch.zeros(4, 4), gold, trees, mask=None)
    rivals = brute.trees(trees.full_mask(gold), projective=True, single_root=True)
    assert loss.item() == (gold.double() - rivals).abs().flatten(1).sum(1).max().item() / 2


def test_cost_on_labelled_arcs_only() -> None:
    """The costs of the semantic parser: 0.4 and 0.6 on labelled arcs, nothing on predicates and arcs."""
    graphs = spigot.SemanticGraphs(labels=2)
    scores = torch.zeros(3, 3, 3, dtype=torch.float64)
    gold = graphs.argmax(-torch.ones(3, 3, 3, dtype=torch.float64))
    assert not gold.any()
    weight = torch.zeros(3, 3, 3, dtype=torch.float64)
    weight[..., 1:] = 1
    loss = structured_hinge(scores, gold, graphs, mask=None, false_positive=0.4, false_negative=0.6, weight=weight)
    assert loss.item() == pytest.approx(4 * 0.4)
    full = graphs.argmax(torch.ones(3, 3, 3, dtype=torch.float64))
    loss = structured_hinge(scores, full, graphs, mask=None, false_positive=0.4, false_negative=0.6, weight=weight)
    assert loss.item() == pytest.approx(4 * (0.4 + 0.6))


@pytest.mark.parametrize("case", MARGINAL, ids=str)
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_crf_against_enumeration(case: StructureCase, scale: float) -> None:
    scores, mask = case.draw(33, 12, scale=scale)
    gold = draw_gold(case, mask)
    scores.requires_grad_()
    assert case.marginal
    loss = crf_nll(scores, gold, case.marginal, mask=mask)
    assert loss.shape == (12,)
    loss.sum().backward()
    assert scores.grad is not None
    for index, (s, m) in enumerate(zip(scores.detach(), mask, strict=True)):
        vertices = case.vertices(m)
        expected = brute.log_partition(vertices, s) - brute.values(gold[index : index + 1], s)[0]
        assert loss[index].item() == pytest.approx(expected.item(), rel=1e-10, abs=1e-9)
        mu = brute.marginals(vertices, s)
        torch.testing.assert_close(scores.grad[index], mu - gold[index], rtol=0, atol=1e-9)
        assert not scores.grad[index][~m].any()


@pytest.mark.parametrize("case", MARGINAL, ids=str)
def test_crf_gradcheck(case: StructureCase) -> None:
    scores, mask = case.draw(34, 2)
    gold = draw_gold(case, mask)
    structure = case.marginal
    assert structure
    scores = scores.nan_to_num().requires_grad_()
    assert gradcheck(lambda s: crf_nll(s, gold, structure, mask=mask), scores)


def test_losses_take_any_batch_axes() -> None:
    trees = spigot.NonProjectiveTrees()
    scores = torch.randn(2, 3, 5, 5)
    gold = trees.argmax(torch.randn(2, 3, 5, 5))
    for loss in (structured_hinge, crf_nll):
        whole = loss(scores, gold, trees, mask=None)
        assert whole.shape == (2, 3)
        torch.testing.assert_close(whole[1, 2], loss(scores[1, 2], gold[1, 2], trees, mask=None))
        assert loss(scores[:0], gold[:0], trees, mask=None).shape == (0, 3)


def test_losses_refuse_what_they_cannot_use() -> None:
    trees = spigot.ProjectiveTrees()
    with pytest.raises(ValueError, match=r"\(4, 4\)"):
        structured_hinge(torch.zeros(5, 5), torch.zeros(4, 4), trees, mask=None)
    with pytest.raises(ValueError, match=r"\(4, 4\)"):
        crf_nll(torch.zeros(5, 5), torch.zeros(4, 4), trees, mask=None)
    graphs = spigot.SemanticGraphs(labels=1, deterministic=(0,))
    with pytest.raises((TypeError, ValueError), match="structured_hinge"):
        crf_nll(torch.zeros(3, 3, 2), torch.zeros(3, 3, 2), graphs, mask=None)


def test_the_entropy_that_the_published_program_minimised() -> None:
    """Its gradient is mu - z* - J s (finite differences of the marginals), and that of the loss as it is written."""
    generator = torch.Generator().manual_seed(0)
    trees = spigot.ProjectiveTrees()
    mask = trees.mask(torch.tensor(3))
    scores = torch.randn(4, 4, generator=generator, dtype=torch.float64).requires_grad_()
    gold = trees.argmax(torch.randn(4, 4, generator=generator, dtype=torch.float64), mask)
    weight = 0.7
    spigot.crf_nll(scores, gold, trees, mask=mask, entropy=weight).backward()
    s, step = scores.detach(), 1e-6
    assert scores.grad is not None
    mu = trees.marginals(s, mask)
    along = (trees.marginals(s + step * s, mask) - trees.marginals(s - step * s, mask)) / (2 * step)
    torch.testing.assert_close(scores.grad, mu - gold - weight * along, rtol=0, atol=1e-7)
    for place in mask.nonzero().tolist():
        moved = torch.zeros_like(s)
        moved[tuple(place)] = step
        up, down = (spigot.crf_nll(s + sign * moved, gold, trees, mask=mask, entropy=weight) for sign in (1, -1))
        assert float(scores.grad[tuple(place)]) == pytest.approx(float(up - down) / (2 * step), abs=1e-6)
    assert torch.equal(
        spigot.crf_nll(s, gold, trees, mask=mask, entropy=0.0), spigot.crf_nll(s, gold, trees, mask=mask)
    )
