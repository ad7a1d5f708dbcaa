"""The parsers, the classifier, how one stands inside the other, and a look at what they decide."""

from spigot.models.accounts import Account, PartAccount, account
from spigot.models.answers import Answer, Evidence
from spigot.models.classifier import Classifier
from spigot.models.constraints import Constraints, Infeasible
from spigot.models.estimators import estimator
from spigot.models.inspection import Alternative, ArcScore, Inspection, inspect
from spigot.models.joint import AbstractJoint, JointClassifier, JointParser, joint_model
from spigot.models.limits import Limits
from spigot.models.parser import Parser
from spigot.models.pruning import ArcPruner, SeenArcs
from spigot.models.semantics import SemanticParser
from spigot.models.syntax import SyntacticParser

__all__ = [
    "AbstractJoint",
    "Account",
    "Alternative",
    "Answer",
    "ArcPruner",
    "ArcScore",
    "Classifier",
    "Constraints",
    "Evidence",
    "Infeasible",
    "Inspection",
    "JointClassifier",
    "JointParser",
    "Limits",
    "Parser",
    "PartAccount",
    "SeenArcs",
    "SemanticParser",
    "SyntacticParser",
    "account",
    "estimator",
    "inspect",
    "joint_model",
]
