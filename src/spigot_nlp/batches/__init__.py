"""Sentences as tensors: batches, and the order they come in."""

from spigot_nlp.batches.batch import Annotations, Batch, Encoded, collate, encode
from spigot_nlp.batches.order import bucketed, task_order
from spigot_nlp.batches.pieces import Frame, Pieces, divided
from spigot_nlp.batches.spelling import Spelling, spelt

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
