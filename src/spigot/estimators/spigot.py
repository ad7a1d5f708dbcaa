"""Structured projection of intermediate gradients."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from spigot.estimators.surrogate import decode
from spigot.interface import (
    ESTIMATORS,
    AbstractPolytope,
    AbstractStructure,
    AbstractSurrogate,
    Explanation,
    check_settings,
    explanation,
)
from spigot.polytopes.hull import ConvexHull
from spigot.types import Mask, Parts, Saved, Values


@final
@ESTIMATORS.register("spigot")
@dataclass(frozen=True)
class Spigot(AbstractSurrogate):
    r"""Structured projection of intermediate gradients (Eq. 4).

    $$\hat p = \hat z - \eta \nabla_{\hat z} L, \qquad
      \tilde z = \operatorname{proj}_{\mathcal P}(\hat p), \qquad
      \nabla_s L := \hat z - \tilde z.$$

    **Not linear in the loss.** Because of the projection, scaling $L$ by $c$ does not scale $\nabla_s L$ by $c$: the
    mean of a loss over a batch gives another direction than its sum. The step size is meant for losses that are
    *summed* over instances; put any normalisation into the learning rate, do not divide the loss.

    Attributes:
        eta: The step size $\eta$. The paper uses 1 for trees inside a semantic parser, 5/32 for graphs inside a
            classifier.
        polytope: What to project onto; `structure.relaxation` if `None`.
        max_norm: Clips $\nabla_z L$ per instance. The program published with the paper clipped to 1 (5/32) and had
            no step size.

    Example:
        >>> import spigot
        >>> scores = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), Spigot(eta=1.0))
        >>> (z * torch.tensor([0.0, -0.5, 0.5])).sum().backward()
        >>> scores.grad                                         # moves mass from entry 2 to entry 1
        tensor([ 0.0000, -0.5000,  0.5000])

    References:
        Peng, Thomson, Smith (2018), Backpropagating through structured argmax using a SPIGOT, §2.2.
    """

    eta: float = 1.0
    polytope: AbstractPolytope | None = None
    max_norm: float | None = None

    hard: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self.max_norm, self.eta)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Parts:
        return (self.polytope or structure.relaxation).pull(z, grad, self.eta, mask)

    def explain(
        self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None = None
    ) -> Explanation:
        z, grad, mask = decode(self, structure, scores, grad, mask)
        with torch.no_grad():
            exact, stepped = self._step(z, grad)
            projected, gap = self._project(structure, exact, stepped, mask)
        dtype = scores.dtype
        return explanation(
            z,
            grad,
            (exact - projected).to(dtype),
            structure.event_ndim,
            stepped=stepped.to(dtype),
            projected=projected.to(dtype),
            gap=None if gap is None else gap.to(dtype),
        )

    def _step(self, z: Parts, grad: Parts) -> tuple[Parts, Parts]:
        """z and the step (Eq. 4a), in float64: in float32 a small gradient would drown in the ones of z."""
        if z.device.type != "mps":  # which has no float64
            z, grad = z.double(), grad.double()
        return z, z - self.eta * grad

    def _project(
        self, structure: AbstractStructure, z: Parts, stepped: Parts, mask: Mask
    ) -> tuple[Parts, Values | None]:
        """The projection (Eq. 4b), and its duality gap where there is one."""
        polytope = self.polytope or structure.relaxation
        if isinstance(polytope, ConvexHull):  # z is a vertex of it, and close to the answer
            solution = polytope.solve(stepped, mask, start=z)
            return solution.point, solution.gap
        return polytope.project(stepped, mask), None
