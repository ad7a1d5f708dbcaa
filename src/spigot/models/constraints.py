"""What a structure must have and must not have: demands on single sentences, and the masks that meet them.

A forbidden part leaves the mask. A forced head excludes its rivals in the mask, since every word of a tree has exactly
one. A forced arc of a graph also excludes its rivals, but a graph could still do without it, so that it gets a score
that no graph without it can reach.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from spigot.data.sentence import Arc
from spigot.data.vocab import TOP
from spigot.structures.graphs import SemanticGraphs
from spigot.structures.trees import AbstractTrees
from spigot.types import Mask, Parts


class Infeasible(ValueError):
    """Constraints that a sentence cannot meet.

    Attributes:
        index: Which of the sentences it is, counted from 0.

    Example:
        >>> Infeasible("no tree meets these demands.", 3).index
        3
    """

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


@dataclass(frozen=True)
class Constraints:
    """What the structures of one sentence must have and must not have. Words count from 1; head 0 is the root.

    Attributes:
        heads: Words and the head each must have.
        not_heads: Words and a head each must not have.
        arcs: Arcs that must be in the graph; with an empty role in any role. Predicate 0 says that the word is a top.
        not_arcs: Arcs that must not be in it; with an empty role in no role.

    Example:
        >>> demands = Constraints(heads=((1, 2),), not_arcs=(Arc(2, 1, "ARG1"), Arc(0, 1, "")))
        >>> demands.describe()
        'word 1 has head 2, no arc 2 -> 1 with role ARG1, word 1 is no top'
        >>> demands.check(2, ("TOP", "ARG1"))
        >>> demands.check(1, ("TOP", "ARG1"))
        Traceback (most recent call last):
        ValueError: word 1 has head 2: there is no word 2 in a sentence of 1 word; words count from 1.
    """

    heads: tuple[tuple[int, int], ...] = ()
    not_heads: tuple[tuple[int, int], ...] = ()
    arcs: tuple[Arc, ...] = ()
    not_arcs: tuple[Arc, ...] = ()

    def __post_init__(self) -> None:
        for name in ("heads", "not_heads"):  # lists, as JSON has them, will do
            object.__setattr__(self, name, tuple(_row(name, row, ("word", "head")) for row in getattr(self, name)))
        for name in ("arcs", "not_arcs"):
            object.__setattr__(self, name, tuple(Arc(*_row(name, row, Arc._fields)) for row in getattr(self, name)))

    @property
    def on_trees(self) -> bool:
        """Whether anything is said about the tree."""
        return bool(self.heads or self.not_heads)

    @property
    def on_graphs(self) -> bool:
        """Whether anything is said about the graph."""
        return bool(self.arcs or self.not_arcs)

    def describe(self, *, trees: bool = True, graphs: bool = True) -> str:
        """The constraints in words, those on trees and those on graphs."""
        said = []
        if trees:
            said += [_head(*pair) for pair in self.heads] + [_head(*pair, wanted=False) for pair in self.not_heads]
        if graphs:
            said += [_arc(arc) for arc in self.arcs] + [_arc(arc, wanted=False) for arc in self.not_arcs]
        return ", ".join(said)

    def check(self, sentence_length: int, roles: Sequence[str]) -> None:
        """Refuse what fits no sentence of this length, and what contradicts itself.

        Args:
            sentence_length: How many words the sentence has.
            roles: The roles that graphs may have.

        Raises:
            ValueError: A word, head or role does not exist, or two constraints contradict each other.
        """
        for pairs, wanted in ((self.heads, True), (self.not_heads, False)):
            for word, head in pairs:
                _check_places(_head(word, head, wanted=wanted), word, head, sentence_length, "head")
        for arcs, wanted in ((self.arcs, True), (self.not_arcs, False)):
            for arc in arcs:
                said = _arc(arc, wanted=wanted)
                _check_places(said, arc.argument, arc.predicate, sentence_length, "argument")
                _check_role(said, arc, roles)
        self._check_heads()
        self._check_arcs()

    def _check_heads(self) -> None:
        chosen: dict[int, int] = {}
        for word, head in self.heads:
            if chosen.setdefault(word, head) != head:
                raise _contradiction(_head(word, chosen[word]), _head(word, head), "a word has one head")
            if (word, head) in self.not_heads:
                raise _contradiction(_head(word, head), _head(word, head, wanted=False))

    def _check_arcs(self) -> None:
        chosen: dict[tuple[int, int], Arc] = {}
        for arc in self.arcs:
            if not arc.role:
                continue
            other = chosen.setdefault(arc[:2], arc)
            if other.role != arc.role:
                raise _contradiction(_arc(other), _arc(arc), "an arc has one role")
        for arc in self.arcs:
            for other in self.not_arcs:
                if arc[:2] == other[:2] and (not other.role or _role(arc) == _role(other)):
                    raise _contradiction(_arc(arc), _arc(other, wanted=False))


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
    except ValueError:
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
        if not (role := _role(arc)):
            continue
        channel = index[role]
        if channel - 1 in graphs.deterministic:
            allowed[predicate, torch.arange(size) != argument, channel] = False
        allowed[predicate, argument, [k for k in index.values() if k != channel]] = False
    for arc in demands.not_arcs:
        predicate, argument = arc[:2]
        role = _role(arc)
        allowed[predicate, argument, index[role] if role else slice(None)] = False
    return allowed, forced


def _row(name: str, row: object, fields: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(row, tuple | list) or len(row) != len(fields):
        raise ValueError(f"{name} has {row!r}; each of its rows is ({', '.join(fields)}).")
    return tuple(row)


def _role(arc: Arc) -> str:
    """The role of an arc; that of a top is known without saying it."""
    return arc.role if arc.predicate else TOP


def _head(word: int, head: int, *, wanted: bool = True) -> str:
    return f"word {word} {'has' if wanted else 'does not have'} head {head}"


def _arc(arc: Arc, *, wanted: bool = True) -> str:
    if arc.predicate == 0 and arc.role in ("", TOP):
        return f"word {arc.argument} is {'a' if wanted else 'no'} top"
    role = f" with role {arc.role}" if arc.role else ""
    return f"{'an' if wanted else 'no'} arc {arc.predicate} -> {arc.argument}{role}"


def _check_places(said: str, word: int, head: int, length: int, kind: str) -> None:
    for place, least in ((word, 1), (head, 0)):
        if not isinstance(place, int) or isinstance(place, bool):  # torch takes a bool for a mask
            raise ValueError(f"{said}: {place!r} is no place of a word; words count 1, 2, 3, and 0 is the root.")
        if not least <= place <= length:
            words = "1 word" if length == 1 else f"{length} words"
            raise ValueError(f"{said}: there is no word {place} in a sentence of {words}; words count from 1.")
    if word == head:
        raise ValueError(f"{said}: no word is its own {kind}; choose another.")


def _check_role(said: str, arc: Arc, roles: Sequence[str]) -> None:
    known = [role for role in roles if (role == TOP) == (arc.predicate == 0)]
    if arc.role and arc.role not in known:
        names = ", ".join(known) or "none"
        raise ValueError(
            f"{said}: the roles of {'tops' if arc.predicate == 0 else 'arcs'} are {names}; choose one of them, or "
            "leave the role empty for any."
        )


def _check_system(demands: Constraints, trees: AbstractTrees | None, graphs: SemanticGraphs | None) -> None:
    if demands.on_trees and trees is None:
        said = demands.describe(graphs=False)
        raise ValueError(f"This system does not search for trees, so that nothing can be demanded of one: {said}.")
    if demands.on_graphs and graphs is None:
        said = demands.describe(trees=False)
        raise ValueError(f"This system does not search for graphs, so that nothing can be demanded of one: {said}.")


def _contradiction(one: str, other: str, why: str = "") -> ValueError:
    return ValueError(f"{one} and {other} contradict each other{why and ': ' + why}; drop one of them.")


def _no_tree(demands: Constraints, trees: AbstractTrees) -> str:
    kind = ("projective tree" if trees.projective else "tree") + (" with a single root" if trees.single_root else "")
    return f"No {kind} meets these constraints together: {demands.describe(graphs=False)}; drop one of them."


def _no_graph(demands: Constraints, roles: Sequence[str], graphs: SemanticGraphs) -> str:
    said = {_role(arc) for arc in demands.arcs}
    once = [role for k, role in enumerate(roles) if k in graphs.deterministic and (role in said or "" in said)]
    why = f" (a predicate has each of these roles once at most: {', '.join(once)})" if once else ""
    return f"No graph meets these constraints together: {demands.describe(trees=False)}{why}; drop one of them."
