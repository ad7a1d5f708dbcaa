"""Semantic graphs by how likely their arcs are, decided for without a place in memory for the scores of all roles."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spigot import kernels
from spigot.kernels import kernel_threads
from spigot.types import Parts
from spigot_nlp.annotations.graphs import Graphs
from spigot_nlp.nn.best_products import WIDEST
from spigot_nlp.nn.biaffine import WholeSides
from spigot_nlp.nn.recurrence import check_range
from spigot_nlp.stages.evidence import AbstractDecision

MOST_ROLES = 64
"""As many roles as there are bits in the number that says which of them two words may have."""


@final
class GraphDecision(AbstractDecision):
    """Graphs as the role of each arc.

    Args:
        annotation: What they are called.
        roles: The role of every arc, -1 where there is none.

    Example:
        >>> roles = torch.tensor([[[-1, -1, 0], [-1, -1, -1], [-1, 1, -1]]], dtype=torch.int32)   # 0 -> 2 -> 1
        >>> decision = GraphDecision(Graphs("graph", ("TOP", "ARG1")), roles)
        >>> decision.found([2])[0]["graph"].arcs
        (Arc(predicate=2, argument=1, role='ARG1'),)
        >>> decision.parts()[0, 2, 1].tolist()
        [1.0, 0.0, 1.0]
    """

    def __init__(self, annotation: Graphs, roles: Int[Tensor, "batch n n"]) -> None:
        self._annotation, self._roles = annotation, roles

    def parts(self) -> Parts:
        """The graphs, predicates among them."""
        return self._parts

    @cached_property
    def _parts(self) -> Parts:
        places, roles = self._arcs
        z = torch.zeros(*self._roles.shape, 1 + len(self._annotation.roles))
        batch, head, argument = places.unbind(-1)
        z[batch, head, argument, 0] = z[batch, head, argument, roles + 1] = z[batch, head, head, 0] = 1.0
        return z

    @cached_property
    def _arcs(self) -> tuple[Int[Tensor, "arcs 3"], Int[Tensor, " arcs"]]:
        places = (self._roles >= 0).nonzero()
        return places, self._roles[places.unbind(-1)].long()

    def found(self, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """The graph of each sentence."""
        places, roles = self._arcs
        graphs = self._annotation.graphs_of(places.tolist(), roles.tolist(), len(lengths))
        return [{self._annotation.name: graph} for graph in graphs]


@dataclass(frozen=True)
class RoleRules:
    """Which roles there can be, and which arcs are worth something.

    Attributes:
        possible: The roles that two words may have by their tags, as bits.
        reach: How far apart they may be then: arguments on the left, and on the right.
        deterministic: The roles that a predicate has once at most.
        threshold: How likely a labelled arc must be to be worth something.
    """

    possible: Int[Tensor, "tags tags"]
    reach: Int[Tensor, "2 tags tags"]
    deterministic: Bool[Tensor, " roles"]
    threshold: float


def likely_roles(
    sides: WholeSides,
    lengths: Int[Tensor, " batch"],
    tags: Int[Tensor, "batch n"],
    predicates: Float[Tensor, "batch n"],
    arcs: Float[Tensor, "batch n n"],
    rules: RoleRules,
) -> Int[Tensor, "batch n n"]:
    """The roles of the arcs of the graphs whose labelled arcs are likely, one by one, by the kernel.

    It is what `graph_marginals`, `Scored.worth` and the argmax come to, with roles scored by products of whole numbers.

    Args:
        sides: What scores roles.
        lengths: Words of each sentence, behind the root.
        tags: The tag of each position, the root included.
        predicates: Scores of predicates.
        arcs: Scores of arcs.
        rules: What there can be.

    Returns:
        A role for each arc, -1 where there is none.

    Raises:
        ValueError: If the kernel could not make sense of it: what is no number, lengths and tags that are not there.
    """
    roles, (n, width) = torch.empty(arcs.shape, dtype=torch.int32), sides.heads.shape[1:]
    if (many := len(rules.deterministic)) > MOST_ROLES or width > WIDEST:
        raise ValueError(
            f"there are {many} roles, and {width} units of a side; {MOST_ROLES} and {WIDEST} are the most."
        )
    if roles.numel():
        check_range("lengths", lengths, n - 1)
        check_range("tags", tags, len(rules.possible) - 1)
        if not all(map(_are_numbers, (*sides[:2], predicates, arcs))):
            raise ValueError("Scores of graphs, or what they are made of, are not numbers; restore the parameters.")
        kernels.compiled.likely_graphs(
            sides.heads.contiguous(),
            sides.dependents.contiguous(),
            lengths + 1,
            *sides.turning,
            predicates.contiguous(),
            arcs.contiguous(),
            tags.contiguous(),
            rules.possible,
            rules.reach,
            rules.deterministic,
            rules.threshold,
            roles,
            kernel_threads(),
        )
    return roles


def _are_numbers(values: Tensor) -> bool:
    """Whether all are. One sum tells, and writes nothing down; only where it is too large are they looked at singly."""
    return math.isfinite(values.sum()) or bool(values.isfinite().all())
