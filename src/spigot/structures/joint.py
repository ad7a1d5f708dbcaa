"""Several semantic graphs over the same words, with parts that join arcs of some of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Bool
from torch import Tensor

from spigot.checks import check_parts
from spigot.interface import AbstractStructure
from spigot.polytopes.blocks import ArcLabel
from spigot.structures.graphs import SemanticGraphs
from spigot.types import Mask, Parts

_ROUNDS = 4


class JointSolution(NamedTuple):
    """Best graphs, and what is known about them.

    Attributes:
        z: The graphs.
        integral: Whether the relaxation had a whole solution.
        optimal: Whether it is proven that none is better.
    """

    z: Parts
    integral: Bool[Tensor, "*batch"]
    optimal: Bool[Tensor, "*batch"]


@final
@dataclass(frozen=True)
class JointGraphs(AbstractStructure):
    """Graphs of several formalisms, and parts that are on exactly if all the arcs they join are.

    Attributes:
        tasks: The graphs of each formalism.
        arcs: Sets of tasks with an unlabelled cross part for each pair of words.
        labelled: Labelled cross parts, each as (task, label) of the arcs it joins.

    Example:
        >>> both = JointGraphs((SemanticGraphs(1), SemanticGraphs(1)), arcs=((0, 1),))
        >>> both.mask(torch.tensor([2])).shape
        torch.Size([1, 3, 3, 5])
    """

    tasks: tuple[SemanticGraphs, ...]
    arcs: tuple[tuple[int, ...], ...] = ()
    labelled: tuple[tuple[tuple[int, int], ...], ...] = ()

    event_ndim: ClassVar[int] = 3

    @cached_property
    def _widths(self) -> list[int]:
        return [*(1 + task.labels for task in self.tasks), len(self.arcs) + len(self.labelled)]

    @cached_property
    def _joined(self) -> list[tuple[tuple[int, int], ...]]:
        """For each cross part the (task, channel) of what it joins."""
        arcs = [tuple((task, 0) for task in tasks) for tasks in self.arcs]
        return [*arcs, *(tuple((task, 1 + label) for task, label in part) for part in self.labelled)]

    def pack(self, parts: Sequence[Tensor], crossed: Tensor) -> Tensor:
        """One tensor from those of the tasks and that of the cross parts."""
        return torch.cat((*parts, crossed), -1)

    def unpack(self, parts: Tensor) -> tuple[list[Tensor], Tensor]:
        """The parts of each task, and the cross parts."""
        *tasks, crossed = parts.split(self._widths, -1)
        return tasks, crossed

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        masks = [task.mask(lengths, size) for task in self.tasks]
        return self.pack(masks, self._all_on(masks).bool())

    def everything(self, parts: Parts) -> Mask:
        masks = [task.everything(part) for task, part in zip(self.tasks, self.unpack(parts)[0], strict=True)]
        return self.pack(masks, self._all_on(masks).bool())

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return self.solve(scores, mask).z

    def solve(self, scores: Parts, mask: Mask | None = None) -> JointSolution:
        """The best graphs found, and what is known about them."""
        mask = check_parts(scores, mask, 3)
        parts, crossed = self.unpack(scores.detach())
        masks, exist = self.unpack(mask)
        crossed = crossed.masked_fill(~exist, 0) * self._off_diagonal(crossed)
        z = [task.argmax(part, some) for task, part, some in zip(self.tasks, parts, masks, strict=True)]
        for _ in range(_ROUNDS if self._joined else 0):
            before = [some.clone() for some in z]
            for own, task in enumerate(self.tasks):
                extra = torch.zeros_like(parts[own])
                for k, joined in enumerate(self._joined):
                    if own not in [other for other, _ in joined]:
                        continue
                    value = crossed[..., k]
                    for other, channel in joined:
                        value = value if other == own else value * z[other][..., channel]
                    extra[..., dict(joined)[own]] += value
                z[own] = task.argmax(parts[own] + extra, masks[own])
            if all(torch.equal(a, b) for a, b in zip(before, z, strict=True)):
                break
        whole = torch.ones(scores.shape[:-3], dtype=torch.bool, device=scores.device)
        found = self.pack(z, self._all_on(z).masked_fill(~exist, 0))
        return JointSolution(found, whole, whole if not self._joined else ~whole)

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        mask = check_parts(z, mask, 3, "z")
        parts, crossed = self.unpack(z)
        masks, exist = self.unpack(mask)
        lists = [task.violations(*some) for task, *some in zip(self.tasks, parts, masks, strict=True)]
        wrong = (crossed != self._all_on(parts).masked_fill(~exist, 0)).flatten(-3).any(-1).flatten().tolist()
        return [
            [*(said for said in several for said in said), *(["a cross part differs from its arcs"] if bad else [])]
            for *several, bad in zip(*lists, wrong, strict=True)
        ]

    @property
    def relaxation(self) -> ArcLabel:
        raise NotImplementedError

    def _off_diagonal(self, parts: Tensor) -> Tensor:
        return ~torch.eye(parts.shape[-2], dtype=torch.bool, device=parts.device).unsqueeze(-1)

    def _all_on(self, parts: Sequence[Tensor]) -> Tensor:
        first = parts[0]
        on = []
        for joined in self._joined:
            value = torch.ones_like(first[..., 0])
            for task, channel in joined:
                value = value * parts[task][..., channel]
            on.append(value)
        crossed = torch.stack(on, -1) if on else first[..., :0]
        return crossed * self._off_diagonal(crossed).to(crossed.dtype)
