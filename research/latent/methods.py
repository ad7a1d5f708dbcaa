"""Ways to teach a scorer: through the layer, by the losses of samples, exactly, or not at all."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias, final

import torch
from torch import Tensor

import spigot
from research.latent.tasks import AbstractTask, Instances, Parameters
from spigot import AbstractEstimator

Lesson: TypeAlias = Callable[[Parameters, Instances], float]
"""One step of learning: leaves a gradient in each parameter, and says how many seconds the layer took."""

clock = perf_counter


class AbstractMethod(abc.ABC):
    """A way to teach the scorer."""

    option: str
    """Its main option with the value that it has here; empty if there is none."""

    @abc.abstractmethod
    def begin(self, task: AbstractTask) -> Lesson:
        """Lessons in a task, with a memory of their own if the method has any.

        Raises:
            TypeError: The method does not fit the structure.
        """

    def decide(self, task: AbstractTask, scores: Tensor, instances: Instances) -> Tensor:
        """The structures that are used at test time: the best ones."""
        return task.structure.argmax(scores)


@final
@dataclass(frozen=True)
class Through(AbstractMethod):
    """By way of the layer, with an estimator.

    Attributes:
        estimator: What goes forward, and what comes back.
        option: Its main option.
        temperature: What scores are divided by on their way into the layer.
    """

    estimator: AbstractEstimator
    option: str = ""
    temperature: float = 1.0

    def begin(self, task: AbstractTask) -> Lesson:
        layer = spigot.Argmax(task.structure, self.estimator)

        def lesson(parameters: Parameters, instances: Instances) -> float:
            scores, worth = task.scores(parameters, instances), task.worth(parameters, instances)
            leaf = (scores.detach() / self.temperature).requires_grad_()
            begun = clock()
            z = layer(leaf)
            seconds = clock() - begun
            seen = z.detach().requires_grad_()  # the second stage learns here, and the clock stands still
            task.loss(task.read(seen, worth), instances).sum().backward()
            begun = clock()
            (gradient,) = torch.autograd.grad(z, leaf, seen.grad)
            seconds += clock() - begun
            scores.backward(gradient / self.temperature)
            return seconds

        return lesson


@final
@dataclass(frozen=True)
class Sampled(AbstractMethod):
    """By the losses of samples: unbiased for the expected loss, whatever the loss.

    Attributes:
        option: Its main option.
        temperature: What scores are divided by before samples are drawn.
        samples: How many.
        seed: Tells the draws of one run from those of another.
    """

    option: str = ""
    temperature: float = 1.0
    samples: int = 10
    seed: int = 0

    def begin(self, task: AbstractTask) -> Lesson:
        def lesson(parameters: Parameters, instances: Instances) -> float:
            scores, worth = task.scores(parameters, instances), task.worth(parameters, instances)
            leaf = (scores.detach() / self.temperature).requires_grad_()

            def loss(z: Tensor) -> Tensor:
                return task.loss(task.read(z, worth), instances)

            structure: Any = task.structure  # whether it can be drawn from is for the function to say
            begun = clock()
            spigot.score_function(loss, structure, leaf, samples=self.samples, seed=self.seed).sum().backward()
            seconds = clock() - begun
            assert leaf.grad is not None
            scores.backward(leaf.grad / self.temperature)
            return seconds

        return lesson


@final
@dataclass(frozen=True)
class Given(AbstractMethod):
    """The hidden structure is given, in training and at test time: only the second stage is left to learn."""

    option: str = ""

    def begin(self, task: AbstractTask) -> Lesson:
        def lesson(parameters: Parameters, instances: Instances) -> float:
            answer = task.read(instances.truth, task.worth(parameters, instances))
            nothing = 0.0 * task.scores(parameters, instances).sum()
            (task.loss(answer, instances).sum() + nothing).backward()
            return 0.0

        return lesson

    def decide(self, task: AbstractTask, scores: Tensor, instances: Instances) -> Tensor:
        return instances.truth


@final
@dataclass(frozen=True)
class Listed(AbstractMethod):
    r"""The exact gradient of the expected loss under $p(z) \propto \exp(z^\top s)$, by a list of all members."""

    option: str = ""

    def begin(self, task: AbstractTask) -> Lesson:
        if task.members is None:
            raise TypeError(f"the exact gradient needs a list of all members, and {task.structure} has none.")

        def lesson(parameters: Parameters, instances: Instances) -> float:
            begun = clock()
            expected_loss(task, parameters, instances).sum().backward()
            return clock() - begun

        return lesson


def expected_loss(task: AbstractTask, parameters: Parameters, instances: Instances) -> Tensor:
    r"""$\sum_z p(z)\, L(z)$ of each instance, `(seeds, count)`, by a list of all members.

    Raises:
        TypeError: There is no such list.

    Example:
        >>> from research.latent.settings import Settings
        >>> from research.latent.data import make_task
        >>> task = make_task("paths", Settings(train=4), seeds=range(2))
        >>> expected_loss(task, task.start, task.train).shape
        torch.Size([2, 4])
    """
    if task.members is None:
        raise TypeError(f"an expected loss needs a list of all members, and {task.structure} has none.")
    members = task.members.flatten(1)

    def read(parts: Tensor) -> Tensor:  # of all members: (members, seeds, count)
        return (parts.flatten(2) @ members.T.to(parts.dtype)).movedim(-1, 0)

    p = read(_existing(task, task.scores(parameters, instances))).softmax(0)
    return (p * task.loss(read(task.worth(parameters, instances)), instances)).sum(0)


def _existing(task: AbstractTask, scores: Tensor) -> Tensor:
    return torch.where(task.structure.full_mask(scores), scores, 0)


def learnable(parameters: Parameters) -> dict[str, Tensor]:
    """A copy of parameters that gathers gradients."""
    return {name: value.clone().requires_grad_() for name, value in parameters.items()}
