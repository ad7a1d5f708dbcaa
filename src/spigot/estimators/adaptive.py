"""An estimator that finds its own step size, and remembers it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from spigot._runtime.precision import to_float64
from spigot._runtime.transforms import needs_gradient
from spigot.estimators.noise import gumbel
from spigot.estimators.requirements import ESTIMATORS, NOISE, check_sampling, settle_numbers
from spigot.estimators.surrogate import AbstractSurrogate
from spigot.interface import AbstractEstimator, AbstractStructure, Explanation, Pullback
from spigot.types import Mask, Parts, Saved

_FURTHEST = 2.0**40
"""Where beta stops: on a structure with a single member no step, however long, finds another."""


@final
@ESTIMATORS.register("adaptive-imle")
@dataclass(frozen=True)
class AdaptiveIMLE(AbstractSurrogate):
    r"""`IMLE` whose step is as long as it must be for gradients to be neither empty nor crowded.

    $$\nabla_s L := \frac1n \sum_{i=1}^n
      \frac{\hat z(s + \tau\varepsilon_i) - \hat z(s - \lambda \nabla_z L + \tau\varepsilon_i)}{\lambda}, \qquad
      \lambda = \beta\, \frac{\lVert s \rVert_2}{\lVert \nabla_z L \rVert_2}$$

    for each instance. After each step $\beta$ goes up a little if fewer than `target` entries of the gradient were not
    zero, on a running average over instances and steps, and down a little if more. So nothing needs to be tuned to the
    scale of scores and losses, and as $\lambda$ falls with the gradient, scaling the loss scales what comes back.

    $\beta$ and the average are **state**, which an estimator cannot hold: `spigot.Argmax` keeps them as buffers, in its
    `state_dict`, and moves them in the backward passes of training mode. `spigot.argmax`, a function, has nowhere to
    keep them and says so. They stay float32 when the module is cast.

    Attributes:
        target: How many entries of an instance's gradient should differ from zero, on average. Two of them differ where
            one choice changes to another.
        rate: By which factor $\beta$ moves in a step: by $1 + \text{rate}$, or its inverse.
        start: $\beta$ at first.
        temperature: The scale $\tau$ of the Gumbel noise; 0 for none.
        samples: How many draws are averaged; each costs two argmaxes on the way back.
        two_sided: Compare $s + \lambda \nabla_z L$ with $s - \lambda \nabla_z L$, over $2\lambda$: less bias, and an
            argmax more.
        seed: Tells independent runs apart, or the steps of one.

    Example:
        The step is too short for the margin at first.

        >>> import spigot
        >>> layer = spigot.Argmax(spigot.OneOf(), AdaptiveIMLE(rate=0.5, start=0.25, temperature=0.0))
        >>> for _ in range(4):
        ...     scores = torch.tensor([0.0, 9.0], requires_grad=True)
        ...     (layer(scores) * torch.tensor([-1.0, 1.0])).sum().backward()
        ...     print(round(float(layer.beta), 2), bool(scores.grad.any()))
        0.38 False
        0.56 False
        0.84 False
        1.27 True

    References:
        Minervini, Franceschi, Niepert (2023), Adaptive perturbation-based gradient estimation for discrete latent
        variable models.
    """

    target: float = 1.0
    rate: float = 0.01
    start: float = 1.0
    temperature: float = 1.0
    samples: int = 1
    two_sided: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_numbers(self, "must be a positive number", "target", "rate", "start")
        settle_numbers(self, NOISE, "temperature", zero=True)
        check_sampling(self.samples, self.seed)

    def initial_state(self) -> dict[str, Tensor]:
        """What changes from step to step, by name, as it is at first."""
        return {"beta": torch.tensor(float(self.start)), "average": torch.tensor(float(self.target))}

    def with_state(self, state: Mapping[str, Tensor], *, training: bool) -> AbstractEstimator:
        """This estimator with its state at hand.

        Args:
            state: The tensors that `initial_state` named, with their values of now.
            training: Whether a backward pass changes them, in place.
        """
        return _BoundAdaptiveIMLE(self, state["beta"], state["average"], training)

    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        if needs_gradient(scores):
            raise TypeError(
                "AdaptiveIMLE moves its step size from step to step and needs a place to keep it; use it in a module, "
                "spigot.Argmax(structure, AdaptiveIMLE()), or IMLE, whose step size stays."
            )
        return structure.argmax(scores, mask)

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        noise = gumbel(scores, mask, structure.event_ndim, self.seed, self.samples)
        perturbed = scores + self.temperature * noise
        return structure.argmax(perturbed[0], mask), (perturbed,)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        beta = torch.tensor(self.start, device=scores.device)
        return self.pullback_by(beta, structure, scores, z, saved, grad, mask)

    def pullback_by(
        self, beta: Tensor, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        """The pullback with the step that this beta gives."""
        (perturbed,) = saved
        axes = tuple(range(-structure.event_ndim, 0))
        finite = torch.where(mask & scores.isfinite(), scores, 0)
        size, slope = (
            torch.linalg.vector_norm(to_float64(values), dim=axes, keepdim=True) for values in (finite, grad)
        )
        some = slope > 0
        size = torch.where(size > 0, size, 1)
        # The step is taken along the direction of the gradient, whose own length may be out of reach for float32.
        along = torch.where(some, to_float64(grad) / torch.where(some, slope, 1), 0)
        step = (beta.to(size) * size * along).to(scores.dtype)
        strength = torch.where(some, beta.to(size) * size / torch.where(some, slope, 1), 1)
        mask = mask.expand(perturbed.shape)
        below = structure.argmax(perturbed - step, mask)
        if self.two_sided:
            above = structure.argmax(perturbed + step, mask)
        elif self.samples == 1:
            above = z.unsqueeze(0)
        else:
            above = torch.cat((z.unsqueeze(0), structure.argmax(perturbed[1:], mask[1:])))
        mean = to_float64((above - below).mean(0))
        gradient = (mean / (2 * strength if self.two_sided else strength)).to(scores.dtype)
        return Pullback(gradient, lambda: (None, below.mean(0), None))


@final
@dataclass(frozen=True, eq=False)
class _BoundAdaptiveIMLE(AbstractSurrogate):
    """`AdaptiveIMLE` with its state at hand, and its clipping."""

    rule: AdaptiveIMLE
    beta: Tensor
    average: Tensor
    training: bool

    def clip(self, structure: AbstractStructure, grad: Parts, mask: Mask) -> Parts:
        return self.rule.clip(structure, grad, mask)

    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        if not needs_gradient(scores):
            return structure.argmax(scores, mask)
        return super().__call__(structure, scores, mask)

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        return self.rule.forward(structure, scores, mask)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        pulled = self.rule.pullback_by(self.beta, structure, scores, z, saved, grad, mask)
        if self.training:
            self._learn(pulled.gradient, grad, structure.event_ndim)
        return pulled

    def explain(
        self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None = None
    ) -> Explanation:
        looking = _BoundAdaptiveIMLE(self.rule, self.beta, self.average, training=False)
        return AbstractSurrogate.explain(looking, structure, scores, grad, mask)

    def _learn(self, gradient: Parts, grad: Parts, event_ndim: int) -> None:
        """Move the average towards what came out, and beta towards the target."""
        axes = tuple(range(-event_ndim, 0))
        told = (grad != 0).sum(axes) > 0  # an instance that is told nothing says nothing about the step
        instances = told.sum()
        found = (gradient != 0).sum().to(self.average.dtype) / instances.clamp(min=1)
        average = torch.where(instances > 0, 0.9 * self.average + 0.1 * found, self.average)
        factor = torch.where(average < self.rule.target, 1 + self.rule.rate, 1 / (1 + self.rule.rate))
        beta = torch.where(instances > 0, self.beta * factor, self.beta)
        self.average.copy_(average)
        self.beta.copy_(beta.clamp(1 / _FURTHEST, _FURTHEST))
