"""Losses of scores against a gold structure, one value for each instance.

That gold structures are members is taken for granted; `structure.violations(gold)` says in words what is wrong.
"""

import math

import torch
from torch import Tensor

from spigot._runtime.checks import resolve_mask
from spigot._runtime.precision import upcast_half
from spigot._runtime.reduce import checked
from spigot.estimators.noise import gaussian
from spigot.estimators.requirements import check_sampling
from spigot.interface import AbstractMarginalStructure, AbstractStructure
from spigot.polytopes.hull import ConvexHull
from spigot.types import Mask, Parts, Values

__all__ = ["crf_nll", "fenchel_young", "perceptron", "sparsemap_loss", "spo_plus", "structured_hinge"]


@upcast_half
def structured_hinge(
    scores: Parts,
    gold: Parts,
    structure: AbstractStructure,
    *,
    mask: Mask | None = None,
    false_positive: float | Tensor = 0.5,
    false_negative: float | Tensor = 0.5,
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
        false_positive: $c_+$, the cost of a part that should not be there; one for all, or one for each part.
        false_negative: $c_-$, the cost of a part that is missing; the same.
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
    mask, gold = _check(scores, gold, structure, mask)
    if weight is not None:
        pairs = zip(weight.shape[::-1], scores.shape[::-1], strict=False)
        if weight.ndim > scores.ndim or not all(w == 1 or w == s for w, s in pairs):
            raise ValueError(
                f"weight has shape {tuple(weight.shape)}; it must broadcast to scores {tuple(scores.shape)}."
            )
    cost = false_positive * (1 - gold) - false_negative * gold
    missing = false_negative * gold
    if weight is not None:
        cost, missing = cost * weight, missing * weight
    with torch.no_grad():
        rival = structure.argmax(scores + cost, mask)
    margin = _dot(scores, rival, structure) - _dot(scores, gold, structure)
    return margin + _dot(cost, rival, structure) + missing.masked_fill(~mask, 0).flatten(-structure.event_ndim).sum(-1)


@upcast_half
def crf_nll(
    scores: Parts,
    gold: Parts,
    structure: AbstractStructure,
    *,
    mask: Mask | None = None,
    entropy: float = 0.0,
) -> Values:
    r"""Negative log-likelihood of the gold structure: $\log \sum_{z\in\mathcal Z} \exp(s^\top z) - s^\top z^*$.

    The gradient is $\mu(s) - z^*$, the marginals less the gold structure. With a weight $\lambda$ for the entropy
    $H(s) = \log Z(s) - \mu(s)^\top s$ it is

    $$\nabla_s \big[ \log Z - s^\top z^* + \lambda H \big] = \mu - z^* - \lambda \frac{\partial\mu}{\partial s} s,$$

    which at $\lambda = 1$ is what the program published with the paper trained structured attention by: it took the
    derivative of the marginals along with that of the scores, and so made distributions sharp beside making them right.

    Args:
        scores: The scores $s$.
        gold: The gold structures $z^*$.
        structure: The set $\mathcal Z$; its partition function must be tractable.
        mask: Parts that exist.
        entropy: The weight $\lambda$ of the entropy.

    Example:
        >>> import spigot
        >>> crf_nll(torch.zeros(4), torch.tensor([0.0, 1.0, 0.0, 0.0]), spigot.OneOf())
        tensor(1.3863)
        >>> crf_nll(torch.zeros(4), torch.tensor([0.0, 1.0, 0.0, 0.0]), spigot.OneOf(), entropy=1.0)
        tensor(2.7726)
    """
    if not isinstance(structure, AbstractMarginalStructure):
        raise TypeError(f"crf_nll needs a partition function, and {structure} has none. Use structured_hinge.")
    mask, gold = _check(scores, gold, structure, mask)
    loss = structure.log_partition(scores, mask) - _dot(scores, gold, structure)
    return loss + entropy * structure.entropy(scores, mask) if entropy else loss


@upcast_half
def perceptron(scores: Parts, gold: Parts, structure: AbstractStructure, *, mask: Mask | None = None) -> Values:
    r"""Structured perceptron loss: by how much the best structure beats the gold one.

    $$L = \max_{z\in\mathcal Z} s^\top z - s^\top z^*$$

    The gradient is $\hat z - z^*$. Zero as soon as the gold structure is a best one: there is no margin, and scores
    that are all alike have no loss either. Use `structured_hinge` where that matters.

    Args:
        scores: The scores $s$.
        gold: The gold structures $z^*$. Gold parts that the mask removes are left out of the loss.
        structure: The set $\mathcal Z$.
        mask: Parts that exist.

    Example:
        >>> import spigot
        >>> perceptron(torch.tensor([0.5, 2.0, 0.0]), torch.tensor([1.0, 0.0, 0.0]), spigot.OneOf())
        tensor(1.5000)

    References:
        Collins (2002), Discriminative training methods for hidden Markov models.
    """
    mask, gold = _check(scores, gold, structure, mask)
    with torch.no_grad():
        rival = structure.argmax(scores, mask)
    return _dot(scores, rival - gold, structure)


@upcast_half
def sparsemap_loss(scores: Parts, gold: Parts, structure: AbstractStructure, *, mask: Mask | None = None) -> Values:
    r"""SparseMAP loss: the Fenchel-Young loss of the squared norm over the hull.

    $$L = \max_{\mu\in\operatorname{conv}\mathcal Z} \big[ s^\top \mu - \tfrac12 \lVert\mu\rVert_2^2 \big]
        - \big[ s^\top z^* - \tfrac12 \lVert z^* \rVert_2^2 \big]
      = \tfrac12 \lVert s - z^* \rVert_2^2 - \tfrac12 \lVert s - \operatorname{proj}(s) \rVert_2^2$$

    The gradient is $\operatorname{proj}_{\operatorname{conv}\mathcal Z}(s) - z^*$. Smooth, and exactly zero once the
    scores are so clear that the projection is the gold structure: it has a margin, as the hinge has. On `OneOf` it is
    the sparsemax loss. The value is exact up to the duality gap of the projection, at most $10^{-9}$ in float64 and
    $10^{-6}$ in float32, times the scale of the scores.

    Args:
        scores: The scores $s$.
        gold: The gold structures $z^*$. Gold parts that the mask removes are left out of the loss.
        structure: The set $\mathcal Z$; its argmax is enough.
        mask: Parts that exist.

    Example:
        >>> import spigot
        >>> gold = torch.tensor([1.0, 0.0, 0.0])
        >>> sparsemap_loss(torch.tensor([1.0, 0.5, -1.0]), gold, spigot.OneOf())
        tensor(0.0625)
        >>> sparsemap_loss(torch.tensor([1.0, 0.0, -1.0]), gold, spigot.OneOf())
        tensor(0.)

    References:
        Niculae, Martins, Blondel, Cardie (2018), SparseMAP: Differentiable sparse structured inference.
        Blondel, Martins, Niculae (2020), Learning with Fenchel-Young losses.
    """
    mask, gold = _check(scores, gold, structure, mask)
    with torch.no_grad():
        projected = ConvexHull(structure).project(scores, mask)
        norms = (projected.square() - gold.square()).flatten(-structure.event_ndim).sum(-1)
    return _dot(scores, projected - gold, structure) - norms / 2


@upcast_half
def fenchel_young(
    scores: Parts,
    gold: Parts,
    structure: AbstractStructure,
    *,
    mask: Mask | None = None,
    temperature: float = 1.0,
    samples: int = 10,
    seed: int = 0,
) -> Values:
    r"""Perturbed Fenchel-Young loss: the perceptron loss, averaged over noise on the scores.

    $$L = \frac1n \sum_{i=1}^n \Big[ \max_{z\in\mathcal Z} (s + \tau\varepsilon_i)^\top z
        - (s + \tau\varepsilon_i)^\top z^* \Big]$$

    with standard normal noise. The gradient is the mean of $\hat z(s + \tau\varepsilon_i) - z^*$. It needs the argmax
    only, and so does for graphs, programs and oracles what `crf_nll` does where sums are tractable: it asks for a
    margin, as wide as the noise.

    The loss of Berthet et al. is $\mathbb E \max_z (s + \tau\varepsilon)^\top z - s^\top z^* + \Omega(z^*)$ with an
    $\Omega$ that nobody can compute and that does not depend on the scores. Here the gold structure is judged under the
    same noise instead: the expectation and all gradients are those of theirs up to a constant, as
    $\mathbb E[\varepsilon^\top z^*] = 0$; each term is zero or more; and all are exactly zero where the gold structure
    wins in every draw.

    The noise follows from `seed` and the gold structure of the instance, and not from its scores. So the loss is a
    convex function of the scores, the same in any batch. Give the number of the step as the seed to have fresh noise
    in each.

    Args:
        scores: The scores $s$.
        gold: The gold structures $z^*$. Gold parts that the mask removes are left out of the loss.
        structure: The set $\mathcal Z$; its argmax is enough.
        mask: Parts that exist.
        temperature: The scale $\tau$ of the noise.
        samples: How many draws are averaged; each is an argmax.
        seed: Tells the steps of a training apart.

    Example:
        >>> import spigot
        >>> gold = torch.tensor([1.0, 0.0, 0.0])
        >>> bool(fenchel_young(torch.tensor([1.0, 0.5, -1.0]), gold, spigot.OneOf()) > 0)
        True
        >>> fenchel_young(torch.tensor([20.0, 0.0, 0.0]), gold, spigot.OneOf())
        tensor(0.)

    References:
        Berthet, Blondel, Teboul, Cuturi, Vert, Bach (2020), Learning with differentiable perturbed optimizers.
    """
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature is {temperature}; it must be a positive number. perceptron has no noise.")
    check_sampling(samples, seed)
    mask, gold = _check(scores, gold, structure, mask)
    with torch.no_grad():
        noise = temperature * gaussian(gold, mask, structure.event_ndim, seed, samples)
        rivals = structure.argmax(scores + noise, mask.expand(noise.shape))
        apart = _dot(noise, rivals - gold, structure).mean(0)
    return _dot(scores, rivals.mean(0) - gold, structure) + apart


@upcast_half
def spo_plus(scores: Parts, true_scores: Parts, structure: AbstractStructure, *, mask: Mask | None = None) -> Values:
    r"""SPO+ loss ("smart predict, then optimise"): what decisions by predicted scores cost, bounded from above.

    For scores that are predictions of known true ones $c$, with $z^* = \arg\max_{z\in\mathcal Z} c^\top z$:

    $$L = \max_{z\in\mathcal Z} (2 s - c)^\top z - 2 s^\top z^* + c^\top z^*
        \ \ge\ c^\top z^* - c^\top \hat z(s)$$

    The gradient is $2 (\hat z(2 s - c) - z^*)$. Zero where the prediction is right, $s = c$, and wherever the decision
    is the best one by a margin.

    Args:
        scores: The predicted scores $s$.
        true_scores: The true scores $c$, of the same shape and dtype; no gradient goes to them. A part of
            $-\infty$ counts as one that does not exist.
        structure: The set $\mathcal Z$; its argmax is enough.
        mask: Parts that exist.

    Example:
        >>> import spigot
        >>> truth = torch.tensor([1.0, 0.0, 0.0])
        >>> spo_plus(truth, truth, spigot.OneOf())
        tensor(0.)
        >>> spo_plus(torch.tensor([0.0, 1.0, 0.0]), truth, spigot.OneOf())
        tensor(3.)

    References:
        Elmachtoub, Grigas (2022), Smart "predict, then optimize".
    """
    mask = resolve_mask(structure, scores, mask)
    _check_gold(true_scores, scores, "true_scores")
    mask = mask & ~true_scores.isneginf()
    with torch.no_grad():
        truth = checked(true_scores.detach(), mask, structure.event_ndim)
        best = structure.argmax(truth, mask)
        rival = structure.argmax(2 * scores - truth, mask)
        apart = _dot(truth, best - rival, structure)
    return 2 * _dot(scores, rival - best, structure) + apart


def _check(scores: Parts, gold: Parts, structure: AbstractStructure, mask: Mask | None) -> tuple[Mask, Parts]:
    """The parts that exist, and the gold structure within them."""
    mask = resolve_mask(structure, scores, mask)
    _check_gold(gold, scores)
    return mask, gold.masked_fill(~mask, 0)


def _dot(values: Parts, z: Parts, structure: AbstractStructure) -> Values:
    """$z^T v$, where a value that z leaves out does not count even if it is infinite or NaN."""
    return torch.where(z != 0, values * z, torch.zeros_like(values)).flatten(-structure.event_ndim).sum(-1)


def _check_gold(gold: Parts, scores: Parts, what: str = "gold") -> None:
    if gold.shape != scores.shape:
        raise ValueError(f"{what} has shape {tuple(gold.shape)} and scores {tuple(scores.shape)}; they must be equal.")
    if gold.dtype != scores.dtype:
        values = "0/1 in " if what == "gold" else ""
        raise TypeError(
            f"{what} has dtype {gold.dtype}; it must be {values}{scores.dtype}, e.g. {what}.to(scores.dtype)."
        )
