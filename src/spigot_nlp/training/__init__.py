"""Training: steps, states that can be saved, several processes."""

from spigot_nlp.models.checkpoint import load
from spigot_nlp.training.loop import Diverged, Run, Step, resume, train
from spigot_nlp.training.scoring import score_tests

__all__ = ["Diverged", "Run", "Step", "load", "resume", "score_tests", "train"]
