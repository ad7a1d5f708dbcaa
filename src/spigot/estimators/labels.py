r"""Labels that are pulled back from the loss: pretend there were a gold structure, and train the scorer towards it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final, get_args

import torch
from torch import Tensor

from spigot._runtime.checks import resolve_mask
from spigot._runtime.precision import to_float64, upcast_half
from spigot.estimators.requirements import (
    ESTIMATORS,
    STEP_SIZE,
    check_polytope,
    require_marginals,
    require_number,
    settle_numbers,
)
from spigot.estimators.spigot import spigot_gradient
from spigot.estimators.surrogate import AbstractSurrogate
from spigot.interface import (
    AbstractPolytope,
    AbstractStructure,
    Pullback,
)
from spigot.polytopes.hull import ConvexHull
from spigot.types import Mask, Parts, Saved, Values

Start = Literal["marginals", "vertex", "sparsemap"]
"""Where a step begins: the mean of all structures, the best one, or the point of the hull nearest to the scores."""

_INSTEAD = 'SpigotCE(start="sparsemap")'


@final
@ESTIMATORS.register("spigot-ce")
@dataclass(frozen=True)
class SpigotCE(AbstractSurrogate):
    r"""One projected gradient step from a point inside the hull: the cross-entropy's gradient towards its end.

    $$\nabla_s L := p - \operatorname{proj}_{\mathcal P}(p - \eta \nabla_z L), \qquad p = \mu(s)$$

    A log-likelihood whose gold structure is $\operatorname{proj}_{\mathcal P}(p - \eta \nabla_z L)$ has this gradient;
    with $p = \hat z$ it is a perceptron's, and this is `Spigot`. From the marginals, parts can also lose what they have
    but are not chosen, so the step is not blind in one direction. The gradient is taken at what goes forward, $\hat z$
    or, if `soft`, $p$.

    **Not linear in the loss**, as SPIGOT: use losses that are summed over instances.

    Attributes:
        eta: The step size $\eta$.
        start: $p$: `"marginals"`, which the structure must have; `"vertex"` for $\hat z$; `"sparsemap"` for
            $\operatorname{proj}_{\operatorname{conv} \mathcal Z}(s)$.
        polytope: What to project onto; `structure.relaxation` if `None`.
        soft: Whether $p$ goes forward, instead of $\hat z$.

    Example:
        >>> import spigot
        >>> scores = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), SpigotCE(eta=0.5))
        >>> (z * torch.tensor([0.3, 0.0, -0.3])).sum().backward()
        >>> scores.grad
        tensor([ 0.1500,  0.0000, -0.1500])

    References:
        Mihaylova, Niculae, Martins (2020), Understanding the mechanics of SPIGOT: Surrogate gradients for latent
        structure learning, §3.
    """

    eta: float = 1.0
    start: Start = "marginals"
    polytope: AbstractPolytope | None = None
    soft: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_numbers(self, STEP_SIZE, "eta", zero=True)
        check_polytope(self.polytope)
        _check_start(self.start)
        object.__setattr__(self, "hard", not self.soft)

    def check(self, structure: AbstractStructure) -> None:
        if self.start == "marginals":
            require_marginals("SpigotCE", structure, _INSTEAD)

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        self.check(structure)
        if not self.soft:
            return structure.argmax(scores, mask), ()
        p = _starting_point("SpigotCE", structure, scores, mask, self.start)
        return p.to(scores.dtype, copy=True), (p,)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        if saved:
            (p,) = saved
        else:
            p = (
                to_float64(z)
                if self.start == "vertex"
                else _starting_point("SpigotCE", structure, scores, mask, self.start)
            )
        polytope = self.polytope or structure.relaxation
        gradient = spigot_gradient(polytope, p, grad.to(p), self.eta, mask)

        def path() -> tuple[Parts, Parts, Values | None]:
            stepped, projected = p - self.eta * grad, p - gradient
            gap = polytope.gap(stepped, projected, mask)
            return stepped.to(z), projected.to(z), None if gap is None else gap.to(z)

        return Pullback(gradient.to(z), path)


@final
@ESTIMATORS.register("spigot-eg")
@dataclass(frozen=True)
class SpigotEG(AbstractSurrogate):
    r"""One exponentiated gradient step from the marginals.

    $$\nabla_s L := \mu(s) - \mu(s - \eta \nabla_z L)$$

    No projection: the step is taken in the scores, where the marginals of a structure remain marginals. While $\eta$ is
    small this is $\eta\, (\partial\mu/\partial s)^\top \nabla_z L$, the way back of structured attention under a hard
    forward pass; on one independent part $\mu (1 - \mu)\, \eta\, \nabla_z L$, which treats both directions alike and is
    small far from the decision. No part of it is ever larger than one.

    **Not linear in the loss**, as SPIGOT: use losses that are summed over instances.

    Attributes:
        eta: The step size $\eta$.
        soft: Whether $\mu(s)$ goes forward, instead of $\hat z$.

    Example:
        >>> import spigot
        >>> scores = torch.tensor([0.0, 0.0, -9.0], requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), SpigotEG())
        >>> (z * torch.tensor([1.0, 0.0, -1.0])).sum().backward()
        >>> scores.grad.round(decimals=2)                       # entry 2 is far from being chosen
        tensor([ 0.2300, -0.2300, -0.0000])

    References:
        Mihaylova, Niculae, Martins (2020), Understanding the mechanics of SPIGOT: Surrogate gradients for latent
        structure learning, §3.
    """

    eta: float = 1.0
    soft: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_numbers(self, STEP_SIZE, "eta", zero=True)
        object.__setattr__(self, "hard", not self.soft)

    def check(self, structure: AbstractStructure) -> None:
        require_marginals("SpigotEG", structure, _INSTEAD)

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        if self.soft:
            mu = _starting_point("SpigotEG", structure, scores, mask, "marginals")
            return mu.to(scores.dtype, copy=True), (mu,)
        self.check(structure)
        return structure.argmax(scores, mask), ()

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        mu = saved[0] if saved else _starting_point("SpigotEG", structure, scores, mask, "marginals")
        moved = _starting_point(
            "SpigotEG", structure, to_float64(scores) - self.eta * to_float64(grad), mask, "marginals"
        )
        return Pullback((mu - moved).to(z), lambda: (None, moved.to(z), None))


@upcast_half
def pulled_back_label(
    loss: Callable[[Parts], Tensor],
    structure: AbstractStructure,
    scores: Parts,
    *,
    mask: Mask | None = None,
    steps: int = 1,
    eta: float = 1.0,
    start: Start = "marginals",
    method: Literal["projected", "exponentiated"] = "projected",
    polytope: AbstractPolytope | None = None,
) -> Parts:
    r"""A label for the scorer, found by gradient steps on the loss that follows.

    $$p_{t+1} = \operatorname{proj}_{\mathcal P}(p_t - \eta \nabla L(p_t)) \qquad\text{or}\qquad
      p_{t+1} = \mu(s_{t+1}),\quad s_{t+1} = s_t - \eta \nabla L(\mu(s_t)).$$

    Estimators see the gradient at one point and can take one step. Where the loss can be called again at each new
    point, several steps go further: to what the rest of the network would have liked to get. Train the scorer towards
    it with `spigot.crf_nll`, whose gradient is $\mu(s)$ less the label: with one step and the same start this is the
    gradient of `SpigotCE(soft=True)` and `SpigotEG(soft=True)`.

    Args:
        loss: The loss of the end task as a function of $p$, `(*batch, *parts)`: one value for each instance, or their
            sum. It is differentiated with respect to $p$ alone.
        structure: The set $\mathcal Z$.
        scores: The scores $s$.
        mask: Parts that exist.
        steps: How many.
        eta: The step size $\eta$.
        start: $p_0$, as in `SpigotCE`; exponentiated steps start at the marginals.
        method: `"projected"` or `"exponentiated"`.
        polytope: What to project onto; `structure.relaxation` if `None`.

    Returns:
        The label, a point of the polytope, without a gradient.

    Example:
        The loss would like entry 2.

        >>> import spigot
        >>> scores = torch.tensor([1.0, 0.0, 0.0], requires_grad=True)
        >>> wanted = torch.tensor([0.0, 0.0, 1.0])
        >>> label = pulled_back_label(lambda p: (p - wanted).square().sum(), spigot.OneOf(), scores, steps=10, eta=0.5)
        >>> label.round(decimals=4)
        tensor([0., 0., 1.])
        >>> spigot.crf_nll(scores, label, spigot.OneOf()).backward()
        >>> scores.grad.sign()
        tensor([ 1.,  1., -1.])

    References:
        Mihaylova, Niculae, Martins (2020), Understanding the mechanics of SPIGOT: Surrogate gradients for latent
        structure learning, §3.
    """
    eta = require_number("eta", eta, STEP_SIZE, zero=True)
    check_polytope(polytope)
    _check_start(start)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ValueError(f"steps is {steps!r}; it must be a whole number, 1 or more.")
    if method not in ("projected", "exponentiated"):
        raise ValueError(f"method is {method!r}; it must be 'projected' or 'exponentiated'.")
    if method == "exponentiated" and (start != "marginals" or polytope is not None):
        raise ValueError(
            f"start is {start!r} and polytope {polytope}; exponentiated steps go from marginals to marginals and "
            "project nothing, so leave both out."
        )
    mask = resolve_mask(structure, scores, mask)
    onto = polytope or structure.relaxation
    current = to_float64(scores.detach())
    with torch.no_grad():
        p = _starting_point("pulled_back_label", structure, current, mask, start)
        for _ in range(steps):
            step = eta * to_float64(_gradient(loss, p.to(scores.dtype), mask))
            if method == "projected":
                p = onto.project(p - step, mask)
            else:
                current = current - step
                p = _starting_point("pulled_back_label", structure, current, mask, "marginals")
    return p.to(scores.dtype)


def _gradient(loss: Callable[[Parts], Tensor], p: Parts, mask: Mask) -> Parts:
    """The gradient of the summed loss, zero outside of the mask."""
    with torch.enable_grad():
        leaf = p.detach().requires_grad_()
        value = loss(leaf)
        if not isinstance(value, Tensor) or not value.requires_grad:
            raise ValueError(
                f"loss returned {value!r}; it must be a tensor that is computed from the point it is given."
            )
        (grad,) = torch.autograd.grad(value.sum(), leaf, allow_unused=True)
    return torch.zeros_like(p) if grad is None else torch.where(mask, grad, 0)


def _starting_point(who: str, structure: AbstractStructure, scores: Parts, mask: Mask, start: Start) -> Parts:
    """The point of the hull where a step begins, in float64."""
    scores = to_float64(scores)
    if start == "vertex":
        return structure.argmax(scores, mask)
    if start == "sparsemap":
        return ConvexHull(structure).project(scores, mask)
    return require_marginals(who, structure, _INSTEAD).marginals(scores, mask)


def _check_start(start: str) -> None:
    if start not in get_args(Start):
        raise ValueError(f"start is {start!r}; it must be 'marginals', 'vertex' or 'sparsemap'.")
