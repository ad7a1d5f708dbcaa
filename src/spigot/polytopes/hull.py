r"""The convex hull of a structure, reached through its argmax alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from spigot._algorithms.active_set import along_differences, project_face, project_hull, unpack_support
from spigot._runtime.checks import check_parts, require_kind
from spigot._runtime.host import HOSTED, handle_of
from spigot._runtime.operators import operator
from spigot._runtime.precision import upcast_half
from spigot._runtime.reduce import refuse_infinite, refuse_nan
from spigot._runtime.transforms import refuse_mapped
from spigot.interface import AbstractPolytope, AbstractStructure
from spigot.types import Flags, HullResult, Mask, PackedSupport, Parts, Values


@dataclass(frozen=True)
class Support:
    r"""The structures whose mixture is a point of the hull: $\mu = \sum_i w_i z_i$.

    Attributes:
        weights: $w$, not negative, summing to one, `(k,)`; a structure of weight zero belongs to the face of the point.
        vertices: The structures, `(k, *parts)`.
    """

    weights: Tensor
    vertices: Tensor


@dataclass(frozen=True)
class HullSolution:
    """A projection onto a hull, with the evidence.

    Attributes:
        point: The projection.
        gap: The duality gap of each instance: how much the squared distance could still shrink, at most.
        packed: The support as ragged tensors; `support` unpacks it.
    """

    point: Parts
    gap: Values
    packed: PackedSupport
    event_ndim: int

    @property
    def support(self) -> tuple[Support, ...]:
        """The structures and weights of each instance, batch axes flattened."""
        parts = self.point.shape[self.point.ndim - self.event_ndim :]
        return tuple(
            Support(weights.to(self.point), vertices.to(self.point).reshape(-1, *parts))
            for weights, vertices in unpack_support(self.packed, parts.numel())
        )


@final
@dataclass(frozen=True)
class ConvexHull(AbstractPolytope):
    r"""$\operatorname{conv}\mathcal Z$: the tightest polytope, exact up to a duality gap that `solve` reports.

    The gap is at most $10^{-9}$ in float64 and $10^{-6}$ in float32, times the scale of the point where it has mass.
    An entry of $-\infty$ gets nothing. Projections onto the hulls of the tree structures run in the native kernels; for
    any other structure each round is one batched call of its `argmax`.

    Attributes:
        structure: The set $\mathcal Z$; only its `argmax` is used.

    Example:
        The hull of one-of-k is the simplex.

        >>> import spigot
        >>> hull = ConvexHull(spigot.OneOf())
        >>> hull.project(torch.tensor([1.0, 0.5, -1.0]))
        tensor([0.7500, 0.2500, 0.0000])
        >>> hull.solve(torch.tensor([1.0, 0.5, -1.0])).support[0].weights
        tensor([0.7500, 0.2500])
    """

    structure: AbstractStructure

    def __post_init__(self) -> None:
        require_kind(self.structure, AbstractStructure, "structure", "ProjectiveTrees()")

    def project(self, point: Parts, mask: Mask | None = None, *, start: Parts | None = None) -> Parts:
        r"""The nearest point of the hull, without a gradient: `SparseMAP` is this projection with its Jacobian.

        Args:
            point: Where to project from.
            mask: Parts that exist.
            start: A structure near the answer, if one is known, such as $\hat z$ in SPIGOT's backward pass. Where it
                is not a member of the structure it is ignored.
        """
        return self._solve(point, mask, start, support=False).point

    def gap(self, point: Parts, projected: Parts, mask: Mask) -> Values:
        outward = torch.where(mask, point - projected, 0)
        axes = tuple(range(-self.structure.event_ndim, 0))
        return (outward * (self.structure.argmax(outward, mask) - projected)).sum(axes).clamp(min=0)

    def face(self, point: Parts, mask: Mask) -> Callable[[Parts], Parts]:
        """The derivative of the projection of a point: what of a direction lies along the face that it is on."""
        ndim = self.structure.event_ndim
        support = self.solve(point, mask).packed

        def along(direction: Parts) -> Parts:
            flat = direction.masked_fill(~mask, 0).reshape(direction.shape[: direction.ndim - ndim].numel(), -1)
            return project_face(flat, *support).reshape(direction.shape).masked_fill(~mask, 0)

        return along

    def tangent(self, direction: Parts, mask: Mask) -> Parts:
        """Found through the argmax, twice for each dimension of the hull: exact, but for small sets only."""
        direction = torch.where(mask, direction, 0)
        if torch.compiler.is_compiling():
            return _tangent_operator(direction, mask, handle_of(self.structure))
        refuse_mapped(direction, f"the affine hull of {self.structure}")
        return along_differences(direction, mask, self.structure)

    @upcast_half
    def solve(self, point: Parts, mask: Mask | None = None, *, start: Parts | None = None) -> HullSolution:
        """As `project`, with the duality gap and the structures that the answer is made of."""
        return self._solve(point, mask, start, support=True)

    def _solve(self, point: Parts, mask: Mask | None, start: Parts | None, *, support: bool) -> HullSolution:
        ndim = self.structure.event_ndim
        mask = check_parts(point, mask, ndim, "point") & self.structure.full_mask(point)
        if start is not None and start.shape != point.shape:
            raise ValueError(
                f"start has shape {tuple(start.shape)} and point {tuple(point.shape)}; they must be equal."
            )
        result = solve_hull(self.structure, point, mask, start, support=support)
        batch = point.shape[: point.ndim - ndim]
        return HullSolution(result.point.reshape(point.shape), result.gap.reshape(batch), result.support, ndim)

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        """Whether each instance is within `atol` of its own projection, part by part."""
        ndim = self.structure.event_ndim
        mask = check_parts(point, mask, ndim, "point") & self.structure.full_mask(point)
        inside = (point - self.project(point, mask)).abs().masked_fill(~mask, 0) <= atol
        clean = (point == 0) | mask
        return (inside & clean).flatten(point.ndim - ndim).all(-1)


def solve_hull(
    structure: AbstractStructure, point: Tensor, mask: Tensor, start: Tensor | None, *, support: bool = True
) -> HullResult:
    """The projections, batch axes flattened; as one operator inside a compiled graph.

    Without `support`, a structure that knows the point without the structures it is made of need not find them.
    """
    if not torch.compiler.is_compiling():
        refuse_mapped(point, f"a projection onto the hull of {structure}")
        return _solve_hull(structure, point.detach(), mask, start, support)
    projected, gap, *packed = _hull_operator(point, mask, start, handle_of(structure), support)
    return HullResult(projected, gap, PackedSupport(*packed))


def _solve_hull(
    structure: AbstractStructure, point: Tensor, mask: Tensor, start: Tensor | None, support: bool
) -> HullResult:
    ndim = structure.event_ndim
    refuse_nan(point, mask, ndim, "points")
    refuse_infinite(point.isposinf() & mask, ndim, "points")
    mask = mask & ~point.isneginf()  # what gets nothing might as well not exist
    own = structure.project_hull(point, mask, start, support=support)
    if own is not None:
        return own
    flat = (point.shape[: point.ndim - ndim].numel(), point.shape[point.ndim - ndim :].numel())
    best = structure.argmax(point, mask)
    if start is None:
        start = best
    else:  # a start that is no member would pull the answer out of the hull
        member = structure.contains(start, mask).reshape(*point.shape[: point.ndim - ndim], *[1] * ndim)
        start = torch.where(member, start.to(best), best)
    return project_hull(
        point.reshape(flat), mask.reshape(flat), start.reshape(flat), structure.argmax, tuple(point.shape)
    )


@operator("spigot::project_hull")
def _hull_operator(
    point: Tensor, mask: Tensor, start: Tensor | None, handle: int, support: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    projected, gap, packed = _solve_hull(HOSTED[handle], point, mask, start, support)
    # Compiled code relies on memory of its own, aligned as torch aligns it; views and arrays of numpy are not.
    offsets, weights, starts, indices, values = (part.clone() for part in packed)
    return projected.clone(), gap.clone(), offsets, weights, starts, indices, values


@_hull_operator.register_fake
def _(point: Tensor, mask: Tensor, start: Tensor | None, handle: int, support: bool) -> tuple[Tensor, ...]:
    ndim = HOSTED[handle].event_ndim
    parts = point.shape[point.ndim - ndim :].numel()
    batch = point.shape[: point.ndim - ndim].numel()
    context = torch.library.get_ctx()
    structures, entries = context.new_dynamic_size(), context.new_dynamic_size()
    whole = {"dtype": torch.int64, "device": "cpu"}
    real = {"dtype": torch.float64, "device": "cpu"}
    return (
        point.new_empty(batch, parts),
        point.new_empty(batch),
        torch.empty(batch + 1, **whole),
        torch.empty(structures, **real),
        torch.empty(structures + 1, **whole),
        torch.empty(entries, **whole),
        torch.empty(entries, **real),
    )


@operator("spigot::hull_tangent")
def _tangent_operator(direction: Tensor, mask: Tensor, handle: int) -> Tensor:
    return along_differences(direction, mask, HOSTED[handle])


@_tangent_operator.register_fake
def _(direction: Tensor, mask: Tensor, handle: int) -> Tensor:
    return torch.empty_like(direction)


def tangent(structure: AbstractStructure, direction: Parts, mask: Mask) -> Parts:
    """What of a direction the decision can see: the part inside the affine hull of the relaxation.

    Adding the same number to the scores of all heads of a word changes no tree: every tree has one of them. Such
    directions are orthogonal to every difference of two structures, and are taken out. A relaxation that does not know
    its affine hull leaves the question to the convex hull.

    Example:
        >>> import spigot
        >>> tangent(spigot.OneOf(), torch.tensor([1.0, 2.0, 6.0]), torch.tensor([True, True, True]))
        tensor([-2., -1.,  3.])
    """
    known = structure.relaxation.tangent(direction, mask)
    return ConvexHull(structure).tangent(direction, mask) if known is None else known
