"""Systems of stages, a system as a function of sentences, and a look at what it decides."""

from spigot_nlp.models.accounts import Account, PartAccount, Pushes, account, pushes
from spigot_nlp.models.build import fresh, learned_annotations
from spigot_nlp.models.certainty import certainty
from spigot_nlp.models.inspection import Inspection, inspect
from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import System
from spigot_nlp.models.uncertainty import head_entropy
from spigot_nlp.models.wire import Answer, Passed, Wire
from spigot_nlp.stages.alternatives import Alternative, ArcScore
from spigot_nlp.stages.constraints import Constraints, Infeasible

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
