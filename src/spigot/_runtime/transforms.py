"""What the layer asks about torch's transforms: `vmap` and `grad` of `torch.func`, and autograd itself."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_functorch: Any = torch._C._functorch  # pyright: ignore[reportAttributeAccessIssue]


def is_transformed(tensor: Tensor) -> bool:
    """Whether values cannot be looked at: something is being compiled, or the tensor stands for others."""
    return torch.compiler.is_compiling() or _functorch.is_functorch_wrapped_tensor(tensor)


def needs_gradient(scores: Tensor) -> bool:
    """Whether a gradient will be asked for: estimators that explore do so only then."""
    if not torch.is_grad_enabled():
        return False
    while not torch.compiler.is_compiling() and _functorch.is_functorch_wrapped_tensor(scores):
        if scores.requires_grad:
            return True
        scores = _functorch.get_unwrapped(scores)  # vmap hides it
    return scores.requires_grad


def refuse_mapped(tensor: Tensor, what: str) -> None:
    """Raise if a tensor stands for many under `vmap`, where an algorithm has to look at each."""
    while not torch.compiler.is_compiling() and _functorch.is_functorch_wrapped_tensor(tensor):
        if _functorch.is_batchedtensor(tensor):
            raise NotImplementedError(
                f"{what} cannot run inside vmap, as in vmap(grad(...)). Take the gradient outside of it, or leave vmap "
                "out: structures take any number of batch axes."
            )
        tensor = _functorch.get_unwrapped(tensor)


def vjp(function: Callable[[Tensor], Tensor], point: Tensor, grad: Tensor) -> Tensor:
    """The derivative of a function at a point, transposed and applied to a gradient, by autograd."""
    with torch.enable_grad():
        leaf = point.detach().requires_grad_()
        (found,) = torch.autograd.grad(function(leaf), leaf, grad)
    return found
