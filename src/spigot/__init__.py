"""Discrete structures inside PyTorch networks, trained through their argmax."""

from importlib.metadata import PackageNotFoundError, version

from spigot import native
from spigot.estimators import Pipeline, SparseMAP, Spigot, StraightThrough, StructuredAttention
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

__all__ = [
    "AbstractEstimator",
    "AbstractMarginalStructure",
    "AbstractPolytope",
    "AbstractStructure",
    "AbstractSurrogate",
    "ArcLabel",
    "Argmax",
    "Box",
    "ConvexHull",
    "Explanation",
    "HeadSimplex",
    "HullSolution",
    "LinearPolytope",
    "NonProjectiveTrees",
    "OneOf",
    "Oracle",
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
