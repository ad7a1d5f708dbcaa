"""Estimators that need the argmax and nothing else."""

from dataclasses import dataclass
from typing import final

import torch

from spigot.estimators.requirements import ESTIMATORS, STEP_SIZE, settle_numbers
from spigot.estimators.surrogate import AbstractSurrogate
from spigot.interface import AbstractStructure, Pullback
from spigot.polytopes.hull import tangent
from spigot.types import Mask, Parts, Saved


@final
@ESTIMATORS.register("pipeline")
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

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Parts:
        return torch.zeros_like(grad)


@final
@ESTIMATORS.register("ste")
@dataclass(frozen=True)
class StraightThrough(AbstractSurrogate):
    r"""The straight-through estimator: the Jacobian of Eq. 3 replaced by the identity, $\nabla_s L = \eta \nabla_z L$.

    SPIGOT without the projection. It ignores the constraints on $z$.

    Attributes:
        eta: Scales the gradient; 1 is the textbook estimator.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_numbers(self, STEP_SIZE, "eta", zero=True)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        gradient = self.eta * grad
        return Pullback(gradient, lambda: (z - gradient, z - gradient, None))


@final
@ESTIMATORS.register("identity")
@dataclass(frozen=True)
class Identity(AbstractSurrogate):
    r"""The identity, without what the argmax cannot see: $\nabla_s L = \eta\, N'(s)^\top \nabla_z L$.

    Scores may be shifted, block by block, or scaled as a whole without changing the decision; `StraightThrough` moves
    them in these directions all the same, and they drift. Here $N$ takes them out: it projects onto the affine hull of
    the relaxation, which for trees centres the gradient over the heads of each word, and for graphs makes what an arc's
    labels get sum to what the arc gets. Forward nothing changes, since $\hat z(N(s)) = \hat z(s)$.

    For programs and oracles, whose relaxation is no product of simple blocks, the projection is found by two argmaxes
    for each dimension of the hull: exact, but for small sets only.

    Attributes:
        eta: Scales the gradient.
        normalise: Let $N$ also divide the projected scores by their norm, instance by instance: the gradient becomes
            orthogonal to the scores, and the smaller, the larger they are. Infinite scores count as 0 here; where the
            projected scores are zero there is nothing to divide by, and nothing is.

    Example:
        >>> import spigot
        >>> scores = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), Identity())
        >>> (z * torch.tensor([1.0, -2.0, 4.0])).sum().backward()
        >>> scores.grad
        tensor([ 0., -3.,  3.])

    References:
        Sahoo, Paulus, Vlastelica, Musil, Kuleshov, Martius (2023), Backpropagation through combinatorial algorithms:
        Identity with projection works.
    """

    eta: float = 1.0
    normalise: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_numbers(self, STEP_SIZE, "eta", zero=True)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        gradient = self.eta * self._tangent_component(structure, scores, grad, mask)
        return Pullback(gradient, lambda: (z - self.eta * grad, z - gradient, None))

    def _tangent_component(self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask) -> Parts:
        """What of the gradient the decision can see."""
        along = tangent(structure, grad, mask)
        if not self.normalise:
            return along
        axes = tuple(range(-structure.event_ndim, 0))
        finite = torch.where(scores.isfinite() & mask, scores, torch.zeros_like(scores))
        centred = tangent(structure, finite, mask)
        whole, size = (torch.linalg.vector_norm(s, dim=axes, keepdim=True) for s in (finite, centred))
        some = size > 16 * torch.finfo(scores.dtype).eps * whole  # the rest is what rounding leaves of equal scores
        unit = torch.where(some, centred / size, torch.zeros_like(centred))
        across = along - (along * unit).sum(axes, keepdim=True) * unit
        return torch.where(some, across / size, across)
