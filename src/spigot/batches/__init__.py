"""Sentences as tensors: batches, and the order they come in."""

from spigot.batches.batch import Annotations, Batch, Encoded, collate, encode
from spigot.batches.order import bucketed, task_order
from spigot.batches.spelling import Spelling, spelt

__all__ = ["Annotations", "Batch", "Encoded", "Spelling", "bucketed", "collate", "encode", "spelt", "task_order"]
