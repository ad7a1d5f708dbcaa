"""Constraints on trees as masks. A forced head excludes its rivals, since every word of a tree has exactly one."""

from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor

from spigot import AbstractTrees, NoStructureError
from spigot_nlp.stages.constraints import Constraints


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


def tree_mask(demands: Constraints, size: int) -> Bool[Tensor, "n n"]:
    """The arcs that the trees of a sentence may have.

    Example:
        >>> tree_mask(Constraints(heads=((1, 2),)), 3).int()        # no head but 2 is left to word 1
        tensor([[1, 0, 1],
                [1, 0, 1],
                [1, 1, 1]], dtype=torch.int32)
    """
    allowed = torch.ones(size, size, dtype=torch.bool)
    for word, head in demands.heads:
        allowed[:, word] = False
        allowed[head, word] = True
    for word, head in demands.not_heads:
        allowed[head, word] = False
    return allowed


def conflict(demands: Constraints, trees: AbstractTrees, length: int) -> Constraints:
    """Constraints that leave no tree, without those that are not to blame: each is dropped without which there is none.

    Args:
        demands: The constraints.
        trees: The trees.
        length: Words of the sentence.

    Example:
        >>> from spigot import ProjectiveTrees
        >>> conflict(Constraints(heads=((1, 2), (2, 1), (3, 2))), ProjectiveTrees(), 3).heads
        ((1, 2), (2, 1))
    """
    exists = trees.mask(torch.tensor([length]))[0]
    for name in ("not_heads", "heads"):
        for one in getattr(demands, name):
            fewer = replace(demands, **{name: tuple(other for other in getattr(demands, name) if other != one)})
            if not has_tree(trees, exists & tree_mask(fewer, length + 1), length):
                demands = fewer
    return demands


def no_tree(demands: Constraints, trees: AbstractTrees) -> str:
    """What to tell a user whose constraints leave no tree."""
    kind = ("projective tree" if trees.projective else "tree") + (" with a single root" if trees.single_root else "")
    return f"No {kind} meets these constraints together: {demands.describe(graphs=False)}; drop one of them."
