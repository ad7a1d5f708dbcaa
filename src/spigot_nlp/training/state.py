"""What changes from step to step: all that a training that was interrupted goes on from."""

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from spigot_nlp.encoders import Precision
from spigot_nlp.models import checkpoint
from spigot_nlp.models.system import System
from spigot_nlp.training.average import RunningMean
from spigot_nlp.training.jackknife import Jackknife
from spigot_nlp.training.optimiser import ModelOptimiser

_PRECISION = "precision"
"""What a saved state calls that which encoders compute in."""


@dataclass
class Progress:
    """How far a training has come.

    Attributes:
        phase: Which part of the plan it is in.
        epoch: How many epochs of it are over.
        step: How many steps of this epoch.
        best: The best score of the phase.
        best_epoch: When that was, from 0; -1 if not yet.
        history: The scores after every epoch.
        structures: What stages that others read found after the last epoch.
        seconds: How long it took so far.
        processor: How long the processor worked.
        done: Whether nothing is left to train.
    """

    phase: int = 0
    epoch: int = 0
    step: int = 0
    best: float = -math.inf
    best_epoch: int = -1
    history: list[dict[str, Any]] = field(default_factory=list)
    structures: dict[str, list[Any]] = field(default_factory=dict)
    seconds: float = 0.0
    processor: float = 0.0
    done: bool = False

    def next_phase(self) -> None:
        """Begin the next part of the plan."""
        self.phase, self.epoch, self.step, self.best, self.best_epoch = self.phase + 1, 0, 0, -math.inf, -1


@dataclass
class State:
    """Parameters, what optimisers, running mean and cross-fitting remember of earlier steps, and the progress.

    Attributes:
        model: What is trained.
        precision: What its encoders compute in.
        optimisers: Of each of its parts.
        average: The running mean of its parameters.
        jackknife: What the stages with folds need beside.
        progress: How far it has come.
        best: The parameters with the best score of this phase.
    """

    model: System
    precision: Precision
    optimisers: dict[str, ModelOptimiser]
    average: RunningMean
    jackknife: Jackknife
    progress: Progress = field(default_factory=Progress)
    best: dict[str, Tensor] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write it into a run folder, in one piece or not at all."""
        groups = {
            "model": self.model.state_dict(),
            # The best parameters too: a crash may leave a model file that is newer than the state beside it.
            "best": self.best,
            "jackknife": self.jackknife.state(),
            "average": self.average.state(),
            **{f"optimisers.{name}": optimiser.state() for name, optimiser in self.optimisers.items()},
        }
        tensors = {f"{group}|{name}": value for group, some in groups.items() for name, value in some.items()}
        best = self.progress.best if math.isfinite(self.progress.best) else None  # JSON has no infinity
        about = {**asdict(self.progress), "best": best, _PRECISION: self.precision}
        checkpoint.write_tensors(folder / checkpoint.STATE, tensors, about)

    def restore(self, folder: Path) -> None:
        """Go on from what `save` wrote."""
        tensors, about = checkpoint.read_tensors(folder / checkpoint.STATE)
        about.pop(_PRECISION, None)
        groups: dict[str, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            group, _, rest = name.partition("|")
            groups.setdefault(group, {})[rest] = value
        self.model.load_state_dict(groups["model"])
        self.best = groups.get("best", {})
        self.jackknife.load_state(groups.get("jackknife", {}))
        self.average.load_state(groups.get("average", {}))
        for name, optimiser in self.optimisers.items():
            optimiser.load_state(groups.get(f"optimisers.{name}", {}))
        best = -math.inf if about.get("best") is None else about["best"]
        try:
            self.progress = Progress(**{**about, "best": best})
        except TypeError as error:
            path = folder / checkpoint.STATE
            raise ValueError(f"{path} is damaged ({error}); train again in a new folder.") from None


def saved_precision(folder: Path) -> Precision:
    """What the encoders of a training that was interrupted compute in."""
    path = folder / checkpoint.STATE
    about = checkpoint.read_about(path)
    if _PRECISION not in about:
        raise ValueError(f"{path} is damaged (it does not say the precision); restore it or train again.")
    return about[_PRECISION]
