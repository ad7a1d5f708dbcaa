"""What goes from one stage of a system to another, and what comes out of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import spigot
from spigot import AbstractEstimator
from spigot.types import Mask, Parts
from spigot_nlp.stages.stage import Evidence


class Answer(NamedTuple):
    """What a stage says about the sentences of a batch.

    Attributes:
        z: The structures.
        evidence: The scores they were found by; `None` where they were given.

    Example:
        >>> import torch
        >>> Answer(torch.ones(1, 2), None).z.shape
        torch.Size([1, 2])
    """

    z: Parts
    evidence: Evidence | None


@dataclass(frozen=True)
class Wire:
    """From one stage to another.

    Attributes:
        source: The stage whose structures pass.
        target: The stage that reads them.
        estimator: What comes back.

    Example:
        >>> Wire("syntax", "semantics", spigot.Spigot()).name
        'syntax -> semantics'
    """

    source: str
    target: str
    estimator: AbstractEstimator

    @property
    def name(self) -> str:
        """What it is called in print."""
        return f"{self.source} -> {self.target}"

    @property
    def is_frozen(self) -> bool:
        """Whether no gradient ever comes back."""
        return isinstance(self.estimator, spigot.Pipeline)

    def watched_with(self, instead: "AbstractEstimator | Mapping[str, AbstractEstimator] | None") -> AbstractEstimator:
        """Its estimator, or the one that stands on it, or on all wires, for now."""
        if isinstance(instead, Mapping):
            return instead.get(self.name, self.estimator)
        return instead or self.estimator


class Passed(NamedTuple):
    """What passed a wire: kept where somebody watches.

    Attributes:
        scores: What the structures were decoded from.
        mask: Which parts existed.
        z: The structures that went forward; their gradient is what came back.

    Example:
        >>> import torch
        >>> scores = torch.zeros(1, 3)
        >>> Passed(scores, scores == 0, scores.softmax(-1)).mask.all()
        tensor(True)
    """

    scores: Parts
    mask: Mask
    z: Parts
