r"""Sets of structures: what every one answers, and what only some can.

A structure says by its type what it can do. Every one has an `argmax`; an `AbstractRankedStructure` also lists its k
best members, an `AbstractMarginalStructure` sums over all of them, an `AbstractSamplingStructure` draws from them.
"""

import abc
from typing import Any, ClassVar

from torch import Generator, Tensor

from spigot._runtime import distributions
from spigot._runtime.checks import any_violation, missing_verb
from spigot._runtime.html import HtmlRepr, tables
from spigot._runtime.precision import Upcast, upcast_half
from spigot.interface.polytopes import AbstractPolytope
from spigot.interface.records import Preview
from spigot.types import Flags, HullResult, Mask, Members, MemberValues, Parts, Values


class AbstractStructure(Upcast, HtmlRepr, abc.ABC):
    r"""A finite set $\mathcal Z$ of structures, each written as a 0/1 tensor over its parts."""

    event_ndim: ClassVar[int]
    """How many trailing axes are parts; all axes before them are batch."""

    tractable_hull: ClassVar[bool] = True
    """Whether the convex hull can be projected onto by the argmax; if not, `SparseMAP` goes by the relaxation."""

    @abc.abstractmethod
    @upcast_half
    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        r"""$\hat z = \arg\max_{z\in\mathcal Z} z^\top s$ (Eq. 1).

        Args:
            scores: The part scores $s$.
            mask: Parts that exist; all that can exist if omitted. Scores outside are ignored, NaN included.

        Returns:
            The best structure of each instance, 0/1 in the dtype of the scores.

        Raises:
            ValueError: A score inside the mask is NaN, or the mask leaves an instance without any structure.
        """

    @abc.abstractmethod
    @upcast_half
    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        """For each instance (batch axes flattened), each broken constraint in words."""

    @abc.abstractmethod
    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        """The parts that exist in instances of these lengths.

        Args:
            lengths: The size of each instance: words without the root, or choices.
            size: The padded size of the result; the longest instance decides if omitted.
        """

    @abc.abstractmethod
    def full_mask(self, parts: Parts) -> Mask:
        """All parts that can exist in a tensor of this shape: what an omitted mask means."""

    @property
    @abc.abstractmethod
    def relaxation(self) -> AbstractPolytope:
        """The polytope SPIGOT projects onto unless told otherwise."""

    @upcast_half
    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        """Whether each instance is a member: no constraint is broken. A structure that can tell sooner does."""
        return any_violation(self.violations(z, mask), z, self.event_ndim).logical_not()

    def __getattr__(self, name: str) -> Any:
        raise missing_verb(self, name, self._why_intractable(), AbstractRankedStructure, AbstractSamplingStructure)

    def _why_intractable(self) -> str:
        """Why verbs that other structures have are missing here."""
        return "nothing but its argmax is tractable"

    def latex_constraints(self) -> str:
        """What its settings ask of members beyond the formula of its docstring, in LaTeX; for whoever shows it."""
        return ""

    def preview(self, z: Parts) -> Preview:
        """What is to be seen of one member: its parts as they are, unless a structure knows better.

        Args:
            z: The member, without batch axes.
        """
        return Preview(tables=tables(z))

    def project_hull(self, point: Parts, mask: Mask, start: Parts | None, *, support: bool = True) -> HullResult | None:
        """A projection onto the convex hull that knows this structure, for `ConvexHull`.

        Args:
            point: Where to project from, `(*batch, *parts)`, finite where the mask holds.
            mask: Parts that exist.
            start: A structure near the answer, if one is known; not necessarily a member.
            support: Whether the support is asked for; without it, there may be a quicker way.

        Returns:
            The projections with the evidence; `None` if there is only the argmax to go by.
        """


