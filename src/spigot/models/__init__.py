"""The parsers, and how one stands inside the other."""

from spigot.models.joint import JointParser, estimator
from spigot.models.parser import Parser
from spigot.models.pruning import ArcPruner, SeenArcs
from spigot.models.semantics import SemanticParser
from spigot.models.syntax import SyntacticParser

__all__ = ["ArcPruner", "JointParser", "Parser", "SeenArcs", "SemanticParser", "SyntacticParser", "estimator"]
