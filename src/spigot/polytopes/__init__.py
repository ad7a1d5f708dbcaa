"""Convex sets, and their nearest points."""

from spigot.polytopes.birkhoff import Birkhoff
from spigot.polytopes.blocks import ArcLabel, Box, HeadSimplex, Simplex
from spigot.polytopes.hull import ConvexHull, HullSolution, Support
from spigot.polytopes.linear import LinearPolytope

__all__ = [
    "ArcLabel",
    "Birkhoff",
    "Box",
    "ConvexHull",
    "HeadSimplex",
    "HullSolution",
    "LinearPolytope",
    "Simplex",
    "Support",
]
