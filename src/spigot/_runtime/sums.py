r"""What the operators for sums over all members have in common: shapes, the way back, and `vmap`.

Of each structure one operator gives $\log Z$ and $\mu = \nabla \log Z$, and a second one the product of the Hessian of
$\log Z$ with a direction, which is the way back of $\mu$. Where plain torch computes $\log Z$ and differentiates it, a
third one looks at the scores before.
"""

from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef

from spigot._runtime.operators import batched


def register_sums(sums: CustomOpDef, hessian: CustomOpDef, event_ndim: int) -> None:
    r"""Give an operator for sums its derivatives.

    Args:
        sums: Of scores, mask, whatever tells the kind, and whether marginals are wanted: $\log Z$ and $\mu$, or an
            empty tensor in its place.
        hessian: Of scores, mask, a direction and the same: the derivative of $\mu$ along the direction.
        event_ndim: How many axes parts have.
    """

    def shapes(scores: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        *_, marginals = rest
        mu = torch.empty_like(scores, memory_format=torch.contiguous_format) if marginals else scores.new_empty(0)
        return scores.new_empty(scores.shape[: scores.ndim - event_ndim]), mu

    def save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        scores, mask, *ctx.kind, _ = inputs
        ctx.save_for_backward(scores, mask, output[1])
        ctx.set_materialize_grads(False)

    def back(ctx: Any, grad_log_partition: Tensor | None, grad_mu: Tensor | None) -> tuple[Tensor | None, ...]:
        scores, mask, mu = ctx.saved_tensors
        grad = None
        if grad_log_partition is not None:
            grad = grad_log_partition[(..., *[None] * event_ndim)] * mu
        if grad_mu is not None:
            curved = hessian(scores, mask, grad_mu, *ctx.kind)
            grad = curved if grad is None else grad + curved
        return grad, *[None] * (len(ctx.kind) + 2)

    sums.register_fake(shapes)
    sums.register_autograd(back, setup_context=save)
    hessian.register_fake(lambda scores, *_: torch.empty_like(scores, memory_format=torch.contiguous_format))
    batched(sums)
    batched(hessian)


def register_checked(checked: CustomOpDef) -> None:
    """Give an operator that looks at scores, and lets those inside a mask pass, its derivative.

    Args:
        checked: Of scores, mask and whatever else: the scores, zero outside.
    """

    def save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.others = len(inputs) - 1
        ctx.save_for_backward(inputs[1])

    def back(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (mask,) = ctx.saved_tensors
        return grad.masked_fill(~mask, 0), *[None] * ctx.others

    checked.register_fake(lambda scores, *_, **__: torch.empty_like(scores))
    checked.register_autograd(back, setup_context=save)
    batched(checked)
