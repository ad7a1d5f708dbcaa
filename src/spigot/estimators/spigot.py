"""Structured projection of intermediate gradients."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

from spigot.estimators.requirements import check_choices, check_polytope, check_settings
from spigot.estimators.surrogate import AbstractSurrogate
from spigot.interface import ESTIMATORS, AbstractPolytope, AbstractStructure, Pullback
from spigot.types import Mask, Parts, Saved, Values


@final
@ESTIMATORS.register("spigot")
@dataclass(frozen=True)
class Spigot(AbstractSurrogate):
    r"""Structured projection of intermediate gradients (Eq. 4).

    $$\hat p = \hat z - \eta \nabla_{\hat z} L, \qquad
      \tilde z = \operatorname{proj}_{\mathcal P}(\hat p), \qquad
      \nabla_s L := \hat z - \tilde z.$$

    **Not linear in the loss.** Because of the projection, scaling $L$ by $c$ does not scale $\nabla_s L$ by $c$: the
    mean of a loss over a batch gives another direction than its sum. The step size is meant for losses that are
    *summed* over instances; put any normalisation into the learning rate, do not divide the loss.

    Attributes:
        eta: The step size $\eta$. The paper uses 1 for trees inside a semantic parser, 5/32 for graphs inside a
            classifier.
        polytope: What to project onto; `structure.relaxation` if `None`.
        max_norm: Clips $\nabla_z L$ per instance. The program published with the paper clipped to 1 (5/32) and had
            no step size.
        clip_per: Whether that norm is of an instance, or of each block by itself: of a word's heads, of an arc and its
            labels.
        centred: Take the mean out of $\nabla_z L$ first, over each block or over an instance.

    Example:
        >>> import torch, spigot
        >>> scores = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
        >>> z = spigot.argmax(scores, spigot.OneOf(), Spigot(eta=1.0))
        >>> (z * torch.tensor([0.0, -0.5, 0.5])).sum().backward()
        >>> scores.grad                                         # moves mass from entry 2 to entry 1
        tensor([ 0.0000, -0.5000,  0.5000])

    References:
        Peng, Thomson, Smith (2018), Backpropagating through structured argmax using a SPIGOT, §2.2.
    """

    eta: float = 1.0
    polytope: AbstractPolytope | None = None
    max_norm: float | None = None
    clip_per: Literal["instance", "block"] = "instance"
    centred: Literal["no", "block", "instance"] = "no"

    hard: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self.max_norm, self.eta)
        check_choices(self)
        check_polytope(self.polytope)

    def pullback(
        self, structure: AbstractStructure, scores: Parts, z: Parts, saved: Saved, grad: Parts, mask: Mask
    ) -> Pullback:
        polytope = self.polytope or structure.relaxation
        gradient = polytope.pull(z, grad, self.eta, mask)

        def path() -> tuple[Parts, Parts, Values | None]:
            stepped, projected = z - self.eta * grad, z - gradient
            return stepped, projected, polytope.gap(stepped, projected, mask)

        return Pullback(gradient, path)
