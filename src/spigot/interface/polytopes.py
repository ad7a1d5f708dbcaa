"""Convex sets: what every polytope answers."""

import abc

from spigot.precision import Bordered
from spigot.types import Flags, Mask, Parts, Values


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
        if z.device.type == "mps":  # which has no float64
            return z - self.project(z - eta * grad, mask)
        exact = z.double()
        return (exact - self.project(exact - eta * grad.double(), mask)).to(z.dtype)

    def gap(self, point: Parts, projected: Parts, mask: Mask) -> Values | None:
        """The duality gap of a projection: how much the squared distance could still shrink, at most.

        Returns:
            One value for each instance; `None` where projections are exact up to rounding.
        """
        return None

    def tangent(self, direction: Parts, mask: Mask) -> Parts | None:
        """The nearest direction that stays inside the affine hull of the polytope.

        Returns:
            The direction, zero where masked; `None` if the polytope does not know its affine hull.
        """
        return None
