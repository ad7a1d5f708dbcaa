"""Estimators whose forward value is a point inside the hull, with its true gradient."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from spigot._algorithms.active_set import project_face
from spigot.estimators.requirements import ESTIMATORS, require_marginals
from spigot.estimators.surrogate import AbstractSurrogate, checked_mask, explanation
from spigot.interface import (
    AbstractEstimator,
    AbstractStructure,
    Explanation,
    Pullback,
)
from spigot.polytopes.hull import ConvexHull
from spigot.types import Mask, Parts, Saved


@final
@ESTIMATORS.register("attention")
@dataclass(frozen=True)
class StructuredAttention(AbstractEstimator):
    r"""Marginals forward, their true gradient back.

    $z = \mu(s) = \mathbb E[z]$ under $p(z) \propto \exp(s^\top z)$. Needs a structure with a tractable partition
    function.

    Example:
        >>> import spigot
        >>> spigot.argmax(torch.tensor([0.0, 0.0, -torch.inf]), spigot.OneOf(), StructuredAttention())
        tensor([0.5000, 0.5000, 0.0000])

    References:
        Kim, Denton, Hoang, Rush (2017), Structured attention networks.
    """

    hard: ClassVar[bool] = False

    def check(self, structure: AbstractStructure) -> None:
        require_marginals("StructuredAttention", structure, "Spigot or StraightThrough")

    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        return require_marginals("StructuredAttention", structure, "Spigot or StraightThrough").marginals(scores, mask)

    def explain(
        self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None = None
    ) -> Explanation:
        mask = checked_mask(structure, scores, grad, mask)
        grad = grad.masked_fill(~mask, 0)
        with torch.enable_grad():
            leaf = scores.detach().requires_grad_()
            mu = self(structure, leaf, mask)
            (gradient,) = torch.autograd.grad(mu, leaf, grad)
        return explanation(mu.detach(), grad, gradient, structure.event_ndim)


@final
@ESTIMATORS.register("sparsemap")
@dataclass(frozen=True)
class SparseMAP(AbstractSurrogate):
    r"""The point of the hull nearest to the scores, and its exact Jacobian back.

    $$z = \arg\max_{\mu\in\operatorname{conv}\mathcal Z} s^\top \mu - \tfrac12 \lVert\mu\rVert_2^2
        = \operatorname{proj}_{\operatorname{conv}\mathcal Z}(s).$$

    A mixture of few structures; differentiable almost everywhere. Works on every structure, since the projection needs
    its argmax only. On `OneOf` it is sparsemax. On a factor graph, whose argmax is hard to come by, it is LP-SparseMAP:
    the nearest point of the local polytope, and the Jacobian of that.

    Example:
        >>> import spigot
        >>> spigot.argmax(torch.tensor([1.0, 0.5, -1.0]), spigot.OneOf(), SparseMAP())
        tensor([0.7500, 0.2500, 0.0000])

    References:
        Niculae, Martins, Blondel, Cardie (2018), SparseMAP: Differentiable sparse structured inference.
        Niculae, Martins (2020), LP-SparseMAP: Differentiable relaxed optimization for sparse structured prediction.
    """

    hard: ClassVar[bool] = False

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        if not structure.tractable_hull:
            return structure.relaxation.project(scores.detach(), mask), ()
        solution = ConvexHull(structure).solve(scores, mask)
        return solution.point, (solution.gap, *solution.packed)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        if not saved:
            gradient = structure.relaxation.project_vjp(scores, grad, mask)
            return Pullback(gradient, lambda: (torch.where(mask, scores, 0), z, None))
        gap, *support = saved
        split = grad.ndim - structure.event_ndim
        flat = grad.reshape(grad.shape[:split].numel(), grad.shape[split:].numel())
        gradient = project_face(flat, *support).reshape(grad.shape).masked_fill(~mask, 0)
        return Pullback(gradient, lambda: (torch.where(mask, scores, 0), z, gap))
