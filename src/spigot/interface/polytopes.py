"""Convex sets: what every polytope answers."""

import abc

from spigot._runtime.precision import Upcast, upcast_half
from spigot._runtime.transforms import vjp
from spigot.types import Flags, Mask, Parts, Values


class AbstractPolytope(Upcast, abc.ABC):
    r"""A convex set $\mathcal P$ of part values."""

    @abc.abstractmethod
    @upcast_half
    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        r"""Euclidean projection, $\operatorname{proj}_{\mathcal P}$ (§2, Notation).

        Args:
            point: Where to project from.
            mask: Parts that exist; all that can exist if omitted.

        Returns:
            The nearest point of the polytope, exactly zero where masked.
        """

    @abc.abstractmethod
    @upcast_half
    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        """Whether each instance lies in the polytope, to within `atol` in each constraint."""

    def project_vjp(self, point: Parts, grad: Parts, mask: Mask) -> Parts:
        """The derivative of the projection at a point, which is symmetric, applied to a gradient.

        By autograd, where the projection has a gradient; a polytope that knows better does.

        Args:
            point: Where the projection was from.
            grad: The gradient with respect to the projection.
            mask: Parts that exist.
        """
        return vjp(lambda leaf: self.project(leaf, mask), point, grad)

    def gap(self, point: Parts, projected: Parts, mask: Mask) -> Values | None:
        """The duality gap of a projection: how much the squared distance could still shrink, at most.

        Returns:
            One value for each instance; `None` where projections are exact up to rounding.
        """

    @upcast_half
    def tangent(self, direction: Parts, mask: Mask) -> Parts | None:
        """The nearest direction that stays inside the affine hull of the polytope.

        Returns:
            The direction, zero where masked; `None` if the polytope does not know its affine hull.
        """
