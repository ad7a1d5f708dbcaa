"""Stages: models that predict one annotation each."""

from spigot_nlp.stages.classes import ClassStage
from spigot_nlp.stages.constraints import Constraints, Infeasible
from spigot_nlp.stages.formalisms import FormalismSettings, FormalismStage
from spigot_nlp.stages.given import GivenStage
from spigot_nlp.stages.graphs import GraphStage
from spigot_nlp.stages.pruning import ArcPruner, SeenArcs
from spigot_nlp.stages.stage import STAGES, AbstractStage, Evidence, Helper, StageSettings, Surroundings
from spigot_nlp.stages.tags import TagStage
from spigot_nlp.stages.trees import TreeStage

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
