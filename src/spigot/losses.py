"""Losses of scores against a gold structure, one value for each instance."""

import torch

from spigot.checks import check_parts
from spigot.interface import AbstractMarginalStructure, AbstractStructure
from spigot.precision import in_single
from spigot.types import Mask, Parts, Values

__all__ = ["crf_nll", "structured_hinge"]


@in_single
def structured_hinge(
    scores: Parts,
    gold: Parts,
    structure: AbstractStructure,
    *,
    mask: Mask | None = None,
    false_positive: float = 0.5,
    false_negative: float = 0.5,
    weight: Parts | None = None,
) -> Values:
    r"""Structured hinge loss with a Hamming cost.

    $$L = \max_{z\in\mathcal Z} \big[ s^\top z + \Delta(z, z^*) \big] - s^\top z^*, \qquad
      \Delta(z, z^*) = \sum_i w_i \big( c_+ z_i (1 - z^*_i) + c_- (1 - z_i) z^*_i \big).$$

    The gradient is $z_{\text{aug}} - z^*$. With both costs zero this is the perceptron loss.

    Args:
        scores: The scores $s$.
        gold: The gold structures $z^*$. Gold parts that the mask removes are left out of the loss.
        structure: The set $\mathcal Z$.
        mask: Parts that exist.
        false_positive: $c_+$, the cost of a part that should not be there.
        false_negative: $c_-$, the cost of a part that is missing.
        weight: $w$, over the parts, so that a cost can sit on some of them only; ones if omitted.

    Example:
        >>> import spigot
        >>> gold = torch.tensor([0.0, 1.0, 0.0])
        >>> structured_hinge(torch.tensor([0.0, 3.0, 0.0]), gold, spigot.OneOf())
        tensor(0.)
        >>> structured_hinge(torch.tensor([0.0, 0.5, 0.0]), gold, spigot.OneOf())
        tensor(0.5000)

    References:
        Tsochantaridis et al. (2004), Support vector machine learning for interdependent and structured output spaces.
    """
    mask = check_parts(scores, mask, structure.event_ndim) & structure.everything(scores)
    _check_gold(gold, scores)
    if weight is not None:
        pairs = zip(weight.shape[::-1], scores.shape[::-1], strict=False)
        if weight.ndim > scores.ndim or any(w not in (1, s) for w, s in pairs):
            raise ValueError(
                f"weight has shape {tuple(weight.shape)}; it must broadcast to scores {tuple(scores.shape)}."
            )
    gold = gold.masked_fill(~mask, 0)
    cost = false_positive * (1 - gold) - false_negative * gold
    missing = false_negative * gold
    if weight is not None:
        cost, missing = cost * weight, missing * weight
    with torch.no_grad():
        rival = structure.argmax(scores + cost, mask)
    margin = _dot(scores, rival, structure) - _dot(scores, gold, structure)
    return margin + _dot(cost, rival, structure) + missing.masked_fill(~mask, 0).flatten(-structure.event_ndim).sum(-1)


@in_single
def crf_nll(scores: Parts, gold: Parts, structure: AbstractStructure, *, mask: Mask | None = None) -> Values:
    r"""Negative log-likelihood of the gold structure: $\log \sum_{z\in\mathcal Z} \exp(s^\top z) - s^\top z^*$.

    The gradient is $\mu(s) - z^*$, the marginals less the gold structure.

    Args:
        scores: The scores $s$.
        gold: The gold structures $z^*$.
        structure: The set $\mathcal Z$; its partition function must be tractable.
        mask: Parts that exist.

    Example:
        >>> import spigot
        >>> crf_nll(torch.zeros(4), torch.tensor([0.0, 1.0, 0.0, 0.0]), spigot.OneOf())
        tensor(1.3863)
    """
    if not isinstance(structure, AbstractMarginalStructure):
        raise TypeError(f"crf_nll needs a partition function, and {structure} has none. Use structured_hinge.")
    mask = check_parts(scores, mask, structure.event_ndim) & structure.everything(scores)
    _check_gold(gold, scores)
    return structure.log_partition(scores, mask) - _dot(scores, gold.masked_fill(~mask, 0), structure)


def _dot(values: Parts, z: Parts, structure: AbstractStructure) -> Values:
    """$z^T v$, where a value that z leaves out does not count even if it is infinite or NaN."""
    return torch.where(z != 0, values * z, torch.zeros_like(values)).flatten(-structure.event_ndim).sum(-1)


def _check_gold(gold: Parts, scores: Parts) -> None:
    if gold.shape != scores.shape:
        raise ValueError(f"gold has shape {tuple(gold.shape)} and scores {tuple(scores.shape)}; they must be equal.")
    if gold.dtype != scores.dtype:
        raise TypeError(f"gold has dtype {gold.dtype}; it must be 0/1 in {scores.dtype}, e.g. gold.to(scores.dtype).")
