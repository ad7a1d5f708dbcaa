"""Constraints on the graphs of a batch as masks, and the scores that meet them.

A forbidden part leaves the mask. A forced arc excludes its rivals, but a graph could still do without it, so that it
gets a score that no graph without it can reach.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from spigot import SemanticGraphs
from spigot.types import Mask, Parts
from spigot_nlp.stages.constraints import Constraints, role_of


@dataclass(frozen=True)
class GraphLimits:
    """The constraints of a batch as masks.

    Attributes:
        parts: The parts that graphs may have, in the layout of `SemanticGraphs`.
        forced: The arcs that graphs must have.
    """

    parts: Bool[Tensor, "batch n n c"]
    forced: Bool[Tensor, "batch n n"]

    def to(self, device: torch.device) -> "GraphLimits":
        """The same on another device."""
        return GraphLimits(self.parts.to(device), self.forced.to(device))

    def decide(self, scores: Parts, mask: Mask, structure: SemanticGraphs) -> tuple[Parts, Mask]:
        """Scores and mask under which the best graph is the best one that meets the constraints.

        Args:
            scores: The scores of the parts. Those of forced arcs must be among them, whatever the mask says.
            mask: The parts that exist without constraints.
            structure: The graphs.
        """
        kept = self._kept(mask & self.parts, structure)
        # Training may have seen too few roles for all that is forced: then any role will do for what has none left,
        # and if that does not suffice, for all forced arcs of the sentence.
        for whole in (False, True):
            decisive = self._decisive(scores, kept, structure)
            _, found, _ = structure.unpack(structure.argmax(decisive, kept))
            missed = (found == 0) & self.forced
            if not missed.any():
                return decisive, kept
            again = self.forced & missed.any((-1, -2), keepdim=True) if whole else missed
            kept = kept | (again.unsqueeze(-1) & self.parts)
        return self._decisive(scores, kept, structure), kept

    def _kept(self, mask: Mask, structure: SemanticGraphs) -> Mask:
        """The mask with all forced arcs in it, and without arcs that have lost all their roles."""
        predicates, arcs, roles = structure.unpack(mask)
        _, _, allowed = structure.unpack(self.parts)
        bare = self.forced & ~roles.any(-1)
        roles = roles | (bare.unsqueeze(-1) & allowed)
        return structure.pack(predicates, (arcs | self.forced) & roles.any(-1), roles)

    def _decisive(self, scores: Parts, mask: Mask, structure: SemanticGraphs) -> Parts:
        """Scores by which a forced arc is worth more than all else that its predicate could have or do without.

        Constraints of graphs are local to a predicate, so that the bound is, too. The 8 is for an estimator that adds
        noise to every part, the 32 for one that takes marginals.
        """
        predicates, arcs, labelled = structure.unpack(scores.masked_fill(~mask, 0).abs())
        exist = [part.to(scores.dtype) for part in structure.unpack(mask)[:2]]
        most = (arcs + labelled.amax(-1) + 8 * exist[1]).sum(-1) + predicates + 8 * exist[0]
        bonus = (2 * most.unsqueeze(-1) + 32) * self.forced
        own, arc_scores, role_scores = structure.unpack(scores)
        return structure.pack(own, arc_scores + bonus, role_scores)


def has_graph(graphs: SemanticGraphs, parts: Bool[Tensor, "n n c"], forced: Bool[Tensor, "n n"]) -> bool:
    """Whether all forced arcs fit into one graph: where every arc is worth the same, the best graph has the most."""
    itself = torch.eye(len(forced), dtype=torch.bool)
    mask = parts & (forced | itself).unsqueeze(-1)
    _, arcs, _ = graphs.unpack(graphs.argmax(torch.ones(mask.shape), mask))
    return bool((arcs > 0)[forced].all())


def graph_masks(
    demands: Constraints, size: int, roles: Sequence[str], graphs: SemanticGraphs
) -> tuple[Bool[Tensor, "n n c"], Bool[Tensor, "n n"]]:
    """The parts a graph may have, and the arcs it must have."""
    index = {role: 1 + k for k, role in enumerate(roles)}
    allowed = torch.ones(size, size, 1 + len(roles), dtype=torch.bool)
    allowed[0, :, 2:] = allowed[1:, :, 1] = False  # the first role is TOP, for arcs of the root and for no others
    forced = torch.zeros(size, size, dtype=torch.bool)
    for arc in demands.arcs:
        predicate, argument = arc[:2]
        forced[predicate, argument] = True
        if not (role := role_of(arc)):
            continue
        channel = index[role]
        if channel - 1 in graphs.deterministic:
            allowed[predicate, torch.arange(size) != argument, channel] = False
        allowed[predicate, argument, [k for k in index.values() if k != channel]] = False
    for arc in demands.not_arcs:
        predicate, argument = arc[:2]
        role = role_of(arc)
        allowed[predicate, argument, index[role] if role else slice(None)] = False
    return allowed, forced


def no_graph(demands: Constraints, roles: Sequence[str], graphs: SemanticGraphs) -> str:
    """What to tell a user whose constraints leave no graph."""
    said = {role_of(arc) for arc in demands.arcs}
    once = [role for k, role in enumerate(roles) if k in graphs.deterministic and (role in said or "" in said)]
    why = f" (a predicate has each of these roles once at most: {', '.join(once)})" if once else ""
    return f"No graph meets these constraints together: {demands.describe(trees=False)}{why}; drop one of them."