class AbstractRankedStructure(AbstractStructure):
    """A structure that knows its k best members."""

    @abc.abstractmethod
    @upcast_half
    def k_best(self, scores: Parts, k: int, mask: Mask | None = None) -> tuple[Members, MemberValues]:
        r"""The k members that score highest, best first.

        Args:
            scores: The part scores $s$, `(*batch, *parts)`.
            k: How many.
            mask: Parts that exist.

        Returns:
            The members, `(k, *batch, *parts)`, without a gradient, and their scores $z^\top s$, `(k, *batch)`, with
            one. Where there are fewer than k, the rest is zero with a score of $-\infty$.
        """


class AbstractMarginalStructure(AbstractStructure):
    r"""A structure whose partition function is tractable: sums over all members, and what follows from them.

    `marginals` is the gradient of `log_partition`; the conformance suite holds every structure to it. The two are
    separate verbs because `torch.compile` cannot trace `torch.autograd.grad` inside a model.
    """

    @abc.abstractmethod
    @upcast_half
    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        r"""$\log \sum_{z\in\mathcal Z} \exp(z^\top s)$, twice differentiable."""

    @abc.abstractmethod
    @upcast_half
    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        r"""$\mathbb E[z]$ under $p(z) \propto \exp(z^\top s)$, differentiable; works without a graph too."""

    def log_prob(self, scores: Parts, z: Parts, mask: Mask | None = None) -> Values:
        r"""$\log p(z) = z^\top s - \log Z$ of members z, differentiable.

        It is $-\infty$ where z has a part of score $-\infty$. Whether z is a member is not looked at: see `contains`.
        """
        return distributions.log_prob(self, scores, z, mask)

    def entropy(self, scores: Parts, mask: Mask | None = None) -> Values:
        r"""$-\sum_z p(z) \log p(z)$ in nats, differentiable; computed in float64 as $\log Z - \mu^\top s$."""
        return distributions.entropy(self, scores, mask)

    def kl(self, scores: Parts, others: Parts, mask: Mask | None = None) -> Values:
        r"""$\mathrm{KL}(p_s \Vert p_t) = \log Z(t) - \log Z(s) + \mu(s)^\top (s - t)$ in nats, differentiable.

        Args:
            scores: The scores s.
            others: The scores t, of the same shape.
            mask: Parts that exist, for both.
        """
        return distributions.kl(self, scores, others, mask)

    def log_count(self, mask: Mask) -> Values:
        r"""$\log \lvert\mathcal Z\rvert$: how many members the mask leaves, in float64."""
        return distributions.log_count(self, mask)


class AbstractSamplingStructure(AbstractMarginalStructure):
    """A structure that can be drawn from."""

    def sample(
        self, scores: Parts, mask: Mask | None = None, samples: int = 1, generator: Generator | None = None
    ) -> Members:
        r"""Independent draws from $p(z) \propto \exp(z^\top s)$: exact, not by noise on the scores.

        Where every member scores $-\infty$ there is nothing to draw, which is an error; trees alone have an answer,
        with as few parts of $-\infty$ as can be.

        Args:
            scores: The part scores $s$, `(*batch, *parts)`.
            mask: Parts that exist.
            samples: How many of each instance.
            generator: Where the randomness comes from; torch's own if omitted. (Estimators and losses draw by
                `sample_from_seeds` instead, from their `seed` and the instance, and so are functions.) Its state
                after the call is the same whatever the scores are.

        Returns:
            Members, `(samples, *batch, *parts)`, without a gradient.
        """
        seeds = distributions.random_seeds(self, scores, samples, generator)
        return self.sample_from_seeds(scores, seeds, mask)

    @abc.abstractmethod
    @upcast_half
    def sample_from_seeds(self, scores: Parts, seeds: Tensor, mask: Mask | None = None) -> Members:
        """`sample` with its randomness spelt out: the same seed and the same scores give the same draw, in any batch.

        This is what a structure implements, and how estimators sample, whose draws belong to the instance.

        Args:
            scores: The part scores, `(*batch, *parts)`.
            seeds: One for each draw and instance, int64, `(samples, *batch)`.
            mask: Parts that exist.

        Returns:
            Members, `(samples, *batch, *parts)`, without a gradient.
        """
