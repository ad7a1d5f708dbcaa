"""The k best trees: in a tree every word makes one choice, its head."""

import torch
from torch import Tensor

from spigot._algorithms.k_best import k_best_choices
from spigot._algorithms.kernel_calls import flatten
from spigot._algorithms.tree_argmax import tree_argmax
from spigot._algorithms.words import finite_scores, tree_arcs
from spigot._runtime.operators import batched, operator, through_host


@operator("spigot::k_best_trees")
@through_host
def k_best_trees(scores: Tensor, mask: Tensor, k: int, projective: bool, single_root: bool) -> tuple[Tensor, Tensor]:
    """The k best trees of each `(n, n)` instance.

    Args:
        scores: `(*batch, n, n)` indexed `[head, modifier]`, the root at 0.
        mask: Arcs that exist. Self-loops and arcs into the root never do.
        k: How many.
        projective: Whether arcs must not cross.
        single_root: Whether exactly one word hangs on the root.

    Returns:
        The trees, `(*batch, k, n, n)`, zero where there are no more, and which of them exist, `(*batch, k)`.
    """
    batch, n = scores.shape[:-2], scores.shape[-1]
    heads, found = k_best_heads(scores, mask, k, projective, single_root)
    z = scores.new_zeros(*heads.shape[:2], n, n)
    z.scatter_(2, heads.clamp(min=0).unsqueeze(2), (heads >= 0).to(z.dtype).unsqueeze(2))
    return z.reshape(*batch, k, n, n), found.reshape(*batch, k)


def k_best_heads(scores: Tensor, mask: Tensor, k: int, projective: bool, single_root: bool) -> tuple[Tensor, Tensor]:
    """As `k_best_trees`, with batch axes flattened and trees by heads, `(batch, k, n)`, -1 where there is none."""
    arcs = flatten(tree_arcs(mask), 2)
    n = scores.shape[-1]
    if n == 1 or len(arcs) == 0:  # nothing to choose: one tree
        first = (torch.arange(k, device=scores.device) == 0).expand(len(arcs), k)
        return arcs.new_full((len(arcs), k, n), -1, dtype=torch.int64), first.clone()
    tree_argmax(scores, mask, projective, single_root)  # says what is wrong with scores and mask, if anything is
    safe = finite_scores(flatten(scores, 2), arcs)
    dtype = scores.dtype if safe.abs().max() < 1e30 else safe.dtype  # decoded as argmax would
    places = torch.arange(n, dtype=dtype, device=scores.device)

    def argmax(values: Tensor, owner: Tensor) -> Tensor:
        """Heads of the best trees; a forbidden arc scores -inf, which is worse than any sum of others."""
        z = tree_argmax(values.to(dtype), arcs[owner], projective, single_root)
        return (places @ z).round().long()

    return k_best_choices(safe, arcs, k, argmax)


@k_best_trees.register_fake
def _(scores: Tensor, mask: Tensor, k: int, projective: bool, single_root: bool) -> tuple[Tensor, Tensor]:
    shape = (*scores.shape[:-2], k)
    return scores.new_empty(*shape, *scores.shape[-2:]), scores.new_empty(shape, dtype=torch.bool)


batched(k_best_trees)
