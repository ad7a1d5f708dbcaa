"""What a stage gives for decoding, and what helps it."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from jaxtyping import Float
from torch import Tensor, nn

from spigot.types import Mask, Parts
from spigot_nlp.values import Optimiser
from spigot_nlp.wires.readers import AbstractReader, ChosenHeads, Source


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


class AbstractDecision(abc.ABC):
    """The structures that a stage decided for, found without a place in memory for the scores of all parts.

    Example:
        >>> class Nothing(AbstractDecision):
        ...     def parts(self):
        ...         return torch.zeros(0, 1)
        ...     def found(self, lengths):
        ...         return []
        >>> import torch
        >>> Nothing().parts().shape
        torch.Size([0, 1])
    """

    @abc.abstractmethod
    def parts(self) -> Parts:
        """The structures as those who read them want them."""

    def heads(self) -> ChosenHeads | None:
        """The structures as one head for each word; none unless that is what they are."""
        return None

    @abc.abstractmethod
    def found(self, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """What they say about sentences: the annotations of each, by name.

        Args:
            lengths: Words of each sentence.
        """


Found: TypeAlias = Parts | AbstractDecision
"""What a stage reads of another one: its structures, or what it decided for."""


def states_after(
    reader: AbstractReader, states: Float[Tensor, "batch n d"], found: Found, source: Source
) -> Float[Tensor, "batch n e"]:
    """States after a look at what another stage found, by the shorter way where there is one.

    Args:
        reader: How it is looked at.
        states: The states.
        found: What was found.
        source: The stage that found it.
    """
    if isinstance(found, AbstractDecision):
        chosen = found.heads()
        if chosen is not None and (after := reader.after_heads(states, chosen)) is not None:
            return after
        found = found.parts()
    return reader(states, found.to(states.dtype), source)


@dataclass(frozen=True)
class HelperPlan:
    """How long a smaller model inside a stage is trained.

    Attributes:
        epochs: Passes over the training set of the stage.
        batch: Sentences in a step; as many as in other steps if 0.

    Example:
        >>> HelperPlan(epochs=3).batch
        0
    """

    epochs: int
    batch: int = 0


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
