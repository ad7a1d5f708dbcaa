"""The best graphs of several kinds with parts across them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spigot.algorithms.factor_search import GAP
from spigot.algorithms.factor_tables import Flags, Indices, Reals
from spigot.algorithms.joint_networks import JointLayout, JointNetwork
from spigot.algorithms.negotiation import Column, Status, Talks, Terms, negotiate

Decode = Callable[[Tensor, Tensor], Tensor]

_ROUNDS = 20
"""How often each kind of graph is decoded anew, at most, given the others."""


@dataclass
class JointFound:
    """Graphs, `(batch, n, n, channels)`, and what is known about them; as `FactorSolution`."""

    z: Reals
    relaxed: Reals
    value: Reals
    bound: Reals
    integral: Flags
    optimal: Flags
    iterations: Indices


def best_joint_graphs(
    layout: JointLayout, scores: Tensor, exists: Tensor, decode: Sequence[Decode], terms: Terms
) -> JointFound:
    """The best graphs of each sentence, or good ones.

    Args:
        layout: Which channels are what.
        scores: `(batch, n, n, channels)` in float64.
        exists: Parts that exist.
        decode: For each kind, its argmax.
        terms: How to negotiate.
    """
    shape = tuple(scores.shape)
    flat = (shape[0], int(np.prod(shape[1:])))
    scores = scores.masked_fill(~exists, 0.0)
    joint = JointNetwork.of(layout, exists.numpy())
    values = joint.variables(scores.numpy().reshape(flat))
    scale = np.maximum(abs(values).max(1, initial=0), 1e-300)
    fixed = np.where(joint.exists, -1, 0).astype(np.int8)
    talks = Talks.begin(joint.network, np.arange(shape[0]), values / scale[:, None], fixed, terms.rho)
    talks[Column.STATUS][~joint.exists.any(1)] = Status.OPTIMAL
    negotiate(talks, terms)
    proven = talks[Column.STATUS] == Status.OPTIMAL
    relaxed = joint.parts(np.clip(talks.p, 0.0, 1.0), flat).reshape(shape)
    z = torch.from_numpy(relaxed.copy())
    if not proven.all():
        rest = torch.from_numpy(~proven)
        z[rest] = _improved(layout, z[rest], scores[rest], exists[rest], decode)
    value = (z * scores).flatten(1).sum(1).numpy()
    bound = np.where(np.isfinite(talks[Column.BOUND]), talks[Column.BOUND] * scale, value)
    optimal = proven | (bound - value <= GAP * np.maximum(scale, abs(value)))
    integral = proven | (abs(z.numpy() - relaxed).reshape(flat).max(1, initial=0) < 1e-2)
    iterations = talks[Column.ITERATIONS].astype(np.int64)
    return JointFound(z.numpy(), relaxed, value, np.maximum(bound, value), integral, optimal, iterations)


def _improved(layout: JointLayout, relaxed: Tensor, scores: Tensor, exists: Tensor, decode: Sequence[Decode]) -> Tensor:
    """Graphs from a point of the relaxation: each kind decodes it alone; then each in turn decodes the true scores,
    given the graphs of the others, until none changes. No step makes the whole worse."""
    masks, _ = layout.split(exists)
    points, _ = layout.split(relaxed - 0.5)
    kinds = [argmax(point, mask) for argmax, point, mask in zip(decode, points, masks, strict=True)]
    own, across = layout.split(scores)
    for _ in range(_ROUNDS):
        before = torch.cat(kinds, -1)
        for kind, argmax in enumerate(decode):
            extra = _worth(layout, kind, torch.cat(kinds, -1), across)
            kinds[kind] = argmax(own[kind] + extra, masks[kind])
        if torch.equal(before, torch.cat(kinds, -1)):
            break
    whole = torch.cat(kinds, -1)
    _, may = layout.split(exists)
    return torch.cat((whole, (layout.follows(whole) & may).to(whole)), -1)


def _worth(layout: JointLayout, kind: int, own: Tensor, across: Tensor) -> Tensor:
    """What parts across kinds add to those of one kind, given the graphs of the others."""
    low, high = layout.first[kind], layout.first[kind + 1]
    joined = layout.joined
    mine = (joined >= low) & (joined < high)
    which = np.flatnonzero(mine.any(1))
    extra = torch.zeros_like(own[..., low:high])
    if not len(which):
        return extra
    others = np.where(mine[which], -1, joined[which])
    on = own[..., np.maximum(others, 0).flatten()].unflatten(-1, others.shape) != 0
    on = (on | torch.from_numpy(others < 0)).all(-1)
    target = torch.from_numpy(joined[which][mine[which]] - low)
    return extra.index_add(-1, target, across[..., which] * on)
