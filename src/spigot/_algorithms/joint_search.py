"""The best graphs of several kinds with parts across them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spigot._algorithms.factor_search import GAP, Found
from spigot._algorithms.joint_networks import JointLayout, JointNetwork
from spigot._algorithms.negotiation import Column, Status, Talks, Terms, negotiate

Decode = Callable[[Tensor, Tensor], Tensor]

_ROUNDS = 20
"""How often each kind of graph is decoded anew, at most, given the others."""


def best_joint_graphs(
    layout: JointLayout, scores: Tensor, exists: Tensor, decode: Sequence[Decode], terms: Terms
) -> Found:
    """The best graphs of each sentence, or good ones.

    Args:
        layout: Which channels are what.
        scores: `(batch, n, n, channels)`.
        exists: Parts that exist.
        decode: For each kind, its argmax.
        terms: How to negotiate.
    """
    shape = tuple(scores.shape)
    flat = (shape[0], int(np.prod(shape[1:])))
    joint = JointNetwork.of(layout, exists.numpy())
    given = scores.numpy().reshape(flat)
    values = joint.variables(given)
    scale = np.maximum(abs(values).max(1, initial=0), 1e-300)
    fixed = np.where(joint.exists, -1, 0).astype(np.int8)
    talks = Talks.begin(joint.network, np.arange(shape[0]), values / scale[:, None], fixed, terms.rho)
    empty = np.logical_not(joint.exists.any(1))
    talks[Column.STATUS][empty], talks[Column.VALUE][empty] = Status.OPTIMAL, 0.0
    negotiate(talks, terms)
    proven = talks[Column.STATUS] == Status.OPTIMAL
    relaxed = joint.parts(np.clip(talks.p, 0.0, 1.0), flat, given.dtype).reshape(shape)
    with np.errstate(over="ignore"):  # beside scores of 1e308 the sum may be no number any more
        value = np.where(proven, talks[Column.VALUE] * scale, 0.0)
    z, integral = relaxed.copy(), proven.copy()
    if not proven.all():  # few of many, as a rule
        rest = np.flatnonzero(~proven)
        own, there = scores[rest].double().masked_fill(~exists[rest], 0.0), exists[rest]
        better = _improved(layout, torch.from_numpy(relaxed[rest]).double(), own, there, decode)
        z[rest] = better.numpy()
        value[rest] = (better * own).flatten(1).sum(1).numpy()
        integral[rest] = abs(z[rest] - relaxed[rest]).reshape(len(rest), -1).max(1, initial=0) < 1e-2
    with np.errstate(over="ignore", invalid="ignore"):
        bound = np.where(np.isfinite(talks[Column.BOUND]), talks[Column.BOUND] * scale, value)
        optimal = proven | (bound - value <= GAP * np.maximum(scale, abs(value)))
    iterations = talks[Column.ITERATIONS].astype(np.int64)
    everywhere, nowhere = np.ones_like(proven), np.zeros_like(iterations)
    return Found(z, relaxed, value, np.maximum(bound, value), integral, optimal, everywhere, iterations, nowhere)


def _improved(layout: JointLayout, relaxed: Tensor, scores: Tensor, exists: Tensor, decode: Sequence[Decode]) -> Tensor:
    """Graphs from a point of the relaxation: each kind decodes it alone; then each in turn decodes the true scores,
    given the graphs of the others, until none changes. No step makes the whole worse."""
    masks, _ = layout.split(exists)
    points, _ = layout.split(relaxed - 0.5)
    kinds = [argmax(point, mask) for argmax, point, mask in zip(decode, points, masks, strict=True)]
    own, _ = layout.split(scores)
    across = _Across.of(layout, scores, exists)
    for _ in range(_ROUNDS):
        before = torch.cat(kinds, -1)
        for kind, argmax in enumerate(decode):
            kinds[kind] = argmax(own[kind] + across.worth(kind, kinds), masks[kind])
        if torch.equal(before, torch.cat(kinds, -1)):
            break
    return across.with_parts(kinds)


@dataclass(frozen=True)
class _Across:
    """The parts across kinds that exist: few of those that there is room for.

    Attributes:
        layout: Which channels are what.
        pair: The pair of words of each, as a number over all sentences.
        which: Which part it is.
        scores: Its score.
    """

    layout: JointLayout
    pair: Tensor
    which: Tensor
    scores: Tensor

    @classmethod
    def of(cls, layout: JointLayout, scores: Tensor, exists: Tensor) -> "_Across":
        pair, which = exists[..., layout.first[-1] :].flatten(0, -2).nonzero().unbind(-1)
        return cls(layout, pair, which, scores.flatten(0, -2)[pair, layout.first[-1] + which])

    def on(self, kinds: Sequence[Tensor], but: int | None = None) -> Tensor:
        """Whether all that they join is on, in one kind if it counts or not."""
        found = torch.ones_like(self.which, dtype=torch.bool)
        for kind, parts in enumerate(kinds):
            if kind != but:
                channel = torch.from_numpy(self.layout.channel_in(kind))[self.which]
                found &= (channel < 0) | (parts.flatten(0, -2)[self.pair, channel.clamp(min=0)] != 0)
        return found

    def worth(self, kind: int, kinds: Sequence[Tensor]) -> Tensor:
        """What they add to the parts of one kind, given the graphs of the others."""
        channel = torch.from_numpy(self.layout.channel_in(kind))[self.which]
        mine = (channel >= 0).nonzero().squeeze(-1)
        extra = torch.zeros_like(kinds[kind]).flatten(0, -2)
        worth = torch.where(self.on(kinds, but=kind), self.scores, 0.0)
        extra.index_put_((self.pair[mine], channel[mine]), worth[mine], accumulate=True)
        return extra.reshape(kinds[kind].shape)

    def with_parts(self, kinds: Sequence[Tensor]) -> Tensor:
        """Graphs of all kinds with the parts across them."""
        shape = (*kinds[0].shape[:-1], len(self.layout.members))
        z = kinds[0].new_zeros(shape).flatten(0, -2)
        z[self.pair, self.which] = self.on(kinds).to(z)
        return torch.cat((*kinds, z.reshape(shape)), -1)
