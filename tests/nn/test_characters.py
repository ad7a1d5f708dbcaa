"""What words are spelt like."""

import itertools

import torch

from spigot.nn.characters import CharacterCNN


def test_filters_slide_over_letters() -> None:
    cnn = CharacterCNN(9, dim=3, filters=2, widths=(2,)).double()
    word = torch.tensor([4, 7, 5])
    vectors = [cnn.table[k] for k in word] + [torch.zeros(3, dtype=torch.float64)]
    answers = torch.stack([cnn.filters[0](torch.cat(pair)) for pair in itertools.pairwise(vectors)])
    torch.testing.assert_close(cnn(word.unsqueeze(0))[0], answers.relu().amax(0))


def test_no_word_is_zero_and_letters_are_learned() -> None:
    cnn = CharacterCNN(9, dim=3, filters=4, widths=(2, 3, 4))
    found = cnn(torch.tensor([[0, 0, 0], [1, 2, 0]]))
    assert not found[0].any()
    found.sum().backward()
    assert cnn.table.grad is not None
    assert cnn.table.grad[[1, 2]].abs().sum() > 0
    assert not cnn.table.grad[[0, 3]].any()
