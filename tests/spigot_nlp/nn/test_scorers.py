"""Scorers against their formulas, word by word."""

import pytest
import torch
from torch import Tensor, nn

from spigot_nlp.nn.scorers import PairScorer, WordScorer


def perceptron(first: Tensor, rest: nn.Module, out: nn.Linear) -> Tensor:
    """tanh after every hidden layer, nothing after the last."""
    hidden = torch.tanh(first)
    for layer in rest.modules():
        if isinstance(layer, nn.Linear):
            hidden = torch.tanh(layer.weight @ hidden + layer.bias)
    return out.weight @ hidden + out.bias


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_word_scores_follow_the_formula(layers: int) -> None:
    scorer = WordScorer(4, 3, layers).double()
    assert sum(isinstance(part, nn.Linear) for part in scorer.modules()) == layers + 1
    states = torch.randn(2, 5, 4, dtype=torch.float64)
    scores = scorer(states)
    for b in range(2):
        for i in range(5):
            first = scorer.first.weight @ states[b, i] + scorer.first.bias
            torch.testing.assert_close(scores[b, i], perceptron(first, scorer.rest, scorer.out)[0])


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("distance", [False, True])
def test_pair_scores_follow_the_formula(layers: int, distance: bool) -> None:
    scorer = PairScorer(4, 3, layers, outputs=2, distance=distance).double()
    if scorer.distance is not None:
        nn.init.normal_(scorer.distance)
    states = torch.randn(2, 4, 4, dtype=torch.float64)
    scores = scorer(states)
    for b in range(2):
        for i in range(4):
            for j in range(4):
                first = scorer.head.weight @ states[b, i] + scorer.head.bias + scorer.dependent.weight @ states[b, j]
                if scorer.distance is not None:
                    first = first + (j - i) * scorer.distance
                torch.testing.assert_close(scores[b, i, j], perceptron(first, scorer.rest, scorer.out))


@pytest.mark.parametrize("distance", [False, True])
def test_listed_pairs_score_as_all_pairs_do(distance: bool) -> None:
    scorer = PairScorer(4, 3, outputs=2, distance=distance).double()
    if scorer.distance is not None:
        nn.init.normal_(scorer.distance)
    states = torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
    kept = torch.rand(3, 5, 5) < 0.4
    weight = torch.randn(3, 5, 5, 2, dtype=torch.float64) * kept.unsqueeze(-1)
    parameters = [states, *scorer.parameters()]
    dense, listed = scorer(states), scorer.at(states, kept.nonzero())
    torch.testing.assert_close(listed, dense[kept])
    expected = torch.autograd.grad((dense * weight).sum(), parameters)
    found = torch.autograd.grad((listed * weight[kept]).sum(), parameters)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_no_pairs_no_scores() -> None:
    scores = PairScorer(4, 3, outputs=2).at(torch.randn(2, 3, 4), torch.zeros(0, 3, dtype=torch.int64))
    assert scores.shape == (0, 2)
    scores.sum().backward()


def test_distance_starts_without_effect() -> None:
    scorer = PairScorer(4, 3, distance=True)
    assert scorer.distance is not None
    assert not scorer.distance.any()
