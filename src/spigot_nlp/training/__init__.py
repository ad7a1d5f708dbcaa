"""Training: steps, states that can be saved, several processes."""

from spigot_nlp.training.loop import Diverged, Run, Step, resume, train
from spigot_nlp.training.results import score_tests

__all__ = ["Diverged", "Run", "Step", "resume", "score_tests", "train"]
