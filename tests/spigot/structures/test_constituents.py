"""Constituency trees: counts, a second CKY, draws and ranks at sizes beyond enumeration, and what is refused."""

import functools
import math

import pytest
import torch
from torch import Tensor

import spigot
from spigot import ConstituencyTrees, ConvexHull, crf_nll
from spigot._runtime.checks import NoStructureError
from tests.spigot.twins import without_kernels

TREES = ConstituencyTrees(labels=2)


def scores_of(n: int, labels: int = 2, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, n, labels, generator=generator, dtype=torch.float64) * scale


def second_cky(scores: Tensor) -> float:
    """The best value by recursion over spans, from the definition."""
    own = scores.amax(-1).tolist()

    @functools.cache
    def best(i: int, j: int) -> float:
        return own[i][j] + (max(best(i, k) + best(k + 1, j) for k in range(i, j)) if i < j else 0.0)

    return best(0, len(own) - 1)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 20])
@pytest.mark.parametrize("labels", [1, 3])
def test_there_are_as_many_trees_as_catalan_says(n: int, labels: int) -> None:
    trees = ConstituencyTrees(labels)
    catalan = math.comb(2 * (n - 1), n - 1) // n
    expected = math.log(catalan) + (2 * n - 1) * math.log(labels)
    assert float(trees.log_count(trees.mask(torch.tensor(n)))) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_the_best_tree_is_that_of_a_second_algorithm(n: int) -> None:
    scores = scores_of(n, 3, seed=n)
    trees = ConstituencyTrees(3)
    z = trees.argmax(scores)
    assert trees.contains(z)
    assert float((z * scores).sum()) == pytest.approx(second_cky(scores), rel=1e-12)
    assert z.sum() == 2 * n - 1


@pytest.mark.parametrize("scale", [0.1, 1.0, 1e4])
def test_kernels_agree_with_plain_torch(scale: float) -> None:
    scores = torch.stack([scores_of(12, seed=seed, scale=scale) for seed in range(3)])
    mask = TREES.mask(torch.tensor([12, 5, 9]))
    verbs = [
        lambda: (TREES.argmax(scores, mask) * scores).sum((1, 2, 3)),
        lambda: TREES.log_partition(scores, mask),
        lambda: TREES.marginals(scores, mask),
        lambda: TREES.k_best(scores, 7, mask),
    ]
    for verb in verbs:
        ours = verb()
        with without_kernels():
            torch.testing.assert_close(ours, verb(), rtol=1e-12, atol=1e-9)


def test_draws_beyond_enumeration_follow_the_marginals() -> None:
    scores = torch.stack([scores_of(15, seed=seed) for seed in range(2)])
    mask = TREES.mask(torch.tensor([15, 10]))
    mu = TREES.marginals(scores, mask)
    drawn = {"kernels": TREES.sample(scores, mask, 2000, torch.Generator().manual_seed(0))}
    with without_kernels():
        drawn["torch"] = TREES.sample(scores, mask, 2000, torch.Generator().manual_seed(1))
    for name, z in drawn.items():
        assert TREES.contains(z[:20].double(), mask.expand(20, *mask.shape)).all(), name
        error = (mu * (1 - mu) / 2000).clamp(min=0).sqrt()
        assert ((z.double().mean(0) - mu).abs() <= 6 * error + 2e-3).all(), name


def test_long_sentences_stay_exact() -> None:
    trees = ConstituencyTrees(1)
    n = 150 if spigot.kernels.available else 30
    scores = scores_of(n, 1, scale=300.0)
    mu, z = trees.marginals(scores), trees.argmax(scores)
    assert float(mu.sum()) == pytest.approx(2 * n - 1, abs=1e-6)
    loss = crf_nll(scores, z, trees)
    assert 0 <= float(loss) <= float(trees.log_count(trees.mask(torch.tensor(n))))
    assert float((mu * z).sum()) > n, "the best tree has most of the mass at this scale"


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"labels is 0; a span has one label out of at least one"):
        ConstituencyTrees(labels=0)
    with pytest.raises(ValueError, match=r"must be \(\*batch, n, n, 2\)"):
        TREES.argmax(torch.zeros(3, 3, 1))
    scores = torch.zeros(2, 3, 3, 2)
    scores[1, 0, 2, 1] = torch.nan
    for verb in (TREES.argmax, TREES.marginals, TREES.log_partition, TREES.sample):
        with pytest.raises(ValueError, match=r"instance 1 are NaN at part \[0, 2, 1\]"):
            verb(scores)
    mask = TREES.mask(torch.tensor([3, 3]))
    mask[1, 1, 1] = False  # a word in the middle without a label
    for verb in (TREES.argmax, TREES.marginals, TREES.sample):
        with pytest.raises(NoStructureError, match="instance 1 leaves no binary tree"):
            verb(torch.zeros(2, 3, 3, 2), mask)
    with pytest.raises(ValueError, match="infinite"):
        TREES.log_partition(torch.full((2, 2, 2), torch.inf))
    with pytest.raises(ValueError, match="k is -1"):
        TREES.k_best(scores, -1)
    with pytest.raises(ValueError, match="size is 2, but a sentence has 3 words"):
        TREES.mask(torch.tensor([3]), 2)


