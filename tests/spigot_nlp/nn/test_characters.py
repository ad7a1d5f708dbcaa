"""What words are spelt like."""

import itertools
from collections.abc import Sequence

import pytest
import torch

from spigot_nlp.batches.batch import LETTERS, letters_of
from spigot_nlp.encoders import bilstm as characters
from spigot_nlp.encoders.bilstm import CharacterCNN


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


def test_gradients_are_the_same_again() -> None:
    """To the last bit, on several threads as on one: sums of many numbers, added in one order."""
    cnn, words = CharacterCNN(60, dim=32, filters=8, widths=(2, 3)), torch.randint(1, 60, (3000, 16))
    threads, found = torch.get_num_threads(), list[torch.Tensor]()
    try:
        for most in (4, 4, 4, 1):
            torch.set_num_threads(most)
            found += torch.autograd.grad(cnn(words).square().sum(), [cnn.table])
    finally:
        torch.set_num_threads(threads)
    first, *others = found[:3]
    assert all(torch.equal(first, other) for other in others)
    torch.testing.assert_close(found[3], first)


def test_looking_up_gives_what_sliding_gives() -> None:
    cnn = CharacterCNN(9, dim=3, filters=4, widths=(2, 3, 4))
    words = torch.randint(1, 9, (20, 6)) * (torch.arange(6) < torch.randint(0, 7, (20, 1)))
    torch.testing.assert_close(cnn.looked_up(words), cnn(words).detach(), atol=1e-5, rtol=1e-5)
    assert torch.equal(cnn.looked_up(words)[3:4], cnn.looked_up(words[3:4]))  # to the last bit, alone or not


def test_words_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(characters, "_MOST_WORDS", 2)
    cnn, seen = CharacterCNN(LETTERS, dim=3, filters=4, widths=(2, 3)), list[str]()

    def spelt(new: Sequence[str]) -> torch.Tensor:
        seen.extend(new)
        return letters_of(new)

    def found(*forms: str) -> torch.Tensor:
        vectors, places = cnn.of_forms(forms, spelt)
        return vectors[places]

    first = found("rain", "fell", "rain")
    torch.testing.assert_close(first, cnn(letters_of(["rain", "fell", "rain"])).detach(), atol=1e-5, rtol=1e-5)
    assert torch.equal(found("unforeseeably", "rain")[1], first[0])
    assert seen == ["rain", "fell", "unforeseeably"]
    assert torch.equal(found("fell")[0], first[1])  # room was made, and it is met anew
    assert seen[3:] == ["fell"]
    with torch.no_grad():
        cnn.table.mul_(2)
    assert not torch.equal(found("fell")[0], first[1])
    assert cnn.of_forms((), spelt)[1] == []
