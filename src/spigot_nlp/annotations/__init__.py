"""Kinds of analysis: trees, graphs, classes, tags. Whoever needs to know one asks it."""

# In the order that people name them in.
from spigot_nlp.annotations.trees import Trees  # isort: skip
from spigot_nlp.annotations.graphs import Graphs  # isort: skip
from spigot_nlp.annotations.classes import Classes  # isort: skip
from spigot_nlp.annotations.tags import Tags  # isort: skip
from spigot_nlp.annotations.formalisms import Formalisms  # isort: skip
from spigot_nlp.annotations.annotation import ANNOTATIONS, AbstractAnnotation, Drawn, DrawnArc, Measure
from spigot_nlp.annotations.present import annotations_in, further_judges, kind_of, nouns_in

__all__ = [
    "ANNOTATIONS",
    "AbstractAnnotation",
    "Classes",
    "Drawn",
    "DrawnArc",
    "Formalisms",
    "Graphs",
    "Measure",
    "Tags",
    "Trees",
    "annotations_in",
    "further_judges",
    "kind_of",
    "nouns_in",
]
