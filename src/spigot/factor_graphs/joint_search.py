"""Semantic graphs of several kinds over one sentence, with parts across them, as factor graphs; and the best of them.

Each kind has the factors of the published program: an arc needs its predicate and has exactly one label, and a
deterministic role goes to at most one argument. A part across kinds is on exactly if all the arcs that it joins are.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spigot._algorithms.semantic_graphs import graph_parts
from spigot.factor_graphs.ad3 import Column, Options, State, Status, run_ad3
from spigot.factor_graphs.branch_and_bound import GAP, Found
from spigot.factor_graphs.network import Network
from spigot.factor_graphs.tables import FactorTable
from spigot.factors import FactorKind, Flags, Indices, Reals, Rows


@dataclass(frozen=True)
class JointLayout:
    """Which channels of `(*batch, n, n, channels)` are what.

    Attributes:
        labels: How many labels each kind of graph has.
        deterministic: Their deterministic roles.
        arcs: Sets of kinds whose arcs a part joins.
        labelled: Sets of labels of different kinds, `(kind, label)`, whose labelled arcs a part joins.
    """

    labels: tuple[int, ...]
    deterministic: tuple[tuple[int, ...], ...]
    arcs: tuple[tuple[int, ...], ...]
    labelled: tuple[tuple[tuple[int, int], ...], ...]

    first: tuple[int, ...] = field(init=False, compare=False)
    """The channel with the arcs of each kind; and behind the last, where parts across kinds begin."""

    members: tuple[tuple[int, ...], ...] = field(init=False, compare=False)
    """The channels that each part across kinds joins."""

    def __post_init__(self) -> None:
        first = tuple(np.cumsum([0, *(1 + count for count in self.labels)]).tolist())
        of_arcs = [tuple(first[kind] for kind in kinds) for kinds in self.arcs]
        of_labels = [tuple(first[kind] + 1 + label for kind, label in labels) for labels in self.labelled]
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "members", (*of_arcs, *of_labels))

    @property
    def channels(self) -> int:
        """How many there are."""
        return self.first[-1] + len(self.members)

    @property
    def joined(self) -> Indices:
        """The same as `members` as an array, `(parts, most)`, -1 where there are fewer."""
        width = max(map(len, self.members), default=0)
        rows = [[*row, *[-1] * (width - len(row))] for row in self.members]
        return np.array(rows, np.int64).reshape(len(rows), width)

    def channel_in(self, kind: int) -> Indices:
        """For each part across kinds, the channel of one kind that it joins, counted from the first of that kind; -1
        where it joins none of it."""
        inside = (self.joined >= self.first[kind]) & (self.joined < self.first[kind + 1])
        return np.where(inside, self.joined - self.first[kind], -1).max(1, initial=-1)

    def split(self, parts: Tensor) -> tuple[list[Tensor], Tensor]:
        """The parts of each kind, and those across."""
        pieces = [parts[..., low:high] for low, high in zip(self.first, self.first[1:], strict=False)]
        return pieces, parts[..., self.first[-1] :]

    def existing(self, mask: Tensor) -> Tensor:
        """The parts that can take part: whatever is across needs all the arcs that it joins."""
        kinds, across = self.split(mask)
        own = torch.cat([graph_parts(kind) for kind in kinds], -1) if len(kinds) > 1 else graph_parts(kinds[0])
        if not self.members:
            return own
        return torch.cat((own, across & self.follows(own)), -1)

    def follows(self, own: Tensor) -> Tensor:
        """For parts across kinds, whether all that they join is on, given the channels of all kinds."""
        if not self.members:
            return own[..., :0] != 0
        on = own != 0
        width = max(map(len, self.members))
        each = [
            [row[min(k, len(row) - 1)] for row in self.members] for k in range(width)
        ]  # the last of a short row again
        together = on[..., each[0]]
        for channels in each[1:]:
            together = together & on[..., channels]
        return together & ~torch.eye(own.shape[-2], dtype=torch.bool, device=own.device).unsqueeze(-1)


@dataclass(frozen=True, eq=False)
class JointNetwork:
    """The factor graphs of some sentences.

    Attributes:
        network: The graphs, one for each sentence.
        place: Where the variables of each sentence stand among its parts: `(sentence, part)` of every one.
        number: Its number in the graph.
    """

    network: Network
    place: tuple[Indices, Indices]
    number: Indices

    @classmethod
    def of(cls, layout: JointLayout, exists: Flags) -> "JointNetwork":
        """The graphs of sentences in which these parts exist, `(batch, n, n, channels)`."""
        batch = len(exists)
        sentence, part = np.nonzero(exists.reshape(batch, -1))
        counts = np.bincount(sentence, minlength=batch)
        number = np.arange(len(sentence)) - np.repeat(np.cumsum(counts) - counts, counts)
        named = np.full((batch, exists[:1].size), -1, np.int32)
        named[sentence, part] = number
        rows = list(_rows(layout, named.reshape(exists.shape)))
        network = Network(FactorTable.of(rows, max(1, batch)), (), int(counts.max(initial=0)))
        return cls(network, (sentence, part), number)

    @property
    def exists(self) -> Flags:
        """Which variables each graph has."""
        return self.gather(np.ones(len(self.number), bool))

    def gather(self, values: np.ndarray) -> np.ndarray:
        """One value for each existing part, in order, as a row for each graph."""
        found = np.zeros((self.network.table.graphs, self.network.parts), values.dtype)
        found[self.place[0], self.number] = values
        return found

    def variables(self, parts: Reals) -> Reals:
        """Values of parts, `(batch, parts)`, as variables of the graphs."""
        return self.gather(parts[self.place].astype(np.float64))

    def parts(self, variables: Reals, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Values of variables as parts, `(batch, parts)`, zero where none exists."""
        found = np.zeros(
            shape, dtype
        )  # room for many, of which few exist: to make and to convert it takes most of the time
        found[self.place] = variables[self.place[0], self.number]
        return found


