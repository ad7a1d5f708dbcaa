"""What some estimators need of a structure, and the sentence for one that lacks it."""

import math

from spigot._runtime.checks import require_kind
from spigot.estimators.surrogate import AbstractSurrogate
from spigot.interface import AbstractMarginalStructure, AbstractPolytope, AbstractSamplingStructure, AbstractStructure


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


def check_strength(strength: float) -> None:
    """A step in the scores that is divided by again."""
    if not 0 < strength < math.inf:
        raise ValueError(f"strength is {strength}; it is a step and a divisor, so it must be a positive number.")


def check_temperature(temperature: float, name: str = "temperature") -> None:
    """Something that scores are divided by."""
    if not 0 < temperature < math.inf:
        raise ValueError(f"{name} is {temperature}; scores are divided by it, so it must be a positive number.")


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


def check_settings(max_norm: float | None, eta: float = 1.0) -> None:
    """Refuse settings of a surrogate that would turn gradients around or into NaN."""
    if max_norm is not None and not (isinstance(max_norm, int | float) and 0 < max_norm < math.inf):
        raise ValueError(f"max_norm is {max_norm!r}; it must be a positive number, or None for no clipping.")
    if not isinstance(eta, int | float) or not 0 <= eta < math.inf:
        raise ValueError(f"eta is {eta!r}; a step size must be a finite number, zero or more.")


def check_choices(estimator: AbstractSurrogate) -> None:
    """Refuse ways to clip and centre that there are not, and a clip without a norm."""
    for name, known in (("clip_per", ("instance", "block")), ("centred", ("no", "block", "instance"))):
        if getattr(estimator, name) not in known:
            listed = ", ".join(map(repr, known))
            raise ValueError(f"{name} is {getattr(estimator, name)!r}; it must be one of {listed}.")
    if estimator.clip_per == "block" and estimator.max_norm is None:
        raise ValueError("clip_per is 'block', and there is nothing to clip to; give a max_norm.")