def test_infinite_scores_come_after_finite_ones() -> None:
    scores = torch.zeros(3, 3, 1)
    scores[0, 1] = -torch.inf
    trees = ConstituencyTrees(1)
    assert trees.argmax(scores)[1, 2] == 1
    assert trees.marginals(scores)[0, 1] == 0
    scores[1, 2] = -torch.inf
    assert trees.contains(trees.argmax(scores)), "still better than no tree"
    assert trees.log_partition(scores) == -torch.inf
    assert not trees.marginals(scores).any()
    with pytest.raises(ValueError, match="every binary tree of the instance has a score of -inf"):
        trees.sample(scores)
    scores[0, 1] = torch.inf
    assert trees.argmax(scores)[0, 1] == 1
    huge = torch.full((4, 4, 1), -1e308, dtype=torch.float64)
    huge[0, 1] = huge[2, 3] = 1e308
    assert trees.argmax(huge)[[0, 2], [1, 3]].all()


def test_violations_in_words() -> None:
    z = ConstituencyTrees(1).argmax(torch.zeros(4, 4, 1))
    trees = ConstituencyTrees(1)
    assert trees.violations(z) == [[]]
    broken = z.clone()
    broken[2, 2] = 0
    assert trees.violations(broken) == [["word 2 is missing"]]
    crossing = torch.eye(4).unsqueeze(-1)
    crossing[0, 3] = crossing[0, 2] = crossing[1, 3] = 1
    assert trees.violations(crossing) == [["span 0-2 and span 1-3 cross"]]
    flat = torch.eye(4).unsqueeze(-1)
    flat[0, 3] = 1
    assert trees.violations(flat) == [["span 0-3 is not made of two halves"]]
    twice = torch.zeros(1, 1, 2)
    twice[0, 0] = 1
    assert TREES.violations(twice) == [["word 0 has 2 labels"]]
    below = z.clone()
    below[2, 1] = 1
    assert trees.violations(below) == [["label 0 of span 2-1 is not in the mask"]]


def test_the_hull_holds_mixtures_that_the_relaxation_cannot_tell() -> None:
    scores = scores_of(4, 1, seed=3, scale=0.3)
    trees = ConstituencyTrees(1)
    solution = ConvexHull(trees).solve(scores)
    assert float(solution.gap) <= 1e-8
    mixture = sum(w * v for w, v in zip(solution.support[0].weights, solution.support[0].vertices, strict=True))
    torch.testing.assert_close(mixture, solution.point)
    crossing = torch.eye(4).unsqueeze(-1)
    crossing[0, 3] = crossing[0, 2] = crossing[1, 3] = 1
    assert trees.relaxation.contains(crossing)
    assert not ConvexHull(trees).contains(crossing)


@pytest.mark.parametrize("rule", [spigot.Spigot(), spigot.StructuredAttention(), spigot.SparseMAP()], ids=str)
def test_a_latent_tree_learns_which_words_belong_together(rule: spigot.AbstractEstimator) -> None:
    trees = ConstituencyTrees(1)
    scores = torch.zeros(3, 3, 1, requires_grad=True)
    optimiser = torch.optim.SGD([scores], lr=0.5)
    for _ in range(20):
        optimiser.zero_grad()
        z = spigot.argmax(scores, trees, rule)
        (1 - z[1, 2, 0]).square().backward()
        optimiser.step()
    assert trees.argmax(scores.detach())[1, 2, 0] == 1
