"""Subsets of entries: top-k, at most k, any number."""

from dataclasses import InitVar, dataclass, field
from typing import ClassVar, final

import torch
from torch import Tensor

from spigot._algorithms.bounded_subsets import (
    best_subset,
    project_subset_hull,
    rank_subsets,
    sample_subsets,
    subset_log_partition,
    subset_marginals,
)
from spigot._algorithms.k_best import with_values
from spigot._algorithms.kernel_calls import flatten
from spigot._runtime.checks import check_bounds, check_parts, check_rank, zero_one
from spigot._runtime.reduce import checked
from spigot.interface import AbstractRankedStructure, AbstractSamplingStructure
from spigot.polytopes.capped import CappedSimplex
from spigot.structures.lengths import entry_mask
from spigot.types import Flags, HullResult, Mask, Members, MemberValues, Parts, Values


@final
@dataclass(frozen=True)
class Subsets(AbstractRankedStructure, AbstractSamplingStructure):
    r"""Some of the $k$ entries of the last axis, whatever its size: at least `minimum` and at most `maximum`.

    $\mathcal Z = \{z \in \{0, 1\}^k \mid a \le \mathbf 1^\top z \le b\}$. `Subsets(3)` is top-3, `Subsets(maximum=3)`
    at most three, `Subsets()` any number. An entry that gains nothing is left out unless the minimum needs it; ties
    go to the first. An instance of which every entry is masked is padding, and its only subset is the empty one; one
    that has some entries but fewer than the minimum is an error.

    Sums, samples and marginals cost about $k \sqrt k$ steps in the worst case and are as exact for ten thousand entries
    as for ten.

    Args:
        size: How many, exactly; or instead of it:
        minimum: The least size.
        maximum: The largest; `None` for any.

    Example:
        >>> scores = torch.tensor([2.0, -1.0, 1.0, 0.5])
        >>> Subsets(2).argmax(scores)
        tensor([1., 0., 1., 0.])
        >>> Subsets(2).marginals(torch.zeros(4))
        tensor([0.5000, 0.5000, 0.5000, 0.5000])
        >>> members, values = Subsets(2).k_best(scores, 2)
        >>> values
        tensor([3.0000, 2.5000])
        >>> round(Subsets(maximum=2).log_count(torch.ones(4, dtype=torch.bool)).exp().item())      # 1 + 4 + 6
        11
    """

    size: InitVar[int | None] = None
    minimum: int = field(default=0, kw_only=True)
    maximum: int | None = field(default=None, kw_only=True)

    event_ndim: ClassVar[int] = 1

    def __post_init__(self, size: int | None) -> None:
        if size is not None:
            if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise ValueError(f"size is {size!r}; it must be a whole number, zero or more.")
            if self.minimum or self.maximum is not None:
                raise ValueError(f"size is {size!r}, and minimum or maximum are given; give the one or the others.")
            object.__setattr__(self, "minimum", size)
            object.__setattr__(self, "maximum", size)
        check_bounds(self.minimum, self.maximum)

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return best_subset(scores.detach(), check_parts(scores, mask, 1), self.minimum, self._most)

    def k_best(self, scores: Parts, k: int, mask: Mask | None = None) -> tuple[Members, MemberValues]:
        check_rank(k)
        mask = check_parts(scores, mask, 1)
        z, found = rank_subsets(scores.detach(), mask, k, self.minimum, self._most)
        return with_values(scores, z, found, 1)

    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        mask = check_parts(scores, mask, 1)
        if self._free(scores):
            scores = checked(scores, mask, 1).masked_fill(~mask, -torch.inf)
            return torch.where(scores.isneginf(), 0, torch.nn.functional.softplus(scores)).sum(-1)
        return subset_log_partition(scores, mask, self.minimum, self._most)

    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        mask = check_parts(scores, mask, 1)
        if self._free(scores):
            return torch.sigmoid(checked(scores, mask, 1)).masked_fill(~mask, 0)
        return subset_marginals(scores, mask, self.minimum, self._most)

    def sample_from_seeds(self, scores: Parts, seeds: Tensor, mask: Mask | None = None) -> Members:
        mask = check_parts(scores, mask, 1)
        return sample_subsets(scores.detach(), mask, seeds.movedim(0, -1), self.minimum, self._most).movedim(-2, 0)

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        mask = check_parts(z, mask, 1, "z")
        size = (z != 0).sum(-1)
        fine = zero_one(z, mask, 1) & ((size >= self.minimum) | ~mask.any(-1))
        return fine if self.maximum is None else fine & (size <= self.maximum)

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        mask = check_parts(z, mask, 1, "z")
        messages = []
        for values, exists in zip(flatten(z, 1).tolist(), flatten(mask, 1).tolist(), strict=True):
            found = [f"entry {i} is {v:g}, not 0 or 1" for i, v in enumerate(values) if v not in (0, 1)]
            found += [f"entry {i} is chosen but masked" for i, v in enumerate(values) if v and not exists[i]]
            size = sum(1 for v in values if v)
            if any(exists) and size < self.minimum:
                found.append(f"{size} entries are chosen, fewer than {self.minimum}")
            if self.maximum is not None and size > self.maximum:
                found.append(f"{size} entries are chosen, more than {self.maximum}")
            messages.append(found)
        return messages

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        """True for the first `lengths` entries; here lengths count entries."""
        return entry_mask(lengths, size)

    def full_mask(self, parts: Parts) -> Mask:
        return torch.ones_like(parts, dtype=torch.bool)

    def project_hull(self, point: Tensor, mask: Tensor, start: Tensor | None, *, support: bool = True) -> HullResult:
        flat = (point.shape[:-1].numel(), point.shape[-1])
        return project_subset_hull(point.reshape(flat), mask.reshape(flat), self.minimum, self._most)

    @property
    def relaxation(self) -> CappedSimplex:
        r"""$\{0 \le p \le 1,\ a \le \mathbf 1^\top p \le b\}$, which is the convex hull."""
        return CappedSimplex(self.minimum, self.maximum)

    @property
    def _most(self) -> int:
        """The largest size as operators take it."""
        return -1 if self.maximum is None else self.maximum

    def _free(self, scores: Tensor) -> bool:
        """Whether no bound can matter, so that entries do not know of each other."""
        return self.minimum == 0 and (self.maximum is None or self.maximum >= scores.shape[-1])
