"""Who takes part: every registered estimator, a floor, a bound, and the exact gradient where it can be had."""

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from time import perf_counter
from typing import Any, TypeAlias, final

import torch
from torch import Tensor

import spigot
from spigot.experiments.latent.tasks import AbstractTask, Instances, Parameters
from spigot.interface import ESTIMATORS, AbstractEstimator

Lesson: TypeAlias = Callable[[Parameters, Instances], float]
"""One step of learning: leaves a gradient in each parameter, and says how many seconds the layer took."""

clock = perf_counter

_FINE, _COARSE = (0.3, 1.0, 3.0), (0.1, 1.0, 10.0)
_STRENGTHS = (0.03, 0.3, 3.0)  # scores have variance one and gradients are of that order: margins are below one
_OPTIONS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "blackbox": ("strength", _STRENGTHS),
    "imle": ("strength", _STRENGTHS),
    # Adam does not see the scale of a gradient, so a factor in front of it is no option here; a clip is one.
    "ste": ("max_norm", (0.3, None, 3.0)),
    "identity": ("max_norm", (0.3, None, 3.0)),
}
"""The main option of an estimator by its registered name, where it is not its first number, and three values of it."""

_LETTERS = {"eta": "η", "strength": "λ", "temperature": "τ", "max_norm": "clip", "rho": "ρ"}


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
        >>> from spigot.experiments.latent.settings import Settings
        >>> from spigot.experiments.latent.data import make_task
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
    return torch.where(task.structure.everything(scores), scores, 0)


@dataclass(frozen=True)
class Contender:
    """One row of the comparison.

    Attributes:
        name: As it appears in tables.
        methods: The same method with different values of its main option, of which tuning chooses one; without tuning
            it is the middle one.
        aside: Whether it is a bound or a floor, not a contender in earnest.
    """

    name: str
    methods: tuple[AbstractMethod, ...]
    aside: bool = False

    @property
    def usual(self) -> AbstractMethod:
        """The method that is used without tuning."""
        return self.methods[len(self.methods) // 2]

    def refusal(self, task: AbstractTask) -> str | None:
        """Why it cannot take part in a task, in the words of its error; `None` if it can."""
        parameters = learnable(task.start)
        try:
            self.usual.begin(task)(parameters, task.train[:1])
        except (TypeError, ValueError, NotImplementedError) as error:
            return str(error)
        return None


def learnable(parameters: Parameters) -> dict[str, Tensor]:
    """A copy of parameters that gathers gradients."""
    return {name: value.clone().requires_grad_() for name, value in parameters.items()}


BOUND = Contender("true structure", (Given(),), aside=True)
EXACT = Contender("exact gradient", (Listed(),), aside=True)


def contenders() -> list[Contender]:
    """Everyone who takes part, as of now: an estimator of a plug-in does so by being registered.

    Example:
        >>> names = [contender.name for contender in contenders()]
        >>> names[:2], "Spigot" in names
        (['true structure', 'exact gradient'], True)
    """
    return [BOUND, EXACT, *(contender_of(name) for name in ESTIMATORS)]


def contender_of(name: str) -> Contender:
    """An estimator by its registered name, with three values of its main option.

    The main option is the first one that is a positive number. An estimator without any has its scores divided by a
    temperature instead.

    Example:
        >>> [method.option for method in contender_of("spigot").methods]
        ['η = 0.1', 'η = 1', 'η = 10']
        >>> [method.option for method in contender_of("attention").methods]
        ['s / 0.3', 's', 's / 3']
    """
    kind = ESTIMATORS[name]
    if kind is spigot.Pipeline:
        return Contender(kind.__name__, (Through(kind()),), aside=True)
    option, values = _OPTIONS.get(name) or _main_option(kind)
    if option is None:
        estimator = kind()
        methods = (Through(estimator, "s" if t == 1 else f"s / {t:g}", temperature=t) for t in values)
    else:
        methods = (Through(kind(**{option: value}), _told(option, value)) for value in values)
    return Contender(kind.__name__, tuple(methods))


def _main_option(kind: type[AbstractEstimator]) -> tuple[str | None, tuple[Any, ...]]:
    for field in fields(kind):  # pyright: ignore[reportArgumentType] (every estimator is a dataclass)
        if isinstance(field.default, float) and field.default > 0:
            steps = _FINE if "temperature" in field.name else _COARSE
            return field.name, tuple(field.default * step for step in steps)
    return None, _FINE


def _told(option: str, value: object) -> str:
    if value is None:
        return f"no {_LETTERS.get(option, option)}"
    return f"{_LETTERS.get(option, option)} = {value:g}" if isinstance(value, float) else f"{option} = {value}"
