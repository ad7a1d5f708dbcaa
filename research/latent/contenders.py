"""Who takes part: every registered estimator, a floor, a bound, and the exact gradient where it can be had."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from research.latent.methods import AbstractMethod, Given, Listed, Sampled, Through, learnable
from research.latent.tasks import AbstractTask
from spigot import (
    ESTIMATORS,
    AbstractEstimator,
    Pipeline,  # which also fills the registry
)

_FINE, _COARSE = (0.3, 1.0, 3.0), (0.1, 1.0, 10.0)
_STEPS = (0.01, 0.1, 1.0)
_STRENGTHS = (0.03, 0.3, 3.0)  # scores have variance one and gradients are of that order: margins are below one
_CLIPS = (0.3, None, 3.0)  # Adam does not see the scale of a gradient: a factor in front is no option, a clip is one
_OPTIONS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "ste": ("max_norm", _CLIPS),
    "identity": ("max_norm", _CLIPS),
    "spigot": ("eta", _STEPS),
    "spigot-ce": ("eta", _STEPS),
    "spigot-eg": ("eta", _STEPS),
    "lpgd": ("rho", (0.03, "auto", 0.3)),
    "blackbox": ("strength", _STRENGTHS),
    "imle": ("strength", _STRENGTHS),
    "marginal-ste": ("backward_temperature", _FINE),
    "reinmax": ("temperature", (1.0, 2.0, 4.0)),  # below one is not what it is made for
}
"""The main option of an estimator by its registered name, and three values; of others, the first number."""

_LETTERS = {
    "eta": "η",
    "strength": "λ",
    "temperature": "τ",
    "backward_temperature": "t",
    "max_norm": "clip",
    "rho": "ρ",
}


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


def _divided(temperature: float) -> str:
    return "s" if temperature == 1 else f"s / {temperature:g}"


BOUND = Contender("true structure", (Given(),), aside=True)
EXACT = Contender("exact gradient", (Listed(),), aside=True)
UNBIASED = Contender("score_function", tuple(Sampled(_divided(t), t) for t in _FINE))


def contenders() -> list[Contender]:
    """Everyone who takes part, as of now: an estimator of a plug-in does so by being registered.

    Example:
        >>> names = [contender.name for contender in contenders()]
        >>> names[:2], "Spigot" in names
        (['true structure', 'exact gradient'], True)
    """
    return [BOUND, EXACT, UNBIASED, *(contender_of(name) for name in ESTIMATORS)]


def contender_of(name: str) -> Contender:
    """An estimator by its registered name, with three values of its main option.

    The main option is the first one that is a positive number. An estimator without any has its scores divided by a
    temperature instead.

    Example:
        >>> [method.option for method in contender_of("spigot").methods]
        ['η = 0.01', 'η = 0.1', 'η = 1']
        >>> [method.option for method in contender_of("attention").methods]
        ['s / 0.3', 's', 's / 3']
    """
    kind = ESTIMATORS[name]
    if kind is Pipeline:
        return Contender(kind.__name__, (Through(kind()),), aside=True)
    option, values = _OPTIONS.get(name) or _main_option(kind)
    if option is None:
        estimator = kind()
        methods = (Through(estimator, _divided(t), t) for t in values)
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
    return f"{_LETTERS.get(option, option)} = {f'{value:g}' if isinstance(value, float) else value}"
