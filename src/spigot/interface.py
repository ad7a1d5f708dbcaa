r"""The abstract classes: the map of the library.

Four nouns. A *structure* is a finite set $\mathcal Z$ of 0/1 tensors and can find its best member. A *polytope* is a
convex set $\mathcal P \supseteq \operatorname{conv} \mathcal Z$ and can find its nearest point. An *estimator* says
what goes forward through the argmax and what comes back. The *layer*, `spigot.argmax`, joins a structure and an
estimator.

Every concrete class is a frozen dataclass: it prints well, compares by value and holds no tensors of a batch. Its verbs
see float32 and float64 only: half precision is widened before and rounded after, by `Bordered`.
"""

import abc
import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spigot.precision import Bordered
from spigot.registry import Registry
from spigot.types import Flags, Mask, Parts, Saved, Values

__all__ = [
    "ESTIMATORS",
    "AbstractEstimator",
    "AbstractMarginalStructure",
    "AbstractPolytope",
    "AbstractStructure",
    "AbstractSurrogate",
    "Explanation",
]

ESTIMATORS: "Registry[AbstractEstimator]" = Registry("estimator")
"""The estimators by the name that a configuration calls them."""


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


class AbstractStructure(Bordered, abc.ABC):
    r"""A finite set $\mathcal Z$ of structures, each written as a 0/1 tensor over its parts."""

    event_ndim: ClassVar[int]
    """How many trailing axes are parts; all axes before them are batch."""

    hull_kernel: str | None = None
    """Which specialised projection onto the convex hull fits this structure, if any; see `ConvexHull`."""

    @abc.abstractmethod
    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        r"""$\hat z = \arg\max_{z\in\mathcal Z} z^\top s$ (Eq. 1).

        Args:
            scores: The part scores $s$.
            mask: Parts that exist; all that can exist if omitted. Scores outside are ignored, NaN included.

        Returns:
            The best structure of each instance, 0/1 in the dtype of the scores.

        Raises:
            ValueError: A score inside the mask is NaN, or the mask leaves an instance without any structure.
        """

    @abc.abstractmethod
    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        """For each instance (batch axes flattened), each broken constraint in words."""

    @abc.abstractmethod
    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        """The parts that exist in instances of these lengths.

        Args:
            lengths: The size of each instance: words without the root, or choices.
            size: The padded size of the result; the longest instance decides if omitted.
        """

    @abc.abstractmethod
    def everything(self, parts: Parts) -> Mask:
        """All parts that can exist in a tensor of this shape: what an omitted mask means."""

    @property
    @abc.abstractmethod
    def relaxation(self) -> AbstractPolytope:
        """The polytope SPIGOT projects onto unless told otherwise."""

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        """Whether each instance is a member: no constraint is broken."""
        broken = [bool(messages) for messages in self.violations(z, mask)]
        batch = z.shape[: z.ndim - self.event_ndim]
        return ~torch.tensor(broken, dtype=torch.bool, device=z.device).reshape(batch)


class AbstractMarginalStructure(AbstractStructure):
    r"""A structure whose partition function is tractable.

    `marginals` is the gradient of `log_partition`; the conformance suite holds every structure to it. The two are
    separate verbs because `torch.compile` cannot trace `torch.autograd.grad` inside a model.
    """

    tractable: bool = True
    """False where a setting of the structure makes the sums intractable after all."""

    @abc.abstractmethod
    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        r"""$\log \sum_{z\in\mathcal Z} \exp(z^\top s)$, twice differentiable."""

    @abc.abstractmethod
    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        r"""$\mathbb E[z]$ under $p(z) \propto \exp(z^\top s)$, differentiable; works without a graph too."""


@dataclass(frozen=True)
class Explanation:
    r"""What an estimator did with one gradient: see `AbstractEstimator.explain`.

    Attributes:
        z: What went forward.
        grad: $\nabla_z L$ as the estimator used it: masked, and clipped if `max_norm` is set.
        stepped: $\hat p = z - \eta \nabla_z L$ (Eq. 4a), or `None` for estimators that take no step.
        projected: $\tilde z$ (Eq. 4b), or `None`.
        gradient: What goes on to the scores, $\nabla_s L$.
        support: Parts that carry mass in `projected` (in `z` if there is none).
        distance: $\lVert \hat p - \tilde z \rVert_2$ for each instance: how far outside the step went.
        gap: Duality gap of the projection for each instance; zero for closed forms.
    """

    z: Parts
    grad: Parts
    stepped: Parts | None
    projected: Parts | None
    gradient: Parts
    support: Mask
    distance: Values
    gap: Values


