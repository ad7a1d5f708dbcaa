"""Scores of trees, graphs, tags and classes, and how sure one can be of them."""

from spigot.evaluation.counts import Counts, Measure, Score
from spigot.evaluation.induced import Induced, Profile, changed, describe
from spigot.evaluation.labels import ClassScores, LabelScores, score_labels
from spigot.evaluation.metrics import (
    PUNCTUATION_TAGS,
    GraphScores,
    TreeScores,
    accuracy,
    graph_counts,
    is_punctuation,
    label_counts,
    score_graphs,
    score_trees,
    tree_counts,
    word_counts,
)
from spigot.evaluation.significance import Comparison, Interval, bootstrap, interval
from spigot.evaluation.trivial import flat, left_branching, random_trees, right_branching

__all__ = [
    "PUNCTUATION_TAGS",
    "ClassScores",
    "Comparison",
    "Counts",
    "GraphScores",
    "Induced",
    "Interval",
    "LabelScores",
    "Measure",
    "Profile",
    "Score",
    "TreeScores",
    "accuracy",
    "bootstrap",
    "changed",
    "describe",
    "flat",
    "graph_counts",
    "interval",
    "is_punctuation",
    "label_counts",
    "left_branching",
    "random_trees",
    "right_branching",
    "score_graphs",
    "score_labels",
    "score_trees",
    "tree_counts",
    "word_counts",
]
