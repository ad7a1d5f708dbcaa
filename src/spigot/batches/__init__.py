"""Sentences as tensors: batches, and the order they come in."""

from spigot.batches.batch import Annotations, Batch, Encoded, collate, encode
from spigot.batches.order import bucketed, task_order
from spigot.batches.pieces import Frame, Pieces, divided
from spigot.batches.spelling import Spelling, spelt

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
