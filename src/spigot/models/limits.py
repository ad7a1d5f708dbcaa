"""Constraints on the sentences of a batch as masks, and the scores that meet them.

A forbidden part leaves the mask. A forced head excludes its rivals in the mask, since every word of a tree has exactly
one. A forced arc of a graph also excludes its rivals, but a graph could still do without it, so that it gets a score
that no graph without it can reach.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from spigot.algorithms.checks import NoStructureError
from spigot.models.constraints import Constraints, Infeasible, role_of
from spigot.structures.graphs import SemanticGraphs
from spigot.structures.trees import AbstractTrees
from spigot.types import Mask, Parts


@dataclass(frozen=True)
class Limits:
    """The constraints of a batch as masks.

    Attributes:
        heads: The arcs that trees may have; `None` if nothing is said about trees.
        parts: The parts that graphs may have, in the layout of `SemanticGraphs`; `None` if nothing is said about them.
        forced: The arcs that graphs must have.

    Example:
        >>> from spigot import ProjectiveTrees
        >>> demands = [Constraints(heads=((1, 2),)), None]
        >>> limits = Limits.of(demands, [2, 1], 3, trees=ProjectiveTrees())
        >>> limits.heads[0].int()                               # no head but 2 is left to word 1
        tensor([[1, 0, 1],
                [1, 0, 1],
                [1, 1, 1]], dtype=torch.int32)
        >>> Limits.of([None, Constraints(heads=((1, 2), (2, 1)))], [2, 2], 3, trees=ProjectiveTrees())
        Traceback (most recent call last):
        spigot.models.constraints.Infeasible: No projective tree with a single root meets these constraints together: \
