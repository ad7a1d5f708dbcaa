"""The product scorer against its formula."""

import torch

from spigot_nlp.nn.biaffine import Biaffine


def test_scores_are_products() -> None:
    scorer = Biaffine(3, hidden=4, outputs=5).double()
    states = torch.randn(2, 6, 3, dtype=torch.float64)
    one = torch.ones(2, 6, 1, dtype=torch.float64)
    heads = torch.cat((torch.nn.functional.leaky_relu(scorer.head(states), 0.1), one), -1)
    dependents = torch.cat((torch.nn.functional.leaky_relu(scorer.dependent(states), 0.1), one), -1)
    wanted = torch.einsum("big,hkg,bjh->bijk", heads, scorer.weight, dependents)
    torch.testing.assert_close(scorer(states), wanted)


def test_dropout_belongs_to_sentences() -> None:
    scorer = Biaffine(3, hidden=16, dropout=0.5)
    states = torch.randn(2, 4, 3)
    both = scorer(states, torch.tensor([5, 9]))
    torch.testing.assert_close(both[1:], scorer(states[1:], torch.tensor([9])))
    assert not torch.equal(both, scorer(states))
