"""Convex sets, and their nearest points."""

from spigot.polytopes.blocks import ArcLabel, Box, HeadSimplex, Simplex
from spigot.polytopes.hull import ConvexHull, HullSolution, Support
from spigot.polytopes.linear import LinearPolytope
from spigot.polytopes.spans import SpanSimplex

__all__ = [
    "ArcLabel",
    "Box",
    "ConvexHull",
    "HeadSimplex",
    "HullSolution",
    "LinearPolytope",
    "Simplex",
    "SpanSimplex",
    "Support",
]
