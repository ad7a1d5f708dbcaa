"""Words as the bytes they are spelt with, each distinct word of a batch once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import pad

LETTERS = 259
"""The bytes, from 1; before them nothing, behind them the beginning and the end of a word."""
LONGEST = 24
"""Bytes of a word that are looked at; of a longer one, as many of its beginning as of its end."""
_BEGIN, _END = LETTERS - 2, LETTERS - 1


class Spelling(NamedTuple):
    """The distinct words of a batch.

    Attributes:
        letters: The bytes of each, between a sign for its beginning and one for its end; the first row is no word.
        place: Which of them stands at each position; 0 for the root, the end, and what is behind it.

    Example:
        >>> Spelling(torch.zeros(1, 3, dtype=torch.int64), torch.zeros(1, 2, dtype=torch.int64)).place.shape
        torch.Size([1, 2])
    """

    letters: Int[Tensor, "words k"]
    place: Int[Tensor, "batch n"]


def spelt(sentences: Sequence[Sequence[str]], width: int) -> Spelling:
    """The distinct words of some sentences, in the order in which they occur.

    Args:
        sentences: The words of each.
        width: Positions of the batch, with those of the root and the end symbol.

    Example:
        >>> spelling = spelt([("a", "b"), ("b",)], 4)
        >>> spelling.place.tolist(), spelling.letters.tolist()
        ([[0, 1, 2, 0], [0, 2, 0, 0]], [[0, 0, 0], [257, 98, 258], [257, 99, 258]])
    """
    known: dict[str, int] = {}
    place = np.zeros((len(sentences), width), dtype=np.int64)
    for k, forms in enumerate(sentences):
        place[k, 1 : len(forms) + 1] = [known.setdefault(form, len(known) + 1) for form in forms]
    return Spelling(pad(letters_of(list(known)), (0, 0, 1, 0)), torch.from_numpy(place))


def letters_of(forms: Sequence[str]) -> Int[Tensor, "words k"]:
    """The bytes of some words, between a sign for the beginning of each and one for its end.

    Example:
        >>> letters_of(["a", "bc"]).tolist()
        [[257, 98, 258, 0], [257, 99, 100, 258]]
    """
    words = [_shortened(form.encode()) for form in forms]
    letters = np.zeros((len(words), 2 + max(map(len, words), default=1)), dtype=np.int64)
    for k, word in enumerate(words):
        letters[k, 0], letters[k, len(word) + 1] = _BEGIN, _END
        letters[k, 1 : len(word) + 1] = np.frombuffer(word, dtype=np.uint8)
        letters[k, 1 : len(word) + 1] += 1
    return torch.from_numpy(letters)


def _shortened(word: bytes) -> bytes:
    return word if len(word) <= LONGEST else word[: LONGEST // 2] + word[-LONGEST // 2 :]
