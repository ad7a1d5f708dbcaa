r"""The abstract classes: the map of the library.

Four nouns. A *structure* is a finite set $\mathcal Z$ of 0/1 tensors and can find its best member. A *polytope* is a
convex set $\mathcal P \supseteq \operatorname{conv} \mathcal Z$ and can find its nearest point. An *estimator* says
what goes forward through the argmax and what comes back. The *layer*, `spigot.argmax`, joins a structure and an
estimator.

Every concrete class is a frozen dataclass: it prints well, compares by value and holds no tensors of a batch. Where a
verb is decorated with `upcast_half` here, its implementations see float32 and float64 only.
"""

from spigot.interface.estimators import AbstractEstimator
from spigot.interface.polytopes import AbstractPolytope
from spigot.interface.records import Explanation, Preview, Pullback
from spigot.interface.structures import (
    AbstractMarginalStructure,
    AbstractRankedStructure,
    AbstractSamplingStructure,
    AbstractStructure,
)

__all__ = [
    "AbstractEstimator",
    "AbstractMarginalStructure",
    "AbstractPolytope",
    "AbstractRankedStructure",
    "AbstractSamplingStructure",
    "AbstractStructure",
    "Explanation",
    "Preview",
    "Pullback",
]
