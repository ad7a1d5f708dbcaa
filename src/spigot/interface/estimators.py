"""What every estimator answers."""

import abc
from typing import ClassVar

from spigot._runtime.html import HtmlRepr
from spigot._runtime.precision import Upcast, upcast_half
from spigot.interface.records import Explanation
from spigot.interface.structures import AbstractStructure
from spigot.types import Mask, Parts


class AbstractEstimator(Upcast, HtmlRepr, abc.ABC):
    """What goes forward, and what comes back."""

    hard: ClassVar[bool]
    """Whether the forward pass gives a member of the structure (hard) or a point inside its hull (soft)."""

    def check(self, structure: AbstractStructure) -> None:
        """Refuse a structure that lacks what this estimator needs; most need an argmax and nothing else.

        Raises:
            TypeError: It names what is missing, and the way out.
        """

    @abc.abstractmethod
    def __call__(self, structure: AbstractStructure, scores: Parts, mask: Mask) -> Parts:
        """The forward value, connected to `scores` for the backward pass."""

    @abc.abstractmethod
    @upcast_half
    def explain(
        self, structure: AbstractStructure, scores: Parts, grad: Parts, mask: Mask | None = None
    ) -> Explanation:
        r"""What this estimator does when $\nabla_z L$ is `grad`: z, the step, the projection, the result."""
