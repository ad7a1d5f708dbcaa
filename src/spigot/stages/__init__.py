"""Stages: models that predict one annotation each."""

from spigot.stages.classes import ClassStage
from spigot.stages.constraints import Constraints, Infeasible
from spigot.stages.formalisms import FormalismSettings, FormalismStage
from spigot.stages.given import GivenStage
from spigot.stages.graphs import GraphStage
from spigot.stages.pruning import ArcPruner, SeenArcs
from spigot.stages.stage import STAGES, AbstractStage, Evidence, Helper, StageSettings, Surroundings
from spigot.stages.tags import TagStage
from spigot.stages.trees import TreeStage

__all__ = [
    "STAGES",
    "AbstractStage",
    "ArcPruner",
    "ClassStage",
    "Constraints",
    "Evidence",
    "FormalismSettings",
    "FormalismStage",
    "GivenStage",
    "GraphStage",
    "Helper",
    "Infeasible",
    "SeenArcs",
    "StageSettings",
    "Surroundings",
    "TagStage",
    "TreeStage",
]
