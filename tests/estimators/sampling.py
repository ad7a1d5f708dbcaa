"""One of k that can be drawn from, for tests of what draws."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

import spigot
from spigot import AbstractSamplingStructure, OneOf
from spigot.records import HullResult

_ONE = OneOf()


@dataclass(frozen=True)
class Drawn(AbstractSamplingStructure):
    """`OneOf`, drawn by inverting its distribution at one uniform number a draw."""

    event_ndim: ClassVar[int] = 1

    def argmax(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return _ONE.argmax(scores, mask)

    def log_partition(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return _ONE.log_partition(scores, mask)

    def marginals(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return _ONE.marginals(scores, mask)

    def violations(self, z: Tensor, mask: Tensor | None = None) -> list[list[str]]:
        return _ONE.violations(z, mask)

    def mask(self, lengths: Tensor, size: int | None = None) -> Tensor:
        return _ONE.mask(lengths, size)

    def everything(self, parts: Tensor) -> Tensor:
        return _ONE.everything(parts)

    @property
    def relaxation(self) -> spigot.Simplex:
        return _ONE.relaxation

    def project_hull(self, point: Tensor, mask: Tensor, start: Tensor | None) -> HullResult | None:
        return _ONE.project_hull(point, mask, start)

    def sample(
        self, scores: Tensor, mask: Tensor | None = None, samples: int = 1, generator: Generator | None = None
    ) -> Tensor:
        uniform = torch.rand(samples, *scores.shape[:-1], 1, generator=generator, dtype=torch.float64)
        return self._at(scores, uniform, mask)

    def sample_from_seeds(self, scores: Tensor, seeds: Tensor, mask: Tensor | None = None) -> Tensor:
        return self._at(scores, (seeds.unsqueeze(-1) >> 11).double() * 2.0**-52, mask)

    def _at(self, scores: Tensor, uniform: Tensor, mask: Tensor | None) -> Tensor:
        cumulative = self.marginals(scores.double(), mask).cumsum(-1)
        chosen = (uniform * cumulative[..., -1:] >= cumulative).sum(-1, keepdim=True)
        return torch.zeros(*chosen.shape[:-1], scores.shape[-1], dtype=scores.dtype).scatter_(-1, chosen, 1)


@dataclass(frozen=True)
class DrawnOneByOne(AbstractSamplingStructure):
    """The same, as a user would write it: without a way to take seeds."""

    event_ndim: ClassVar[int] = 1
    argmax = Drawn.argmax
    log_partition = Drawn.log_partition
    marginals = Drawn.marginals
    violations = Drawn.violations
    mask = Drawn.mask
    everything = Drawn.everything
    sample = Drawn.sample
    _at = Drawn._at

    @property
    def relaxation(self) -> spigot.Simplex:
        return _ONE.relaxation