word 1 has head 2, word 2 has head 1; drop one of them.
    """

    heads: Bool[Tensor, "batch n n"] | None = None
    parts: Bool[Tensor, "batch n n c"] | None = None
    forced: Bool[Tensor, "batch n n"] | None = None

    @classmethod
    def of(
        cls,
        constraints: Sequence[Constraints | None],
        lengths: Sequence[int],
        size: int,
        roles: Sequence[str] = (),
        *,
        trees: AbstractTrees | None = None,
        graphs: SemanticGraphs | None = None,
    ) -> "Limits | None":
        """The masks for a batch; `None` if nothing is demanded.

        Args:
            constraints: Those of each sentence.
            lengths: Words of each sentence.
            size: Positions of the batch, with the root.
            roles: The names of the roles, TOP first.
            trees: The trees that the system searches, if it does.
            graphs: The graphs that it searches, if it does.

        Raises:
            Infeasible: The constraints of a sentence do not fit it, or leave it no structure; see its `index`.
        """
        for index, demands in enumerate(constraints):
            if demands is not None:
                try:
                    _check_system(demands, trees, graphs)
                    demands.check(lengths[index], roles)
                except ValueError as error:
                    raise Infeasible(str(error), index) from None
        said = [demands or Constraints() for demands in constraints]
        heads = parts = forced = None
        if trees is not None and any(demands.on_trees for demands in said):
            heads = torch.stack([_tree_mask(demands, size) for demands in said])
            exist = trees.mask(torch.tensor(lengths), size) & heads
            for index, demands in enumerate(said):
                if demands.on_trees and not has_tree(trees, exist[index], lengths[index]):
                    raise Infeasible(_no_tree(demands, trees), index)
        if graphs is not None and any(demands.on_graphs for demands in said):
            masks = [_graph_masks(demands, size, roles, graphs) for demands in said]
            parts, forced = (torch.stack(several) for several in zip(*masks, strict=True))
            for index, demands in enumerate(said):
                if demands.arcs and not _has_graph(graphs, parts[index], forced[index]):
                    raise Infeasible(_no_graph(demands, roles, graphs), index)
        return None if heads is None and parts is None else cls(heads, parts, forced)

    def decide(self, scores: Parts, mask: Mask, structure: SemanticGraphs) -> tuple[Parts, Mask]:
        """Scores and mask under which the best graph is the best one that meets the constraints.

        Args:
            scores: The scores of the parts. Those of forced arcs must be among them, whatever the mask says.
            mask: The parts that exist without constraints.
            structure: The graphs.
        """
        if self.parts is None or self.forced is None:
            return scores, mask
        kept = self._kept(mask & self.parts)
        # Training may have seen too few roles for all that is forced: then any role will do for what has none left,
        # and if that does not suffice, for all forced arcs of the sentence.
        for whole in (False, True):
            decisive = self._decisive(scores, kept)
            missed = (structure.argmax(decisive, kept)[..., 0] == 0) & self.forced
            if not missed.any():
                return decisive, kept
            again = self.forced & missed.any((-1, -2), keepdim=True) if whole else missed
            kept = kept | (again.unsqueeze(-1) & self.parts)
        return self._decisive(scores, kept), kept

    def _kept(self, mask: Mask) -> Mask:
        """The mask with all forced arcs in it, and without arcs that have lost all their roles."""
        assert self.parts is not None
        assert self.forced is not None
        bare = self.forced & ~mask[..., 1:].any(-1)
        roles = mask[..., 1:] | (bare.unsqueeze(-1) & self.parts[..., 1:])
        itself = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        arcs = (mask[..., 0] | self.forced) & (roles.any(-1) | itself)
        return torch.cat((arcs.unsqueeze(-1), roles), -1)

    def _decisive(self, scores: Parts, mask: Mask) -> Parts:
        """Scores by which a forced arc is worth more than all else that its predicate could have or do without.

        Constraints of graphs are local to a predicate, so that the bound is, too. The 8 is for an estimator that adds
        noise to every part, the 32 for one that takes marginals.
        """
        assert self.forced is not None
        size = scores.masked_fill(~mask, 0).abs()
        most = size[..., 0] + size[..., 1:].amax(-1) + 8 * mask[..., 0]
        bonus = (2 * most.sum(-1, keepdim=True) + 32) * self.forced
        return torch.cat(((scores[..., 0] + bonus).unsqueeze(-1), scores[..., 1:]), -1)


def has_tree(trees: AbstractTrees, mask: Bool[Tensor, "n n"], length: int) -> bool:
    """Whether a mask leaves any tree over so many words.

    Example:
        >>> from spigot import ProjectiveTrees
        >>> mask = torch.tensor([[False, True, False], [False, False, True], [False, False, False]])
        >>> has_tree(ProjectiveTrees(), mask, 2), has_tree(ProjectiveTrees(), mask.T, 2)
        (True, False)
    """
    if not mask[:, 1 : length + 1].any(0).all():  # a word without any arc would pass for padding below
        return False
    try:
        trees.argmax(torch.zeros(mask.shape), mask)
    except NoStructureError:
        return False
    return True


def _has_graph(graphs: SemanticGraphs, parts: Bool[Tensor, "n n c"], forced: Bool[Tensor, "n n"]) -> bool:
    """Whether all forced arcs fit into one graph: where every arc is worth the same, the best graph has the most."""
    itself = torch.eye(len(forced), dtype=torch.bool)
    mask = parts & (forced | itself).unsqueeze(-1)
    arcs = graphs.argmax(torch.ones(mask.shape), mask)[..., 0] > 0
    return bool(arcs[forced].all())


def _tree_mask(demands: Constraints, size: int) -> Bool[Tensor, "n n"]:
    allowed = torch.ones(size, size, dtype=torch.bool)
    for word, head in demands.heads:
        allowed[:, word] = False
        allowed[head, word] = True
    for word, head in demands.not_heads:
        allowed[head, word] = False
    return allowed


def _graph_masks(
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


def _check_system(demands: Constraints, trees: AbstractTrees | None, graphs: SemanticGraphs | None) -> None:
    if demands.on_trees and trees is None:
        said = demands.describe(graphs=False)
        raise ValueError(f"This system does not search for trees, so that nothing can be demanded of one: {said}.")
    if demands.on_graphs and graphs is None:
        said = demands.describe(trees=False)
        raise ValueError(f"This system does not search for graphs, so that nothing can be demanded of one: {said}.")


def _no_tree(demands: Constraints, trees: AbstractTrees) -> str:
    kind = ("projective tree" if trees.projective else "tree") + (" with a single root" if trees.single_root else "")
    return f"No {kind} meets these constraints together: {demands.describe(graphs=False)}; drop one of them."


def _no_graph(demands: Constraints, roles: Sequence[str], graphs: SemanticGraphs) -> str:
    said = {role_of(arc) for arc in demands.arcs}
    once = [role for k, role in enumerate(roles) if k in graphs.deterministic and (role in said or "" in said)]
    why = f" (a predicate has each of these roles once at most: {', '.join(once)})" if once else ""
    return f"No graph meets these constraints together: {demands.describe(trees=False)}{why}; drop one of them."
