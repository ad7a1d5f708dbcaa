"""Which estimator each system stands for: one table, so that no system can be without one."""

from collections.abc import Callable, Mapping

import spigot
from spigot import config
from spigot.interface import AbstractEstimator, AbstractPolytope, AbstractStructure

Make = Callable[[config.Config, AbstractStructure | None], AbstractEstimator]

ESTIMATORS: Mapping[str, Make] = {
    # In the first two no parser stands inside; in the third none that the end task trains.
    "neurboparser": lambda settings, structure: spigot.Pipeline(),
    "bilstm": lambda settings, structure: spigot.Pipeline(),
    "pipeline": lambda settings, structure: spigot.Pipeline(),
    "attention": lambda settings, structure: spigot.StructuredAttention(),
    "ste": lambda settings, structure: spigot.StraightThrough(
        settings.estimator.eta, max_norm=settings.estimator.max_norm
    ),
    "spigot": lambda settings, structure: spigot.Spigot(
        settings.estimator.eta, _polytope(settings.estimator.polytope, structure), settings.estimator.max_norm
    ),
    "sparsemap": lambda settings, structure: spigot.SparseMAP(),
    "identity": lambda settings, structure: spigot.Identity(
        settings.estimator.eta, settings.estimator.normalise, max_norm=settings.estimator.max_norm
    ),
    "blackbox": lambda settings, structure: spigot.BlackBox(
        settings.estimator.strength, max_norm=settings.estimator.max_norm
    ),
    "imle": lambda settings, structure: spigot.IMLE(
        settings.estimator.strength,
        settings.estimator.temperature,
        settings.estimator.samples,
        settings.seed,
        max_norm=settings.estimator.max_norm,
    ),
    "perturbed": lambda settings, structure: spigot.Perturbed(
        settings.estimator.temperature,
        settings.estimator.samples,
        settings.seed,
        max_norm=settings.estimator.max_norm,
    ),
}
"""How the estimator of each system is made from an experiment and from what is decoded."""


def estimator(settings: config.Config, structure: AbstractStructure | None = None) -> AbstractEstimator:
    """The estimator a system stands for.

    Args:
        settings: The experiment.
        structure: What is decoded, for `estimator.polytope = "hull"`.

    Raises:
        ValueError: If no estimator is known for the system.

    Example:
        >>> estimator(config.make_config({"system": "spigot", "preset": "release"}))
        Spigot(eta=1.0, polytope=None, max_norm=1.0)
    """
    make = ESTIMATORS.get(settings.system)
    if make is None:
        raise ValueError(
            f"system = {settings.system!r} stands for no estimator; choose one of {', '.join(ESTIMATORS)}, or enter it "
            "in ESTIMATORS (spigot/models/estimators.py)."
        )
    return make(settings, structure)


def _polytope(name: str, structure: AbstractStructure | None) -> AbstractPolytope | None:
    if name == "hull" and structure is not None:
        return spigot.ConvexHull(structure)
    return spigot.ArcLabel(sequential=True) if name == "sequential" else None
