"""Semantic graphs of several kinds over one sentence, chosen together, and their relaxation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from spigot._runtime.checks import check_graphs, check_parts
from spigot._runtime.host import HostFunction
from spigot._runtime.precision import upcast_half
from spigot._runtime.reduce import refuse_infinite, refuse_nan
from spigot.factor_graphs.ad3 import Options
from spigot.factor_graphs.branch_and_bound import Found
from spigot.factor_graphs.factor_graph import FactorSolution
from spigot.factor_graphs.joint_search import JointLayout, JointNetwork, best_joint_graphs
from spigot.factor_graphs.local_polytope import LocalPolytope
from spigot.interface import AbstractPolytope, AbstractStructure
from spigot.interface.records import Preview
from spigot.structures.graphs import SemanticGraphs
from spigot.structures.lengths import padded_size
from spigot.types import Flags, Mask, Parts


@final
@dataclass(frozen=True)
class JointPolytope(AbstractPolytope):
    """Points that suit every factor of a `JointGraphs` alone: see `LocalPolytope`.

    Attributes:
        layout: Which channels are what.

    Example:
        >>> import spigot
        >>> graphs = spigot.JointGraphs((spigot.SemanticGraphs(1), spigot.SemanticGraphs(1)), arcs=((0, 1),))
        >>> point = torch.zeros(2, 2, 5)
        >>> point[0, 1, 0], point[0, 1, 1] = 0.8, 0.4                         # an arc, and its only label
        >>> graphs.relaxation.project(point)[0, 1, :2].round(decimals=4)
        tensor([0.4000, 0.4000])
    """

    layout: JointLayout
    _projector: HostFunction = field(init=False, compare=False, repr=False)
    _derivative: HostFunction = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_projector", HostFunction(partial(_project, layout=self.layout), 3, "point"))
        object.__setattr__(self, "_derivative", HostFunction(partial(_pull, layout=self.layout), 3, "point"))

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        return self._projector(
            point.detach(), self.layout.existing(check_graphs(point, mask, self.layout.channels, "point"))
        )

    def project_vjp(self, point: Parts, grad: Parts, mask: Mask) -> Parts:
        both = torch.stack((point.detach(), grad.detach().to(point)))
        return self._derivative(both, self.layout.existing(mask).expand_as(both))[0]

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = check_graphs(point, mask, self.layout.channels, "point")
        factors = _Factors.of(mask, self.layout)
        inside = factors.polytope.contains(factors.variables(point), factors.mask, atol=atol)
        stray = ((point.abs() > atol) & ~self.layout.existing(mask)).flatten(-3).any(-1)
        return inside.reshape(stray.shape).to(point.device) & ~stray


class _Factors(NamedTuple):
    """The factor graphs of some sentences, and their local polytope."""

    joint: JointNetwork
    polytope: LocalPolytope

    @classmethod
    def of(cls, mask: Tensor, layout: JointLayout) -> "_Factors":
        exists = layout.existing(mask.detach().cpu().reshape(-1, *mask.shape[-3:]))
        joint = JointNetwork.of(layout, exists.numpy())
        return cls(joint, LocalPolytope(joint.network, np.arange(len(exists))))

    @property
    def mask(self) -> Tensor:
        return torch.from_numpy(self.joint.exists)

    def variables(self, parts: Tensor) -> Tensor:
        """Values of parts as variables of the graphs."""
        return torch.from_numpy(self.joint.variables(_flat(parts.detach().double().cpu()).numpy()))

    def parts(self, values: Tensor, like: Tensor) -> Tensor:
        """Values of variables as parts."""
        own = values.numpy()
        return torch.from_numpy(self.joint.parts(own, tuple(_flat(like).shape), own.dtype)).to(like).reshape(like.shape)


def _flat(parts: Tensor) -> Tensor:
    """One axis of sentences and one of parts."""
    return parts.reshape(parts.shape[:-3].numel(), parts.shape[-3:].numel())


def _project(point: Tensor, mask: Tensor, layout: JointLayout) -> Tensor:
    factors = _Factors.of(mask, layout)
    return factors.parts(factors.polytope.project(factors.variables(point), factors.mask), point)


def _pull(both: Tensor, mask: Tensor, layout: JointLayout) -> Tensor:
    """The derivative at the first of two, applied to the second."""
    factors = _Factors.of(mask[0], layout)
    point, direction = (factors.variables(one) for one in both)
    pulled = factors.polytope.project_vjp(point, direction, factors.mask)
    found = factors.parts(pulled, both[0])
    return torch.stack((found, torch.zeros_like(found)))


@final
@dataclass(frozen=True)
class JointGraphs(AbstractStructure):
    r"""Semantic graphs in several formalisms, and parts across them: Peng, Thomson and Smith's FREDA3.

    $$\mathcal Z = \{(z^1, \dots, z^T, c) \mid z^t \in \mathcal Z_t,\ c_{i \to j} = \prod_t z^t_{i \to j}\}$$

    Each kind of graph obeys the rules of `SemanticGraphs`. A part across kinds belongs to a pair of words, and joins
    their arcs in two kinds or more, whatever the labels, or arcs with certain labels; it is on exactly if all that it
    joins is on, so that its score is what the arcs are worth together.

    Parts are `(*batch, n, n, channels)`: the `1 + labels` channels of each kind, as `SemanticGraphs` lays them out, one
    kind after another; then a channel for each entry of `arcs`, and for each of `labelled`. `pack` and `unpack` go
    between this and a tensor for each.

    With parts across kinds, decoding no longer splits. The argmax solves the relaxation by AD3. Where that is
    fractional, each kind is decoded from it alone, as the published program does, and then in turn from the true
    scores, the others held fixed, until nothing improves. The result is always a member; `solve` says how good it is.

    Attributes:
        tasks: The kinds of graphs.
        arcs: Sets of kinds, counted from 0, whose arcs a part joins.
        labelled: Sets of `(kind, label)` of different kinds whose labelled arcs a part joins.
        max_iterations: Of AD3.

    Example:
        Two kinds with one label each. Neither wants its arc, but both together do.

        >>> graphs = JointGraphs((SemanticGraphs(1), SemanticGraphs(1)), arcs=((0, 1),))
        >>> own = torch.zeros(2, 3, 3, 2)
        >>> own[:, 0, 1, 0] = -1.0
        >>> own[:, 0, 0, 0] = 0.1                                         # the root as a predicate
        >>> across = torch.zeros(3, 3, 1)
        >>> across[0, 1] = 3.0
        >>> kinds, both = graphs.unpack(graphs.argmax(graphs.pack(list(own), across)))
        >>> [kind[0, 1].tolist() for kind in kinds], both[0, 1].tolist()
        ([[1.0, 1.0], [1.0, 1.0]], [1.0])

    References:
        Peng, Thomson, Smith (2017), Deep multitask learning for semantic dependency parsing.
    """

    tasks: tuple[SemanticGraphs, ...]
    arcs: tuple[tuple[int, ...], ...] = ()
    labelled: tuple[tuple[tuple[int, int], ...], ...] = ()
    max_iterations: int = 500
    _polytope: JointPolytope = field(init=False, compare=False, repr=False)
    _solver: HostFunction = field(init=False, compare=False, repr=False)

    event_ndim: ClassVar[int] = 3
    tractable_hull: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", tuple(self.tasks))
        object.__setattr__(self, "arcs", tuple(tuple(kinds) for kinds in self.arcs))
        object.__setattr__(self, "labelled", tuple(tuple(map(tuple, labels)) for labels in self.labelled))
        for kinds in (*self.arcs, *(tuple(kind for kind, _ in labels) for labels in self.labelled)):
            if len(kinds) < 2 or list(kinds) != sorted(set(kinds)) or not 0 <= kinds[0] <= kinds[-1] < len(self.tasks):
                raise ValueError(
                    f"a part across kinds joins {kinds}; it must join two or more different kinds in rising order, of "
                    f"0 to {len(self.tasks) - 1}."
                )
        for labels in self.labelled:
            for kind, label in labels:
                if not 0 <= label < self.tasks[kind].labels:
                    raise ValueError(
                        f"a part across kinds joins label {label} of kind {kind}, whose labels go from 0 to "
                        f"{self.tasks[kind].labels - 1}."
                    )
        labels = tuple(task.labels for task in self.tasks)
        deterministic = tuple(task.deterministic for task in self.tasks)
        object.__setattr__(
            self, "_polytope", JointPolytope(JointLayout(labels, deterministic, self.arcs, self.labelled))
        )
        object.__setattr__(self, "_solver", HostFunction(partial(_argmax, **self._how), 3))

    @property
    def _how(self) -> dict[str, Any]:
        """What the search is told."""
        return {"layout": self.layout, "tasks": self.tasks, "max_iterations": self.max_iterations}

    @property
    def layout(self) -> JointLayout:
        """Which channels are what."""
        return self._polytope.layout

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        mask = self._check(scores, mask)
        if not self.layout.members:
            kinds, across = self.layout.split(scores)
            masks, _ = self.layout.split(mask)
            each = zip(self.tasks, kinds, masks, strict=True)
            return torch.cat([*(task.argmax(s, m) for task, s, m in each), across.detach() * 0], -1)
        return self._solver(scores.detach(), self.layout.existing(mask))

    @upcast_half
    def solve(self, scores: Parts, mask: Mask | None = None) -> FactorSolution:
        """The argmax with all that is known about it: its bound, and whether it is proven best.

        Args:
            scores: The part scores.
            mask: Parts that exist.
        """
        mask = self._check(scores, mask)
        exists = self.layout.existing(mask)
        refuse_nan(scores, exists, 3, "scores")
        found = _find(scores, exists, **self._how)
        batch = scores.shape[:-3]
        real = [torch.from_numpy(values).to(scores) for values in (found.z, found.relaxed, found.value, found.bound)]
        other = (found.integral, found.optimal, found.iterations, found.nodes)
        flags = [torch.from_numpy(values).to(scores.device) for values in other]
        shaped = [real[0].reshape(scores.shape), real[1].reshape(scores.shape), *(x.reshape(batch) for x in real[2:])]
        return FactorSolution(*shaped, *(x.reshape(batch) for x in flags))

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        mask = self._check(z, mask, "z")
        kinds, across = self.layout.split(z)
        masks, may = self.layout.split(self.layout.existing(mask))
        due = self.layout.follows(torch.cat(kinds, -1)) & may
        fine = (across == due.to(across)).flatten(-3).all(-1)
        for task, part, exists in zip(self.tasks, kinds, masks, strict=True):
            fine = fine & task.contains(part, exists)
        return fine

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        mask = self._check(z, mask, "z")
        kinds, across = self.layout.split(z)
        masks, may = self.layout.split(self.layout.existing(mask))
        each = [task.violations(*two) for task, *two in zip(self.tasks, kinds, masks, strict=True)]
        found = [
            [f"kind {kind}: {words}" for kind, several in enumerate(of_one) for words in several]
            for of_one in zip(*each, strict=True)
        ]
        due = self.layout.follows(torch.cat(kinds, -1)) & may
        wrong = (across != due.to(across)).reshape(len(found), *across.shape[-3:])
        for messages, places in zip(found, wrong, strict=True):
            for i, j, part in places.nonzero().tolist():
                messages.append(f"part {part} across kinds of {i}->{j} must be on exactly if all that it joins is")
        return found

    def preview(self, z: Parts) -> Preview:
        kinds, _ = self.unpack(z)
        some = (task.preview(part).arcs for task, part in zip(self.tasks, kinds, strict=True))
        arcs = tuple((i, j, f"{kind}: {role}") for kind, found in enumerate(some) for i, j, role in found)
        return Preview(z.shape[-2] - 1, arcs)

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        n = padded_size(lengths, size)
        own = [task.mask(lengths, n) for task in self.tasks]
        shape = (*lengths.shape, n, n, len(self.layout.members))
        across = torch.ones(shape, dtype=torch.bool, device=lengths.device)
        return self.layout.existing(torch.cat((*own, across), -1))

    def full_mask(self, parts: Parts) -> Mask:
        self._check_shape(parts, "scores")
        return self.layout.existing(torch.ones_like(parts, dtype=torch.bool))

    @property
    def relaxation(self) -> JointPolytope:
        """The local polytope of the factor graph, deterministic roles among its factors."""
        return self._polytope

    def pack(self, parts: Sequence[Tensor], crossed: Tensor) -> Tensor:
        """One tensor of parts from one for each kind and one for the parts across; scores, masks and z alike."""
        wanted = [1 + task.labels for task in self.tasks]
        if [part.shape[-1] for part in parts] != wanted or crossed.shape[-1] != len(self.layout.members):
            found = [tuple(part.shape) for part in (*parts, crossed)]
            raise ValueError(
                f"the parts have shapes {found}; their last axes must be {wanted}, and {len(self.layout.members)} for "
                "those across."
            )
        return torch.cat((*parts, crossed), -1)

    def unpack(self, parts: Tensor) -> tuple[list[Tensor], Tensor]:
        """The parts of each kind, `(*batch, n, n, 1 + labels)`, and those across kinds."""
        self._check_shape(parts, "parts")
        return self.layout.split(parts)

    def _check(self, parts: Parts, mask: Mask | None, what: str = "scores") -> Mask:
        mask = check_parts(parts, mask, 3, what)
        self._check_shape(parts, what)
        return mask

    def _check_shape(self, parts: Tensor, what: str) -> None:
        shape = parts.shape[-3:]
        channels = self.layout.channels
        if len(shape) < 3 or shape[0] != shape[1] or shape[0] == 0 or shape[2] != channels:
            raise ValueError(f"{what} has shape {tuple(parts.shape)}; it must be (*batch, n, n, {channels}), n >= 1.")


def _find(
    scores: Tensor, exists: Tensor, layout: JointLayout, tasks: Sequence[SemanticGraphs], max_iterations: int
) -> Found:
    flat = scores.detach().cpu().reshape(scores.shape[:-3].numel(), *scores.shape[-3:])
    exists = exists.cpu().reshape(flat.shape)
    if not flat.sum().isfinite():  # one pass without room for flags; where sums overflow, the look is for nothing
        exists = layout.existing(exists & ~flat.isneginf())
        refuse_infinite(flat.isposinf() & exists, 3, "scores")
    options = Options(max_iterations=max_iterations, tolerance=1e-3)
    return best_joint_graphs(layout, flat, exists, [task.argmax for task in tasks], options)


def _argmax(
    scores: Tensor, exists: Tensor, layout: JointLayout, tasks: Sequence[SemanticGraphs], max_iterations: int
) -> Tensor:
    masks, across = layout.split(exists)
    if not across.any():  # nothing joins the kinds
        kinds, rest = layout.split(scores)
        each = zip(tasks, kinds, masks, strict=True)
        return torch.cat([*(task.argmax(own, mask) for task, own, mask in each), torch.zeros_like(rest)], -1)
    return torch.from_numpy(_find(scores, exists, layout, tasks, max_iterations).z).to(scores).reshape(scores.shape)
