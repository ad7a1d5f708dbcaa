"""Scores of trees, graphs, tags and classes, how sure one can be of them, and what differs between two systems."""

from spigot.evaluation.analysis import Analysis, Group, Paired, analyse
from spigot.evaluation.breakdowns import Breakdown, Row
from spigot.evaluation.changes import Cell, GraphChanges, LabelChanges, RoleChanges
from spigot.evaluation.counts import Counts, Measure, Score
from spigot.evaluation.examples import Answer, Example
from spigot.evaluation.heads import HeadChanges, Kind
from spigot.evaluation.holm import holm
from spigot.evaluation.induced import Induced, Profile, changed, describe
from spigot.evaluation.joined import add_trees
from spigot.evaluation.labels import ClassScores, LabelScores, score_labels
from spigot.evaluation.metrics import (
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
from spigot.evaluation.raw import RawScores, score_raw
from spigot.evaluation.relation_changes import Outcome, RelationChanges, Renamed
from spigot.evaluation.relations import LabelledTreeScores, relation_counts, score_labelled_trees
from spigot.evaluation.seeds import Drawn, SeedComparison, SeedInterval, draw_scores, seed_bootstrap, seed_interval
from spigot.evaluation.significance import Comparison, Interval, bootstrap, interval
from spigot.evaluation.trivial import flat, left_branching, random_trees, right_branching

__all__ = [
    "PUNCTUATION_TAGS",
    "Analysis",
    "Answer",
    "Breakdown",
    "Cell",
    "ClassScores",
    "Comparison",
    "Counts",
    "Drawn",
    "Example",
    "GraphChanges",
    "GraphScores",
    "Group",
    "HeadChanges",
    "Induced",
    "Interval",
    "Kind",
    "LabelChanges",
    "LabelScores",
    "LabelledTreeScores",
    "Measure",
    "Outcome",
    "Paired",
    "Profile",
    "RawScores",
    "RelationChanges",
    "Renamed",
    "RoleChanges",
    "Row",
    "Score",
    "SeedComparison",
    "SeedInterval",
    "TagScores",
    "TreeScores",
    "accuracy",
    "add_trees",
    "analyse",
    "bootstrap",
    "changed",
    "describe",
    "draw_scores",
    "flat",
    "graph_counts",
    "holm",
    "interval",
    "is_punctuation",
    "label_counts",
    "left_branching",
    "random_trees",
    "relation_counts",
    "right_branching",
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
