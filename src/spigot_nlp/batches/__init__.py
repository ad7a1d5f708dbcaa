"""Sentences as tensors: batches, and the order they come in."""

from spigot_nlp.batches.batch import Annotations, Batch, Encoded, Spelling, bucketed, collate, encode, spelt, task_order
from spigot_nlp.batches.pieces import Frame, Pieces, divided

__all__ = [
    "Annotations",
    "Batch",
    "Encoded",
    "Frame",
    "Pieces",
    "Spelling",
    "bucketed",
    "collate",
    "divided",
    "encode",
    "spelt",
    "task_order",
]
