"""The kinds of values that settings have, and groups of them that refuse names they do not know."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MOST = 2**31 - 1
"""The largest whole number that a setting can be."""
Positive = Annotated[int, Field(gt=0, le=MOST)]
"""A whole number above 0."""
Count = Annotated[int, Field(ge=0, le=MOST)]
"""A whole number from 0."""
Size = Annotated[int, Field(gt=0, le=10_000)]
"""How many numbers a vector of a network has."""
OptionalSize = Annotated[int, Field(ge=0, le=10_000)]
"""The same, where 0 leaves the vector out."""
Layers = Annotated[int, Field(ge=0, le=100)]
"""How many layers are on top of each other."""
Rate = Annotated[float, Field(ge=0, lt=1)]
"""A number from 0, and below 1."""
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
"""Several texts; one will do as well as a list."""


class Values(BaseModel):
    """A frozen group of values that refuses names it does not know.

    Example:
        >>> class Size(Values):
        ...     width: Positive = 8
        >>> Size(width=4).width
        4
        >>> Size(with_=4)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        pydantic_core._pydantic_core.ValidationError: 1 validation error for Size...
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        populate_by_name=True,
        serialize_by_alias=True,
        coerce_numbers_to_str=True,
    )


class Optimiser(Values):
    """Adam, with its own gradient clipping, warm-up and annealing for each model.

    Attributes:
        warm_up: Updates over which the learning rate rises to its full size; it has it at once if 0.

    Example:
        >>> Optimiser(learning_rate=2e-3).anneal_by
        0.5
    """

    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    max_norm: Annotated[float, Field(gt=0)] = 1.0
    weight_decay: Rate = 1e-6
    anneal_every: Count = 10
    anneal_by: Annotated[float, Field(gt=0, le=1)] = 0.5
    warm_up: Count = 0


def check_options(group: type[BaseModel], table: Mapping[str, Any]) -> None:
    """Refuse options that a kind of thing does not have, and say which it has.

    Args:
        group: Its settings; one of them is its `name`.
        table: What is given.

    Raises:
        ValueError: If there is an option that it does not have.

    Example:
        >>> class Brush(Values):
        ...     name: str
        ...     width: int = 3
        >>> check_options(Brush, {"name": "flat", "weight": 2})
        Traceback (most recent call last):
        ValueError: flat has no option 'weight'; it has width.
    """
    known = [field.alias or name for name, field in group.model_fields.items() if name != "name"]
    for option in table:
        if option not in ("name", *known):
            raise ValueError(f"{table['name']} has no option {option!r}; it has {', '.join(known) or 'none'}.")
