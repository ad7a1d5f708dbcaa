r"""What is to be learnt: a hidden structure, from the answer of whoever reads it.

Five tasks are alike. An instance has features $\phi_p \in \mathbb R^8$ and a worth $v_p \in \mathbb R$ for each part
$p$, both standard normal. There is a true direction $\theta^*$; the hidden structure is the best one for the scores
$\phi\,\theta^*$, and the answer is what it is worth:

$$z^* = \operatorname{argmax}_{z \in \mathcal Z} z^\top \phi\,\theta^*, \qquad y = v^\top z^*.$$

The model knows $\phi$ and $v$ and learns $\theta$, only through $z$: $s = \phi\,\theta$, $\hat y = v^\top z$, with the
loss $\tfrac12 (\hat y - y)^2$. The tasks differ in $\mathcal Z$ and in nothing else.

The first task, clusters, has a second stage that learns too. A point $x = [u; v]$ has a place $u$ and a content $v$.
The place is drawn around the centre of one of $K$ clusters, $u \sim \mathcal N(m_c, I)$; the content is noise,
$v \sim \mathcal N(0, I)$. The label is read off the content by a rule of the cluster's own, $y = [\,w_c^\top v > 0\,]$.
The model sees $x$ and is told neither the cluster nor which half is which:

$$s = A x + a, \qquad z = \operatorname{argmax}_{\mathrm{OneOf}}(s), \qquad
  \operatorname{logit}(y) = \textstyle\sum_k z_k\, (b_k^\top x + \beta_k).$$

After Mihaylova, Niculae, Martins (2020), Understanding the mechanics of SPIGOT, §5.1; the data here are our own.

All seeds stand side by side as the first axis of every tensor. `data` draws them.
"""

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import torch
from torch import Tensor
from torch.nn import functional as F

from research.latent.matching import match
from spigot import AbstractStructure

Parameters: TypeAlias = Mapping[str, Tensor]
"""What is learnt, by name; the first axis of each is the seed."""


@dataclass(frozen=True)
class Instances:
    """Instances of all seeds, `(seeds, count, ...)`.

    Attributes:
        features: What the scorer sees.
        worth: What each part is worth, where that is given and not learnt; zeros elsewhere.
        truth: The hidden structure.
        target: The answer that is given.
    """

    features: Tensor
    worth: Tensor
    truth: Tensor
    target: Tensor

    def __getitem__(self, rows: Tensor | slice) -> "Instances":
        """Some of the instances, the same rows of each seed."""
        return Instances(*(tensor[:, rows] for tensor in (self.features, self.worth, self.truth, self.target)))

    @classmethod
    def stack(cls, seeds: Sequence["Instances"]) -> "Instances":
        """Seeds side by side."""
        names = ("features", "worth", "truth", "target")
        return cls(*(torch.stack([getattr(seed, name) for seed in seeds]) for name in names))


@dataclass(frozen=True)
class AbstractTask(abc.ABC):
    """A structure, data, and a second stage that reads the structure: $\\hat y = z^\\top w$ for worths $w$.

    Attributes:
        name: As it is called on the command line.
        structure: The set that the hidden structures are from.
        train: What is learnt from.
        test: What is measured on.
        start: Initial parameters.
        near: Parameters halfway to the truth, where the truth is a matter of parameters; else `None`.
        members: All members of the structure, `(members, *parts)`; `None` if nobody can list them.
    """

    name: str
    structure: AbstractStructure
    train: Instances
    test: Instances
    start: Parameters
    near: Parameters | None
    members: Tensor | None

    @abc.abstractmethod
    def scores(self, parameters: Parameters, instances: Instances) -> Tensor:
        """The scores of the parts, `(seeds, count, *parts)`."""

    @abc.abstractmethod
    def worth(self, parameters: Parameters, instances: Instances) -> Tensor:
        """What each part adds to the answer, of the shape of the scores."""

    @abc.abstractmethod
    def loss(self, answer: Tensor, instances: Instances) -> Tensor:
        """The loss of answers `(..., seeds, count)`, each by itself."""

    @abc.abstractmethod
    def quality(self, answer: Tensor, instances: Instances) -> Tensor:
        """How good answers are, `(seeds,)`; 1 is perfect."""

    def read(self, z: Tensor, worth: Tensor) -> Tensor:
        """The answers that follow from structures, of which there may be several: `(..., seeds, count)`."""
        return (z * worth).sum(tuple(range(-self.structure.event_ndim, 0)))

    def found(self, z: Tensor, instances: Instances) -> Tensor:
        """The share of the parts of the hidden structures that are found, `(seeds,)`."""
        return (z * instances.truth).flatten(1).sum(1) / instances.truth.flatten(1).sum(1)


def scores_along(features: Tensor, direction: Tensor) -> Tensor:
    """The scores of parts: `(*seeds, count, *parts, d)` by `(*seeds, d)`.

    Example:
        >>> scores_along(torch.ones(2, 7, 5, 5, 8), torch.ones(2, 8)).shape
        torch.Size([2, 7, 5, 5])
    """
    seeds = features.shape[: direction.ndim - 1]
    flat = features.reshape(*seeds, -1, direction.shape[-1])
    return (flat @ direction.unsqueeze(-1)).reshape(features.shape[:-1])


@final
@dataclass(frozen=True)
class Valued(AbstractTask):
    """A structure whose worth is known: what is hidden is the direction that chooses it."""

    def scores(self, parameters: Parameters, instances: Instances) -> Tensor:
        return scores_along(instances.features, parameters["direction"])

    def worth(self, parameters: Parameters, instances: Instances) -> Tensor:
        return instances.worth

    def loss(self, answer: Tensor, instances: Instances) -> Tensor:
        return 0.5 * (answer - instances.target).square()

    def quality(self, answer: Tensor, instances: Instances) -> Tensor:
        """The share of the variance that is explained; negative where a constant would do better."""
        target = instances.target
        return 1 - (answer - target).square().sum(-1) / (target - target.mean(-1, keepdim=True)).square().sum(-1)


@final
@dataclass(frozen=True)
class Clusters(AbstractTask):
    """One of k, and a classifier for each that is learnt as well."""

    def scores(self, parameters: Parameters, instances: Instances) -> Tensor:
        return instances.features @ parameters["scorer"]

    def worth(self, parameters: Parameters, instances: Instances) -> Tensor:
        return instances.features @ parameters["classifiers"]

    def loss(self, answer: Tensor, instances: Instances) -> Tensor:
        target = instances.target.expand(answer.shape)
        return F.binary_cross_entropy_with_logits(answer, target, reduction="none")

    def quality(self, answer: Tensor, instances: Instances) -> Tensor:
        """The share of labels that are right."""
        return ((answer > 0) == (instances.target > 0)).to(answer.dtype).mean(-1)

    def found(self, z: Tensor, instances: Instances) -> Tensor:
        """The share of points in their true cluster, under the best one-to-one matching: clusters have no names."""
        pairs = zip(z.argmax(-1), instances.truth.argmax(-1), strict=True)
        shares = [(match(chosen, true, z.shape[-1])[chosen] == true).to(z.dtype).mean() for chosen, true in pairs]
        return torch.stack(shares)