def _rows(layout: JointLayout, named: NDArray[Any]) -> Iterator[Rows]:
    n = named.shape[1]
    off_diagonal = ~np.eye(n, dtype=bool)
    for kind, (low, count) in enumerate(zip(layout.first, layout.labels, strict=False)):
        arcs = named[..., low]
        # Exactly one label for an arc that is on.
        b, i, j = np.nonzero((arcs >= 0) & off_diagonal)
        labels = named[b, i, j, low + 1 : low + 1 + count]
        whole = np.concatenate((labels, arcs[b, i, j, None]), 1)
        negated = np.zeros(whole.shape, bool)
        negated[:, -1] = True
        yield Rows(FactorKind.ONE, whole, b, negated=negated, defines=True)
        # A predicate for each arc.
        b, i = np.nonzero(arcs.diagonal(axis1=1, axis2=2) >= 0)
        from_here = np.where(off_diagonal[i], arcs[b, i], -1)
        some = (from_here >= 0).any(1)
        whole = np.concatenate((from_here, arcs[b, i, i, None]), 1)
        yield Rows(FactorKind.NEEDS, whole[some], b[some])
        # A deterministic role for one argument.
        known = np.array(layout.deterministic[kind], np.int64)
        times = np.count_nonzero(named[..., low + 1 : low + 1 + count] >= 0, axis=2)
        b, i, place = np.nonzero(times[..., known] > 1)
        yield Rows(FactorKind.AT_MOST_ONE, named[b, i, :, low + 1 + known[place]], b)
    if layout.members:
        b, i, j, which = np.nonzero(named[..., layout.first[-1] :] >= 0)
        members = layout.joined[which]
        inputs = np.where(members >= 0, named[b[:, None], i[:, None], j[:, None], np.maximum(members, 0)], -1)
        output = named[b, i, j, layout.first[-1] + which]
        whole = np.concatenate((inputs, output[:, None]), 1)
        yield Rows(FactorKind.ANY, whole, b, negated=np.ones(whole.shape, bool), defines=True)


Decode = Callable[[Tensor, Tensor], Tensor]

_ROUNDS = 20
"""How often each kind of graph is decoded anew, at most, given the others."""


