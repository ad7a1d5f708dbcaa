"""Reading with a BiLSTM in whole numbers: the same states to three digits, in little more than half the time.

Weights and inputs are rounded to about twelve bits. Sums of such numbers are exact, so that the states of a sentence do
not depend on the batch it is in, on how many threads there are, or on the order in which a machine adds.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from spigot import kernels
from spigot.kernels import kernel_threads
from spigot_nlp.nn.whole import LARGEST, checked, rounded


class LayerWeights(NamedTuple):
    """Both directions of a layer of a BiLSTM in whole numbers, the forward one first.

    Attributes:
        input: The weights of the inputs.
        input_scale: What one is worth, times that of an input.
        bias: The sum of both biases.
        state: The recurrent weights.
        state_scale: What one is worth with a state in whole numbers.
    """

    input: Tensor
    input_scale: Tensor
    bias: Tensor
    state: Tensor
    state_scale: Tensor


def layer_weights(forward: nn.LSTM, backward: nn.LSTM, layer: int = 0, lanes: int = 0) -> LayerWeights:
    """One layer of two LSTMs, rounded.

    Args:
        forward: Reads from left to right.
        backward: Reads from right to left.
        layer: Which layer of them.
        lanes: Units in a panel of the kernel; 0 for rows as torch has them.

    Example:
        >>> layer_weights(nn.LSTM(3, 2), nn.LSTM(3, 2)).input.shape
        torch.Size([2, 8, 3])
        >>> layer_weights(nn.LSTM(3, 2), nn.LSTM(3, 2), lanes=8).input.shape   # panels, pairs, gates, units, of a pair
        torch.Size([2, 1, 2, 4, 8, 2])
    """
    found = []
    for lstm in (forward, backward):
        values = dict(lstm.named_parameters())
        inputs, states = (rounded(values[f"weight_{kind}_l{layer}"]) for kind in ("ih", "hh"))
        bias = checked((values[f"bias_ih_l{layer}"] + values[f"bias_hh_l{layer}"]).detach())
        parts = (inputs.weight, inputs.scale, bias, states.weight, states.scale / LARGEST)
        found.append([_panels(part, lstm.hidden_size, lanes) if lanes else part for part in parts])
    return LayerWeights(*(torch.stack(both).contiguous() for both in zip(*found, strict=True)))


def _panels(rows: Tensor, units: int, lanes: int) -> Tensor:
    """Rows of gate after gate, as panels of the four gates of some units; pairs of inputs stand together."""
    gates = rows.view(4, units, -1)
    gates = pad(gates, (0, 0, 0, -units % lanes)).unflatten(1, (-1, lanes))  # (gates, panels, units, inputs)
    if rows.ndim == 1:
        return gates.squeeze(-1).transpose(0, 1)
    return pad(gates, (0, gates.shape[-1] % 2)).unflatten(-1, (-1, 2)).permute(1, 3, 0, 2, 4)


def check_range(name: str, values: Int[Tensor, "*any"], end: int) -> None:
    """Refuse what would have a kernel read elsewhere."""
    least, most = (int(value) for value in values.aminmax())
    if least < 0 or most > end:
        raise ValueError(f"{name} go from {least} to {most}; they must be between 0 and {end}.")


def read_layer(
    weights: LayerWeights,
    inputs: Float[Tensor, "rows d"],
    place: Int[Tensor, "batch n"],
    lengths: Int[Tensor, " batch"],
    units: int,
    *,
    halves: bool = False,
) -> Float[Tensor, "batch n 2*units"]:
    """The states of a layer, both directions side by side, by the kernel; zeros behind the end of a sentence.

    Args:
        weights: What `layer_weights` made for the lanes of the kernel.
        inputs: Distinct inputs.
        place: Which of them stands where.
        lengths: Positions of each sentence.
        units: Of one direction.
        halves: Whether forward reads the first half of an input and backward the second.
    """
    states = inputs.new_empty(*place.shape, 2 * units)
    if not states.numel():
        return states
    check_range("lengths", lengths, place.shape[1])
    check_range("place", place, len(inputs) - 1)
    width = inputs.shape[1] // 2 if halves else inputs.shape[1]
    kernels.compiled.lstm_layer(
        inputs.contiguous(), place.contiguous(), lengths.contiguous(), *weights, states, width, kernel_threads()
    )
    return states


def read_layer_reference(
    weights: LayerWeights,
    inputs: Float[Tensor, "rows d"],
    place: Int[Tensor, "batch n"],
    lengths: Int[Tensor, " batch"],
    units: int,
    *,
    halves: bool = False,
) -> Float[Tensor, "batch n 2*units"]:
    """The same in plain torch, from weights without panels: what the kernel is held to.

    Example:
        >>> lstms = nn.LSTM(3, 2), nn.LSTM(3, 2)
        >>> inputs, place, lengths = torch.randn(4, 3), torch.arange(4).view(1, 4), torch.tensor([4])
        >>> found = read_layer_reference(layer_weights(*lstms), inputs, place, lengths, 2)
        >>> bool(torch.allclose(found[0, :, :2], lstms[0](inputs)[0].detach(), atol=1e-2))
        True
    """
    time = torch.arange(place.shape[1])
    mirror = (lengths.unsqueeze(-1) - 1 - time).clamp(min=0)
    found = []
    for k, own in enumerate(inputs.chunk(2, -1) if halves else (inputs, inputs)):
        most = own.abs().amax(-1, keepdim=True)
        whole = torch.where(most > 0, own * (LARGEST / most), 0).round().double()  # doubles hold these sums exactly
        sums = (whole @ weights.input[k].double().t()).float()
        gates = (sums * (weights.input_scale[k] * (most / LARGEST)) + weights.bias[k])[
            place.gather(1, mirror) if k else place
        ]
        h = c = inputs.new_zeros(len(place), units)
        states = inputs.new_zeros(*place.shape, units)
        for step in time.tolist():
            sums = ((h * LARGEST).round().double() @ weights.state[k].double().t()).float()
            i, f, g, o = (gates[:, step] + sums * weights.state_scale[k]).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = states[:, step] = o.sigmoid() * c.tanh()
        found.append(states.gather(1, mirror.unsqueeze(-1).expand_as(states)) if k else states)
    return torch.cat(found, -1).masked_fill((time >= lengths.unsqueeze(-1)).unsqueeze(-1), 0)
