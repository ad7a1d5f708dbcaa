"""Finite sets of 0/1 structures, and their best members."""

from spigot.structures.choice import OneOf
from spigot.structures.graphs import SemanticGraphs
from spigot.structures.linear import RelaxedProgram, ZeroOneProgram
from spigot.structures.oracle import Oracle
from spigot.structures.subsets import Subsets
from spigot.structures.trees import NonProjectiveTrees, ProjectiveTrees

__all__ = [
    "NonProjectiveTrees",
    "OneOf",
    "Oracle",
    "ProjectiveTrees",
    "RelaxedProgram",
    "SemanticGraphs",
    "Subsets",
    "ZeroOneProgram",
]
