"""float16 and bfloat16 through the layer, the losses and autocast; the conformance suite has the rest."""

import pytest
import torch
from torch import Tensor, nn

import spigot
from spigot import AbstractEstimator
from spigot.structures import OneOf, Oracle, ProjectiveTrees

HALF = [torch.float16, torch.bfloat16]
RULES = [spigot.Spigot(), spigot.StructuredAttention(), spigot.SparseMAP(), spigot.IMLE(samples=2), spigot.Perturbed()]


class Parser(nn.Module):
    """Scores of arcs from the words on both sides, a tree, and a reading of it."""

    def __init__(self, estimator: AbstractEstimator, size: int = 6) -> None:
        super().__init__()
        self.heads, self.words = nn.Linear(size, size), nn.Linear(size, size)
        self.trees = spigot.Argmax(ProjectiveTrees(), estimator)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.heads(words) @ self.words(words).mT
        z = self.trees(scores)
        return z, z.mT @ words


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("estimator", RULES, ids=lambda rule: type(rule).__name__)
def test_a_module_in_half_precision(estimator: AbstractEstimator, dtype: torch.dtype) -> None:
    model = Parser(estimator).to(dtype)
    z, read = model(torch.randn(2, 5, 6).to(dtype))
    assert z.dtype == read.dtype == dtype
    (read * torch.randn(2, 5, 6).to(dtype)).sum().backward()
    for weight in (model.heads.weight, model.words.weight):
        assert weight.grad is not None
        assert weight.grad.dtype == dtype
        assert weight.grad.isfinite().all()
        assert weight.grad.any()


@pytest.mark.parametrize("estimator", RULES[:2], ids=lambda rule: type(rule).__name__)
def test_training_under_autocast(estimator: AbstractEstimator) -> None:
    """The first stage learns which of five to choose, from what the second makes of the choice alone."""
    kinds = torch.eye(5).repeat(8, 1)
    wanted = kinds.roll(2, -1)
    scorer = nn.Linear(5, 5)
    layer = spigot.Argmax(OneOf(), estimator)
    optimizer = torch.optim.Adam(scorer.parameters(), lr=0.2)
    losses = []
    for _ in range(25):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = layer(scorer(kinds))
            assert z.dtype == torch.bfloat16
            loss = (z - wanted).square().sum()
        optimizer.zero_grad()
        loss.backward()
        assert scorer.weight.grad is not None
        assert scorer.weight.grad.dtype == torch.float32
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 10


def test_autocast_is_off_inside() -> None:
    """Forward and backward, also where the backward pass is called under autocast; it is on again outside."""
    seen = []

    def best(scores: Tensor) -> Tensor:
        table = torch.eye(4).to(scores)
        worth = table @ scores.unsqueeze(-1)  # which autocast would compute in bfloat16
        seen.append((scores.dtype, worth.dtype))
        return table[worth.squeeze(-1).argmax()]

    oracle = Oracle(best)
    for dtype in (torch.float32, torch.bfloat16):
        scores = torch.tensor([1.0, 1.001, 0.0, -1.0], dtype=dtype, requires_grad=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = spigot.argmax(scores, oracle, spigot.BlackBox(strength=3.0))
            z.backward(torch.tensor([-1.0, 1.0, 0.0, 0.0]).to(z))
            assert (scores @ scores).dtype == torch.bfloat16
        assert z.dtype == dtype
        assert scores.grad is not None
        assert scores.grad.dtype == dtype
    assert len(seen) == 4
    assert set(seen) == {(torch.float32, torch.float32)}


def test_the_decision_is_that_of_float32() -> None:
    """Sums of bfloat16 numbers need more digits than it has: 256 + 1 is not 256."""
    scores = torch.zeros(4, 4, dtype=torch.bfloat16)
    scores[0, 1], scores[0, 2], scores[2, 1], scores[1, 2], scores[1, 3] = 256.0, 256.0, 1.0, 2.0, 256.0
    z = ProjectiveTrees().argmax(scores)
    assert z[1, 2] == 1
    assert torch.equal(z.double(), ProjectiveTrees().argmax(scores.double()))


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_losses_in_half_precision(dtype: torch.dtype) -> None:
    trees = ProjectiveTrees()
    values = torch.randn(3, 5, 5).to(dtype)
    gold = trees.argmax(torch.randn(3, 5, 5)).to(dtype)
    for loss in (spigot.structured_hinge, spigot.crf_nll):
        scores, exact = values.clone().requires_grad_(), values.float().requires_grad_()
        ours, theirs = loss(scores, gold, trees), loss(exact, gold.float(), trees)
        assert torch.equal(ours, theirs.to(dtype))
        assert torch.equal(loss(scores, gold.float(), trees), ours)
        assert torch.equal(loss(exact, gold, trees), theirs)
        back, exact_back = (torch.autograd.grad(x.sum(), s)[0] for x, s in ((ours, scores), (theirs, exact)))
        assert torch.equal(back, exact_back.to(dtype))


def test_a_hull_in_half_precision_shows_its_evidence() -> None:
    point = torch.tensor([1.0, 0.5, -1.0], dtype=torch.bfloat16)
    solution = spigot.ConvexHull(OneOf()).solve(point)
    assert solution.point.dtype == solution.gap.dtype == torch.bfloat16
    assert solution.support[0].weights.tolist() == [0.75, 0.25]
    assert solution.support[0].vertices.dtype == torch.bfloat16
    near = spigot.ConvexHull(ProjectiveTrees()).project(torch.ones(4, 4), start=torch.zeros(4, 4, dtype=torch.float16))
    assert near.dtype == torch.float32


def test_a_structure_of_ones_own_gets_it_for_nothing() -> None:
    """A subclass that knows nothing of dtypes is only ever given float32 and float64."""
    seen = []

    class Watched(spigot.AbstractEstimator):
        hard = True

        def __call__(self, structure: spigot.AbstractStructure, scores: Tensor, mask: Tensor) -> Tensor:
            seen.append(scores.dtype)
            return structure.argmax(scores, mask)

        def explain(
            self, structure: spigot.AbstractStructure, scores: Tensor, grad: Tensor, mask: Tensor | None = None
        ) -> spigot.Explanation:
            raise NotImplementedError

    assert spigot.argmax(torch.ones(3, dtype=torch.float16), OneOf(), Watched()).dtype == torch.float16
    assert seen == [torch.float32]


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile, about itself
@pytest.mark.parametrize("estimator", [RULES[0], RULES[2], RULES[3]], ids=lambda rule: type(rule).__name__)
def test_half_precision_compiles(estimator: AbstractEstimator) -> None:
    """Under autocast, as one graph: bfloat16 scores come in, autocast is switched off inside."""
    torch._dynamo.reset()  # the same code three times
    words, model = torch.randn(2, 4, 6), Parser(estimator)
    found = []
    for call in (model, torch.compile(model, fullgraph=True, backend="aot_eager")):
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z, read = call(words)
        assert z.dtype == torch.bfloat16
        read.float().sum().backward()
        assert model.heads.weight.grad is not None
        found.append((z.detach(), model.heads.weight.grad))
    torch.testing.assert_close(found[1], found[0], rtol=0.05, atol=0.05)
