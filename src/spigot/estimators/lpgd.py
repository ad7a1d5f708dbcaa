"""Lagrangian proximal gradient descent: SPIGOT with the margins in view."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch

from spigot._runtime.precision import exact
from spigot.estimators.requirements import check_choices, check_polytope, check_settings
from spigot.estimators.surrogate import AbstractSurrogate
from spigot.interface import ESTIMATORS, AbstractPolytope, AbstractStructure, Pullback
from spigot.interface.polytopes import steps
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
        max_norm: Clips $\nabla_z L$ per instance.
        clip_per: Whether that norm is of an instance, or of each block by itself: of a word's heads, of an arc and its
            labels.
        centred: Take the mean out of $\nabla_z L$ first, over each block or over an instance.

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
    max_norm: float | None = None
    clip_per: Literal["instance", "block"] = "instance"
    centred: Literal["no", "block", "instance"] = "no"

    hard: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self.max_norm, self.eta)
        check_choices(self)
        check_polytope(self.polytope)
        if isinstance(self.rho, str):
            if self.rho != "auto":
                raise ValueError(f'rho is {self.rho!r}; it must be a positive number, or "auto" to follow the scores.')
        elif not isinstance(self.rho, int | float) or not 0 < self.rho < math.inf:
            raise ValueError(
                f'rho is {self.rho!r}; it must be a positive number, or "auto" to follow the scores. An infinite one '
                "would make it Spigot."
            )

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        polytope = self.polytope or structure.relaxation
        scale = self._scale(structure, scores, grad, mask)
        gradient = polytope.pull_scored(z, scores, scale, grad, self.eta, mask, self.two_sided)

        def path() -> tuple[Parts, Parts, Values | None]:
            _, low, taking_part = steps(z, scores, scale, grad, self.eta, mask, two_sided=False)
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
            return exact(scores.new_full(batch, 1.0)) * scale
        axes = tuple(range(-ndim, 0))
        finite = mask & scores.isfinite()
        seen, along = (exact(_visible(structure, torch.where(finite, values, 0), finite)) for values in (scores, grad))
        count = finite.sum(axes, keepdim=True).clamp(min=1)
        spread = (seen.square().sum(axes, keepdim=True) / count).sqrt()
        # Scores that are all alike have no margins: 1 / rho is 0 then, as for SPIGOT.
        largest = exact(torch.where(finite, scores, 0).abs().amax(axes, keepdim=True))
        some = spread > 16 * torch.finfo(scores.dtype).eps * largest
        furthest = self.eta * along.abs().amax(axes, keepdim=True)
        return torch.where(some, furthest / torch.where(some, spread, 1), 0)


def _visible(structure: AbstractStructure, values: Parts, mask: Mask) -> Parts:
    """What of the values a decision depends on, where the relaxation knows; else all of it."""
    known = structure.relaxation.tangent(values, mask)
    return values if known is None else known
