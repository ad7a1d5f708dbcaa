"""What goes forward through an argmax, and what comes back."""

from spigot.estimators.soft import SparseMAP, StructuredAttention
from spigot.estimators.spigot import Spigot
from spigot.estimators.surrogate import Pipeline, StraightThrough

__all__ = ["Pipeline", "SparseMAP", "Spigot", "StraightThrough", "StructuredAttention"]
