"""Losses that need the argmax only, against enumeration: value, gradient, and what they promise."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import spigot
from spigot import fenchel_young, perceptron, sparsemap_loss, spo_plus
from spigot.estimators.noise import gaussian
from tests.spigot import brute
from tests.spigot.cases import HULLS, STRUCTURES, StructureCase
from tests.spigot.test_losses import draw_gold

SOLVED = HULLS
"""Cases whose argmax is a member and whose hull is worth the time."""


def best_of(case: StructureCase, mask: Tensor, scores: Tensor) -> Tensor:
    vertices = case.vertices(mask)
    return vertices[brute.values(vertices, scores).argmax()]


def each(case: StructureCase, scores: Tensor, gold: Tensor, mask: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """Values and gradients by enumeration, of the losses that need no sums, by name."""
    noise = 0.5 * gaussian(gold, mask, len(case.parts), 3, 4)
    truth = true_scores(scores)
    found: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in LOSSES}
    for b, (s, y, m) in enumerate(zip(scores, gold, mask, strict=True)):
        s, c = torch.where(m, s, 0), torch.where(m, truth[b], 0)
        rival = best_of(case, m, s)
        found["perceptron"].append((((rival - y) * s).sum(), rival - y))
        p = brute.project(case.vertices(m), s)
        found["sparsemap_loss"].append((((s - y).square().sum() - (s - p).square().sum()) / 2, p - y))
        rivals = torch.stack([best_of(case, m, s + e[b]) for e in noise])
        value = torch.stack([((z - y) * (s + e[b])).sum() for z, e in zip(rivals, noise, strict=True)]).mean()
        found["fenchel_young"].append((value, rivals.mean(0) - y))
        best, rival = best_of(case, m, c), best_of(case, m, 2 * s - c)
        found["spo_plus"].append((((2 * s - c) * rival - 2 * s * best + c * best).sum(), 2 * (rival - best)))
    return {name: tuple(map(torch.stack, zip(*pairs, strict=True))) for name, pairs in found.items()}  # pyright: ignore[reportReturnType]


def true_scores(scores: Tensor) -> Tensor:
    """Some, the same for the same instance, NaN where the scores are."""
    return scores + torch.cos(5 * scores) * 2


LOSSES: dict[str, Callable[[Tensor, Tensor, StructureCase, Tensor], Tensor]] = {
    "perceptron": lambda s, y, case, m: perceptron(s, y, case.structure, mask=m),
    "sparsemap_loss": lambda s, y, case, m: sparsemap_loss(s, y, case.structure, mask=m),
    "fenchel_young": lambda s, y, case, m: fenchel_young(
        s, y, case.structure, mask=m, temperature=0.5, samples=4, seed=3
    ),
    # convex in the scores for true scores that stand still: those of the gold structure
    "spo_plus": lambda s, y, case, m: spo_plus(s, torch.where(m, 2 * y - 1, torch.nan), case.structure, mask=m),
}
every_loss = pytest.mark.parametrize("name", LOSSES)


@pytest.mark.parametrize("case", SOLVED, ids=str)
def test_losses_without_sums_against_enumeration(case: StructureCase) -> None:
    scores, mask = case.draw(40, 6)
    gold = draw_gold(case, mask)
    expected = each(case, scores, gold, mask)
    for name, loss in LOSSES.items():
        leaf = scores.clone().requires_grad_()
        value = (
            spo_plus(leaf, true_scores(scores), case.structure, mask=mask)
            if name == "spo_plus"
            else loss(leaf, gold, case, mask)
        )
        assert value.shape == (6,)
        near = 1e-6 if name == "sparsemap_loss" else 1e-10
        torch.testing.assert_close(value.detach(), expected[name][0], rtol=0, atol=near)
        (gradient,) = torch.autograd.grad(value.sum(), leaf)
        torch.testing.assert_close(gradient, expected[name][1], rtol=0, atol=near * 10)
        assert not gradient[~mask].any()


@every_loss
@pytest.mark.parametrize("case", SOLVED, ids=str)
def test_losses_without_sums_are_convex_and_never_negative(case: StructureCase, name: str) -> None:
    scores, mask = case.draw(41, 8, scale=2.0)
    others, _ = case.draw(42, 8, scale=2.0)
    others = torch.where(mask, others.nan_to_num(0.3), torch.nan)
    gold = draw_gold(case, mask)
    left, middle, right = (LOSSES[name](s, gold, case, mask) for s in (scores, (scores + others) / 2, others))
    assert (torch.stack((left, middle, right)) >= -1e-8).all()
    assert (middle <= (left + right) / 2 + 1e-8).all()


@every_loss
@pytest.mark.parametrize("case", SOLVED, ids=str)
def test_losses_without_sums_vanish_with_a_margin(case: StructureCase, name: str) -> None:
    _, mask = case.draw(43, 6)
    gold = draw_gold(case, mask)
    scores = (20 * gold - 10).requires_grad_()
    loss = LOSSES[name](scores, gold, case, mask)
    torch.testing.assert_close(loss.detach(), torch.zeros_like(loss), rtol=0, atol=1e-12)
    (gradient,) = torch.autograd.grad(loss.sum(), scores)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-12)
    truth = torch.where(mask, scores.detach() / 7, torch.nan)
    assert not spo_plus(truth, truth, case.structure, mask=mask).any(), "the truth has no loss"


@every_loss
def test_losses_without_sums_pass_gradcheck(name: str) -> None:
    (case,) = (case for case in STRUCTURES if case.name == "Matchings")
    scores, mask = case.draw(44, 3)
    gold = draw_gold(case, mask)
    scores = scores.nan_to_num().requires_grad_()
    assert gradcheck(lambda s: LOSSES[name](s, gold, case, mask), scores, atol=1e-5)


@every_loss
def test_losses_without_sums_in_half_precision_and_any_batch(name: str) -> None:
    (case,) = (case for case in STRUCTURES if case.name == "Matchings-wide")
    scores, mask = case.draw(45, 4, dtype=torch.bfloat16)
    gold = draw_gold(case, mask, torch.bfloat16)
    exact = LOSSES[name](scores.float(), gold.float(), case, mask)
    half = LOSSES[name](scores, gold, case, mask)
    assert half.dtype == torch.bfloat16
    assert torch.equal(half, exact.to(torch.bfloat16))
    s, y, m = (x.unflatten(0, (2, 2)) for x in (scores.float(), gold.float(), mask))
    again = LOSSES[name](s, y, case, m)
    torch.testing.assert_close(again.flatten(), exact)
    alone = LOSSES[name](scores[3].float(), gold[3].float(), case, mask[3])
    torch.testing.assert_close(alone, exact[3], msg="noise belongs to the instance")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*TF32")
def test_losses_without_sums_compile() -> None:
    trees = spigot.NonProjectiveTrees()
    scores = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(46))
    gold = trees.argmax(-scores)

    def total(s: Tensor) -> Tensor:
        losses = [perceptron(s, gold, trees), sparsemap_loss(s, gold, trees), fenchel_young(s, gold, trees)]
        return torch.stack([*losses, spo_plus(s, gold, trees)]).sum()

    gradients = []
    for call in (total, torch.compile(total, fullgraph=True, backend="aot_eager")):
        leaf = scores.clone().requires_grad_()
        call(leaf).backward()
        gradients.append(leaf.grad)
    torch._dynamo.reset()
    torch.testing.assert_close(*gradients)


def test_perturbed_loss_knows_what_enumeration_knows() -> None:
    """With many draws the gradient on one of two is the probability that noise turns the decision."""
    scores, gold = torch.tensor([0.3, -0.2], dtype=torch.float64, requires_grad=True), torch.tensor([0.0, 1.0]).double()
    fenchel_young(scores, gold, spigot.OneOf(), temperature=0.7, samples=20_000, seed=1).backward()
    turned = torch.special.ndtr(torch.tensor(0.5 / (0.7 * 2**0.5)))
    assert scores.grad is not None
    assert scores.grad.tolist() == pytest.approx([float(turned), -float(turned)], abs=0.02)
    fresh = [fenchel_young(scores, gold, spigot.OneOf(), seed=seed).item() for seed in range(3)]
    assert len(set(fresh)) == 3


def test_true_scores_that_forbid_a_part() -> None:
    truth = torch.tensor([1.0, -torch.inf, 0.0])
    scores = torch.tensor([0.0, 5.0, 0.0], requires_grad=True)
    loss = spo_plus(scores, truth, spigot.OneOf())
    assert loss.item() == 1
    loss.backward()
    assert scores.grad is not None
    assert scores.grad.tolist() == [-2, 0, 2]


def test_losses_without_sums_refuse_what_they_cannot_use() -> None:
    matchings, scores = spigot.Matchings(), torch.zeros(3, 3)
    for loss in (perceptron, sparsemap_loss, fenchel_young):
        with pytest.raises(ValueError, match=r"gold has shape \(2, 2\) and scores \(3, 3\)"):
            loss(scores, torch.zeros(2, 2), matchings)
        with pytest.raises(TypeError, match=r"gold has dtype torch.float64; it must be 0/1 in torch.float32"):
            loss(scores, torch.zeros(3, 3).double(), matchings)
        with pytest.raises(ValueError, match="NaN at part"):
            loss(scores * torch.nan, torch.eye(3), matchings)
    with pytest.raises(ValueError, match=r"true_scores has shape \(2, 2\)"):
        spo_plus(scores, torch.zeros(2, 2), matchings)
    with pytest.raises(ValueError, match="infinite"):
        spo_plus(scores, scores + torch.inf, matchings)
    with pytest.raises(ValueError, match="temperature is 0"):
        fenchel_young(scores, torch.eye(3), matchings, temperature=0)
    with pytest.raises(ValueError, match="samples is 0"):
        fenchel_young(scores, torch.eye(3), matchings, samples=0)
