r"""Polytopes whose projection has a closed form: products of simplices and intervals."""

from dataclasses import dataclass
from typing import final

import torch

from spigot._algorithms.arc_mask import labelled_arcs, tree_arcs, word_mask
from spigot._algorithms.simplex import project_arc_labels, project_heads, project_labelled_heads, project_simplex
from spigot._runtime.checks import check_arcs, check_graphs, check_labelled_arcs, check_parts
from spigot._runtime.reduce import centre
from spigot.interface import AbstractPolytope
from spigot.types import Flags, Mask, Parts


@final
@dataclass(frozen=True)
class Simplex(AbstractPolytope):
    r"""$\Delta^{k-1} = \{p \ge 0,\ \mathbf 1^\top p = 1\}$ along the last axis, whatever its size (§2, Notation).

    Example:
        >>> Simplex().project(torch.tensor([1.0, 0.5, -1.0]))
        tensor([0.7500, 0.2500, 0.0000])
    """

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        return project_simplex(point, check_parts(point, mask, 1, "point"))

    def tangent(self, direction: Parts, mask: Mask) -> Parts:
        return centre(direction, mask, -1)

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = check_parts(point, mask, 1, "point")
        total = point.masked_fill(~mask, 0).sum(-1)
        return _nonnegative(point, mask, 1, atol) & ((total - mask.any(-1).to(point.dtype)).abs() <= atol)


@final
@dataclass(frozen=True)
class Box(AbstractPolytope):
    r"""$[0, 1]^d$: every part for itself. Batch and part axes need not be told apart.

    Example:
        >>> Box().project(torch.tensor([1.5, 0.5, -1.0]))
        tensor([1.0000, 0.5000, 0.0000])
        >>> Box(event_ndim=2).contains(torch.tensor([[1.5, 0.5], [0.0, 1.0]]))
        tensor(False)

    Attributes:
        event_ndim: How many trailing axes are parts; only `contains` looks at it.
    """

    event_ndim: int = 1

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        mask = check_parts(point, mask, self.event_ndim, "point")
        return point.clamp(0, 1).masked_fill(~mask, 0)

    def tangent(self, direction: Parts, mask: Mask) -> Parts:
        return torch.where(mask, direction, 0)

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = check_parts(point, mask, self.event_ndim, "point")
        inside = (point.masked_fill(~mask, 0) <= 1 + atol).flatten(point.ndim - self.event_ndim).all(-1)
        return _nonnegative(point, mask, self.event_ndim, atol) & inside


@final
@dataclass(frozen=True)
class HeadSimplex(AbstractPolytope):
    r"""$\mathcal P_{\text{DEP}}$ (Eq. 5): the heads of each word are weights that sum to one.

    $$\mathcal P_{\text{DEP}} = \Big\{p \in [0,1]^d \;\Big|\; \sum_{i\ne j} p_{i\to j} = 1,\ \forall j \Big\}$$

    over the arcs that exist, the root at position 0 being a head like any other. Acyclicity, projectivity and the
    number of roots are left out, which makes the projection one simplex for each word (Algorithm 2).

    Example:
        >>> point = torch.tensor([[0.0, 1.0, 0.2], [0.0, 0.0, 0.9], [0.0, 0.4, 0.0]])
        >>> HeadSimplex().project(point)
        tensor([[0.0000, 0.8000, 0.1500],
                [0.0000, 0.0000, 0.8500],
                [0.0000, 0.2000, 0.0000]])
    """

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        return project_heads(point, check_arcs(point, mask, "point"))

    def tangent(self, direction: Parts, mask: Mask) -> Parts:
        return centre(direction, mask, -2)

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = tree_arcs(check_arcs(point, mask, "point"))
        total = point.masked_fill(~mask, 0).sum(-2)
        words = word_mask(mask).to(point.dtype)
        return _nonnegative(point, mask, 2, atol) & ((total - words).abs() <= atol).all(-1)


