"""Training: steps, states that can be saved, several processes."""

from spigot.training.checkpoint import load
from spigot.training.loop import Diverged, Step, Trainer
from spigot.training.run import resume, train
from spigot.training.scoring import score_tests

__all__ = ["Diverged", "Step", "Trainer", "load", "resume", "score_tests", "train"]
