"""The first hidden layer of a perceptron over pairs of words, by a kernel that passes over the pairs once each way."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from spigot import kernels
from spigot.kernels import kernel_threads, operator
from spigot_nlp.nn.quantised import check_range


def pair_tanh(
    first: Float[Tensor, "rows h"],
    second: Float[Tensor, "others h"],
    first_row: Int[Tensor, " pairs"],
    second_row: Int[Tensor, " pairs"],
) -> Float[Tensor, "pairs h"]:
    r"""$\tanh(a_i + b_j)$ for each of the pairs $(i, j)$. It can be differentiated once.

    Args:
        first: The rows $a_i$.
        second: The rows $b_j$.
        first_row: $i$ of each pair.
        second_row: $j$ of each pair.

    Example:
        >>> rows = torch.tensor([[0.0], [50.0]])
        >>> pair_tanh(rows, rows, torch.tensor([0, 0]), torch.tensor([0, 1])).flatten().tolist()
        [0.0, 1.0]
    """
    by_kernel = first.dtype == second.dtype == torch.float32 and kernels.serves(first, second)
    if not by_kernel or not first_row.numel() or torch.is_autocast_enabled("cpu"):
        return pair_tanh_reference(first, second, first_row, second_row)
    return _pair_tanh(first, second, first_row, second_row)


def pair_tanh_reference(
    first: Float[Tensor, "rows h"],
    second: Float[Tensor, "others h"],
    first_row: Int[Tensor, " pairs"],
    second_row: Int[Tensor, " pairs"],
) -> Float[Tensor, "pairs h"]:
    """The same in plain torch: what the kernel is held to.

    Example:
        >>> rows, place = torch.tensor([[0.0], [50.0]]), torch.tensor([1])
        >>> pair_tanh_reference(rows, rows, place, place).tolist()
        [[1.0]]
    """
    # A flat index_select has a quick backward; indexing by two tensors does not.
    return (first.index_select(0, first_row) + second.index_select(0, second_row)).tanh()


@operator("spigot::pair_tanh")
def _pair_tanh(first: Tensor, second: Tensor, first_row: Tensor, second_row: Tensor) -> Tensor:
    check_range("rows of pairs", first_row, len(first) - 1)
    check_range("rows of pairs", second_row, len(second) - 1)
    values = first.new_empty(len(first_row), first.shape[1])
    kernels.compiled.pair_tanh(
        first.contiguous(),
        second.contiguous(),
        first_row.contiguous(),
        second_row.contiguous(),
        values,
        kernel_threads(),
    )
    return values


@_pair_tanh.register_fake
def _(first: Tensor, second: Tensor, first_row: Tensor, second_row: Tensor) -> Tensor:
    return first.new_empty(first_row.shape[0], first.shape[1])


@operator("spigot::pair_tanh_back")
def _pair_tanh_back(
    wanted: Tensor, values: Tensor, first_row: Tensor, second_row: Tensor, rows: int, others: int
) -> tuple[Tensor, Tensor]:
    """What is wanted of the rows of both tables."""
    first, second = (values.new_zeros(count, values.shape[1]) for count in (rows, others))
    kernels.compiled.pair_tanh_back(
        wanted.contiguous(),
        first_row.contiguous(),
        second_row.contiguous(),
        values,
        first,
        second,
        kernel_threads(),
    )
    return first, second


@_pair_tanh_back.register_fake
def _(
    wanted: Tensor, values: Tensor, first_row: Tensor, second_row: Tensor, rows: int, others: int
) -> tuple[Tensor, Tensor]:
    return values.new_empty(rows, values.shape[1]), values.new_empty(others, values.shape[1])


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    first, second, *rows = inputs
    ctx.save_for_backward(output, *rows)
    ctx.sizes = len(first), len(second)


def _backward(ctx: Any, wanted: Tensor) -> tuple[Tensor | None, ...]:
    return *_pair_tanh_back(wanted, *ctx.saved_tensors, *ctx.sizes), None, None


_pair_tanh.register_autograd(_backward, setup_context=_save)
