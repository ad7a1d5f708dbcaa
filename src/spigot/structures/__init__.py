"""Finite sets of 0/1 structures, and their best members."""

from spigot._runtime.checks import NoStructureError
from spigot.structures.alignments import Alignments
from spigot.structures.chains import Chains
from spigot.structures.choice import OneOf
from spigot.structures.constituents import ConstituencyTrees
from spigot.structures.dynamic_program import AbstractDynamicProgram, Semiring
from spigot.structures.graphs import SemanticGraphs
from spigot.structures.labelled import LabelledTrees
from spigot.structures.linear import RelaxedProgram, ZeroOneProgram
from spigot.structures.matchings import Matchings
from spigot.structures.oracle import Oracle
from spigot.structures.subsets import Subsets
from spigot.structures.trees import AbstractTrees, NonProjectiveTrees, ProjectiveTrees

__all__ = [
    "AbstractDynamicProgram",
    "AbstractTrees",
    "Alignments",
    "Chains",
    "ConstituencyTrees",
    "LabelledTrees",
    "Matchings",
    "NoStructureError",
    "NonProjectiveTrees",
    "OneOf",
    "Oracle",
    "ProjectiveTrees",
    "RelaxedProgram",
    "SemanticGraphs",
    "Semiring",
    "Subsets",
    "ZeroOneProgram",
]
