"""The relaxation of binary trees: the labels of each span on their own."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from spigot._algorithms.cky import span_parts
from spigot._algorithms.simplex import project_simplex
from spigot._runtime.checks import check_spans
from spigot.interface import AbstractPolytope
from spigot.types import Flags, Mask, Parts


@final
@dataclass(frozen=True)
class SpanSimplex(AbstractPolytope):
    r"""The labels of a span are weights: those of a word, and of the sentence, sum to one, the others to at most one.

    $$\Big\{p \ge 0 \;\Big|\; \sum_\ell p_{ii\ell} = \sum_\ell p_{1n\ell} = 1,\ \sum_\ell p_{ij\ell} \le 1\Big\}$$

    in the layout of `ConstituencyTrees`, over the parts that exist. That spans must not cross is left out, as
    `HeadSimplex` leaves out that trees have no cycles: the projection is one simplex for each span.

    Example:
        Two words, one label: the words and the sentence are given.

        >>> SpanSimplex().project(torch.tensor([[[0.3], [0.2]], [[7.0], [0.4]]])).squeeze(-1)
        tensor([[1., 1.],
                [0., 1.]])
    """

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        parts = span_parts(check_spans(point, mask, "point"))
        whole = project_simplex(point, parts)
        inside = torch.where(parts, point, 0).clamp(min=0)
        fits = ~_needed(parts) & (inside.sum(-1) <= 1)
        return torch.where(fits.unsqueeze(-1), inside, whole)

    def tangent(self, direction: Parts, mask: Mask) -> Parts:
        parts = span_parts(mask)
        inside = torch.where(parts, direction, 0)
        mean = inside.sum(-1, keepdim=True) / parts.sum(-1, keepdim=True).clamp(min=1)
        return torch.where(parts & _needed(parts).unsqueeze(-1), inside - mean, inside)

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        parts = span_parts(check_spans(point, mask, "point"))
        p = torch.where(parts, point, 0)
        total = p.sum(-1)
        needed = _needed(parts)
        wrong = (total > 1 + atol) | (needed & (total < 1 - atol)) | (p < -atol).any(-1) | p.isnan().any(-1)
        stray = ((point != 0) & ~parts).any(-1)
        return ~(wrong | stray).flatten(-2).any(-1)


def _needed(parts: Tensor) -> Tensor:
    """Spans that every tree has: each word, and the sentence."""
    n = parts.shape[-2]
    words = parts.any(-1).diagonal(dim1=-2, dim2=-1)
    last = torch.arange(n, device=parts.device) == words.sum(-1, keepdim=True) - 1
    alone = torch.eye(n, dtype=torch.bool, device=parts.device) & words.unsqueeze(-1)
    first = torch.arange(n, device=parts.device) == 0
    return alone | (first.unsqueeze(-1) & last.unsqueeze(-2) & words.any(-1)[..., None, None])
