"""What goes forward through an argmax, and what comes back."""

from spigot.estimators.perturbed import IMLE, BlackBox, Perturbed
from spigot.estimators.soft import SparseMAP, StructuredAttention
from spigot.estimators.spigot import Spigot
from spigot.estimators.surrogate import Identity, Pipeline, StraightThrough

__all__ = [
    "IMLE",
    "BlackBox",
    "Identity",
    "Perturbed",
    "Pipeline",
    "SparseMAP",
    "Spigot",
    "StraightThrough",
    "StructuredAttention",
]
