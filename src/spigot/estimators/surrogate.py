"""Estimators with a way back that is written by hand, and the node of the autograd graph that they share."""

import abc
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spigot._runtime.checks import check_parts, first_part, instance_name, refuse_mapped, require_kind
from spigot._runtime.precision import exact
from spigot.interface import AbstractEstimator, AbstractStructure, Explanation, Pullback
from spigot.types import Mask, Parts, Saved, Values

_functorch: Any = torch._C._functorch  # pyright: ignore[reportAttributeAccessIssue]


class AbstractSurrogate(AbstractEstimator):
    """A forward value computed by an algorithm, and a way back that is written by hand.

    A new estimator is one subclass with one method, `pullback`; and `forward` if it does not decode the plain scores.
    Subclasses are frozen dataclasses with a field `max_norm`.
    """

    max_norm: float | None
    r"""Clips $\nabla_z L$ to this 2-norm, instance by instance, before anything else; `None` leaves it alone."""

    clip_per: Literal["instance", "block"] = "instance"
    """What `max_norm` is the norm of: a whole instance, or each block of the relaxation by itself."""

    centred: Literal["no", "block", "instance"] = "no"
    """Whether the gradient is first made free of its mean, over each block or over an instance."""

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        """What goes forward, and the tensors that `pullback` will need beside scores, z and mask: the argmax, and none.

        An estimator that perturbs the scores returns its noise, one that projects them its support.
        """
        return structure.argmax(scores, mask), ()

    @abc.abstractmethod
    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback | Parts:
        r"""What becomes of `grad` $= \nabla_z L$, which arrives masked and clipped.

        Returns:
            The record of what was done; or the gradient alone, if there is no step or projection to tell of.
        """

    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        return _Surrogate.apply(scores, mask, structure, self)[0]  # pyright: ignore[reportOptionalSubscript]

    def explain(
        self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None = None
    ) -> Explanation:
        mask = existing(structure, scores, grad, mask)
        with torch.no_grad():
            z, saved = self.forward(structure, scores, mask)
            record = _pulled(self, structure, scores, z, saved, grad, mask)
            grad = self.clip(structure, grad, mask)
            stepped, projected, gap = record.path()
        ndim = structure.event_ndim
        return explanation(z, grad, record.gradient, ndim, stepped=stepped, projected=projected, gap=gap)

    def clip(self, structure: AbstractStructure, grad: Parts, mask: Mask) -> Parts:
        """The gradient as the estimator uses it: zero outside the mask, without its mean if it is to be centred, and
        each instance, or block, at most `max_norm` long."""
        ndim = structure.event_ndim
        if self.centred != "no":
            grad = structure.relaxation.centred(grad, mask, ndim, blocks=self.centred == "block")
        axes = structure.relaxation.block_axes if self.clip_per == "block" else None
        return clipped(grad, mask, ndim, self.max_norm, axes)


def clipped(
    grad: Parts, mask: Mask, event_ndim: int, max_norm: float | None, axes: tuple[int, ...] | None = None
) -> Parts:
    """A gradient, zero outside the mask, of each instance, or of what some axes span, at most `max_norm` long."""
    grad = torch.where(mask, grad, 0)
    if max_norm is None:
        return grad
    axes = tuple(range(-event_ndim, 0)) if axes is None else axes
    wide = exact(grad)  # whose norm may overflow otherwise
    norm = torch.linalg.vector_norm(wide, dim=axes, keepdim=True) if axes else wide.abs()
    return grad.mul_((max_norm / norm.clamp(min=max_norm)).to(grad.dtype))


def as_pullback(result: Pullback | Parts) -> Pullback:
    """The record, also of an estimator that gives its gradient alone."""
    return result if isinstance(result, Pullback) else Pullback(result)


