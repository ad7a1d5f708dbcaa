r"""The abstract classes: the map of the library.

Four nouns. A *structure* is a finite set $\mathcal Z$ of 0/1 tensors and can find its best member. A *polytope* is a
convex set $\mathcal P \supseteq \operatorname{conv} \mathcal Z$ and can find its nearest point. An *estimator* says
what goes forward through the argmax and what comes back. The *layer*, `spigot.argmax`, joins a structure and an
estimator.

Every concrete class is a frozen dataclass: it prints well, compares by value and holds no tensors of a batch. Its verbs
see float32 and float64 only: half precision is widened before and rounded after, by `Bordered`.
"""

from spigot._runtime.checks import NoStructureError
from spigot._runtime.registry import Registry
from spigot.interface.estimators import ESTIMATORS, AbstractEstimator
from spigot.interface.polytopes import AbstractPolytope
from spigot.interface.records import Explanation, Preview, Pullback
from spigot.interface.structures import (
    AbstractMarginalStructure,
    AbstractRankedStructure,
    AbstractSamplingStructure,
    AbstractStructure,
)

__all__ = [
    "ESTIMATORS",
    "AbstractEstimator",
    "AbstractMarginalStructure",
    "AbstractPolytope",
    "AbstractRankedStructure",
    "AbstractSamplingStructure",
    "AbstractStructure",
    "Explanation",
    "NoStructureError",
    "Preview",
    "Pullback",
    "Registry",
]
