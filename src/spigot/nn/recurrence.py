"""Reading with a BiLSTM in whole numbers: what comes from inputs in one product, what comes from states in steps."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from spigot import native
from spigot.nn.whole import (
    LARGEST,
    LARGEST_STATE,
    WholeWeights,
    checked,
    rounded,
    whole_product,
    whole_product_reference,
    whole_weights,
)

Gates = tuple[Float[Tensor, "rows columns"], Float[Tensor, "rows columns"]]
"""What inputs give to the gates of both directions, as the kernel has them."""


class LayerWeights(NamedTuple):
    """Both directions of a layer of a BiLSTM in whole numbers, the forward one first.

    Attributes:
        inputs: The weights of the inputs, and the sum of both biases.
        states: The recurrent weights, with what one is worth times a state in whole numbers; they have no bias.
    """

    inputs: tuple[WholeWeights, WholeWeights]
    states: tuple[WholeWeights, WholeWeights]


def layer_weights(right: nn.LSTM, left: nn.LSTM, layer: int = 0, bits: int = 16) -> LayerWeights:
    """One layer of two LSTMs, rounded, for the kernels.

    Args:
        right: Reads from left to right.
        left: Reads from right to left.
        layer: Which layer of them.
        bits: 16 or 8, of a weight.
    """
    inputs, states = list[WholeWeights](), list[WholeWeights]()
    for lstm in (right, left):
        values, units = dict(lstm.named_parameters()), lstm.hidden_size
        bias = checked((values[f"bias_ih_l{layer}"] + values[f"bias_hh_l{layer}"]).detach())
        inputs.append(whole_weights(_rows(values[f"weight_ih_l{layer}"], units), _rows(bias, units), bits))
        own = whole_weights(_rows(values[f"weight_hh_l{layer}"], units), None, bits)
        states.append(own._replace(scale=own.scale / (LARGEST if bits == 16 else LARGEST_STATE)))
    return LayerWeights((inputs[0], inputs[1]), (states[0], states[1]))


def _rows(values: Tensor, units: int) -> Tensor:
    """Rows of gate after gate in the order of the kernel: the four gates of as many units as a vector has lanes."""
    lanes = native.kernels.LSTM_LANES
    gates = values.detach().reshape(4, units, -1)
    gates = pad(gates, (0, 0, 0, -units % lanes)).unflatten(1, (-1, lanes)).transpose(0, 1).flatten(0, 2)
    return gates.squeeze(-1) if values.ndim == 1 else gates


def check_range(name: str, values: Int[Tensor, "*any"], end: int) -> None:
    """Refuse what would have a kernel read elsewhere."""
    least, most = (int(value) for value in values.aminmax())
    if least < 0 or most > end:
        raise ValueError(f"{name} go from {least} to {most}; they must be between 0 and {end}.")


def input_gates(weights: LayerWeights, inputs: Float[Tensor, "rows d"], *, halves: bool = False) -> Gates:
    """What inputs give to the gates, by the kernel.

    Args:
        weights: What `layer_weights` made.
        inputs: The inputs.
        halves: Whether forward reads the first half of an input and backward the second.
    """
    sides = inputs.chunk(2, -1) if halves else (inputs, inputs)
    right, left = (whole_product(x, own, len(own.scale)) for x, own in zip(sides, weights.inputs, strict=True))
    return right, left


def read_gates(
    weights: LayerWeights, gates: Gates, place: Int[Tensor, "batch n"], lengths: Int[Tensor, " batch"], units: int
) -> Float[Tensor, "batch n 2*units"]:
    """The states of a layer, both directions side by side, by the kernel; zeros behind the end of a sentence.

    Args:
        weights: What `layer_weights` made.
        gates: What distinct inputs give to the gates.
        place: Which of them stands where.
        lengths: Positions of each sentence.
        units: Of one direction.
    """
    right, left = weights.states
    states = gates[0].new_empty(*place.shape, 2 * units)
    if not states.numel():
        return states
    check_range("lengths", lengths, place.shape[1])
    check_range("place", place, len(gates[0]) - 1)
    native.kernels.lstm_states(
        *gates,
        place.contiguous(),
        lengths.contiguous(),
        *(right.weight, right.scale, right.totals),
        *(left.weight, left.scale, left.totals),
        states,
        torch.get_num_threads(),
    )
    return states


def read_layer_reference(
    lstms: tuple[nn.LSTM, nn.LSTM],
    inputs: Float[Tensor, "rows d"],
    place: Int[Tensor, "batch n"],
    lengths: Int[Tensor, " batch"],
    *,
    halves: bool = False,
    bits: int = 16,
) -> Float[Tensor, "batch n 2*units"]:
    """The same, from the inputs on, in plain torch, of the first layer of two LSTMs: what the kernels are held to.

    Example:
        >>> lstms = nn.LSTM(3, 2), nn.LSTM(3, 2)
        >>> inputs, place, lengths = torch.randn(4, 3), torch.arange(4).view(1, 4), torch.tensor([4])
        >>> found = read_layer_reference(lstms, inputs, place, lengths)
        >>> bool(torch.allclose(found[0, :, :2], lstms[0](inputs)[0].detach(), atol=1e-2))
        True
    """
    time, largest = torch.arange(place.shape[1]), LARGEST if bits == 16 else LARGEST_STATE
    mirror = (lengths.unsqueeze(-1) - 1 - time).clamp(min=0)
    found = []
    for k, (lstm, own) in enumerate(zip(lstms, inputs.chunk(2, -1) if halves else (inputs, inputs), strict=True)):
        values = {name: value.detach() for name, value in lstm.named_parameters()}
        bias = values["bias_ih_l0"] + values["bias_hh_l0"]
        gates = whole_product_reference(own, values["weight_ih_l0"], bias, bits)[
            place.gather(1, mirror) if k else place
        ]
        weight, scale = rounded(values["weight_hh_l0"], bits)
        h = c = inputs.new_zeros(len(place), lstm.hidden_size)
        states = inputs.new_zeros(*place.shape, lstm.hidden_size)
        for step in time.tolist():
            sums = ((h * largest).round().double() @ weight.double().t()).float()
            i, f, g, o = (gates[:, step] + sums * (scale / largest)).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = states[:, step] = o.sigmoid() * c.tanh()
        found.append(states.gather(1, mirror.unsqueeze(-1).expand_as(states)) if k else states)
    return torch.cat(found, -1).masked_fill((time >= lengths.unsqueeze(-1)).unsqueeze(-1), 0)
