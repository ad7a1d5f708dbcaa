"""The relaxation of chains: a simplex for the states of each position, and one for each step."""

from dataclasses import dataclass
from typing import final

import torch

from spigot._algorithms.simplex import project_chain_blocks
from spigot._algorithms.viterbi import chain_lengths, chain_parts
from spigot._runtime.checks import check_parts
from spigot.interface import AbstractPolytope
from spigot.types import Flags, Mask, Parts


@final
@dataclass(frozen=True)
class ChainSimplex(AbstractPolytope):
    r"""The states of each position are weights that sum to one, and so are the transitions between two positions.

    $$\Big\{p \ge 0 \;\Big|\; \sum_j p_{t,j} = 1,\ \sum_{i,j} p_{t,i\to j} = 1,\ \forall t\Big\}$$

    in the layout of `Chains`, over the parts that exist. That the transitions agree with the states at both of their
    ends is left out, as `HeadSimplex` leaves out that trees have no cycles: what remains is one simplex for each
    position and one for each step. The set with the agreement is the hull of the chains, which has no closed form; see
    `ConvexHull`.

    Example:
        Two positions with two states.

        >>> point = torch.tensor([[[1.0, 0.5], [9.0, 9.0], [9.0, 9.0]], [[0.0, 1.0], [0.2, 0.0], [0.8, -1.0]]])
        >>> ChainSimplex().project(point)
        tensor([[[0.7500, 0.2500],
                 [0.0000, 0.0000],
                 [0.0000, 0.0000]],
        <BLANKLINE>
                [[0.0000, 1.0000],
                 [0.2000, 0.0000],
                 [0.8000, 0.0000]]])
    """

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        return project_chain_blocks(point, _check(point, mask))

    def tangent(self, direction: Parts, mask: Mask) -> Parts:
        parts = chain_parts(mask)
        inside = torch.where(parts, direction, 0)
        states, steps = inside[..., :1, :], inside[..., 1:, :]
        count, ways = (some.sum((-2, -1), keepdim=True).clamp(min=1) for some in (parts[..., :1, :], parts[..., 1:, :]))
        centred = torch.cat(
            (
                states - states.sum((-2, -1), keepdim=True) / count,
                steps - steps.sum((-2, -1), keepdim=True) / ways,
            ),
            -2,
        )
        return torch.where(parts, centred, 0)

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        parts = chain_parts(_check(point, mask))
        inside = point.masked_fill(~parts, 0)
        lengths = chain_lengths(parts).unsqueeze(-1)
        places = torch.arange(point.shape[-3], device=point.device)
        states = (inside[..., 0, :].sum(-1) - (places < lengths).to(point.dtype)).abs() <= atol
        steps = (inside[..., 1:, :].sum((-2, -1)) - ((places > 0) & (places < lengths)).to(point.dtype)).abs() <= atol
        fine = (inside >= -atol) & ((point == 0) | parts)  # NaN is neither
        return (states & steps).all(-1) & fine.flatten(-3).all(-1)


def _check(point: Parts, mask: Mask | None) -> Mask:
    mask = check_parts(point, mask, 3, "point")
    if point.shape[-2] != point.shape[-1] + 1:
        raise ValueError(
            f"point has shape {tuple(point.shape)}; it must be (*batch, n, 1 + states, states), as packed."
        )
    return mask
