"""What goes forward through an argmax, and what comes back."""

from spigot._runtime.registry import Registry
from spigot.estimators.adaptive import AdaptiveIMLE
from spigot.estimators.labels import SpigotCE, SpigotEG, pulled_back_label
from spigot.estimators.lpgd import LPGD
from spigot.estimators.perturbed import IMLE, BlackBox, Perturbed
from spigot.estimators.requirements import ESTIMATORS
from spigot.estimators.sampled import MarginalStraightThrough, ReinMax, ScoreFunction, score_function
from spigot.estimators.soft import SparseMAP, StructuredAttention
from spigot.estimators.spigot import Spigot
from spigot.estimators.straight_through import Identity, Pipeline, StraightThrough
from spigot.estimators.surrogate import AbstractSurrogate

__all__ = [
    "ESTIMATORS",
    "IMLE",
    "LPGD",
    "AbstractSurrogate",
    "AdaptiveIMLE",
    "BlackBox",
    "Identity",
    "MarginalStraightThrough",
    "Perturbed",
    "Pipeline",
    "Registry",
    "ReinMax",
    "ScoreFunction",
    "SparseMAP",
    "Spigot",
    "SpigotCE",
    "SpigotEG",
    "StraightThrough",
    "StructuredAttention",
    "pulled_back_label",
    "score_function",
]
