"""The parsers, the classifier, and how one stands inside the other."""

from spigot.models.classifier import Classifier
from spigot.models.joint import AbstractJoint, Answer, JointClassifier, JointParser, estimator, joint_model
from spigot.models.parser import Parser
from spigot.models.pruning import ArcPruner, SeenArcs
from spigot.models.semantics import SemanticParser
from spigot.models.syntax import SyntacticParser

__all__ = [
    "AbstractJoint",
    "Answer",
    "ArcPruner",
    "Classifier",
    "JointClassifier",
    "JointParser",
    "Parser",
    "SeenArcs",
    "SemanticParser",
    "SyntacticParser",
    "estimator",
    "joint_model",
]
