"""The estimators by name, what they need of a structure and of their settings, and the sentences where that lacks."""

import math
from numbers import Real

from spigot._runtime.checks import require_kind
from spigot._runtime.registry import Registry
from spigot.interface import (
    AbstractEstimator,
    AbstractMarginalStructure,
    AbstractPolytope,
    AbstractSamplingStructure,
    AbstractStructure,
)

ESTIMATORS: "Registry[AbstractEstimator]" = Registry("estimator")
"""The estimators by the name that a configuration calls them."""

STEP_SIZE = "must be a finite number, zero or more: a step size"
"""What `eta` must be."""


STRENGTH = "must be a positive number: it is a step and a divisor"
TEMPERATURE = "must be a positive number: scores are divided by it"
NOISE = "must be a finite number, or 0 for no noise"


def require_marginals(who: str, structure: AbstractStructure, instead: str) -> AbstractMarginalStructure:
    """The structure, if its marginals are tractable."""
    if isinstance(structure, AbstractMarginalStructure):
        return structure
    raise TypeError(
        f"{who} needs marginals, and {structure} has none. Use {instead}, or a structure with log_partition."
    )


def require_samples(who: str, structure: AbstractStructure, instead: str) -> AbstractSamplingStructure:
    """The structure, if it can be drawn from."""
    if isinstance(structure, AbstractSamplingStructure):
        return structure
    raise TypeError(
        f"{who} draws samples, and {structure} cannot be drawn from. Use {instead}, or a structure with sample."
    )


def settle_numbers(estimator: object, must: str, *names: str, zero: bool = False) -> None:
    """Make some fields of an estimator floats, after making sure that each is a finite number above zero.

    Args:
        estimator: A frozen dataclass, just made.
        must: What a field must be, for the error.
        names: The fields.
        zero: Whether zero is allowed, too.
    """
    for name in names:
        object.__setattr__(estimator, name, require_number(name, getattr(estimator, name), must, zero=zero))


def require_number(name: str, value: object, must: str, *, zero: bool = False) -> float:
    """The value as a float; also one of numpy, but no truth value."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if 0 < number < math.inf or (zero and number == 0):
        return number
    raise ValueError(f"{name} is {value!r}; it {must}.")


def check_sampling(samples: int, seed: int, least: int = 1) -> None:
    """How many draws, and from which seed."""
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < least:
        raise ValueError(f"samples is {samples!r}; it must be a whole number, {least} or more.")
    if not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed!r}; it must be a whole number, 0 or more, below 2**63.")


def check_polytope(polytope: object) -> None:
    """Refuse what is no polytope: a structure, or a class."""
    if polytope is not None:
        require_kind(polytope, AbstractPolytope, "polytope", "ConvexHull(ProjectiveTrees())")
