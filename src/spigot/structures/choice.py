"""One of k: the smallest structure."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from spigot._algorithms.categorical import draw_choices, one_of, project_simplex_hull, rank_choices
from spigot._algorithms.k_best import with_values
from spigot._algorithms.kernel_calls import flatten
from spigot._runtime.checks import check_parts, check_rank, zero_one
from spigot._runtime.reduce import checked, masked_logsumexp
from spigot.interface import AbstractRankedStructure, AbstractSamplingStructure
from spigot.polytopes.blocks import Simplex
from spigot.structures.lengths import entry_mask
from spigot.types import Flags, HullResult, Mask, Members, MemberValues, Parts, Values


@final
@dataclass(frozen=True)
class OneOf(AbstractRankedStructure, AbstractSamplingStructure):
    r"""Exactly one of the $k$ entries of the last axis, whatever its size.

    $\mathcal Z = \{e_1, \dots, e_k\}$. Ties go to the first of the best.

    Example:
        >>> OneOf().argmax(torch.tensor([0.3, 2.0, -1.0]))
        tensor([0., 1., 0.])
        >>> OneOf().violations(torch.tensor([1.0, 1.0, 0.0]))
        [['2 entries are chosen: 0, 1']]
    """

    event_ndim: ClassVar[int] = 1

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return one_of(scores.detach(), check_parts(scores, mask, 1))

    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        mask = check_parts(scores, mask, 1)
        value = masked_logsumexp(checked(scores, mask, 1), mask, -1)
        return value.masked_fill(~mask.any(-1), 0)

    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        mask = check_parts(scores, mask, 1)
        scores = checked(scores, mask, 1)
        log = masked_logsumexp(scores, mask, -1)
        log = torch.where(log.isfinite(), log, torch.zeros_like(log)).unsqueeze(-1)
        return (scores.masked_fill(~mask, -torch.inf) - log).exp().masked_fill(~mask, 0)

    def k_best(self, scores: Parts, k: int, mask: Mask | None = None) -> tuple[Members, MemberValues]:
        check_rank(k)
        z, found = rank_choices(scores.detach(), check_parts(scores, mask, 1), k)
        return with_values(scores, z, found, 1)

    def sample_from_seeds(self, scores: Parts, seeds: Tensor, mask: Mask | None = None) -> Members:
        mask = check_parts(scores, mask, 1)
        return draw_choices(scores.detach(), mask, seeds.movedim(0, -1)).movedim(-2, 0)

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        mask = check_parts(z, mask, 1, "z")
        return zero_one(z, mask, 1) & ((z != 0).sum(-1) == mask.any(-1))

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        mask = check_parts(z, mask, 1, "z")
        messages = []
        for values, exists in zip(flatten(z, 1).tolist(), flatten(mask, 1).tolist(), strict=True):
            found = [f"entry {i} is {v:g}, not 0 or 1" for i, v in enumerate(values) if v not in (0, 1)]
            found += [f"entry {i} is chosen but masked" for i, v in enumerate(values) if v and not exists[i]]
            chosen = [i for i, v in enumerate(values) if v]
            if any(exists) and len(chosen) != 1:
                names = ": " + ", ".join(map(str, chosen)) if chosen else ""
                found.append(f"{len(chosen)} entries are chosen{names}")
            messages.append(found)
        return messages

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        """True for the first `lengths` entries; here lengths count choices."""
        return entry_mask(lengths, size)

    def full_mask(self, parts: Parts) -> Mask:
        return torch.ones_like(parts, dtype=torch.bool)

    def project_hull(self, point: Tensor, mask: Tensor, start: Tensor | None, *, support: bool = True) -> HullResult:
        flat = (point.shape[:-1].numel(), point.shape[-1])
        return project_simplex_hull(point.reshape(flat), mask.reshape(flat))

    @property
    def relaxation(self) -> Simplex:
        r"""The simplex $\Delta^{k-1}$, which is the convex hull."""
        return Simplex()
