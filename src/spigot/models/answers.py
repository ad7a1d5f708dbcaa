"""What a system says about the sentences of a batch, as tensors."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from spigot.types import Mask, Parts


class Evidence(NamedTuple):
    """The scores that a structure was found by, and the parts that existed for it.

    Attributes:
        scores: The scores of the parts.
        mask: Which parts existed.

    Example:
        >>> import torch
        >>> Evidence(torch.zeros(1, 3, 3), torch.ones(1, 3, 3, dtype=torch.bool)).scores.shape
        torch.Size([1, 3, 3])
    """

    scores: Parts
    mask: Mask


class Answer(NamedTuple):
    """What a system says about the sentences of a batch, whatever it has; and by which scores it found it.

    Attributes:
        tree: The trees.
        graph: The graphs.
        probabilities: How probable each class is.
        tree_evidence: What the trees were found by; `None` where they were given.
        graph_evidence: What the graphs were found by.

    Example:
        >>> import torch
        >>> Answer(probabilities=torch.tensor([[0.25, 0.75]])).tree is None
        True
    """

    tree: Parts | None = None
    graph: Parts | None = None
    probabilities: Float[Tensor, "batch k"] | None = None
    tree_evidence: Evidence | None = None
    graph_evidence: Evidence | None = None
