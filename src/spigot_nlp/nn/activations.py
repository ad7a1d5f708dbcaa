"""tanh by the kernel, right to a few units in the last place: a sixth of torch's time on AVX2."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from spigot import kernels
from spigot.kernels import kernel_threads, operator


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
