"""What verbs answer with when one tensor is not enough."""

from collections.abc import Callable
from dataclasses import dataclass

from spigot.types import Mask, Parts, Values


@dataclass(frozen=True)
class Preview:
    """What is to be seen of one member of a structure, for whoever draws it.

    Attributes:
        words: How many words there are, without a root.
        arcs: From which word to which, counted from 1, with a label; from 0 for the root.
        spans: The first and the last word, counted from 0, with a label.
        tables: Numbers by rows and columns, each with a title.
    """

    words: int = 0
    arcs: tuple[tuple[int, int, str], ...] = ()
    spans: tuple[tuple[int, int, str], ...] = ()
    tables: tuple[tuple[str, list[list[float]]], ...] = ()


def _no_step() -> tuple[None, None, None]:
    return None, None, None


@dataclass(frozen=True)
class Pullback:
    r"""What an estimator makes of one gradient: said once, for the layer and for `explain`.

    Attributes:
        gradient: What goes on to the scores, $\nabla_s L$; zero outside the mask.
        path: Where the step ended, where it was projected to, and the duality gap of that projection, each `None` if
            there is no such thing. The layer takes the gradient and never asks, so this costs nothing there.
    """

    gradient: Parts
    path: Callable[[], tuple[Parts | None, Parts | None, Values | None]] = _no_step


@dataclass(frozen=True)
class Explanation:
    r"""What an estimator did with one gradient: see `AbstractEstimator.explain`.

    Attributes:
        z: What went forward.
        grad: $\nabla_z L$ as the estimator used it: masked, and clipped if `max_norm` is set.
        stepped: $\hat p = z - \eta \nabla_z L$ (Eq. 4a), or `None` for estimators that take no step.
        projected: $\tilde z$ (Eq. 4b), or `None`.
        gradient: What goes on to the scores, $\nabla_s L$.
        support: Parts that carry mass in `projected` (in `z` if there is none).
        distance: $\lVert \hat p - \tilde z \rVert_2$ for each instance: how far outside the step went.
        gap: Duality gap of the projection for each instance; zero for closed forms.
    """

    z: Parts
    grad: Parts
    stepped: Parts | None
    projected: Parts | None
    gradient: Parts
    support: Mask
    distance: Values
    gap: Values
