"""Lagrangian proximal gradient descent: SPIGOT with the margins in view."""

from dataclasses import dataclass
from typing import Literal, final

import torch

from spigot._algorithms.simplex import lpgd_points
from spigot._runtime.precision import to_float64
from spigot.estimators.requirements import ESTIMATORS, STEP_SIZE, check_polytope, settle_numbers
from spigot.estimators.spigot import fused_gradient, project_near
from spigot.estimators.surrogate import AbstractSurrogate
from spigot.interface import AbstractPolytope, AbstractStructure, Pullback
from spigot.types import Mask, Parts, Saved, Scales, Values


@final
@ESTIMATORS.register("lpgd")
@dataclass(frozen=True)
class LPGD(AbstractSurrogate):
    r"""SPIGOT that knows how far a part is from being chosen.

    The best structure is moved a finite way against the loss, held by its scores and by a spring to where it was:

    $$\tilde z = \arg\max_{p\in\mathcal P} (s - \eta\rho\, g)^\top p - \tfrac\rho2 \lVert p - \hat z \rVert_2^2
      = \operatorname{proj}_{\mathcal P}(\hat z + s / \rho - \eta g), \qquad
      \nabla_s L := \operatorname{proj}_{\mathcal P}(\hat z + s / \rho) - \tilde z$$

    with $g = \nabla_{\hat z} L$. A part moves where the step outweighs its margin: an entry $j$ of one-of-k, say, if
    $\rho\,\eta\,(g_{\hat z} - g_j)$ is more than $s_{\hat z} - s_j$. What is far from the decision gets nothing, where
    SPIGOT pushes up every absent part that the loss would like. As $\rho$ grows this becomes `Spigot(eta)`; as it
    falls, on the convex hull, $\tau$ times `BlackBox(strength=tau)` with $\tau = \eta\rho$.

    **How large is $\rho$?** $\rho\eta\lVert g\rVert_\infty$ is the widest margin that a step can cross, so a good value
    follows the scale of the scores and falls with that of the gradients. `rho="auto"` sets the widest margin equal to
    the spread of the scores, instance by instance:

    $$\rho = \frac{\operatorname{rms}(N s)}{\eta \lVert N g \rVert_\infty}$$

    where $N$ takes out what no decision depends on, such as a shift of all heads of a word. Which parts move then
    depends neither on the scale of the scores nor on that of the loss.

    **Not linear in the loss**, as SPIGOT: use losses that are summed over instances. Infinite scores make no NaN: a
    part of $-\infty$ that was not chosen gets nothing, one of $+\infty$ stays chosen.

    Attributes:
        eta: The step size $\eta$, as SPIGOT's.
        rho: How much of a margin a unit of the step may cross; `"auto"` to follow the scores.
        polytope: What to project onto; `structure.relaxation` if `None`.
        two_sided: Step both ways, and halve: as many projections, less bias where the gradient is smooth.

    Example:
        Entry 1 is near the decision, entry 0 is not: the loss would like both.

        >>> import spigot
        >>> scores = torch.tensor([-9.0, 0.2, 0.3], requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), LPGD(rho=2.0))
        >>> (z * torch.tensor([-0.5, -0.5, 0.5])).sum().backward()
        >>> scores.grad
        tensor([ 0.0000, -0.4750,  0.4750])

    References:
        Paulus, Martius, Musil (2024), LPGD: A general framework for backpropagation through embedded optimization
        layers.
    """

    eta: float = 1.0
    rho: float | Literal["auto"] = 100.0
    polytope: AbstractPolytope | None = None
    two_sided: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_numbers(self, STEP_SIZE, "eta", zero=True)
        check_polytope(self.polytope)
        if self.rho != "auto":
            must = 'must be a positive number, or "auto" to follow the scores; an infinite one would make it Spigot'
            settle_numbers(self, must, "rho")

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        polytope = self.polytope or structure.relaxation
        scale = self._scale(structure, scores, grad, mask)
        gradient = lpgd_gradient(polytope, z, scores, scale, grad, self.eta, mask, self.two_sided)

        def path() -> tuple[Parts, Parts, Values | None]:
            _, low, taking_part = lpgd_points(z, scores, scale, grad, self.eta, mask, two_sided=False)
            stepped = torch.where(taking_part, low, 0)
            projected = polytope.project(stepped, taking_part)
            gap = polytope.gap(stepped, projected, taking_part)
            return stepped.to(z.dtype), projected.to(z.dtype), None if gap is None else gap.to(z.dtype)

        return Pullback(gradient, path)

    def _scale(self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask) -> Scales:
        r"""$1 / \rho$ of each instance, beside its parts."""
        ndim = structure.event_ndim
        if not isinstance(self.rho, str) or scores.numel() == 0:
            batch = (*scores.shape[: scores.ndim - ndim], *[1] * ndim)
            scale = 0.0 if isinstance(self.rho, str) else 1 / self.rho
            return to_float64(scores.new_full(batch, 1.0)) * scale
        axes = tuple(range(-ndim, 0))
        finite = mask & scores.isfinite()
        seen, along = (
            to_float64(_tangent_component(structure, torch.where(finite, values, 0), finite))
            for values in (scores, grad)
        )
        count = finite.sum(axes, keepdim=True).clamp(min=1)
        spread = (seen.square().sum(axes, keepdim=True) / count).sqrt()
        # Scores that are all alike have no margins: 1 / rho is 0 then, as for SPIGOT.
        largest = to_float64(torch.where(finite, scores, 0).abs().amax(axes, keepdim=True))
        some = spread > 16 * torch.finfo(scores.dtype).eps * largest
        furthest = self.eta * along.abs().amax(axes, keepdim=True)
        return torch.where(some, furthest / torch.where(some, spread, 1), 0)


def _tangent_component(structure: AbstractStructure, values: Parts, mask: Mask) -> Parts:
    """What of the values a decision depends on, where the relaxation knows; else all of it."""
    known = structure.relaxation.tangent(values, mask)
    return values if known is None else known


def lpgd_gradient(
    polytope: AbstractPolytope,
    z: Parts,
    scores: Parts,
    scale: Scales,
    grad: Parts,
    eta: float,
    mask: Mask,
    two_sided: bool = False,
) -> Parts:
    r"""$\operatorname{proj}_{\mathcal P}(v) - \operatorname{proj}_{\mathcal P}(v - \eta g)$, with $v = z + s / \rho$.

    Args:
        polytope: $\mathcal P$.
        z: The best structure.
        scores: The scores s that it was found by.
        scale: $1 / \rho$ of each instance, `(*batch, 1, ..., 1)`.
        grad: The gradient g at z.
        eta: The step size.
        mask: Parts that exist.
        two_sided: Half of $\operatorname{proj}(v + \eta g) - \operatorname{proj}(v - \eta g)$ instead.
    """
    fused = fused_gradient(polytope, z, grad, eta, mask, scores, scale, two_sided)
    if fused is not None:
        return fused
    high, low, mask = lpgd_points(z, scores, scale, grad, eta, mask, two_sided)
    moved = project_near(polytope, high, z, mask) - project_near(polytope, low, z, mask)
    return (moved / 2 if two_sided else moved).to(z.dtype)
