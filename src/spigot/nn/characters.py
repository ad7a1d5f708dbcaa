"""What a word is spelt like, as a vector: for words that no table has."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad


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

    def forward(self, words: Int[Tensor, "words k"]) -> Float[Tensor, "words d"]:
        """The vectors of words, whose letters are numbers, 0 behind the end."""
        widest = max(self.widths)
        exists = pad(words > 0, (0, widest))
        table = torch.cat((torch.zeros_like(self.table[:1]), self.table[1:]))  # nothing is spelt with zeros
        letters = table[pad(words, (0, widest))]
        found = []
        for width, layer in zip(self.widths, self.filters, strict=True):
            windows = letters.unfold(1, width, 1).transpose(-1, -2).flatten(-2)  # (words, places, width * dim)
            answers = layer(windows).relu()
            begins = exists[:, : answers.shape[1]].unsqueeze(-1)
            found.append(answers.masked_fill(~begins, 0).amax(1))
        return torch.cat(found, -1)
