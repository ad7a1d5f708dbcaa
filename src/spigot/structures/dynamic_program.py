"""Structures that one recursion describes."""

import abc
import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from spigot._algorithms.k_best import with_values
from spigot._algorithms.sampling import STRIDE
from spigot._algorithms.semirings import (
    AbstractSemiring,
    Draw,
    LogSum,
    Maximum,
    best_member,
    draw_members,
    k_best_members,
)
from spigot._runtime.checks import check_parts, check_rank, impossible_error
from spigot._runtime.reduce import checked, refuse_hopeless, refuse_infinite, refuse_nan
from spigot.interface import AbstractRankedStructure, AbstractSamplingStructure
from spigot.polytopes.hull import ConvexHull
from spigot.structures.lengths import cube_mask
from spigot.types import Mask, Members, MemberValues, Parts, Values


@final
class Semiring:
    r"""How a recursion joins values and adds them up; what that computes is the caller's choice.

    A value is a logarithm, $-\infty$ that of nothing. There may be any number of axes before those of the parts, so
    count axes from the last one. Shapes may be changed as one likes, values by these two verbs only.
    """

    def __init__(self, rule: AbstractSemiring) -> None:
        self._rule, self._calls = rule, 0

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        """Both: the values of pairs, one from each."""
        return self._rule.times(left, right)

    def plus(self, ways: Tensor) -> Tensor:
        """Either: the ways of the last axis taken together."""
        self._calls += 1
        place = torch.tensor(self._calls, device=ways.device)
        if isinstance(self._rule, Draw):  # a number for each cell, whatever the padding
            for size in ways.shape[2:-1]:
                place = place.unsqueeze(-1) * (STRIDE + 7) + torch.arange(1, size + 1, device=ways.device)
        return self._rule.plus(ways, place)


