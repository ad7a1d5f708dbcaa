"""Convex sets: what every polytope answers."""

import abc

import torch

from spigot._runtime.precision import Bordered, exact
from spigot.types import Flags, Mask, Parts, Scales, Values


class AbstractPolytope(Bordered, abc.ABC):
    r"""A convex set $\mathcal P$ of part values."""

    @abc.abstractmethod
    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        r"""Euclidean projection, $\operatorname{proj}_{\mathcal P}$ (§2, Notation).

        Args:
            point: Where to project from.
            mask: Parts that exist; all that can exist if omitted.

        Returns:
            The nearest point of the polytope, exactly zero where masked.
        """

    @abc.abstractmethod
    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        """Whether each instance lies in the polytope, to within `atol` in each constraint."""

    def pull(self, z: Parts, grad: Parts, eta: float, mask: Mask) -> Parts:
        r"""$z - \operatorname{proj}_{\mathcal P}(z - \eta g)$ (Eq. 4): what SPIGOT sends back.

        In float64, as in float32 a small gradient would drown in the ones of z. A polytope that can do it in fewer
        passes over memory does.

        Args:
            z: A point of the polytope.
            grad: The gradient g there.
            eta: The step size.
            mask: Parts that exist.
        """
        point = exact(z)
        return (point - self.project(point - eta * grad.to(point), mask)).to(z.dtype)

    def pull_scored(
        self, z: Parts, scores: Parts, scale: Scales, grad: Parts, eta: float, mask: Mask, two_sided: bool = False
    ) -> Parts:
        r"""$\operatorname{proj}_{\mathcal P}(v) - \operatorname{proj}_{\mathcal P}(v - \eta g)$: what LPGD sends back.

        Here $v = z + s / \rho$, so that a part moves as far as the step outweighs its score. In float64, as `pull`.

        Args:
            z: The best structure.
            scores: The scores s that it was found by. Infinite ones are as in `steps`.
            scale: $1 / \rho$ of each instance, `(*batch, 1, ..., 1)`.
            grad: The gradient g at z.
            eta: The step size.
            mask: Parts that exist.
            two_sided: Half of $\operatorname{proj}(v + \eta g) - \operatorname{proj}(v - \eta g)$ instead.
        """
        high, low, mask = steps(z, scores, scale, grad, eta, mask, two_sided)
        moved = self._project_near(high, z, mask) - self._project_near(low, z, mask)
        return (moved / 2 if two_sided else moved).to(z.dtype)

    def _project_near(self, point: Parts, z: Parts, mask: Mask) -> Parts:
        """The projection of a point whose answer may well be z."""
        return self.project(point, mask)

    def pull_back(self, point: Parts, grad: Parts, mask: Mask) -> Parts:
        """The derivative of the projection at a point, which is symmetric, applied to a gradient.

        By autograd, where the projection has a gradient; a polytope that knows better does.

        Args:
            point: Where the projection was from.
            grad: The gradient with respect to the projection.
            mask: Parts that exist.
        """
        with torch.enable_grad():
            leaf = point.detach().requires_grad_()
            (pulled,) = torch.autograd.grad(self.project(leaf, mask), leaf, grad)
        return pulled

    def gap(self, point: Parts, projected: Parts, mask: Mask) -> Values | None:
        """The duality gap of a projection: how much the squared distance could still shrink, at most.

        Returns:
            One value for each instance; `None` where projections are exact up to rounding.
        """
        return None

    @property
    def block_axes(self) -> tuple[int, ...] | None:
        """The axes along which parts share a constraint, from the last one, so that a block is what they span; empty
        where every part stands for itself, and `None` if the polytope is no product of such blocks."""
        return None

    def centred(self, direction: Parts, mask: Mask, event_ndim: int, *, blocks: bool) -> Parts:
        """A direction less its mean, so that what pushes all parts alike is gone.

        Args:
            direction: The direction.
            mask: Parts that exist.
            event_ndim: How many trailing axes are parts.
            blocks: Take the mean over each block; otherwise over all parts of the instance.

        Returns:
            The direction, zero where masked.
        """
        axes = self.block_axes if blocks else None
        return centre(direction, mask, tuple(range(-event_ndim, 0)) if axes is None else axes)

    def tangent(self, direction: Parts, mask: Mask) -> Parts | None:
        """The nearest direction that stays inside the affine hull of the polytope.

        Returns:
            The direction, zero where masked; `None` if the polytope does not know its affine hull.
        """
        return None


def centre(direction: Parts, mask: Mask, axes: int | tuple[int, ...]) -> Parts:
    """The direction less its mean along an axis or several, which is what keeps sums along it as they are."""
    inside = torch.where(mask, direction, 0)
    if axes == ():  # a part that stands for itself has nothing to be compared with
        return inside
    mean = inside.sum(axes, keepdim=True) / mask.sum(axes, keepdim=True).clamp(min=1)
    return torch.where(mask, inside - mean, 0)


def steps(
    z: Parts, scores: Parts, scale: Scales, grad: Parts, eta: float, mask: Mask, two_sided: bool
) -> tuple[Parts, Parts, Mask]:
    r"""The two points that LPGD projects, in float64, and the parts that take part.

    Infinite scores are settled: a part of $-\infty$ that was not chosen does not exist here, one that had to be chosen
    counts as 0, and a part of $+\infty$ outdoes whatever is finite.
    """
    point, wide, along = exact(z), exact(scores), exact(grad)
    step = torch.where(mask, eta * along, 0)
    shift = torch.where(mask & wide.isfinite(), wide * scale.to(wide), 0)
    reach = (shift.abs() + step.abs()).amax() if z.numel() else 0
    shift = torch.where(mask & wide.isposinf(), 4 + 4 * reach, shift)
    centre = point + shift
    return centre + step if two_sided else centre, centre - step, mask & ~(wide.isneginf() & (point == 0))