def _pulled(
    estimator: AbstractSurrogate,
    structure: AbstractStructure,
    scores: Parts,
    z: Parts,
    saved: Saved,
    grad: Parts,
    mask: Mask,
) -> Pullback:
    """What an estimator makes of a gradient as it arrives.

    A gradient that is not finite takes a step to points, or scores, that some algorithm then refuses: the error speaks
    of the gradient, which is where the mistake is.
    """
    try:
        clip = estimator.clip(structure, grad, mask)
        return as_pullback(estimator.pullback(structure, scores, z, saved, clip, mask))
    except ValueError:
        if torch.compiler.is_compiling() or _functorch.is_functorch_wrapped_tensor(grad):
            raise  # whose values cannot be looked at
        bad = ~grad.isfinite() & mask
        if not bad.any():
            raise
    instance, batch, part = first_part(bad, structure.event_ndim)
    what = "NaN" if grad[bad][0].isnan() else "infinite"
    raise ValueError(
        f"the gradient that reaches {type(estimator).__name__} is {what} at part [{', '.join(map(str, part))}] of "
        f"{instance_name(instance, batch)}; look for what makes it so in the loss, or in what uses z."
    )


def check_gradient(grad: Tensor, scores: Tensor) -> None:
    """A gradient to explain has the shape of the scores."""
    if grad.shape != scores.shape:
        raise ValueError(f"grad has shape {tuple(grad.shape)} and scores {tuple(scores.shape)}; they must be equal.")


def learns(scores: Parts) -> bool:
    """Whether a gradient will be asked for: estimators that explore do so only then."""
    if not torch.is_grad_enabled():
        return False
    while not torch.compiler.is_compiling() and _functorch.is_functorch_wrapped_tensor(scores):
        if scores.requires_grad:
            return True
        scores = _functorch.get_unwrapped(scores)  # vmap hides it
    return scores.requires_grad


def existing(structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None) -> Mask:
    """The parts that exist, spelt out, after a look at the shapes."""
    require_kind(structure, AbstractStructure, "structure", "ProjectiveTrees()")
    mask = check_parts(scores, mask, structure.event_ndim)
    check_gradient(grad, scores)
    return mask & structure.everything(scores)


class _Surrogate(torch.autograd.Function):
    """Forward and pullback of an estimator as one node of the autograd graph."""

    @staticmethod
    def forward(scores: Tensor, mask: Tensor, structure: AbstractStructure, estimator: AbstractSurrogate):
        z, saved = estimator.forward(structure, scores, mask)
        return z, *saved

    @staticmethod
    def setup_context(ctx, inputs, output):
        scores, mask, ctx.structure, ctx.estimator = inputs
        z, *saved = output
        ctx.save_for_backward(scores, mask, z, *saved)
        ctx.mark_non_differentiable(*saved)
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, *_):  # pyright: ignore[reportIncompatibleMethodOverride]
        if grad is None:
            return None, None, None, None
        scores, mask, z, *saved = ctx.saved_tensors
        structure, estimator = ctx.structure, ctx.estimator
        if saved:
            refuse_mapped(grad, f"the way back of {estimator}")
        pulled = _pulled(estimator, structure, scores, z, tuple(saved), grad, mask)
        return pulled.gradient, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, scores: Tensor, mask: Tensor, structure: Any, estimator: Any):  # pyright: ignore[reportIncompatibleMethodOverride]
        """Structures take any number of batch axes: the mapped one becomes the first of them."""
        axes = in_dims[:2]
        pair = [
            x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
            for x, axis in zip((scores, mask), axes, strict=True)
        ]
        z, *saved = _Surrogate.apply(*pair, structure, estimator)  # pyright: ignore[reportGeneralTypeIssues]
        return (z, *saved), (0, *[None] * len(saved))


def explanation(
    z: Parts,
    grad: Parts,
    gradient: Parts,
    event_ndim: int,
    *,
    stepped: Parts | None = None,
    projected: Parts | None = None,
    gap: Values | None = None,
) -> Explanation:
    """Fill in the fields of an `Explanation` that follow from the others."""
    axes = tuple(range(-event_ndim, 0))
    zero = z.new_zeros(z.shape[: z.ndim - event_ndim])
    distance = zero
    if stepped is not None and projected is not None:
        distance = torch.linalg.vector_norm(stepped - projected, dim=axes)
    return Explanation(
        z=z,
        grad=grad,
        stepped=stepped,
        projected=projected,
        gradient=gradient,
        support=(z if projected is None else projected) != 0,
        distance=distance,
        gap=zero if gap is None else gap,
    )
