r"""Sets of structures: what every one answers, and what only some can.

A structure says by its type what it can do. Every one has an `argmax`; an `AbstractRankedStructure` also lists its k
best members, an `AbstractMarginalStructure` sums over all of them, an `AbstractSamplingStructure` draws from them.
"""

import abc
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from spigot._runtime.checks import MissingVerbError, check_parts
from spigot._runtime.html import structure_html
from spigot._runtime.precision import Bordered, to_float64
from spigot.interface.polytopes import AbstractPolytope
from spigot.interface.records import HullResult, Preview
from spigot.types import Flags, Mask, Members, MemberValues, Parts, Values

_SOME_HAVE = frozenset({"entropy", "k_best", "kl", "log_count", "log_partition", "log_prob", "marginals", "sample"})
"""Verbs that some structures have and others lack."""


class AbstractStructure(Bordered, abc.ABC):
    r"""A finite set $\mathcal Z$ of structures, each written as a 0/1 tensor over its parts."""

    event_ndim: ClassVar[int]
    """How many trailing axes are parts; all axes before them are batch."""

    tractable_hull: ClassVar[bool] = True
    """Whether the convex hull can be projected onto by the argmax; if not, `SparseMAP` goes by the relaxation."""

    @abc.abstractmethod
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

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        """Whether each instance is a member: no constraint is broken."""
        broken = [bool(messages) for messages in self.violations(z, mask)]
        batch = z.shape[: z.ndim - self.event_ndim]
        return ~torch.tensor(broken, dtype=torch.bool, device=z.device).reshape(batch)

    def __getattr__(self, name: str) -> Any:
        """Say in a sentence that a structure lacks a verb which others have."""
        if name in _SOME_HAVE:
            raise MissingVerbError(
                f"{self} has no {name}: {self._why_intractable()}. Use an estimator or a loss that needs the argmax "
                "only, such as Spigot or structured_hinge, or a structure that has it."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _why_intractable(self) -> str:
        """Why verbs that other structures have are missing here."""
        return "nothing but its argmax is tractable"

    def latex_constraints(self) -> str:
        """What its settings ask of members beyond the formula of its docstring, in LaTeX; for whoever shows it."""
        return ""

    def _repr_html_(self) -> str:
        return structure_html(self)

    def preview(self, z: Parts) -> Preview:
        """What is to be seen of one member: its parts as they are, unless a structure knows better.

        Args:
            z: The member, without batch axes.
        """
        if z.ndim <= 2:
            return Preview(tables=(("", z.reshape(-1, z.shape[-1]).tolist()),))
        slices = z.reshape(-1, *z.shape[-2:]).tolist()
        return Preview(tables=tuple((f"{k}", table) for k, table in enumerate(slices)))

    def project_hull(self, point: Tensor, mask: Tensor, start: Tensor | None) -> HullResult | None:
        """A projection onto the convex hull that knows this structure, for `ConvexHull`.

        Args:
            point: Where to project from, `(*batch, *parts)`, finite where the mask holds.
            mask: Parts that exist.
            start: A structure near the answer, if one is known; not necessarily a member.

        Returns:
            The projections with the evidence; `None` if there is only the argmax to go by.
        """
        return None

    def project_hull_point(self, point: Tensor, mask: Tensor, start: Tensor | None) -> HullResult | None:
        """As `project_hull` where nobody asks for the support, which may be left empty: for the point alone there may
        be a quicker way.
        """
        return self.project_hull(point, mask, start)


class AbstractRankedStructure(AbstractStructure):
    """A structure that knows its k best members."""

    @abc.abstractmethod
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
    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        r"""$\log \sum_{z\in\mathcal Z} \exp(z^\top s)$, twice differentiable."""

    @abc.abstractmethod
    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        r"""$\mathbb E[z]$ under $p(z) \propto \exp(z^\top s)$, differentiable; works without a graph too."""

    def log_prob(self, scores: Parts, z: Parts, mask: Mask | None = None) -> Values:
        r"""$\log p(z) = z^\top s - \log Z$ of members z, differentiable.

        It is $-\infty$ where z has a part of score $-\infty$. Whether z is a member is not looked at: see `contains`.
        """
        if z.shape != scores.shape:
            raise ValueError(f"z has shape {tuple(z.shape)} and scores {tuple(scores.shape)}; they must be equal.")
        axes = tuple(range(-self.event_ndim, 0))
        return torch.where(z != 0, scores * z, 0).sum(axes) - self.log_partition(scores, mask)

    def entropy(self, scores: Parts, mask: Mask | None = None) -> Values:
        r"""$-\sum_z p(z) \log p(z)$ in nats, differentiable; computed in float64 as $\log Z - \mu^\top s$."""
        mask = check_parts(scores, mask, self.event_ndim)
        wide = to_float64(scores)
        finite = torch.where(wide.isfinite(), wide, 0)  # -inf has no mass; NaN inside the mask is refused below
        axes = tuple(range(-self.event_ndim, 0))
        value = self.log_partition(wide, mask) - (self.marginals(wide, mask) * finite).sum(axes)
        return value.clamp(min=0).to(scores.dtype)

    def kl(self, scores: Parts, others: Parts, mask: Mask | None = None) -> Values:
        r"""$\mathrm{KL}(p_s \Vert p_t) = \log Z(t) - \log Z(s) + \mu(s)^\top (s - t)$ in nats, differentiable.

        Args:
            scores: The scores s.
            others: The scores t, of the same shape.
            mask: Parts that exist, for both.
        """
        if others.shape != scores.shape:
            raise ValueError(
                f"others has shape {tuple(others.shape)} and scores {tuple(scores.shape)}; they must be equal."
            )
        mask = check_parts(scores, mask, self.event_ndim)
        check_parts(others, mask, self.event_ndim, "others")
        s, t = to_float64(scores), to_float64(others)
        mu = self.marginals(s, mask)
        axes = tuple(range(-self.event_ndim, 0))
        apart = torch.where(mu > 0, mu * torch.where(mu > 0, s - t, 0), 0).sum(axes)
        value = self.log_partition(t, mask) - self.log_partition(s, mask) + apart
        return value.clamp(min=0).to(scores.dtype)

    def log_count(self, mask: Mask) -> Values:
        r"""$\log \lvert\mathcal Z\rvert$: how many members the mask leaves, in float64."""
        if not isinstance(mask, Tensor):
            raise TypeError(
                f"mask is {mask!r}; to count members it must be a tensor that says which parts exist, such as "
                "structure.mask(lengths)."
            )
        zeros = torch.zeros(mask.shape, dtype=torch.float32, device=mask.device)
        return self.log_partition(to_float64(zeros), mask)


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
            generator: Where the randomness comes from; torch's own if omitted. Its state after the call is the same
                whatever the scores are.

        Returns:
            Members, `(samples, *batch, *parts)`, without a gradient.
        """
        if not isinstance(samples, int) or samples < 0:
            raise ValueError(f"samples is {samples!r}; it must be a whole number, zero or more.")
        limits = torch.iinfo(torch.int64)
        where = scores.device if generator is None else generator.device
        shape = (samples, *scores.shape[: scores.ndim - self.event_ndim])
        if generator is None:  # the other form does not take sizes that a compiler leaves open
            seeds = torch.randint(limits.min, limits.max, shape, device=where)
        else:
            seeds = torch.randint(limits.min, limits.max, shape, generator=generator, device=where)
        return self.sample_from_seeds(scores, seeds.to(scores.device), mask)

    @abc.abstractmethod
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
