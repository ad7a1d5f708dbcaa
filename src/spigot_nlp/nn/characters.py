"""What a word is spelt like, as a vector: for words that no table has."""

import threading
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding, pad

from spigot_nlp.nn.whole import Remembered

_MOST_WORDS = 1 << 14
"""Words whose vectors are kept at a time, and some more of the last batch."""
_MEETING = threading.Lock()
"""Held while words are looked for and added; not by a model itself, which must be copied now and then."""


class CharacterCNN(nn.Module):
    r"""For each word the largest answers of some filters that slide over its letters.

    $$c_k = \max_t \operatorname{ReLU}\big(b_k + \textstyle\sum_{r=1}^{w} W_{kr}\, e(x_{t+r})\big)$$

    The largest of a word does not depend on how far it is padded.

    Args:
        letters: How many letters there are; the first is none.
        dim: Length of a letter's vector.
        filters: How many filters of each width, so that a word has `filters * len(widths)` numbers.
        widths: How many letters a filter sees.

    Attributes:
        outputs: Length of a word's vector.

    Example:
        >>> cnn = CharacterCNN(10, dim=4, filters=6, widths=(2, 3))
        >>> short, long = torch.tensor([[1, 2, 3]]), torch.tensor([[1, 2, 3, 0, 0]])
        >>> cnn(short).shape, bool(torch.allclose(cnn(short), cnn(long)))
        (torch.Size([1, 12]), True)

    References:
        Ma and Hovy (2016), End-to-end sequence labeling via bi-directional LSTM-CNNs-CRF, section 2.1.
    """

    def __init__(self, letters: int, dim: int, filters: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(letters, dim))
        bound = (3 / dim) ** 0.5
        nn.init.uniform_(self.table, -bound, bound)
        self.filters = nn.ModuleList(nn.Linear(width * dim, filters) for width in widths)
        for layer in self.filters:
            assert isinstance(layer, nn.Linear)
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.widths, self.outputs = widths, filters * len(widths)
        self._answers = Remembered[list[list[Tensor]]]()
        self._known = Remembered[_Known]()

    def forward(self, words: Int[Tensor, "words k"]) -> Float[Tensor, "words d"]:
        """The vectors of words, whose letters are numbers, 0 behind the end."""
        widest = max(self.widths)
        exists = pad(words > 0, (0, widest))
        table = torch.cat((torch.zeros_like(self.table[:1]), self.table[1:]))  # nothing is spelt with zeros
        letters = embedding(pad(words, (0, widest)), table)  # unlike an index, adds gradients in the same order always
        found = []
        for width, layer in zip(self.widths, self.filters, strict=True):
            windows = letters.unfold(1, width, 1).transpose(-1, -2).flatten(-2)  # (words, places, width * dim)
            answers = layer(windows).relu()
            begins = exists[:, : answers.shape[1]].unsqueeze(-1)
            found.append(answers.masked_fill(~begins, 0).amax(1))
        return torch.cat(found, -1)

    @torch.no_grad()
    def looked_up(self, words: Int[Tensor, "words k"]) -> Float[Tensor, "words d"]:
        """The same vectors where nothing is learned: what a filter says of each letter at each place is in a table.

        Numbers are added one by one, so that the vector of a word does not depend on the words beside it.

        Example:
            >>> cnn, words = CharacterCNN(10, dim=4, filters=6, widths=(2, 3)), torch.tensor([[1, 2, 3], [4, 0, 0]])
            >>> bool(torch.allclose(cnn.looked_up(words), cnn(words), atol=1e-6))
            True
        """
        places = words.shape[1]
        letters = pad(words, (0, max(self.widths)))
        behind = (words == 0).unsqueeze(-1)
        found = []
        for answers in self._answers.of(list(self.parameters()), self._tabulated):
            said = answers[0][letters[:, :places]]
            for r, more in enumerate(answers[1:], 1):
                said += more[letters[:, r : r + places]]
            found.append(said.masked_fill_(behind, 0).amax(1).clamp_(min=0))
        return torch.cat(found, -1)

    def _tabulated(self) -> list[list[Float[Tensor, "letters filters"]]]:
        """For each width, and each letter that a filter sees, its answer to that letter; the first has the bias."""
        tables = []
        for width, layer in zip(self.widths, self.filters, strict=True):
            assert isinstance(layer, nn.Linear)
            answers = [self.table @ part.t() for part in layer.weight.chunk(width, 1)]
            for answer in answers:
                answer[0] = 0  # nothing is spelt with zeros
            answers[0] += layer.bias
            tables.append(answers)
        return tables

    def of_forms(
        self, forms: Sequence[str], letters_of: Callable[[Sequence[str]], Int[Tensor, "words k"]]
    ) -> tuple[Float[Tensor, "known d"], list[int]]:
        """The vectors of all words met so far, and where among them those of some words stand.

        A vector depends on the word alone: it is made when the word is first met, and kept as long as the parameters
        stay as they are.

        Args:
            forms: The words.
            letters_of: Gives the letters of words.

        Example:
            >>> cnn = CharacterCNN(5, dim=4, filters=6, widths=(2,))
            >>> vectors, places = cnn.of_forms("abba", lambda new: torch.tensor([[1 + ord(x) - ord("a")] for x in new]))
            >>> vectors.shape, places                                         # the first is the vector of no word
            (torch.Size([3, 6]), [1, 2, 2, 1])
        """
        with _MEETING:
            known = self._known.of(list(self.parameters()), lambda: _Known(self.table.new_zeros(1, self.outputs)))
            if len(known.place) > _MOST_WORDS:
                known.place.clear()
                known.vectors = known.vectors[:1]
            new = [form for form in dict.fromkeys(forms) if form not in known.place]
            if new:
                known.place.update(zip(new, range(len(known.vectors), len(known.vectors) + len(new)), strict=True))
                known.vectors = torch.cat((known.vectors, self.looked_up(letters_of(new))))
            return known.vectors, list(map(known.place.__getitem__, forms))


class _Known:
    """The vectors of words, the first of no word, and the place of each word among them."""

    def __init__(self, vectors: Float[Tensor, "known d"]) -> None:
        self.vectors, self.place = vectors, dict[str, int]()
