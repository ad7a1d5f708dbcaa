"""An estimator that finds its own step size, and remembers it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from spigot._runtime.precision import exact
from spigot.estimators.noise import gumbel
from spigot.estimators.requirements import check_sampling, check_settings
from spigot.estimators.surrogate import AbstractSurrogate, learns
from spigot.interface import ESTIMATORS, AbstractStructure, Explanation, Pullback
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
    keep them and says so.

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
        max_norm: Clips $\nabla_z L$ per instance.

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
    max_norm: float | None = None

    hard: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self.max_norm)
        for name in ("target", "rate", "start"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be a positive number.")
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature is {self.temperature}; it must be a finite number, or 0 for no noise.")
        check_sampling(self.samples, self.seed)

    def state(self) -> dict[str, Tensor]:
        return {"beta": torch.tensor(float(self.start)), "average": torch.tensor(float(self.target))}

    def bind(self, state: Mapping[str, Tensor], *, learning: bool) -> "Adapting":
        return Adapting(self, state["beta"], state["average"], learning)

    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        if learns(scores):
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
        return self.pulled(structure, scores, z, saved, grad, mask, torch.tensor(self.start, device=scores.device))

    def pulled(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask, beta: Tensor
    ) -> Pullback:
        """The pullback with the step that this beta gives."""
        (perturbed,) = saved
        axes = tuple(range(-structure.event_ndim, 0))
        finite = torch.where(mask & scores.isfinite(), scores, 0)
        size, slope = (torch.linalg.vector_norm(exact(values), dim=axes, keepdim=True) for values in (finite, grad))
        some = slope > 0
        size = torch.where(size > 0, size, 1)
        # The step is taken along the direction of the gradient, whose own length may be out of reach for float32.
        along = torch.where(some, exact(grad) / torch.where(some, slope, 1), 0)
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
        mean = exact((above - below).mean(0))
        gradient = (mean / (2 * strength if self.two_sided else strength)).to(scores.dtype)
        return Pullback(gradient, lambda: (None, below.mean(0), None))


@final
@dataclass(frozen=True, eq=False)
class Adapting(AbstractSurrogate):
    """`AdaptiveIMLE` with its state at hand: what `bind` gives.

    Attributes:
        rule: The settings.
        beta: The step size of now.
        average: How many entries of a gradient were not zero, of late.
        learning: Whether the backward pass moves the two.
    """

    rule: AdaptiveIMLE
    beta: Tensor
    average: Tensor
    learning: bool

    hard: ClassVar[bool] = True

    @property
    def max_norm(self) -> float | None:  # pyright: ignore[reportIncompatibleVariableOverride]: a setting of the rule
        return self.rule.max_norm

    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        if not learns(scores):
            return structure.argmax(scores, mask)
        return super().__call__(structure, scores, mask)

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        return self.rule.forward(structure, scores, mask)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        pulled = self.rule.pulled(structure, scores, z, saved, grad, mask, self.beta)
        if self.learning:
            self._learn(pulled.gradient, grad, structure.event_ndim)
        return pulled

    def explain(
        self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None = None
    ) -> Explanation:
        looking = Adapting(self.rule, self.beta, self.average, learning=False)
        return AbstractSurrogate.explain(looking, structure, scores, grad, mask)

    def _learn(self, gradient: Parts, grad: Parts, event_ndim: int) -> None:
        """Move the average towards what came out, and beta towards the target."""
        axes = tuple(range(-event_ndim, 0))
        told = (grad != 0).sum(axes) > 0  # an instance that is told nothing says nothing about the step
        instances = told.sum()
        found = (gradient != 0).sum().to(self.average.dtype) / instances.clamp(min=1)
        average = torch.where(instances > 0, 0.9 * self.average + 0.1 * found, self.average)
        factor = torch.where(average < self.rule.target, 1 + self.rule.rate, 1 / (1 + self.rule.rate))
        beta = torch.where(instances > 0, self.beta.float() * factor.float(), self.beta.float())
        self.average.copy_(average)
        self.beta.copy_(beta.clamp(1 / _FURTHEST, _FURTHEST))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Adapting)
            and (self.rule, self.learning) == (other.rule, other.learning)
            and torch.equal(self.beta, other.beta)
            and torch.equal(self.average, other.average)
        )

    def __hash__(self) -> int:
        return hash((self.rule, self.learning))
