"""Estimators that compare the argmax of some scores with that of others."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from spigot._runtime.transforms import needs_gradient
from spigot.estimators.noise import gaussian, gumbel
from spigot.estimators.requirements import ESTIMATORS, NOISE, STRENGTH, check_sampling, settle_numbers
from spigot.estimators.surrogate import AbstractSurrogate
from spigot.interface import AbstractStructure, Pullback
from spigot.types import Mask, Parts, Saved


@final
@ESTIMATORS.register("blackbox")
@dataclass(frozen=True)
class BlackBox(AbstractSurrogate):
    r"""The gradient of a piecewise linear interpolation of the loss.

    $$\nabla_s L := \frac{\hat z(s) - \hat z(s - \lambda \nabla_{\hat z} L)}{\lambda}, \qquad
      \hat z(s) = \arg\max_{z\in\mathcal Z} z^\top s.$$

    One more argmax on the way back and nothing else, whatever the structure. The gradient is exactly zero unless the
    shifted scores change the decision, so $\lambda$ must be large enough to cross margins, and more so the surer the
    scorer is.

    **Not linear in the loss**, as SPIGOT: use losses that are summed over instances.

    Attributes:
        strength: The interpolation strength $\lambda$.

    Example:
        >>> import spigot
        >>> scores = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), BlackBox(strength=2.0))
        >>> (z * torch.tensor([0.0, -0.5, 0.5])).sum().backward()
        >>> scores.grad
        tensor([ 0.0000, -0.5000,  0.5000])

    References:
        Vlastelica, Paulus, Musil, Martius, Rolínek (2020), Differentiation of blackbox combinatorial solvers.
    """

    strength: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_numbers(self, STRENGTH, "strength")

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        target = structure.argmax(scores - self.strength * grad, mask)
        return Pullback((z - target) / self.strength, lambda: (None, target, None))


@final
@ESTIMATORS.register("imle")
@dataclass(frozen=True)
class IMLE(AbstractSurrogate):
    r"""Implicit maximum likelihood: the scorer is trained towards samples that would do better.

    $$z = \hat z(s + \tau\varepsilon_1), \qquad \nabla_s L := \frac1n \sum_{i=1}^n
      \frac{\hat z(s + \tau\varepsilon_i) - \hat z(s - \lambda \nabla_z L + \tau\varepsilon_i)}{\lambda}$$

    with standard Gumbel noise $\varepsilon_i$ on every part. On `OneOf`, $z$ is a sample of the softmax; on larger
    structures a perturb-and-MAP sample. The first draw goes forward, so that the second stage sees one member; all
    draws count on the way back. Without noise this is `BlackBox`.

    The noise follows from `seed` and the scores of the instance: same scores, same noise, in any batch; scores that
    move, as in training, get fresh noise, and for scores that stand still there are other seeds. It is for learning
    only: where no gradient is asked for, as under `torch.no_grad()`, the plain argmax goes forward.

    **Not linear in the loss**, as SPIGOT: use losses that are summed over instances.

    Attributes:
        strength: The step $\lambda$ from the scores to the target's.
        temperature: The scale $\tau$ of the noise; 0 for none.
        samples: How many draws are averaged; each costs two argmaxes on the way back.
        seed: Tells independent runs apart, or the steps of one.

    Example:
        >>> import spigot
        >>> scores = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), IMLE(samples=1000))
        >>> z.sum()
        tensor(1., grad_fn=<SumBackward0>)
        >>> (z * torch.tensor([0.0, -0.5, 0.5])).sum().backward()
        >>> scores.grad.sign()                                  # from all entries to entry 1, the better one
        tensor([ 1., -1.,  1.])

    References:
        Niepert, Minervini, Franceschi (2021), Implicit MLE: Backpropagating through discrete exponential family
        distributions.
    """

    strength: float = 10.0
    temperature: float = 1.0
    samples: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_numbers(self, STRENGTH, "strength")
        settle_numbers(self, NOISE, "temperature", zero=True)
        check_sampling(self.samples, self.seed)

    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        if not needs_gradient(scores):
            return structure.argmax(scores, mask)
        return super().__call__(structure, scores, mask)

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        noise = gumbel(scores, mask, structure.event_ndim, self.seed, self.samples)
        perturbed = scores + self.temperature * noise
        return structure.argmax(perturbed[0], mask), (perturbed,)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        drawn, targets = self._compare(structure, z, saved, grad, mask)
        return Pullback((drawn - targets).mean(0) / self.strength, lambda: (None, targets.mean(0), None))

    def _compare(
        self, structure: AbstractStructure, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> tuple[Float[Tensor, "samples *batch_and_parts"], Float[Tensor, "samples *batch_and_parts"]]:
        """The samples, z first, and the target of each."""
        (perturbed,) = saved
        mask = mask.expand(perturbed.shape)
        targets = structure.argmax(perturbed - self.strength * grad, mask)
        if self.samples == 1:
            return z.unsqueeze(0), targets
        return torch.cat((z.unsqueeze(0), structure.argmax(perturbed[1:], mask[1:]))), targets


@final
@ESTIMATORS.register("perturbed")
@dataclass(frozen=True)
class Perturbed(AbstractSurrogate):
    r"""The mean of the argmax under noise, which is smooth, and an estimate of its gradient.

    $$z = \frac1n \sum_{i=1}^n \hat z(s + \tau\varepsilon_i), \qquad \nabla_s L := \frac1n \sum_{i=1}^n
      \frac{(\hat z(s + \tau\varepsilon_i) - \hat z(s))^\top \nabla_z L}{\tau} \varepsilon_i$$

    with standard normal noise $\varepsilon_i$. Taking off $\hat z(s)$, which changes no expectation, keeps the variance
    in bounds; it is large all the same, and falls with the number of samples. Soft: what goes forward is a mixture of
    up to `samples` structures.

    The noise follows from `seed` and the scores of the instance: same scores, same noise, in any batch.

    Attributes:
        temperature: The scale $\tau$ of the noise.
        samples: How many draws are averaged; each is one argmax on the way forward. The way back takes one in all.
        seed: Tells independent runs apart, or the steps of one.

    Example:
        >>> import spigot
        >>> z = spigot.argmax(torch.tensor([0.0, 0.36, -9.0]), spigot.OneOf(), Perturbed(samples=1000))
        >>> z.round(decimals=1)                                 # entry 1 wins six times out of ten
        tensor([0.4000, 0.6000, 0.0000])

    References:
        Berthet, Blondel, Teboul, Cuturi, Vert, Bach (2020), Learning with differentiable perturbed optimizers.
    """

    temperature: float = 1.0
    samples: int = 10
    seed: int = 0

    hard: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        must = "must be a positive number: the gradient comes from the noise; BlackBox works without"
        settle_numbers(self, must, "temperature")
        check_sampling(self.samples, self.seed)

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        noise = gaussian(scores, mask, structure.event_ndim, self.seed, self.samples)
        drawn = structure.argmax(scores + self.temperature * noise, mask.expand(noise.shape))
        return drawn.mean(0), (drawn, noise)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Parts:
        drawn, noise = saved
        axes = tuple(range(-structure.event_ndim, 0))
        worth = ((drawn - structure.argmax(scores, mask)) * grad).sum(axes, keepdim=True)
        return torch.where(mask, (worth * noise).mean(0) / self.temperature, 0)  # there is noise on missing parts too
