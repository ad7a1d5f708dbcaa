"""Sentences as tensors: batches, and the order they come in."""

from spigot.batches.batch import Annotations, Batch, Encoded, collate, encode
from spigot.batches.order import bucketed, task_order

__all__ = ["Annotations", "Batch", "Encoded", "bucketed", "collate", "encode", "task_order"]
