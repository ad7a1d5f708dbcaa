"""Scores of pairs of words as products of what each is as a head and as a dependent."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from spigot_nlp.nn.noise import locked_dropout
from spigot_nlp.nn.quantised import (
    WIDEST,
    Linear,
    ReadsWhole,
    Remembered,
    WholeWeights,
    best_products,
    whole_product,
    whole_weights,
)

HEAD_STREAM, DEPENDENT_STREAM = 66, 67
"""Of the random numbers of a sentence, those that decide about the two sides of a scorer."""


class WholeSides(NamedTuple):
    """What a scorer of pairs multiplies, for kernels that round it to whole numbers.

    Attributes:
        heads: What each word is as a head; at most `WIDEST` units.
        dependents: The same as a dependent.
        turning: What makes of a dependent, for each label, what a head is multiplied with, and what is added.
    """

    heads: Float[Tensor, "batch n h"]
    dependents: Float[Tensor, "batch n h"]
    turning: WholeWeights


class Biaffine(ReadsWhole):
    r"""$s_{ij\ell} = h_i^\top W_\ell\, d_j + u_\ell^\top h_i + v_\ell^\top d_j + c_\ell$ for all pairs of words.

    $h_i$ and $d_j$ are one hidden layer each over the states. Two products of matrices give all labels of all pairs, so
    that nothing larger than the scores themselves is ever held: a perceptron for each pair would hold its hidden units.

    Args:
        inputs: Length of a state.
        hidden: Units of each side.
        outputs: How many scores a pair gets.
        dropout: Share of the units of each side that is left out, one mask a sentence.
        stream: Tells the random numbers of two scorers in one model apart.

    Example:
        >>> Biaffine(4, hidden=3, outputs=7)(torch.randn(2, 5, 4)).shape
        torch.Size([2, 5, 5, 7])

    References:
        Dozat and Manning (2017), Deep biaffine attention for neural dependency parsing.
    """

    def __init__(self, inputs: int, hidden: int, outputs: int = 1, *, dropout: float = 0.0, stream: int = 0) -> None:
        super().__init__()
        self.head, self.dependent = Linear(inputs, hidden), Linear(inputs, hidden)
        self.weight = nn.Parameter(torch.empty(hidden + 1, outputs, hidden + 1))
        self.dropout, self.stream = dropout, 2 * stream
        self._whole = Remembered[WholeWeights]()
        for side in (self.head, self.dependent):
            nn.init.orthogonal_(side.weight)
            nn.init.zeros_(side.bias)
        bound = math.sqrt(3) / hidden
        nn.init.uniform_(self.weight, -bound, bound)
        with torch.no_grad():
            self.weight[-1, :, -1] = 0

    def forward(
        self, states: Float[Tensor, "batch n d"], seeds: Int[Tensor, " batch"] | None = None
    ) -> Float[Tensor, "batch n n k"]:
        """Scores of all pairs (head, dependent); with seeds, one for each sentence, units are left out."""
        heads = self._with_one(self._side(self.head, states, seeds, HEAD_STREAM))
        dependents = self._side(self.dependent, states, seeds, DEPENDENT_STREAM)
        batch, n, width = heads.shape
        turned = self._turned(dependents).view(batch, -1, width)  # a row for each dependent and label
        return (heads @ turned.transpose(1, 2)).view(batch, n, n, -1)

    def best_in_whole(
        self, states: Float[Tensor, "batch n d"], lengths: Int[Tensor, " batch"], root: int | None = None
    ) -> tuple[Float[Tensor, "batch n n"], Int[Tensor, "batch n n"]] | None:
        """The best score of each pair and which one it is, without a place in memory for the others.

        Products are in whole numbers, so that what comes out for a sentence does not depend on the batch it is in.

        Args:
            states: One state for each position, the root included.
            lengths: Words of each sentence; behind them, and for the root as a dependent, there is none: -inf and -1.
            root: What all pairs with the root as head have, and no others; any may be any if omitted.

        Returns:
            Both; or `None` where it is not for whole numbers.
        """
        sides = self.sides_in_whole(states)
        return None if sides is None else best_products(*sides[:2], lengths, sides.turning, self.weight.shape[1], root)

    def sides_in_whole(self, states: Float[Tensor, "batch n d"]) -> WholeSides | None:
        """What is to be multiplied, for kernels that do it in whole numbers; `None` where it is not for those."""
        if not self.reads_whole(states) or self.head.out_features > WIDEST:
            return None
        heads, dependents = (self._side(side, states, None, 0) for side in (self.head, self.dependent))
        return WholeSides(heads, dependents, self._turning())

    def at(
        self,
        states: Float[Tensor, "batch n d"],
        pairs: Int[Tensor, "pairs 3"],
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "pairs k"]:
        """Scores of the pairs listed as (sentence, i, j), with units left out if there are seeds.

        All pairs are scored, as products for all cost less than the looking up of some.
        """
        size = states.shape[1]
        sentence, head, dependent = pairs.unbind(-1)
        return self(states, seeds).flatten(0, 2).index_select(0, (sentence * size + head) * size + dependent)

    def _side(self, layer: nn.Linear, states: Tensor, seeds: Tensor | None, stream: int) -> Tensor:
        hidden = leaky_relu(layer(states), 0.1, inplace=not torch.is_grad_enabled())
        return locked_dropout(hidden.transpose(0, 1), seeds, self.dropout, stream + self.stream).transpose(0, 1)

    def _turned(self, dependents: Float[Tensor, "batch n h"]) -> Float[Tensor, "batch n k*(h+1)"]:
        """What each dependent makes of a head, for each label."""
        if not self.reads_whole(dependents):
            return self._with_one(dependents) @ self.weight.flatten(1)
        return whole_product(dependents, self._turning(), self.weight[0].numel())

    def _turning(self) -> WholeWeights:
        return self._whole.of(
            [self.weight], lambda: whole_weights(self.weight[:-1].flatten(1).t(), self.weight[-1].flatten())
        )

    def _with_one(self, hidden: Float[Tensor, "batch n h"]) -> Float[Tensor, "batch n h+1"]:
        return torch.cat((hidden, hidden.new_ones(*hidden.shape[:-1], 1)), -1)
