"""Systems of stages, a system as a function of sentences, and a look at what it decides."""

from spigot.models.accounts import Account, PartAccount, Pushes, account, pushes
from spigot.models.build import fresh, learned_annotations
from spigot.models.certainty import certainty
from spigot.models.inspection import Inspection, inspect
from spigot.models.parser import Parser
from spigot.models.system import System
from spigot.models.uncertainty import head_entropy
from spigot.models.wire import Answer, Passed, Wire
from spigot.stages.alternatives import Alternative, ArcScore
from spigot.stages.constraints import Constraints, Infeasible

__all__ = [
    "Account",
    "Alternative",
    "Answer",
    "ArcScore",
    "Constraints",
    "Infeasible",
    "Inspection",
    "Parser",
    "PartAccount",
    "Passed",
    "Pushes",
    "System",
    "Wire",
    "account",
    "certainty",
    "fresh",
    "head_entropy",
    "inspect",
    "learned_annotations",
    "pushes",
]
