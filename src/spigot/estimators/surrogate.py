"""Estimators with a way back that is written by hand: their base, clipping, and their node of the autograd graph."""

import abc
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spigot._runtime.checks import first_part, instance_name, require_kind, resolve_mask
from spigot._runtime.precision import to_float64, upcast_half
from spigot._runtime.reduce import centre
from spigot._runtime.transforms import is_transformed, refuse_mapped
from spigot.estimators.requirements import settle_numbers
from spigot.interface import AbstractEstimator, AbstractPolytope, AbstractStructure, Explanation, Pullback
from spigot.polytopes.blocks import ArcLabel, Box, HeadSimplex, LabelledHeadSimplex, Simplex
from spigot.types import Mask, Parts, Saved, Values


@dataclass(frozen=True, kw_only=True)
class Clipping:
    r"""What is done to $\nabla_z L$ before anything else.

    A block is what shares a constraint of the structure's relaxation: the heads of a word, an arc and its labels. Where
    the relaxation is no product of such blocks, it is the instance.

    Attributes:
        max_norm: Clips the gradient to this 2-norm; `None` leaves it alone.
        clip_per: Whether that norm is of an instance, or of each block by itself.
        centred: Take the mean out of the gradient first, over each block or over an instance.
    """

    max_norm: float | None = None
    clip_per: Literal["instance", "block"] = "instance"
    centred: Literal["no", "block", "instance"] = "no"

    def __post_init__(self) -> None:
        if self.max_norm is not None:
            settle_numbers(self, "must be a positive number, or None for no clipping", "max_norm")
        for name, known in (("clip_per", ("instance", "block")), ("centred", ("no", "block", "instance"))):
            if getattr(self, name) not in known:
                listed = ", ".join(map(repr, known))
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be one of {listed}.")
        if self.clip_per == "block" and self.max_norm is None:
            raise ValueError("clip_per is 'block', and there is nothing to clip to; give a max_norm.")

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Clipping.__repr__  # where there is one, `dataclass` makes none
        if "__init__" in vars(cls) and "__eq__" not in vars(cls):  # its own attributes are no fields
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__

    def __repr__(self) -> str:
        """Its own fields, and of the clipping what is set."""
        clipping = {one.name: getattr(self, one.name) for one in fields(Clipping)}
        own = [one.name for one in fields(self) if one.repr and one.name not in clipping]
        shown = {name: getattr(self, name) for name in own}
        shown |= {name: value for name, value in clipping.items() if value != getattr(Clipping, name)}
        return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def clip(self, structure: AbstractStructure, grad: Parts, mask: Mask) -> Parts:
        """The gradient as an estimator uses it: zero outside the mask, centred and clipped."""
        whole = tuple(range(-structure.event_ndim, 0))
        if self.centred == "instance":
            kinds = _kinds(mask) if isinstance(structure.relaxation, ArcLabel) else (mask,)
            grad = sum(centre(grad, kind, whole) for kind in kinds)  # pyright: ignore[reportAssignmentType]
        elif self.centred == "block":
            grad = _centre_blocks(structure.relaxation, grad, mask, whole)
        else:
            grad = torch.where(mask, grad, 0)
        if self.max_norm is None:
            return grad
        axes = _block_axes(structure.relaxation, whole) if self.clip_per == "block" else whole
        wide = to_float64(grad)  # whose norm may overflow otherwise
        norm = torch.linalg.vector_norm(wide, dim=axes, keepdim=True) if axes else wide.abs()
        return grad.mul_((self.max_norm / norm.clamp(min=self.max_norm)).to(grad.dtype))


def _block_axes(polytope: AbstractPolytope, whole: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that span a block; none where every part stands for itself."""
    if isinstance(polytope, Box):
        return ()
    if isinstance(polytope, Simplex | ArcLabel):
        return (-1,)
    if isinstance(polytope, HeadSimplex):
        return (-2,)
    return (-3, -1) if isinstance(polytope, LabelledHeadSimplex) else whole


def _centre_blocks(polytope: AbstractPolytope, grad: Parts, mask: Mask, whole: tuple[int, ...]) -> Parts:
    if isinstance(polytope, ArcLabel):  # the arc of a block is the only one of its kind, and stays as it is
        labels = _kinds(mask)[0]
        return torch.where(labels, centre(grad, labels, -1), torch.where(mask, grad, 0))
    return centre(grad, mask, _block_axes(polytope, whole))


def _kinds(mask: Mask) -> tuple[Mask, Mask, Mask]:
    """The labels, arcs and predicates of graphs: parts are compared with their like."""
    labels = mask.clone()
    labels[..., 0] = False
    rest = mask & ~labels
    predicates = rest & torch.eye(mask.shape[-2], dtype=torch.bool, device=mask.device).unsqueeze(-1)
    return labels, rest & ~predicates, predicates


@dataclass(frozen=True)
class AbstractSurrogate(Clipping, AbstractEstimator):
    """A forward value computed by an algorithm, and a way back that is written by hand.

    A new estimator is one subclass with one method, `pullback`; and `forward` if it does not decode the plain scores.
    Subclasses are frozen dataclasses; how gradients are clipped are fields that all of them have.
    """

    hard: ClassVar[bool] = True

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
        mask = checked_mask(structure, scores, grad, mask)
        with torch.no_grad():
            z, saved = self.forward(structure, scores, mask)
            record = _pulled(self, structure, scores, z, saved, grad, mask)
            grad = self.clip(structure, grad, mask)
            stepped, projected, gap = record.path()
        ndim = structure.event_ndim
        return explanation(z, grad, record.gradient, ndim, stepped=stepped, projected=projected, gap=gap)


@upcast_half
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
        result = estimator.pullback(structure, scores, z, saved, estimator.clip(structure, grad, mask), mask)
        return result if isinstance(result, Pullback) else Pullback(result)
    except ValueError:
        if is_transformed(grad):
            raise
        bad = ~grad.isfinite() & mask
        if not bad.any():
            raise
    instance, batch, part = first_part(bad, structure.event_ndim)
    what = "NaN" if grad[bad][0].isnan() else "infinite"
    raise ValueError(
        f"the gradient that reaches {type(estimator).__name__} is {what} at part [{', '.join(map(str, part))}] of "
        f"{instance_name(instance, batch)}; look for what makes it so in the loss, or in what uses z."
    )


def checked_mask(structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None) -> Mask:
    """The parts that exist, after a look at what is to be explained."""
    require_kind(structure, AbstractStructure, "structure", "ProjectiveTrees()")
    mask = resolve_mask(structure, scores, mask)
    if grad.shape != scores.shape:
        raise ValueError(f"grad has shape {tuple(grad.shape)} and scores {tuple(scores.shape)}; they must be equal.")
    return mask


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
