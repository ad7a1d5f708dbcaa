"""What a stage gives for decoding, and what helps it."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

from spigot.types import Mask, Parts
from spigot.values import Optimiser


class Evidence(NamedTuple):
    """The scores that a structure is found by, and the parts that exist for it.

    Attributes:
        scores: The scores of the parts.
        mask: Which parts exist.

    Example:
        >>> import torch
        >>> Evidence(torch.zeros(1, 3, 3), torch.ones(1, 3, 3, dtype=torch.bool)).scores.shape
        torch.Size([1, 3, 3])
    """

    scores: Parts
    mask: Mask


@dataclass(frozen=True)
class Helper:
    """A smaller model inside a stage that is trained before it, on the same data.

    Attributes:
        model: The model.
        optimiser: How it is updated.

    Example:
        >>> Helper(nn.Linear(2, 1), Optimiser(max_norm=5.0)).optimiser.max_norm
        5.0
    """

    model: nn.Module
    optimiser: Optimiser
