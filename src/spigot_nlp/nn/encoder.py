"""From token indices to states: embeddings and a BiLSTM."""

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from spigot import kernels
from spigot.kernels import kernel_threads, operator
from spigot_nlp.nn.noise import dropout, locked_dropout, uniform
from spigot_nlp.nn.quantised import LayerWeights, ReadsWhole, Remembered, check_range, layer_weights, read_layer


def kernels_read(inputs: Tensor) -> bool:
    """Whether kernels read these, in single precision."""
    return (
        inputs.dtype == torch.float32
        and inputs.numel() > 0
        and kernels.serves(inputs)
        and not torch.is_autocast_enabled("cpu")
    )


def read_both_ways(
    right: nn.LSTM, left: nn.LSTM, inputs: Float[Tensor, "batch n d"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch n 2*units"]:
    """The states of two LSTMs side by side, zeros behind the end of a sentence. They can be differentiated once.

    Args:
        right: Reads from left to right.
        left: Reads from right to left, from the end of each sentence; as many layers and units.
        inputs: Inputs of both, of single precision.
        lengths: Positions of each sentence.
    """
    sides = (inputs, inputs)
    states = inputs
    for layer in range(right.num_layers):
        gates = [_from_inputs(lstm, layer, side) for lstm, side in zip((right, left), sides, strict=True)]
        weights = [getattr(lstm, f"weight_hh_l{layer}") for lstm in (right, left)]
        states, _, _ = _recur(*gates, *weights, lengths.long())
        sides = states.chunk(2, -1)
    return states


def _from_inputs(lstm: nn.LSTM, layer: int, inputs: Tensor) -> Tensor:
    """What the inputs give to the gates of all positions."""
    weight, first, second = (getattr(lstm, f"{name}_l{layer}") for name in ("weight_ih", "bias_ih", "bias_hh"))
    return torch.addmm(first + second, inputs.flatten(0, 1), weight.t()).unflatten(0, inputs.shape[:2])


@operator("spigot::recur")
def _recur(
    right_gates: Tensor, left_gates: Tensor, right: Tensor, left: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """States, and of each direction the gates as they opened and the cells, which the way back needs."""
    states, opened, cells = _room(right_gates)
    check_range("lengths", lengths, right_gates.shape[1])
    kernels.compiled.recur(
        right_gates.contiguous(),
        left_gates.contiguous(),
        right.contiguous(),
        left.contiguous(),
        lengths.contiguous(),
        states.zero_(),
        opened,
        cells,
        kernel_threads(),
    )
    return states, opened, cells


@_recur.register_fake
def _room(right_gates: Tensor, *_: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    batch, n, width = right_gates.shape
    sizes = ((batch, n, width // 2), (2, batch, n, width), (2, batch, n, width // 4))
    states, opened, cells = (right_gates.new_empty(size) for size in sizes)
    return states, opened, cells


@operator("spigot::recur_back")
def _recur_back(
    wanted: Tensor, right: Tensor, left: Tensor, lengths: Tensor, states: Tensor, opened: Tensor, cells: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the gates, zeros behind the end of a sentence."""
    gates = opened.new_zeros(opened.shape[1:]), opened.new_zeros(opened.shape[1:])
    kernels.compiled.recur_back(
        wanted.contiguous(),
        right.contiguous(),
        left.contiguous(),
        lengths.contiguous(),
        states,
        opened,
        cells,
        *gates,
        kernel_threads(),
    )
    return gates


@_recur_back.register_fake
def _(
    wanted: Tensor, right: Tensor, left: Tensor, lengths: Tensor, states: Tensor, opened: Tensor, cells: Tensor
) -> tuple[Tensor, Tensor]:
    return opened.new_empty(opened.shape[1:]), opened.new_empty(opened.shape[1:])


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[2:], *output)
    ctx.set_materialize_grads(False)  # nobody wants anything of gates and cells


def _backward(ctx: Any, wanted: Tensor, *_: None) -> tuple[Tensor | None, ...]:
    right, left, lengths, states, opened, cells = ctx.saved_tensors
    gates = _recur_back(wanted, right, left, lengths, states, opened, cells)
    # The states that a step came from: those of the position before or behind it, and zeros at the ends.
    before = (pad(side, (0, 0, shift, -shift)) for side, shift in zip(states.chunk(2, -1), (1, -1), strict=True))
    weights = (
        gate.flatten(0, 1).t() @ side.flatten(0, 1) if needed else None
        for gate, side, needed in zip(gates, before, ctx.needs_input_grad[2:4], strict=True)
    )
    return *gates, *weights, None


_recur.register_autograd(_backward, setup_context=_save)


UNKNOWN, ROOT, END = 0, 1, 2
"""The first indices of every table. Each sentence stands between the root symbol and the end symbol."""


INPUT_STREAM = 64
"""Of the random numbers of a sentence, those that decide about inputs; streams 1 to 63 belong to the layers."""


class TokenEmbedding(nn.Module):
    r"""Word, lemma and tag vectors, concatenated.

    With seeds, a word becomes unknown with probability $\alpha / (\alpha + \text{count})$; one whose vector is fixed
    keeps it, and loses its lemma instead.

    Args:
        sizes: How many words, lemmas and tags there are.
        dims: The length of their vectors; a table of length 0 is left out.
        counts: How often each word occurs in the training data.
        alpha: $\alpha$.
        drop_all: Whether a dropped word takes its lemma and tag along.
        vectors: Initial word vectors; rows that are all zero keep their random start.
        fixed: Whether words that have a vector keep it.

    Example:
        >>> embed = TokenEmbedding((5, 5, 4), (8, 2, 2), torch.zeros(5), alpha=0.25)
        >>> ids = torch.tensor([[1, 3, 2]])
        >>> embed(ids, ids, ids).shape
        torch.Size([1, 3, 12])
    """

    chance: Float[Tensor, " words"]
    learned: Bool[Tensor, " words"] | None

    def __init__(
        self,
        sizes: tuple[int, int, int],
        dims: tuple[int, int, int],
        counts: Float[Tensor, " words"],
        alpha: float,
        drop_all: bool = False,
        vectors: Float[Tensor, "words d"] | None = None,
        fixed: bool = False,
    ) -> None:
        super().__init__()
        # Sparse: a step changes the few rows it saw, as the published program did, at a tenth of the cost.
        tables = [nn.Embedding(size, dim, sparse=True) for size, dim in zip(sizes, dims, strict=True) if dim]
        self.tables = nn.ModuleList(tables)
        self.used = [k for k, dim in enumerate(dims) if dim]
        self.drop_all = drop_all
        for table in tables:
            bound = math.sqrt(3 / table.embedding_dim)
            nn.init.uniform_(table.weight, -bound, bound)
        if vectors is not None:
            with torch.no_grad():
                given = vectors.any(-1)
                tables[0].weight[given] = vectors[given].to(tables[0].weight.dtype)
        chance = alpha / (alpha + counts.float()) if alpha else torch.zeros_like(counts, dtype=torch.float32)
        chance[ROOT] = chance[END] = 0
        self.register_buffer("chance", chance)
        # In the state, not only in memory: whoever loads the model may not have the vectors.
        self.register_buffer("learned", torch.ones(sizes[0], dtype=torch.bool) if fixed else None)
        if self.learned is not None and vectors is not None:
            self.learned.copy_(~vectors.any(-1))

    def forward(
        self,
        words: Int[Tensor, "batch n"],
        lemmas: Int[Tensor, "batch n"],
        tags: Int[Tensor, "batch n"],
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch n d"]:
        """Vectors of all positions; with seeds, one for each sentence, words are dropped."""
        indices = [words, lemmas, tags]
        if seeds is not None:
            dropped = uniform(seeds, words.shape[1], stream=0) < self.chance[words]
            for k in (0, 1, 2) if self.drop_all else (0,) if self.learned is None else (0, 1):
                # A fixed vector is as good for a word that training never saw; what was learned of it is not.
                away = dropped if k or self.learned is None else dropped & self.learned[words]
                indices[k] = indices[k].masked_fill(away, UNKNOWN)
        found = [table(indices[k]) for k, table in zip(self.used, self.tables, strict=True)]
        if self.learned is not None and self.used[0] == 0:
            found[0] = torch.where(self.learned[indices[0]].unsqueeze(-1), found[0], found[0].detach())
        return torch.cat(found, -1)


class BiLSTM(ReadsWhole):
    """Left-to-right and right-to-left LSTMs, without packing: the backward ones read each sentence from its own end.

    Args:
        inputs: Length of an input vector.
        hidden: Units of each direction; a state is twice as long.
        layers: How many layers; with none the inputs are the states.
        interleaved: Whether a layer reads both directions of the one below. Otherwise the directions are two
            independent stacks, as in the published program.
        dropout: Rate of the locked dropout on the inputs, between interleaved layers and on the states.
        input_dropout: Rate of the dropout on each position's input.

    Attributes:
        outputs: Length of a state.

    Example:
        >>> states = BiLSTM(4, 3)(torch.zeros(2, 5, 4), torch.tensor([5, 2]))
        >>> states.shape
        torch.Size([2, 5, 6])
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int = 2,
        *,
        interleaved: bool = False,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.outputs = 2 * hidden if layers else inputs
        self._whole = defaultdict[tuple[int, int], Remembered[LayerWeights]](Remembered)
        if not layers:
            widths, depth = [], 0
        elif interleaved:
            widths, depth = [inputs] + [2 * hidden] * (layers - 1), 1
        else:
            widths, depth = [inputs], layers
        self.forward_layers = nn.ModuleList(nn.LSTM(width, hidden, depth) for width in widths)
        self.backward_layers = nn.ModuleList(nn.LSTM(width, hidden, depth) for width in widths)
        self.dropout, self.input_dropout = dropout, input_dropout
        for name, values in self.named_parameters():
            if "weight" in name:
                nn.init.xavier_uniform_(values)
            else:
                nn.init.zeros_(values)
                if "bias_ih" in name:
                    values.data[hidden : 2 * hidden] = 1  # the forget gates start open

    def forward(
        self,
        inputs: Float[Tensor, "batch n d"],
        lengths: Int[Tensor, " batch"],
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch n h"]:
        """States of all positions; behind the end of a sentence zeros, and what stood there reaches none before it."""
        if seeds is None and self.reads_whole(inputs):
            place = torch.arange(inputs.shape[0] * inputs.shape[1]).view(inputs.shape[:2])
            return self.read(inputs.flatten(0, 1), place, lengths)
        states = dropout(inputs.transpose(0, 1), seeds, self.input_dropout, stream=INPUT_STREAM)
        states = locked_dropout(states, seeds, self.dropout, stream=1)
        by_kernels = kernels_read(states)
        mirror = torch.empty(0) if by_kernels else _mirror(inputs, lengths)
        behind = (torch.arange(inputs.shape[1], device=inputs.device).unsqueeze(-1) >= lengths).unsqueeze(-1)
        for k, (right, left) in enumerate(self._pairs()):
            if by_kernels:
                states = read_both_ways(right, left, states.transpose(0, 1), lengths).transpose(0, 1)
            else:
                states = states.contiguous()
                with _possible(states.device):
                    onwards, back = right(states)[0], left(_rearranged(states, mirror))[0]
                states = torch.cat((onwards, _rearranged(back, mirror)), -1).masked_fill(behind, 0)
            states = locked_dropout(states, seeds, self.dropout, stream=2 + k)
        return states.transpose(0, 1)

    def reads_whole(self, inputs: Tensor) -> bool:
        """Whether these are read in whole numbers."""
        return bool(self.forward_layers) and super().reads_whole(inputs)

    def read(
        self, inputs: Float[Tensor, "rows d"], place: Int[Tensor, "batch n"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch n h"]:
        """States in whole numbers, zeros behind the end of a sentence; what is the same twice is looked at once.

        Args:
            inputs: Distinct inputs.
            place: Which of them stands where.
            lengths: Positions of each sentence.
        """
        states, count = inputs, place.numel()
        for k, (right, left) in enumerate(self._pairs()):
            for layer in range(right.num_layers):
                weights = self._weights(k, layer, right, left)
                # The directions of a stack do not see each other.
                states = read_layer(weights, states, place, lengths, right.hidden_size, halves=layer > 0)
                states, place = states.flatten(0, 1), torch.arange(count).view(place.shape)
        return states.unflatten(0, place.shape)

    def _pairs(self) -> Iterator[tuple[nn.LSTM, nn.LSTM]]:
        for pair in zip(self.forward_layers, self.backward_layers, strict=True):
            right, left = pair
            assert isinstance(right, nn.LSTM)
            assert isinstance(left, nn.LSTM)
            yield right, left

    def _weights(self, k: int, layer: int, right: nn.LSTM, left: nn.LSTM) -> LayerWeights:
        """A layer's weights in whole numbers, rounded anew when they have changed."""
        now = [p for lstm in (right, left) for name, p in lstm.named_parameters() if name.endswith(f"_l{layer}")]
        return self._whole[k, layer].of(now, lambda: layer_weights(right, left, layer, kernels.compiled.LSTM_LANES))


def _mirror(inputs: Float[Tensor, "batch n d"], lengths: Int[Tensor, " batch"]) -> Int[Tensor, " n*batch"]:
    """Where each position stands when every sentence is turned round within its own length.

    Places in a flat list of (time, sentence): whole rows are taken much faster than numbers one by one.
    """
    time = torch.arange(inputs.shape[1], device=inputs.device).unsqueeze(-1)
    mirror = torch.where(time < lengths, lengths - 1 - time, time)
    return (mirror * len(inputs) + torch.arange(len(inputs), device=inputs.device)).flatten()


def _rearranged(states: Float[Tensor, "time batch d"], places: Int[Tensor, " time*batch"]) -> Tensor:
    return states.flatten(0, 1).index_select(0, places).view_as(states)


def _possible(device: torch.device) -> AbstractContextManager[object]:
    """Half precision, where that is asked for, only on machines whose LSTMs have it."""
    if device.type != "cpu" or not torch.is_autocast_enabled("cpu") or torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return nullcontext()
    return torch.autocast("cpu", enabled=False)
