"""Discrete structures inside PyTorch networks, trained through their argmax."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from spigot import native
from spigot.estimators import (
    IMLE,
    BlackBox,
    Identity,
    Perturbed,
    Pipeline,
    SparseMAP,
    Spigot,
    StraightThrough,
    StructuredAttention,
)
from spigot.interface import (
    AbstractEstimator,
    AbstractMarginalStructure,
    AbstractPolytope,
    AbstractStructure,
    AbstractSurrogate,
    Explanation,
)
from spigot.layer import Argmax, argmax
from spigot.losses import crf_nll, structured_hinge
from spigot.polytopes import ArcLabel, Box, ConvexHull, HeadSimplex, HullSolution, LinearPolytope, Simplex, Support
from spigot.structures import (
    NonProjectiveTrees,
    OneOf,
    Oracle,
    ProjectiveTrees,
    RelaxedProgram,
    SemanticGraphs,
    ZeroOneProgram,
)

try:
    __version__ = version("torch-spigot")
except PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "unknown"

_PACKAGES = frozenset({"config", "data", "evaluation", "models", "nn", "training"})


def __getattr__(name: str) -> ModuleType:
    """Import the parsing packages when they are first asked for: `import spigot` alone stays quick."""
    if name in _PACKAGES:
        return import_module(f"spigot.{name}")
    raise AttributeError(f"module 'spigot' has no attribute {name!r}")


__all__ = [
    "IMLE",
    "AbstractEstimator",
    "AbstractMarginalStructure",
    "AbstractPolytope",
    "AbstractStructure",
    "AbstractSurrogate",
    "ArcLabel",
    "Argmax",
    "BlackBox",
    "Box",
    "ConvexHull",
    "Explanation",
    "HeadSimplex",
    "HullSolution",
    "Identity",
    "LinearPolytope",
    "NonProjectiveTrees",
    "OneOf",
    "Oracle",
    "Perturbed",
    "Pipeline",
    "ProjectiveTrees",
    "RelaxedProgram",
    "SemanticGraphs",
    "Simplex",
    "SparseMAP",
    "Spigot",
    "StraightThrough",
    "StructuredAttention",
    "Support",
    "ZeroOneProgram",
    "argmax",
    "crf_nll",
    "native",
    "structured_hinge",
]
