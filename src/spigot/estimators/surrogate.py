"""Estimators that need the argmax and nothing else."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from spigot.algorithms.checks import check_parts
from spigot.interface import (
    AbstractStructure,
    AbstractSurrogate,
    Explanation,
    check_gradient,
    check_settings,
    explanation,
)
from spigot.types import Mask, Parts, Saved


@final
@dataclass(frozen=True)
class Pipeline(AbstractSurrogate):
    r"""No gradient: $\nabla_s L = 0$.

    The scorer is left as it is, as when a parser is trained first and frozen.

    Example:
        >>> import spigot
        >>> scores = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
        >>> spigot.argmax(scores, spigot.OneOf(), Pipeline())[2].backward()
        >>> scores.grad
        tensor([0., 0., 0.])
    """

    max_norm: float | None = None

    hard: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self.max_norm)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Parts:
        return torch.zeros_like(grad)

    def explain(
        self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None = None
    ) -> Explanation:
        z, grad, _ = decode(self, structure, scores, grad, mask)
        return explanation(z, grad, torch.zeros_like(grad), structure.event_ndim)


@final
@dataclass(frozen=True)
class StraightThrough(AbstractSurrogate):
    r"""The straight-through estimator: the Jacobian of Eq. 3 replaced by the identity, $\nabla_s L = \eta \nabla_z L$.

    SPIGOT without the projection. It ignores the constraints on $z$.

    Attributes:
        eta: Scales the gradient; 1 is the textbook estimator.
        max_norm: Clips $\nabla_z L$ per instance.

    Example:
        >>> import spigot
        >>> scores = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), StraightThrough())
        >>> (z * torch.tensor([1.0, -2.0, 3.0])).sum().backward()
        >>> scores.grad
        tensor([ 1., -2.,  3.])

    References:
        Hinton (2012), Neural networks for machine learning, lecture 9.
        Bengio, Léonard, Courville (2013), Estimating or propagating gradients through stochastic neurons.
    """

    eta: float = 1.0
    max_norm: float | None = None

    hard: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self.max_norm, self.eta)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Parts:
        return self.eta * grad

    def explain(
        self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None = None
    ) -> Explanation:
        z, grad, _ = decode(self, structure, scores, grad, mask)
        stepped = z - self.eta * grad
        return explanation(z, grad, self.eta * grad, structure.event_ndim, stepped=stepped, projected=stepped)


def decode(
    estimator: AbstractSurrogate, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None
) -> tuple[Parts, Parts, Mask]:
    """What `explain` starts from: the forward value, the gradient as used, and the mask spelt out."""
    mask = check_parts(scores, mask, structure.event_ndim) & structure.everything(scores)
    check_gradient(grad, scores)
    with torch.no_grad():
        z, _ = estimator.forward(structure, scores, mask)
        return z, estimator.clip(structure, grad, mask), mask
