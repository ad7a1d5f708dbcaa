"""The layer: a structured argmax whose gradient is chosen by an estimator."""

from collections.abc import Callable

from torch import Tensor, nn

from spigot._runtime.checks import require_kind, resolve_mask
from spigot._runtime.precision import upcast_half
from spigot.estimators.adaptive import AdaptiveIMLE
from spigot.estimators.spigot import Spigot
from spigot.interface import AbstractEstimator, AbstractStructure
from spigot.types import Mask, Parts

__all__ = ["Argmax", "argmax"]


@upcast_half
def argmax(
    scores: Parts,
    structure: AbstractStructure,
    estimator: AbstractEstimator = Spigot(),
    *,
    mask: Mask | None = None,
) -> Parts:
    r"""$\hat z = \arg\max_{z \in \mathcal Z} z^\top s$ as a layer of a network.

    Args:
        scores: One score for each part, `(*batch, *parts)`, in float32 or float64; float16 and bfloat16 are decoded
            in float32.
        structure: The set $\mathcal Z$.
        estimator: What goes forward and what comes back. Hard ones, such as `Spigot` and `LPGD`, give a member of
            the structure; soft ones, such as `StructuredAttention` and `SparseMAP`, a point inside its hull.
        mask: Parts that exist; all that can exist if omitted. Outside it the result and every gradient are zero.

    Returns:
        $\hat z$, of the shape and dtype of the scores.

    Example:
        A projective tree over four words, and the gradient that SPIGOT sends to its arc scores.

        >>> import torch, spigot
        >>> scores = torch.zeros(5, 5, requires_grad=True)
        >>> trees = spigot.ProjectiveTrees()
        >>> z = spigot.argmax(scores, trees, spigot.Spigot(eta=0.5))
        >>> bool(trees.contains(z))
        True
        >>> (z * torch.arange(25.0).reshape(5, 5)).sum().backward()
        >>> scores.grad.sum(0)                                    # what one head loses, another gains
        tensor([0., 0., 0., 0., 0.])
    """
    _require(structure, estimator)
    mask = resolve_mask(structure, scores, mask)
    return estimator(structure, scores, mask)


class Argmax(nn.Module):
    """`argmax` as a module, with structure and estimator fixed.

    What `AdaptiveIMLE` keeps from step to step are buffers of this module: they are in its `state_dict`, move with it
    to other devices, stay float32 when it is cast, and change in the backward passes of training mode alone.

    Example:
        >>> import torch, spigot
        >>> layer = Argmax(spigot.OneOf(), spigot.StraightThrough())
        >>> layer(torch.tensor([0.5, 2.0, 1.0]))
        tensor([0., 1., 0.])
    """

    def __init__(self, structure: AbstractStructure, estimator: AbstractEstimator = Spigot()) -> None:
        super().__init__()
        _require(structure, estimator)
        estimator.check(structure)
        self.structure = structure
        self.estimator = estimator
        if isinstance(estimator, AdaptiveIMLE):
            for name, value in estimator.initial_state().items():
                self.register_buffer(name, value)

    def forward(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return argmax(scores, self.structure, self.with_state(training=self.training), mask=mask)

    def with_state(self, *, training: bool = False) -> AbstractEstimator:
        """The estimator with its state of now, such as for `explain`; it changes only if `training`."""
        if not isinstance(self.estimator, AdaptiveIMLE):
            return self.estimator
        return self.estimator.with_state(dict(self.named_buffers(recurse=False)), training=training)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Argmax":
        before = dict(self.named_buffers(recurse=False))
        super()._apply(fn, recurse)
        for name, value in before.items():
            after = getattr(self, name)
            if after.dtype != value.dtype:  # the module was cast, of which a running value knows nothing
                setattr(self, name, value.to(after.device))
        return self

    def extra_repr(self) -> str:
        return f"{self.structure}, {self.estimator}"


def _require(structure: AbstractStructure, estimator: AbstractEstimator) -> None:
    require_kind(structure, AbstractStructure, "structure", "ProjectiveTrees()")
    require_kind(estimator, AbstractEstimator, "estimator", "Spigot()")