@final
@dataclass(frozen=True)
class LabelledHeadSimplex(AbstractPolytope):
    r"""Eq. 5 with labels: the heads of each word, with their labels, are weights that sum to one.

    $$\Big\{p \in [0,1]^d \;\Big|\; \sum_{i\ne j} \sum_\ell p_{i \xrightarrow{\ell} j} = 1,\ \forall j \Big\}$$

    over the parts `[head, modifier, label]` that exist: for each word one simplex over all pairs of a head and a label,
    so that the projection has a closed form, and is the nearest point.

    Example:
        >>> point = torch.zeros(2, 2, 2)
        >>> point[0, 1] = torch.tensor([1.2, 0.6])              # one word, one head, two labels
        >>> LabelledHeadSimplex().project(point)[0, 1]
        tensor([0.8000, 0.2000])
    """

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        return project_labelled_heads(point, check_labelled_arcs(point, mask, None, "point"))

    def tangent(self, direction: Parts, mask: Mask) -> Parts:
        return centre(direction, mask, (-3, -1))

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = labelled_arcs(check_labelled_arcs(point, mask, None, "point"))
        total = point.masked_fill(~mask, 0).sum((-3, -1))
        words = word_mask(mask.any(-1)).to(point.dtype)
        return _nonnegative(point, mask, 3, atol) & ((total - words).abs() <= atol).all(-1)


@final
@dataclass(frozen=True)
class ArcLabel(AbstractPolytope):
    r"""$\mathcal P_{\text{SDP}}$ (Eq. 6): the labels of each arc sum to the arc.

    $$\mathcal P_{\text{SDP}} = \Big\{p \in [0,1]^d \;\Big|\; \sum_\ell p_{i \xrightarrow{\ell} j} = p_{i\to j},\
    \forall i \ne j \Big\}$$

    in the layout of `SemanticGraphs`. Determinism is dropped, as in the paper; predicates are clipped to $[0, 1]$.

    Attributes:
        sequential: Fit the labels to the clipped arc, as the program published with the paper did, instead of
            projecting both together. **Departure:** not the Euclidean projection; for comparison only.

    Example:
        One arc 0 -> 1 with two labels: the labels pull the arc up.

        >>> point = torch.zeros(2, 2, 3)
        >>> point[0, 1] = torch.tensor([0.2, 0.6, 0.0])
        >>> ArcLabel().project(point)[0, 1]
        tensor([0.4000, 0.4000, 0.0000])
        >>> ArcLabel(sequential=True).project(point)[0, 1]
        tensor([0.2000, 0.2000, 0.0000])
    """

    sequential: bool = False

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        return project_arc_labels(point, check_graphs(point, mask, what="point"), self.sequential)

    def tangent(self, direction: Parts, mask: Mask) -> Parts:
        """What an arc gets, its labels get in sum: its labels, and one less the arc, are a simplex."""
        diagonal = torch.eye(mask.shape[-2], dtype=torch.bool, device=mask.device).unsqueeze(-1)
        arcs = mask[..., :1] & ~diagonal
        lifted = torch.cat((-direction[..., :1], direction[..., 1:]), -1)
        back = centre(lifted, torch.cat((arcs, mask[..., 1:] & arcs), -1), -1)
        # Predicates, on the diagonal, are intervals of their own.
        alone = torch.where(mask[..., :1], direction[..., :1], 0)
        return torch.cat((torch.where(diagonal, alone, -back[..., :1]), back[..., 1:]), -1)

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = check_graphs(point, mask, what="point")
        p = point.masked_fill(~mask, 0)
        n = point.shape[-2]
        off_diagonal = ~torch.eye(n, dtype=torch.bool, device=point.device)
        broken = ((p[..., 1:].sum(-1) - p[..., 0]).abs() > atol) & off_diagonal
        stray = (p[..., 1:].abs().amax(-1) > atol) & ~off_diagonal if point.shape[-1] > 1 else broken & False
        into_root = p[..., 1:, 0, :].abs().flatten(-2).sum(-1) > atol
        fine = ~(broken | stray).flatten(-2).any(-1) & ~into_root
        return fine & Box(event_ndim=3).contains(point, mask, atol=atol)


def _nonnegative(point: Parts, mask: Mask, event_ndim: int, atol: float) -> Flags:
    """No entry below zero, none but zero outside the mask."""
    low = (point < -atol) & mask
    stray = (point != 0) & ~mask
    return ~(low | stray | (point.isnan() & mask)).flatten(point.ndim - event_ndim).any(-1)
