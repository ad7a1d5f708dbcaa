"""Convex sets, and their nearest points."""

from spigot.polytopes.blocks import ArcLabel, Box, HeadSimplex, Simplex
from spigot.polytopes.capped import CappedSimplex
from spigot.polytopes.hull import ConvexHull, HullSolution, Support
from spigot.polytopes.linear import LinearPolytope

__all__ = [
    "ArcLabel",
    "Box",
    "CappedSimplex",
    "ConvexHull",
    "HeadSimplex",
    "HullSolution",
    "LinearPolytope",
    "Simplex",
    "Support",
]
