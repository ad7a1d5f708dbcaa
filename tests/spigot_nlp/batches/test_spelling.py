"""Words as bytes."""

import torch

from spigot_nlp.batches import collate, encode, spelt
from spigot_nlp.batches.batch import LONGEST
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.vocab import Vocab


def test_each_distinct_word_is_spelt_once() -> None:
    spelling = spelt([("ab", "a"), ("a", "Ab", "ab")], 5)
    assert spelling.place.tolist() == [[0, 1, 2, 0, 0], [0, 2, 3, 1, 0]]
    assert spelling.letters.shape == (4, 4)
    assert spelling.letters[3].tolist() == [257, ord("A") + 1, ord("b") + 1, 258]


def test_long_and_foreign_words_are_shortened() -> None:
    long = "x" * 40 + "y" * 40
    letters = spelt([(long, "ß")], 4).letters
    assert letters.shape[1] == LONGEST + 2
    assert letters[1].unique().tolist() == [ord("x") + 1, ord("y") + 1, 257, 258]
    assert letters[2].tolist()[:4] == [257, 0xC3 + 1, 0x9F + 1, 258]


def test_nothing_to_spell() -> None:
    assert spelt([()], 2).place.tolist() == [[0, 0]]


def test_a_batch_moves_with_its_spelling() -> None:
    rain = Sentence(("Rain", "fell"))
    batch = collate([encode(rain, Vocab.of([rain]))]).to("meta")
    assert {part.device.type for part in batch.spelling} == {"meta"}
    assert batch.spelling is batch.spelling
    assert torch.equal(collate([encode(rain, Vocab.of([rain]))]).spelling.place, torch.tensor([[0, 1, 2, 0]]))