class AbstractEstimator(Bordered, abc.ABC):
    """What goes forward, and what comes back."""

    hard: ClassVar[bool]
    """Whether the forward pass gives a member of the structure (hard) or a point inside its hull (soft)."""

    @abc.abstractmethod
    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        """The forward value, connected to `scores` for the backward pass."""

    @abc.abstractmethod
    def explain(
        self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None = None
    ) -> Explanation:
        r"""What this estimator does when $\nabla_z L$ is `grad`: z, the step, the projection, the result."""


class AbstractSurrogate(AbstractEstimator):
    """A forward value computed by an algorithm, and a way back that is written by hand.

    A new estimator is one subclass: `pullback` for the gradient, `explain` for the record, and `forward` if it does not
    decode the plain scores. Subclasses are frozen dataclasses with a field `max_norm`.
    """

    max_norm: float | None
    r"""Clips $\nabla_z L$ to this 2-norm, instance by instance, before anything else; `None` leaves it alone."""

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        """What goes forward, and the tensors that `pullback` will need beside scores, z and mask: the argmax, and none.

        An estimator that perturbs the scores returns its noise, one that projects them its support.
        """
        return structure.argmax(scores, mask), ()

    @abc.abstractmethod
    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Parts:
        r"""$\nabla_s L$ from `grad` $= \nabla_z L$, which arrives masked and clipped; zero outside the mask as well."""

    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        return _Surrogate.apply(scores, mask, structure, self)[0]  # pyright: ignore[reportOptionalSubscript]

    def clip(self, structure: AbstractStructure, grad: Parts, mask: Mask) -> Parts:
        """The gradient as the estimator uses it: zero outside the mask, each instance at most `max_norm` long."""
        grad = torch.where(mask, grad, 0)
        if self.max_norm is None:
            return grad
        axes = tuple(range(-structure.event_ndim, 0))
        norm = torch.linalg.vector_norm(grad, dim=axes, keepdim=True)
        return grad.mul_(self.max_norm / norm.clamp(min=self.max_norm))


def check_settings(max_norm: float | None, eta: float = 1.0) -> None:
    """Refuse settings of a surrogate that would turn gradients around or into NaN."""
    if max_norm is not None and not 0 < max_norm < math.inf:
        raise ValueError(f"max_norm is {max_norm}; it must be a positive number, or None for no clipping.")
    if not 0 <= eta < math.inf:
        raise ValueError(f"eta is {eta}; a step size must be a finite number, zero or more.")


def check_gradient(grad: Tensor, scores: Tensor) -> None:
    """A gradient to explain has the shape of the scores."""
    if grad.shape != scores.shape:
        raise ValueError(f"grad has shape {tuple(grad.shape)} and scores {tuple(scores.shape)}; they must be equal.")


class _Surrogate(torch.autograd.Function):
    """Forward and pullback of an estimator as one node of the autograd graph."""

    @staticmethod
    def forward(scores: Tensor, mask: Tensor, structure: AbstractStructure, estimator: AbstractSurrogate):
        z, saved = estimator.forward(structure, scores, mask)
        return z, *saved

    @staticmethod
    def setup_context(ctx, inputs, output):
        scores, mask, ctx.structure, ctx.estimator = inputs
        z, *saved = output
        ctx.save_for_backward(scores, mask, z, *saved)
        ctx.mark_non_differentiable(*saved)
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, *_):  # pyright: ignore[reportIncompatibleMethodOverride]
        if grad is None:
            return None, None, None, None
        scores, mask, z, *saved = ctx.saved_tensors
        structure, estimator = ctx.structure, ctx.estimator
        grad = estimator.clip(structure, grad, mask)
        pulled = estimator.pullback(structure, scores, z, tuple(saved), grad, mask)
        return pulled, None, None, None


def explanation(
    z: Parts,
    grad: Parts,
    gradient: Parts,
    event_ndim: int,
    *,
    stepped: Parts | None = None,
    projected: Parts | None = None,
    gap: Values | None = None,
) -> Explanation:
    """Fill in the fields of an `Explanation` that follow from the others."""
    axes = tuple(range(-event_ndim, 0))
    zero = z.new_zeros(z.shape[: z.ndim - event_ndim])
    distance = zero
    if stepped is not None and projected is not None:
        distance = torch.linalg.vector_norm(stepped - projected, dim=axes)
    return Explanation(
        z=z,
        grad=grad,
        stepped=stepped,
        projected=projected,
        gradient=gradient,
        support=(z if projected is None else projected) != 0,
        distance=distance,
        gap=zero if gap is None else gap,
    )
