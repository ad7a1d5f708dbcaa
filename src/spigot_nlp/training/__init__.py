"""Training: steps, states that can be saved, several processes."""

from spigot_nlp.models.checkpoint import load
from spigot_nlp.training.loop import Diverged, Step, Trainer
from spigot_nlp.training.run import resume, train
from spigot_nlp.training.scoring import score_tests

__all__ = ["Diverged", "Step", "Trainer", "load", "resume", "score_tests", "train"]
