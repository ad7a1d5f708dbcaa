"""Factor graphs: structures made of the factors in `spigot.factors`, their relaxation, and how both are solved."""

from spigot.factor_graphs.factor_graph import FactorGraph, FactorGraphs, FactorSolution
from spigot.factor_graphs.joint_graphs import JointGraphs, JointPolytope
from spigot.factor_graphs.local_polytope import LocalPolytope

__all__ = ["FactorGraph", "FactorGraphs", "FactorSolution", "JointGraphs", "JointPolytope", "LocalPolytope"]
