"""Settings of trainings as a study writes them, and values of settings that are to be tried."""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, ValidationError, model_validator

from spigot_nlp.config.expansion import first_error
from spigot_nlp.values import Values

_OURS = {
    "seed": "list the seeds in seeds, and those to tune with in tune.seeds",
    "training.tests": "no training reads its test sets, and --tests scores them when all are finished",
    "name": "it would change no result",
}

Value: TypeAlias = bool | int | float | str | list[str]
"""What a setting can be in a study."""


def flat(table: Any, above: str = "") -> Any:
    """A table of tables as values by dotted name; what is no table stays as it is.

    Example:
        >>> flat({"training": {"epochs": 8}, "syntax.mlp": 64})
        {'training.epochs': 8, 'syntax.mlp': 64}
    """
    if not isinstance(table, Mapping):
        return table
    found: dict[str, Any] = {}
    for name, value in table.items():
        inside = flat(value, f"{above}{name}.") if isinstance(value, Mapping) and value else {f"{above}{name}": value}
        if twice := found.keys() & inside.keys():
            raise ValueError(f"{min(twice)} is given twice; give it once")
        found.update(inside)
    return found


def _settled(table: Any) -> Any:
    """Settings by dotted name, but for those that a study gives every training itself."""
    found = flat(table)
    for name, why in _OURS.items():
        if isinstance(found, Mapping) and name in found:
            raise ValueError(f"{name} is for the study to say: {why}")
    return found


Settings = Annotated[dict[str, Any], BeforeValidator(_settled)]
"""Settings of trainings by dotted name; nested tables will do."""


class Range(Values):
    """Numbers to draw from, for a search by chance or by Optuna.

    Attributes:
        low: The smallest.
        high: The largest.
        log: Whether 1 to 10 is as wide as 10 to 100.
        whole: Whether only whole numbers count.

    Example:
        >>> Range(low=0.01, high=10.0, log=True).high
        10.0
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    @model_validator(mode="after")
    def _is_wide(self) -> "Range":
        if self.low >= self.high or (self.whole and math.floor(self.high) < math.ceil(self.low)):
            raise ValueError(f"from {self.low:g} to {self.high:g} there is nothing to draw from")
        if self.log and self.low <= 0:
            raise ValueError(f"low is {self.low:g}, and with log = true it must be above 0")
        return self


def _tried(given: Any) -> Any:
    """Values to try by dotted name; a range is a value."""
    if not isinstance(given, Mapping):
        return given
    found: dict[str, Any] = {}
    for name, value in leaves(given):
        if name in found:
            raise ValueError(f"{name} is given twice; give it once")
        if name in _OURS:
            raise ValueError(f"{name} is for the study to say: {_OURS[name]}")
        found[name] = _options(name, value)
    return found


def leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested tables by dotted name; a range is a value.

    Example:
        >>> dict(leaves({"estimator": {"eta": {"low": 0.1, "high": 1.0}}}))
        {'estimator.eta': {'low': 0.1, 'high': 1.0}}
    """
    for name, value in table.items():
        if isinstance(value, Mapping) and value and not {"low", "high"} & set(value):
            yield from leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _options(name: str, value: Any) -> Any:
    """A range, or values that differ; anything else is refused."""
    if isinstance(value, Range):
        return value
    if isinstance(value, Mapping):
        try:
            return Range.model_validate(dict(value))
        except ValidationError as error:
            place, reason = first_error(error)
            reason = "is not a known setting of a range" if reason == "extra_forbidden" else reason
            raise ValueError(f"{'.'.join([name, *map(str, place)])}: {reason}") from None
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} is {value!r}; give a list of values, or a range with low and high")
    if not value:
        raise ValueError(f"there is no value of {name} to try; give some, or leave it out")
    for k, one in enumerate(value):
        texts = isinstance(one, list | tuple) and all(isinstance(text, str) for text in one)
        if not texts and not isinstance(one, bool | int | float | str):
            raise ValueError(f"{name} cannot be {one!r}; vary numbers, texts, lists of texts, true and false")
        if any(one == other and isinstance(one, bool) == isinstance(other, bool) for other in value[:k]):
            raise ValueError(f"{name} has the value {one!r} twice; give each once")
    return tuple(list(one) if isinstance(one, tuple) else one for one in value)


Tried = Annotated[dict[str, Range | tuple[Value, ...]], BeforeValidator(_tried)]
"""Values to try, by dotted name."""
