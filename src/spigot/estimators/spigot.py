"""Structured projection of intermediate gradients."""

from dataclasses import dataclass
from typing import final

from spigot._algorithms.simplex import pull_arc_labels, pull_chain_blocks, pull_heads, pull_simplex
from spigot._runtime.precision import to_float64
from spigot.estimators.requirements import ESTIMATORS, STEP_SIZE, check_polytope, settle_numbers
from spigot.estimators.surrogate import AbstractSurrogate
from spigot.interface import AbstractPolytope, AbstractStructure, Pullback
from spigot.polytopes.blocks import ArcLabel, HeadSimplex, Simplex
from spigot.polytopes.chains import ChainSimplex
from spigot.polytopes.hull import ConvexHull
from spigot.types import Mask, Parts, Saved, Scales, Values


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
        max_norm: Clips $\nabla_z L$. The program published with the paper clipped to 1 (5/32) and had no step size.

    Example:
        >>> import torch, spigot
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

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_numbers(self, STEP_SIZE, "eta", zero=True)
        check_polytope(self.polytope)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        polytope = self.polytope or structure.relaxation
        gradient = spigot_gradient(polytope, z, grad, self.eta, mask)

        def path() -> tuple[Parts, Parts, Values | None]:
            stepped, projected = z - self.eta * grad, z - gradient
            return stepped, projected, polytope.gap(stepped, projected, mask)

        return Pullback(gradient, path)


def spigot_gradient(polytope: AbstractPolytope, z: Parts, grad: Parts, eta: float, mask: Mask) -> Parts:
    r"""$z - \operatorname{proj}_{\mathcal P}(z - \eta g)$ (Eq. 4), by a kernel where the polytope has one.

    In float64, as in float32 a small gradient would drown in the ones of z.

    Args:
        polytope: $\mathcal P$.
        z: A point of it.
        grad: The gradient g there.
        eta: The step size.
        mask: Parts that exist.
    """
    if isinstance(polytope, ChainSimplex):
        return pull_chain_blocks(z, grad, mask, eta)
    fused = fused_gradient(polytope, z, grad, eta, mask)
    if fused is not None:
        return fused
    point = to_float64(z)
    return (point - project_near(polytope, point - eta * grad.to(point), point, mask)).to(z.dtype)


def fused_gradient(
    polytope: AbstractPolytope,
    z: Parts,
    grad: Parts,
    eta: float,
    mask: Mask,
    scores: Parts | None = None,
    scale: Scales | None = None,
    two_sided: bool = False,
) -> Parts | None:
    """What SPIGOT, or given scores LPGD, sends back, in one pass over memory; `None` where no kernel does."""
    if isinstance(polytope, HeadSimplex):
        return pull_heads(z, grad, mask, eta, scores, scale, two_sided)
    if isinstance(polytope, ArcLabel):
        return pull_arc_labels(z, grad, mask, eta, polytope.sequential, scores, scale, two_sided)
    return pull_simplex(z, grad, mask, eta, scores, scale, two_sided) if isinstance(polytope, Simplex) else None


def project_near(polytope: AbstractPolytope, point: Parts, z: Parts, mask: Mask) -> Parts:
    """The projection of a point whose answer may well be z."""
    if isinstance(polytope, ConvexHull):
        return polytope.project(point, mask, start=z.to(point))
    return polytope.project(point, mask)
