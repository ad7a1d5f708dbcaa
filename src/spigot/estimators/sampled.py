"""Estimators that send a sample forward, and know the distribution that it came from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spigot._runtime.checks import resolve_mask
from spigot._runtime.precision import upcast_half
from spigot._runtime.transforms import needs_gradient
from spigot.estimators.noise import gumbel, seeds
from spigot.estimators.requirements import (
    ESTIMATORS,
    TEMPERATURE,
    check_sampling,
    require_marginals,
    require_samples,
    settle_numbers,
)
from spigot.estimators.surrogate import AbstractSurrogate, Clipping, checked_mask, explanation
from spigot.interface import (
    AbstractEstimator,
    AbstractSamplingStructure,
    AbstractStructure,
    Explanation,
    Pullback,
)
from spigot.structures.choice import OneOf
from spigot.types import Mask, Members, Parts, Saved, Values


@final
@ESTIMATORS.register("marginal-ste")
@dataclass(frozen=True)
class MarginalStraightThrough(Clipping, AbstractEstimator):
    r"""A sample or the argmax forward, the Jacobian of the marginals back.

    $$z \sim p(z) \propto \exp(s^\top z / t_f), \qquad
      \nabla_s L := \Big(\frac{\partial \mu(s / t_b)}{\partial s}\Big)^\top \nabla_z L.$$

    What the network sees is a member of the structure, as in use; what the scores get is the gradient that they would
    have if it saw the mean. With samples of k-subsets this is SIMPLE; on one-of-k with two temperatures it is
    the decoupled straight-through estimator, whose best temperatures lie apart.

    The draw follows from `seed` and the scores of the instance, as for `IMLE`. It is for learning only: where no
    gradient is asked for, as under `torch.no_grad()`, the plain argmax goes forward.

    Attributes:
        forward_temperature: $t_f$; small ones draw near the argmax.
        backward_temperature: $t_b$.
        sampled: Whether a sample goes forward, which the structure must be able to draw; if not, the argmax.
        seed: Tells independent runs apart, or the steps of one.

    Example:
        >>> import spigot
        >>> scores = torch.tensor([0.0, 0.0, -torch.inf], requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), MarginalStraightThrough(sampled=False))
        >>> z
        tensor([1., 0., 0.], grad_fn=<_ThroughBackward>)
        >>> (z * torch.tensor([1.0, -1.0, 5.0])).sum().backward()
        >>> scores.grad
        tensor([ 0.5000, -0.5000,  0.0000])

    References:
        Ahmed, Zeng, Niepert, Van den Broeck (2023), SIMPLE: A gradient estimator for k-subset sampling.
        Shah, Yan, Mozer, Liu (2024), Improving discrete optimisation via decoupled straight-through Gumbel-softmax.
    """

    forward_temperature: float = 1.0
    backward_temperature: float = 1.0
    sampled: bool = True
    seed: int = 0

    hard: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_numbers(self, TEMPERATURE, "forward_temperature", "backward_temperature")
        check_sampling(1, self.seed)

    def check(self, structure: AbstractStructure) -> None:
        require_marginals("MarginalStraightThrough", structure, "Spigot or LPGD")
        if self.sampled:
            require_samples("MarginalStraightThrough", structure, "MarginalStraightThrough(sampled=False)")

    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        marginal = require_marginals("MarginalStraightThrough", structure, "Spigot or LPGD")
        if not needs_gradient(scores):
            return structure.argmax(scores, mask)
        mu = marginal.marginals(scores / self.backward_temperature, mask)
        z = self._decided(structure, scores.detach(), mask)
        return _Through.apply(mu, z, mask, structure, self)  # pyright: ignore[reportReturnType]

    def explain(
        self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None = None
    ) -> Explanation:
        mask = checked_mask(structure, scores, grad, mask)
        grad = self.clip(structure, grad, mask)
        marginal = require_marginals("MarginalStraightThrough", structure, "Spigot or LPGD")
        with torch.enable_grad():
            leaf = scores.detach().requires_grad_()
            mu = marginal.marginals(leaf / self.backward_temperature, mask)
            (gradient,) = torch.autograd.grad(mu, leaf, grad)
        return explanation(self._decided(structure, scores.detach(), mask), grad, gradient, structure.event_ndim)

    def _decided(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        if not self.sampled:
            return structure.argmax(scores, mask)
        sampler = require_samples("MarginalStraightThrough", structure, "MarginalStraightThrough(sampled=False)")
        return _draw(sampler, scores / self.forward_temperature, mask, self.seed, 1)[0]


class _Through(torch.autograd.Function):
    """z forward; its gradient, masked and clipped, to mu back."""

    generate_vmap_rule = True

    @staticmethod
    def forward(mu: Tensor, z: Tensor, mask: Tensor, structure: AbstractStructure, clipping: Clipping) -> Tensor:
        return z.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, _, mask, ctx.structure, ctx.clipping = inputs
        ctx.save_for_backward(mask)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        (mask,) = ctx.saved_tensors
        return ctx.clipping.clip(ctx.structure, grad, mask), None, None, None, None


@final
@ESTIMATORS.register("reinmax")
@dataclass(frozen=True)
class ReinMax(AbstractSurrogate):
    r"""One of k: straight-through that is right to second order.

    $$z \sim q = \operatorname{softmax}(s), \qquad \nabla_s L := 2 J_r g - \tfrac12 J_q g, \qquad
      r = \tfrac12 \big(\operatorname{softmax}(s / t) + z\big), \qquad J_q g = q \odot (g - q^\top g)$$

    with $g = \nabla_z L$ at the sample. Straight-through takes the loss for linear between its values at the members;
    this is the trapezoidal rule, which is exact where the loss is quadratic. So with $t = 1$ the mean over the samples
    is the gradient of $\mathbb E[L(z)]$ itself for quadratic losses.

    Linear in the loss. The draw follows from `seed` and the scores of the instance, and where no gradient is asked for
    the plain argmax goes forward, as for `IMLE`.

    Attributes:
        temperature: $t$; 1 is without bias to second order, more has less variance.
        seed: Tells independent runs apart, or the steps of one.

    Example:
        >>> import spigot
        >>> scores = torch.tensor([0.0, 0.0], requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), ReinMax())
        >>> (z * torch.tensor([1.0, -1.0])).sum().backward()
        >>> scores.grad
        tensor([ 0.5000, -0.5000])

    References:
        Liu, Dong, Liu, Yu, Gao (2023), Bridging discrete and backpropagation: Straight-through and beyond, §4.
    """

    temperature: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_numbers(self, TEMPERATURE, "temperature")
        check_sampling(1, self.seed)

    def check(self, structure: AbstractStructure) -> None:
        if not isinstance(structure, OneOf):
            raise TypeError(
                f"ReinMax is for OneOf, and {structure} is another structure. Use MarginalStraightThrough or Spigot."
            )

    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        self.check(structure)
        if not needs_gradient(scores):
            return structure.argmax(scores, mask)
        return super().__call__(structure, scores, mask)

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        noise = gumbel(scores, mask, structure.event_ndim, self.seed, 1)[0]
        return structure.argmax(scores + noise, mask), ()

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Parts:
        one_of = require_marginals("ReinMax", structure, "Spigot")
        q = one_of.marginals(scores, mask)
        r = (one_of.marginals(scores / self.temperature, mask) + z) / 2
        return 2 * _covariance(r, grad) - _covariance(q, grad) / 2


def _covariance(q: Parts, grad: Parts) -> Parts:
    return q * (grad - (q * grad).sum(-1, keepdim=True))


@final
@ESTIMATORS.register("score-function")
@dataclass(frozen=True)
class ScoreFunction(AbstractSurrogate):
    r"""A sample forward, and the score function with a leave-one-out baseline back, on the loss made linear.

    $$z = z_1, \qquad \nabla_s L := \frac1{n-1} \sum_{i=1}^n \big(g^\top z_i - g^\top \bar z\big)\, z_i,
      \qquad z_1, \dots, z_n \sim p(z) \propto \exp(s^\top z), \qquad g = \nabla_z L$$

    A layer sees the gradient at one structure, not the losses of others; so the loss of $z_i$ is taken to be
    $L(z) + g^\top (z_i - z)$. This is unbiased where the loss is linear in z, and an estimate of
    `MarginalStraightThrough` elsewhere that needs samples and no second derivatives. Where the loss can be called on
    all the samples, `spigot.score_function` does, and is unbiased whatever the loss.

    Linear in the loss. The draws follow from `seed` and the scores of the instance, and where no gradient is asked for
    the plain argmax goes forward, as for `IMLE`.

    Attributes:
        samples: How many draws, $n \ge 2$.
        seed: Tells independent runs apart, or the steps of one.

    Example:
        >>> import spigot
        >>> scores = torch.zeros(2, requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), ScoreFunction(samples=1000))
        >>> (z * torch.tensor([1.0, -1.0])).sum().backward()
        >>> bool(((scores.grad - torch.tensor([0.5, -0.5])).abs() < 0.05).all())           # the gradient of the mean
        True

    References:
        Williams (1992), Simple statistical gradient-following algorithms for connectionist reinforcement learning.
        Kool, van Hoof, Welling (2019), Buy 4 REINFORCE samples, get a baseline for free!
    """

    samples: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sampling(self.samples, self.seed, least=2)

    def check(self, structure: AbstractStructure) -> None:
        require_samples("ScoreFunction", structure, "IMLE")

    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        self.check(structure)
        if not needs_gradient(scores):
            return structure.argmax(scores, mask)
        return super().__call__(structure, scores, mask)

    def forward(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> tuple[Parts, Saved]:
        drawn = _draw(require_samples("ScoreFunction", structure, "IMLE"), scores, mask, self.seed, self.samples)
        return drawn[0].clone(), (drawn,)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        (drawn,) = saved
        axes = tuple(range(-structure.event_ndim, 0))
        return Pullback(_leave_one_out((drawn * grad).sum(axes), drawn, structure.event_ndim))


@upcast_half
def score_function(
    loss: Callable[[Parts], Tensor],
    structure: AbstractSamplingStructure,
    scores: Parts,
    *,
    mask: Mask | None = None,
    samples: int = 10,
    seed: int = 0,
) -> Values:
    r"""The expected loss over samples, with an unbiased gradient: the score function with a leave-one-out baseline.

    $$\nabla_s\, \mathbb E[L(z)] \approx \frac1{n-1} \sum_{i=1}^n \big(L(z_i) - \bar L\big)\, z_i,
      \qquad z_1, \dots, z_n \sim p(z) \propto \exp(s^\top z)$$

    The baseline of each sample is the mean loss of the others, which leaves the expectation as it is. (The $-\mu(s)$
    of the score $z_i - \mu(s)$ drops out of the sum, so that no marginals are computed.) Unbiased for every loss, also
    one that is not differentiable; the price is its variance, and the loss of all samples.

    Args:
        loss: Of samples `(samples, *batch, *parts)`, one value for each, `(samples, *batch)`. Its own parameters get
            their gradient as usual.
        structure: What to draw from.
        scores: The scores $s$.
        mask: Parts that exist.
        samples: How many draws, 2 or more.
        seed: The draws follow from it and from the scores of each instance.

    Returns:
        The mean loss of each instance; `backward` on its sum gives the estimates to scores and parameters.

    Example:
        A loss with no derivative: whether entry 0 was drawn.

        >>> import spigot
        >>> scores = torch.zeros(2, requires_grad=True)
        >>> spigot.score_function(lambda z: (z[..., 0] == 1).float(), spigot.OneOf(), scores, samples=1000).backward()
        >>> bool(((scores.grad - torch.tensor([0.25, -0.25])).abs() < 0.05).all())
        True

    References:
        Williams (1992), Simple statistical gradient-following algorithms for connectionist reinforcement learning.
        Kool, van Hoof, Welling (2019), Buy 4 REINFORCE samples, get a baseline for free!
    """
    check_sampling(samples, seed, least=2)
    sampler = require_samples("score_function", structure, "spigot.argmax with IMLE")
    ndim = structure.event_ndim
    mask = resolve_mask(structure, scores, mask)
    drawn = _draw(sampler, scores.detach(), mask, seed, samples)
    losses = loss(drawn)
    expected = (samples, *scores.shape[: scores.ndim - ndim])
    if not isinstance(losses, Tensor) or losses.shape != expected:
        found = tuple(losses.shape) if isinstance(losses, Tensor) else repr(losses)
        raise ValueError(f"loss returned {found}; it must be one value for each sample and instance, {expected}.")
    gradient = _leave_one_out(losses.detach().to(scores), drawn, ndim)
    along = torch.where(scores.isfinite() & mask, scores * gradient, 0).flatten(scores.ndim - ndim).sum(-1)
    return losses.to(scores).mean(0) + (along - along.detach())


def _leave_one_out(losses: Tensor, drawn: Tensor, event_ndim: int) -> Parts:
    """The estimate from the losses of samples; zero where all are equal."""
    apart = (losses - losses.mean(0)).reshape(*losses.shape, *[1] * event_ndim)
    return (apart * drawn).sum(0) / (len(drawn) - 1)


def _draw(structure: AbstractSamplingStructure, scores: Parts, mask: Mask, seed: int, samples: int) -> Members:
    """Samples that follow from a seed and the scores of each instance."""
    each = seeds(scores, mask, structure.event_ndim, seed, samples)
    return structure.sample_from_seeds(scores, each, mask)
