"""Scores of trees, graphs, tags and classes, and how sure one can be of them."""

from spigot_nlp.evaluation.counts import Counts, Measure, Score
from spigot_nlp.evaluation.holm import holm
from spigot_nlp.evaluation.labels import ClassScores, LabelScores, score_labels
from spigot_nlp.evaluation.metrics import (
    PUNCTUATION_TAGS,
    GraphScores,
    TagScores,
    TreeScores,
    accuracy,
    graph_counts,
    is_punctuation,
    label_counts,
    score_graphs,
    score_tags,
    score_trees,
    tree_counts,
    word_counts,
)
from spigot_nlp.evaluation.raw import RawScores, score_raw
from spigot_nlp.evaluation.relations import LabelledTreeScores, relation_counts, score_labelled_trees
from spigot_nlp.evaluation.seeds import Drawn, SeedComparison, SeedInterval, draw_scores, seed_bootstrap, seed_interval
from spigot_nlp.evaluation.significance import Comparison, Interval, bootstrap, interval

__all__ = [
    "PUNCTUATION_TAGS",
    "ClassScores",
    "Comparison",
    "Counts",
    "Drawn",
    "GraphScores",
    "Interval",
    "LabelScores",
    "LabelledTreeScores",
    "Measure",
    "RawScores",
    "Score",
    "SeedComparison",
    "SeedInterval",
    "TagScores",
    "TreeScores",
    "accuracy",
    "bootstrap",
    "draw_scores",
    "graph_counts",
    "holm",
    "interval",
    "is_punctuation",
    "label_counts",
    "relation_counts",
    "score_graphs",
    "score_labelled_trees",
    "score_labels",
    "score_raw",
    "score_tags",
    "score_trees",
    "seed_bootstrap",
    "seed_interval",
    "tree_counts",
    "word_counts",
]
