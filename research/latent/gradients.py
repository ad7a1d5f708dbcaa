r"""How good a gradient is: its direction beside the exact one, and its noise.

The exact gradient is that of the expected loss $\sum_z p(z)\, L(z)$, $p(z) \propto \exp(z^\top s)$, found by a list of
all members, at the scores as they are (no temperature); with respect to the parameters of the scorer, summed over a
batch. A surrogate promises no such thing: some follow the loss of the best structure instead, or of a point inside the
hull. How near they come all the same is what is measured.
"""

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from research.latent.methods import AbstractMethod, Lesson, Listed, Sampled, Through, learnable
from research.latent.tasks import AbstractTask, Instances, Parameters

SCORER = ("direction", "scorer")
"""The parameters of scorers, by name; the others are the second stage's, which has a gradient of its own."""


@dataclass(frozen=True)
class Comparison:
    r"""A gradient beside the exact one, one value for each seed.

    Attributes:
        cosine: Between the mean over draws and the exact gradient; 0 if there is no gradient at all. The bias that no
            scaling of the gradient could take away is $\sqrt{1 - \cos^2}$ of the exact one's length.
        noise: The standard deviation over draws, as a multiple of the length of the mean; 0 without noise.
    """

    cosine: tuple[float, ...]
    noise: tuple[float, ...]


def exact_gradient(task: AbstractTask, parameters: Parameters, instances: Instances) -> Tensor:
    """The gradient of the expected loss with respect to the scorer, `(seeds, numbers)`."""
    return gradient(task, Listed().begin(task), parameters, instances)


def gradient(task: AbstractTask, lesson: Lesson, parameters: Parameters, instances: Instances) -> Tensor:
    """What a lesson makes of the scorer's parameters, `(seeds, numbers)`."""
    held = learnable(parameters)
    lesson(held, instances)
    gradients = [value.grad for name, value in held.items() if name in SCORER]
    return torch.cat([g.flatten(1) for g in gradients if g is not None], dim=1).double()


def compare(
    task: AbstractTask, method: AbstractMethod, parameters: Parameters, instances: Instances, draws: int
) -> Comparison:
    """Hold a method's gradient against the exact one.

    Args:
        task: The task, with a list of members.
        method: Whose gradient.
        parameters: Where.
        instances: The batch.
        draws: How often to draw a gradient that has noise in it.

    Example:
        >>> from research.latent.contenders import EXACT
        >>> from research.latent.settings import Settings
        >>> from research.latent.data import make_task
        >>> task = make_task("paths", Settings(train=8), seeds=range(2))
        >>> [round(cosine, 4) for cosine in compare(task, EXACT.usual, task.start, task.train, draws=2).cosine]
        [1.0, 1.0]
    """

    # The exact gradient is that of the scores as they are, so that is where the others are taken, too.
    plain = replace(method, temperature=1.0) if isinstance(method, Through | Sampled) else method

    def draw(seed: int) -> Tensor:  # noise from the estimator's seed if it has one, or else from torch's generator
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return gradient(task, reseeded(plain, seed).begin(task), parameters, instances)

    drawn = [draw(0), draw(1)]
    if not torch.equal(*drawn):
        drawn += map(draw, range(2, draws))
    samples, exact = torch.stack(drawn), exact_gradient(task, parameters, instances)
    mean = samples.mean(0)
    length = torch.linalg.vector_norm(mean, dim=-1)
    cosine = (mean * exact).sum(-1) / (length * torch.linalg.vector_norm(exact, dim=-1)).clamp(min=1e-30)
    spread = (samples - mean).square().sum(-1).sum(0).div(len(drawn) - 1).sqrt()
    return Comparison(tuple(cosine.tolist()), tuple((spread / length.clamp(min=1e-30)).tolist()))


def reseeded(method: AbstractMethod, seed: int) -> AbstractMethod:
    """The same method with other noise.

    Example:
        >>> import spigot
        >>> reseeded(Through(spigot.IMLE()), 3).estimator.seed
        3
    """
    if isinstance(method, Sampled):
        return replace(method, seed=seed)
    if isinstance(method, Through) and any(field.name == "seed" for field in fields(method.estimator)):  # pyright: ignore
        return replace(method, estimator=replace(method.estimator, seed=seed))  # pyright: ignore
    return method
