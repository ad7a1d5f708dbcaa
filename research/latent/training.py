"""What happens: every contender learns, all seeds together, after choosing its option on other seeds.

Every contender of a seed gets the same data, the same initial parameters, the same order of batches, the same optimiser
and learning rate, and the same number of values to choose from. Losses are summed over instances, because SPIGOT and
others are not linear in the loss; Adam takes care of the scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import torch

from research.latent.contenders import Contender
from research.latent.data import random_stream
from research.latent.methods import AbstractMethod, learnable
from research.latent.settings import Settings
from research.latent.tasks import AbstractTask, Parameters


@dataclass(frozen=True)
class Measurement:
    """What a method can do after some steps, on the test points and with hard decisions, one value for each seed.

    Attributes:
        step: How many steps it has learnt.
        quality: Of the final answers: accuracy for clusters, the explained share of variance elsewhere.
        found: The share of the parts of the hidden structures that are found.
        loss: The mean loss.
    """

    step: int
    quality: tuple[float, ...]
    found: tuple[float, ...]
    loss: tuple[float, ...]


@dataclass(frozen=True)
class Training:
    """One method on one task.

    Attributes:
        curve: Measurements, the first before any step.
        seconds: What the layer took for a step, forward and back: the median over the steps.
    """

    curve: Sequence[Measurement]
    seconds: float


def train(task: AbstractTask, method: AbstractMethod, settings: Settings) -> Training:
    """Teach all seeds of a task at once.

    Example:
        >>> from research.latent.contenders import contender_of
        >>> from research.latent.data import make_task
        >>> tiny = Settings(steps=20, train=50, test=50)
        >>> done = train(make_task("paths", tiny, range(2)), contender_of("ste").usual, tiny)
        >>> [measurement.step for measurement in done.curve][-3:], len(done.curve[-1].found)
        ([16, 18, 20], 2)
    """
    lesson, parameters = method.begin(task), learnable(task.start)
    optimiser = torch.optim.Adam(parameters.values(), lr=settings.learning_rate)
    order, rows = random_stream("order", settings.seed), torch.empty(0, dtype=torch.long)
    curve, seconds = [_measure(task, method, parameters, 0)], []
    for step in range(1, settings.steps + 1):
        if len(rows) < settings.batch:
            rows = torch.cat([rows, torch.randperm(settings.train, generator=order)])
        chosen, rows = rows[: settings.batch], rows[settings.batch :]
        optimiser.zero_grad()
        seconds.append(lesson(parameters, task.train[chosen]))
        optimiser.step()
        if step % settings.every == 0 or step == settings.steps:
            curve.append(_measure(task, method, parameters, step))
    return Training(curve, median(seconds))


def choose(task: AbstractTask, contender: Contender, settings: Settings) -> AbstractMethod:
    """The method whose end loss on unseen points of the tuning seeds is least.

    Args:
        task: The task, drawn for the tuning seeds.
        contender: Who chooses.
        settings: As for the training proper.
    """
    if len(contender.methods) == 1:
        return contender.usual
    losses = [sum(train(task, method, settings).curve[-1].loss) for method in contender.methods]
    return contender.methods[losses.index(min(losses))]


@torch.no_grad()
def _measure(task: AbstractTask, method: AbstractMethod, parameters: Parameters, step: int) -> Measurement:
    test = task.test
    z = method.decide(task, task.scores(parameters, test), test)
    answer = task.read(z, task.worth(parameters, test))
    values = task.quality(answer, test), task.found(z, test), task.loss(answer, test).mean(-1)
    return Measurement(step, *(tuple(value.double().tolist()) for value in values))
