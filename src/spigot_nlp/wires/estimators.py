"""Estimators as tables of a configuration. Their options are the fields of the class that they build."""

import dataclasses
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import create_model, model_validator

import spigot
from spigot import ESTIMATORS, AbstractEstimator, AbstractPolytope, AbstractStructure
from spigot_nlp.values import Values, check_options

Polytope = Literal["relaxation", "hull", "sequential"]
"""What to project onto: the structure's relaxation, or its convex hull; `sequential` is the published program's
projection of graphs, which settles an arc before its labels."""


class EstimatorSettings(Values):
    """Which estimator, and its options.

    Attributes:
        name: A key of `spigot.ESTIMATORS`.

    Example:
        >>> estimator_settings({"name": "spigot", "eta": 0.5}).name
        'spigot'
    """

    name: str

    @model_validator(mode="after")
    def _can_be_built(self) -> "EstimatorSettings":
        build_estimator(self, None)  # which refuses what is out of range
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return estimator_settings, (self.model_dump(),)  # their class is made on demand, so that pickle cannot find it


def estimator_settings(table: Any) -> EstimatorSettings:
    """The settings of an estimator from its name, or a table with its name and options.

    Raises:
        ValueError: If there is no such estimator, or it has no such option.

    Example:
        >>> estimator_settings("ste").model_dump()
        {'name': 'ste', 'eta': 1.0, 'max_norm': None, 'clip_per': 'instance', 'centred': 'no'}
        >>> estimator_settings({"name": "sponge"})
        Traceback (most recent call last):
        ValueError: there is no estimator 'sponge'; there are ...
    """
    if isinstance(table, EstimatorSettings):
        return table
    if isinstance(table, str):
        table = {"name": table}
    if not isinstance(table, Mapping) or "name" not in table:
        raise ValueError(f"an estimator is its name, or a table with its name and options, not {table!r}")
    ESTIMATORS.find(table["name"])
    settings = settings_class(table["name"])
    check_options(settings, table)
    return settings.model_validate(table)


@cache
def settings_class(name: str) -> type[EstimatorSettings]:
    """The settings that an estimator has: the fields of its class.

    Example:
        >>> list(settings_class("blackbox").model_fields)
        ['name', 'strength', 'max_norm', 'clip_per', 'centred']
    """
    kind = ESTIMATORS.find(name)
    hints = typing.get_type_hints(kind)
    fields: dict[str, Any] = {"name": (Literal[name], name)}
    for field in _fields(kind):
        if field.name == "seed":  # an experiment has one
            continue
        is_polytope = AbstractPolytope in typing.get_args(hints[field.name])
        fields[field.name] = (Polytope, "relaxation") if is_polytope else (hints[field.name], field.default)
    return create_model(f"{kind.__name__}Settings", __base__=EstimatorSettings, **fields)


def build_estimator(
    settings: EstimatorSettings, structure: AbstractStructure | None, seed: int = 0
) -> AbstractEstimator:
    """The estimator that a table describes.

    Args:
        settings: The table.
        structure: What is decoded, for `polytope = "hull"`.
        seed: Of the experiment, for estimators that draw noise.

    Example:
        >>> build_estimator(estimator_settings({"name": "spigot", "max_norm": 1.0}), None)
        Spigot(eta=1.0, polytope=None, max_norm=1.0)
    """
    kind = ESTIMATORS.find(settings.name)
    values: dict[str, Any] = {}
    for field in _fields(kind):
        value: Any = seed if field.name == "seed" else getattr(settings, field.name)
        values[field.name] = _polytope(value, structure) if field.name == "polytope" else value
    return kind(**values)


def _fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:
    """Its own, then how its gradient is clipped: every concrete estimator is a dataclass."""
    return tuple(sorted(dataclasses.fields(kind), key=lambda field: bool(field.kw_only)))


def _polytope(name: Polytope, structure: AbstractStructure | None) -> AbstractPolytope | None:
    if name == "sequential":
        return spigot.ArcLabel(sequential=True)
    return spigot.ConvexHull(structure) if name == "hull" and structure is not None else None