@dataclass(frozen=True)
class AbstractDynamicProgram(AbstractRankedStructure, AbstractSamplingStructure):
    r"""A structure whose members one recursion adds up, and that has every verb by it.

    The recursion is written once, over a semiring. Over sums it gives $\log Z$, and its derivative the marginals; over
    maxima its derivative is the best member; over draws and over lists of the k best, it is those. Each member is to be
    reached in one way, and to use no part twice.

    Subclasses are frozen dataclasses with `event_ndim`, `total` and `violations`.

    Example:
        All pairs of neighbours of a sequence.

        >>> from typing import ClassVar
        >>> class Pairs(AbstractDynamicProgram):
        ...     event_ndim: ClassVar[int] = 1
        ...
        ...     def total(self, values, semiring):
        ...         return semiring.plus(semiring.times(values[..., :-1], values[..., 1:]))
        ...
        ...     def violations(self, z, mask=None):
        ...         rows = z.reshape(-1, z.shape[-1])
        ...         return [[] if row.nonzero().diff(dim=0).tolist() == [[1]] else ["no pair"] for row in rows]
        >>> scores = torch.tensor([1.0, 0.0, 2.0, 0.5])
        >>> Pairs().argmax(scores), Pairs().k_best(scores, 2)[1]
        (tensor([0., 0., 1., 1.]), tensor([2.5000, 2.0000]))
        >>> round(Pairs().log_count(torch.ones(9, dtype=torch.bool)).exp().item())
        8

    References:
        Goodman (1999), Semiring parsing.
        Eisner (2016), Inside-outside and forward-backward algorithms are just backprop.
    """

    @abc.abstractmethod
    def total(self, values: Tensor, semiring: Semiring) -> Tensor:
        """The sum over all members of the product of what their parts are worth.

        Args:
            values: What each part is worth, `(..., *parts)`; nothing where it does not exist.
            semiring: How to multiply and to add up.

        Returns:
            The sum, `(...)`.
        """

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        flat, exists = self._flat(scores.detach(), mask)
        refuse_nan(flat, exists, self.event_ndim)
        z, value = best_member(self._program, self._finite(flat, exists))
        self._refuse_impossible(value, exists, scores)
        return (z * exists).to(scores.dtype).reshape(scores.shape)

    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        flat, exists = self._flat(scores, mask)
        self._refuse_impossible(self._program(torch.where(exists, 0.0, -torch.inf), Maximum()), exists, scores)
        safe = checked(flat, exists, self.event_ndim).double().masked_fill(~exists, -torch.inf)
        value = torch.where(exists.flatten(1).any(1), self._program(safe, LogSum()), 0)
        return value.to(scores.dtype).reshape(self._batch(scores))

    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        learning = torch.is_grad_enabled() and scores.requires_grad
        with torch.inference_mode(False), torch.enable_grad():
            if not learning:  # copies, as what was made in inference mode cannot be saved for a derivative
                scores, mask = scores.detach().clone().requires_grad_(), mask.clone() if mask is not None else None
            leaf = scores
            total = self.log_partition(leaf, mask).sum()
            (mu,) = torch.autograd.grad(total, leaf, create_graph=learning, allow_unused=True, materialize_grads=True)
        return mu

    def sample_from_seeds(self, scores: Parts, seeds: Tensor, mask: Mask | None = None) -> Members:
        refuse_hopeless(self.log_partition(scores.detach(), mask).isneginf(), "member")
        flat, exists = self._flat(scores.detach(), mask)
        safe = flat.double().masked_fill(~exists, -torch.inf)
        drawn = draw_members(self._program, safe, seeds.reshape(len(seeds), len(flat)).T)
        return (drawn.movedim(1, 0) * exists).to(scores.dtype).reshape(len(seeds), *scores.shape)

    def k_best(self, scores: Parts, k: int, mask: Mask | None = None) -> tuple[Members, MemberValues]:
        flat, exists = self._flat(scores.detach(), mask)
        refuse_nan(flat, exists, self.event_ndim)
        refuse_infinite(flat.isposinf() & exists, self.event_ndim, "scores")
        found, values = k_best_members(self._program, self._finite(flat, exists), max(check_rank(k), 1))
        self._refuse_impossible(values[:, 0], exists, scores)
        empty = ~exists.flatten(1).any(1)
        count = torch.where(empty, 1, values.isfinite().sum(1)).clamp(max=k).reshape(self._batch(scores))
        z = (found * exists.unsqueeze(1))[:, :k].to(scores.dtype)
        parts = scores.shape[scores.ndim - self.event_ndim :]
        return with_values(scores, z.reshape(*self._batch(scores), k, *parts), count, self.event_ndim)

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        """True where every index of the part is below the length."""
        return cube_mask(lengths, size, self.event_ndim)

    def full_mask(self, parts: Parts) -> Mask:
        return torch.ones_like(parts, dtype=torch.bool)

    @property
    def relaxation(self) -> ConvexHull:
        """The convex hull, which needs nothing but the argmax."""
        return ConvexHull(self)

    def _program(self, values: Tensor, rule: AbstractSemiring) -> Tensor:
        lifted = rule.lift(values)
        if values.numel():
            return self.total(lifted, Semiring(rule))
        return lifted.sum(tuple(range(-self.event_ndim, 0)))  # the empty member, or no instance at all

    def _batch(self, scores: Parts) -> torch.Size:
        return scores.shape[: scores.ndim - self.event_ndim]

    def _flat(self, scores: Parts, mask: Mask | None) -> tuple[Tensor, Tensor]:
        """Scores and what exists, with one batch axis."""
        exists = check_parts(scores, mask, self.event_ndim) & self.full_mask(scores)
        shape = (math.prod(self._batch(scores)), *scores.shape[scores.ndim - self.event_ndim :])
        return scores.reshape(shape), exists.reshape(shape)

    def _finite(self, flat: Tensor, exists: Tensor) -> Tensor:
        """Scores in float64, infinite ones as numbers that no sum of the others outweighs, nothing outside."""
        wide = flat.double()
        top = torch.where(exists & wide.isfinite(), wide.abs(), 0).flatten(1).sum(1)
        limit = (1 + 2 * top).reshape(-1, *[1] * self.event_ndim)
        return torch.where(wide.isinf(), wide.sign() * limit, wide).masked_fill(~exists, -torch.inf)

    def _refuse_impossible(self, values: Tensor, exists: Tensor, scores: Parts) -> None:
        bad = values.isneginf() & exists.flatten(1).any(1)
        if bad.any():
            raise impossible_error(int(bad.nonzero()[0]), tuple(self._batch(scores)), "member", "parts")
