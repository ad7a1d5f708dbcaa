"""BiLSTMs that learn, by kernels: what comes from the inputs in one product of matrices, what comes from the states
step by step over the sentences that are still long enough.

torch's LSTM is the twin: it serves where there are no kernels, on accelerators, in other precisions.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from spigot import kernels
from spigot.kernels import kernel_threads, operator
from spigot_nlp.nn.recurrence import check_range


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
