"""Multi-layer perceptrons that score words and pairs of words."""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from spigot import kernels
from spigot.kernels import kernel_threads, operator
from spigot_nlp.nn.pairs import pair_tanh
from spigot_nlp.nn.quantised import Linear


def quick_tanh_(values: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """tanh of values that nobody needs again: in place where nothing is learned.

    Example:
        >>> with torch.no_grad():
        ...     quick_tanh_(torch.tensor([0.0, 50.0])).tolist()
        [0.0, 1.0]
        >>> values = torch.zeros(2, requires_grad=True)
        >>> quick_tanh_(values).sum().backward()
        >>> values.grad.tolist()
        [1.0, 1.0]
    """
    learned = torch.is_grad_enabled() and values.requires_grad
    if values.dtype != torch.float32 or not kernels.serves(values) or not values.numel():
        return values.tanh() if learned else values.tanh_()
    if learned:
        return _tanh(values)
    if not values.is_contiguous():
        return values.tanh_()
    kernels.compiled.tanh_all(values, values, kernel_threads())
    return values


@operator("spigot::tanh")
def _tanh(values: Tensor) -> Tensor:
    found = torch.empty_like(values, memory_format=torch.contiguous_format)
    kernels.compiled.tanh_all(values.contiguous(), found, kernel_threads())
    return found


@_tanh.register_fake
def _(values: Tensor) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(output)


def _backward(ctx: Any, gradient: Tensor) -> Tensor:
    (found,) = ctx.saved_tensors
    return torch.ops.aten.tanh_backward(gradient, found)


_tanh.register_autograd(_backward, setup_context=_save)


class _Tanh(nn.Module):
    """tanh of what a layer gave, which nobody else needs."""

    def forward(self, values: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        return quick_tanh_(values)


class WordScorer(nn.Module):
    r"""$w^\top \tanh(\dots\tanh(W h_i + b)) + c$ for each word.

    Example:
        >>> WordScorer(4, hidden=3)(torch.zeros(2, 5, 4)).shape
        torch.Size([2, 5])
    """

    def __init__(self, inputs: int, hidden: int, layers: int = 2) -> None:
        super().__init__()
        self.first = _linear(inputs, hidden)
        self.rest = _hidden(hidden, layers - 1)
        self.out = _linear(hidden, 1)

    def forward(self, states: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        """Scores of all words."""
        return self.out(self.rest(quick_tanh_(self.first(states)))).squeeze(-1)


class PerWord(nn.Module):
    r"""$V \tanh(W h_i + b) + c$ for each word: one score for each choice.

    Example:
        >>> PerWord(4, hidden=3, outputs=7)(torch.zeros(2, 5, 4)).shape
        torch.Size([2, 5, 7])
    """

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.first, self.out = _linear(inputs, hidden), _linear(hidden, outputs)

    def forward(self, states: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n k"]:
        """Scores of the choices of all words."""
        return self.out(quick_tanh_(self.first(states)))


class PairScorer(nn.Module):
    r"""$V \tanh(\dots\tanh(W_1 h_i + W_2 h_j + b)) + c$ for pairs of words: one output, or one for each label.

    Args:
        inputs: Length of a state.
        hidden: Units of each hidden layer.
        layers: How many hidden layers.
        outputs: How many scores a pair gets.
        distance: Whether the signed distance j - i is one more input.

    Example:
        >>> scorer = PairScorer(4, hidden=3, outputs=2)
        >>> states = torch.randn(2, 5, 4)
        >>> scorer(states).shape                            # every pair
        torch.Size([2, 5, 5, 2])
        >>> pairs = torch.tensor([[0, 1, 2], [1, 4, 0]])    # (sentence, i, j)
        >>> bool(torch.allclose(scorer.at(states, pairs)[1], scorer(states)[1, 4, 0], atol=1e-6))
        True
    """

    def __init__(self, inputs: int, hidden: int, layers: int = 2, outputs: int = 1, *, distance: bool = False) -> None:
        super().__init__()
        self.head = _linear(inputs, hidden)
        self.dependent = _linear(inputs, hidden, bias=False)
        self.distance = nn.Parameter(torch.zeros(hidden)) if distance else None
        self.rest = _hidden(hidden, layers - 1)
        self.out = _linear(hidden, outputs)

    def forward(self, states: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n n k"]:
        """Scores of all pairs."""
        *batch, n, _ = states.shape
        place = torch.arange(states[..., 0].numel(), device=states.device).view(-1, n)
        rows = place.unsqueeze(-1).expand(-1, n, n).flatten(), place.unsqueeze(-2).expand(-1, n, n).flatten()
        return self.out(self.rest(self._mixed(states, *rows))).view(*batch, n, n, self.out.out_features)

    def at(
        self,
        states: Float[Tensor, "batch n d"],
        pairs: Int[Tensor, "pairs 3"],
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "pairs k"]:
        """Scores of the pairs listed as (sentence, i, j). Nothing is left out of a perceptron, seeds or no seeds."""
        return self.out(self.hidden_at(states, pairs))

    def hidden_at(self, states: Float[Tensor, "batch n d"], pairs: Int[Tensor, "pairs 3"]) -> Float[Tensor, "pairs h"]:
        """The last hidden layer of the pairs listed as (sentence, i, j), of which `out` makes the scores."""
        size = states.shape[1]
        sentence, head, dependent = pairs.unbind(-1)
        return self.rest(self._mixed(states, sentence * size + head, sentence * size + dependent))

    def _mixed(
        self, states: Float[Tensor, "*batch n d"], head: Int[Tensor, " pairs"], dependent: Int[Tensor, " pairs"]
    ) -> Float[Tensor, "pairs h"]:
        """The first hidden layer of some pairs, by their places among all states."""
        heads, dependents = self.head(states), self.dependent(states)
        if self.distance is not None:  # d(j - i) is dj - di
            far = torch.arange(states.shape[-2], device=states.device).unsqueeze(-1) * self.distance
            heads, dependents = heads - far, dependents + far
        return pair_tanh(heads.flatten(0, -2), dependents.flatten(0, -2), head, dependent)


def _hidden(width: int, layers: int) -> nn.Sequential:
    return nn.Sequential(*(part for _ in range(layers) for part in (_linear(width, width), _Tanh())))


def _linear(inputs: int, outputs: int, bias: bool = True) -> Linear:
    layer = Linear(inputs, outputs, bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        bound = math.sqrt(3 / outputs)
        nn.init.uniform_(layer.bias, -bound, bound) if outputs > 1 else nn.init.zeros_(layer.bias)
    return layer
