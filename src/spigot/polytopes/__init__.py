"""Convex sets, and their nearest points."""

from spigot.polytopes.birkhoff import Birkhoff
from spigot.polytopes.blocks import ArcLabel, Box, HeadSimplex, LabelledHeadSimplex, Simplex
from spigot.polytopes.capped import CappedSimplex
from spigot.polytopes.chains import ChainSimplex
from spigot.polytopes.diagonals import DiagonalSimplex
from spigot.polytopes.hull import ConvexHull, HullSolution, Support
from spigot.polytopes.linear import LinearPolytope
from spigot.polytopes.spans import SpanSimplex

__all__ = [
    "ArcLabel",
    "Birkhoff",
    "Box",
    "CappedSimplex",
    "ChainSimplex",
    "ConvexHull",
    "DiagonalSimplex",
    "HeadSimplex",
    "HullSolution",
    "LabelledHeadSimplex",
    "LinearPolytope",
    "Simplex",
    "SpanSimplex",
    "Support",
]