def best_joint_graphs(
    layout: JointLayout, scores: Tensor, exists: Tensor, decode: Sequence[Decode], options: Options
) -> Found:
    """The best graphs of each sentence, or good ones.

    Args:
        layout: Which channels are what.
        scores: `(batch, n, n, channels)`.
        exists: Parts that exist.
        decode: For each kind, its argmax.
        options: How to run AD3.
    """
    shape = tuple(scores.shape)
    flat = (shape[0], int(np.prod(shape[1:])))
    joint = JointNetwork.of(layout, exists.numpy())
    given = scores.numpy().reshape(flat)
    values = joint.variables(given)
    scale = np.maximum(abs(values).max(1, initial=0), 1e-300)
    fixed = np.where(joint.exists, -1, 0).astype(np.int8)
    state = State.begin(joint.network, np.arange(shape[0]), values / scale[:, None], fixed, options.rho)
    empty = np.logical_not(joint.exists.any(1))
    state[Column.STATUS][empty], state[Column.VALUE][empty] = Status.OPTIMAL, 0.0
    run_ad3(state, options)
    proven = state[Column.STATUS] == Status.OPTIMAL
    relaxed = joint.parts(np.clip(state.p, 0.0, 1.0), flat, given.dtype).reshape(shape)
    with np.errstate(over="ignore"):  # beside scores of 1e308 the sum may be no number any more
        value = np.where(proven, state[Column.VALUE] * scale, 0.0)
    z, integral = relaxed.copy(), proven.copy()
    if not proven.all():  # few of many, as a rule
        rest = np.flatnonzero(~proven)
        own, there = scores[rest].double().masked_fill(~exists[rest], 0.0), exists[rest]
        better = _improved(layout, torch.from_numpy(relaxed[rest]).double(), own, there, decode)
        z[rest] = better.numpy()
        value[rest] = (better * own).flatten(1).sum(1).numpy()
        integral[rest] = abs(z[rest] - relaxed[rest]).reshape(len(rest), -1).max(1, initial=0) < 1e-2
    with np.errstate(over="ignore", invalid="ignore"):
        bound = np.where(np.isfinite(state[Column.BOUND]), state[Column.BOUND] * scale, value)
        optimal = proven | (bound - value <= GAP * np.maximum(scale, abs(value)))
    iterations = state[Column.ITERATIONS].astype(np.int64)
    everywhere, nowhere = np.ones_like(proven), np.zeros_like(iterations)
    return Found(z, relaxed, value, np.maximum(bound, value), integral, optimal, everywhere, iterations, nowhere)


def _improved(layout: JointLayout, relaxed: Tensor, scores: Tensor, exists: Tensor, decode: Sequence[Decode]) -> Tensor:
    """Graphs from a point of the relaxation: each kind decodes it alone; then each in turn decodes the true scores,
    given the graphs of the others, until none changes. No step makes the whole worse."""
    masks, _ = layout.split(exists)
    points, _ = layout.split(relaxed - 0.5)
    kinds = [argmax(point, mask) for argmax, point, mask in zip(decode, points, masks, strict=True)]
    own, _ = layout.split(scores)
    across = _Coupling.of(layout, scores, exists)
    for _ in range(_ROUNDS):
        before = torch.cat(kinds, -1)
        for kind, argmax in enumerate(decode):
            kinds[kind] = argmax(own[kind] + across.score(kind, kinds), masks[kind])
        if torch.equal(before, torch.cat(kinds, -1)):
            break
    return across.with_parts(kinds)


@dataclass(frozen=True)
class _Coupling:
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
    def of(cls, layout: JointLayout, scores: Tensor, exists: Tensor) -> "_Coupling":
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

    def score(self, kind: int, kinds: Sequence[Tensor]) -> Tensor:
        """What they add to the parts of one kind, given the graphs of the others."""
        channel = torch.from_numpy(self.layout.channel_in(kind))[self.which]
        mine = (channel >= 0).nonzero().squeeze(-1)
        extra = torch.zeros_like(kinds[kind]).flatten(0, -2)
        score = torch.where(self.on(kinds, but=kind), self.scores, 0.0)
        extra.index_put_((self.pair[mine], channel[mine]), score[mine], accumulate=True)
        return extra.reshape(kinds[kind].shape)

    def with_parts(self, kinds: Sequence[Tensor]) -> Tensor:
        """Graphs of all kinds with the parts across them."""
        shape = (*kinds[0].shape[:-1], len(self.layout.members))
        z = kinds[0].new_zeros(shape).flatten(0, -2)
        z[self.pair, self.which] = self.on(kinds).to(z)
        return torch.cat((*kinds, z.reshape(shape)), -1)
