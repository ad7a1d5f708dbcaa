"""The conventions of arcs and trees in one place: which words exist, whether each has a head, which trees count."""

from typing import NamedTuple

import torch
from torch import Tensor

from spigot._algorithms.kernel_calls import Fault, raise_fault
from spigot._runtime.checks import headless_error


def tree_arcs(mask: Tensor) -> Tensor:
    """The mask without self-loops and without arcs into the root, `(*batch, n, n)`."""
    arcs = mask.clone(memory_format=torch.contiguous_format)
    arcs.diagonal(dim1=-2, dim2=-1).fill_(False)
    arcs[..., 0] = False
    return arcs


def labelled_arcs(mask: Tensor) -> Tensor:
    """The mask `(*batch, n, n, l)` without self-loops and without arcs into the root."""
    return mask & tree_arcs(torch.ones_like(mask[..., 0])).unsqueeze(-1)


def word_mask(arcs: Tensor) -> Tensor:
    """Positions with an arc in or out, `(*batch, n)`; the root is not a word."""
    words = arcs.any(-1) | arcs.any(-2)
    words[..., 0] = False
    return words


def check_heads(arcs: Tensor) -> None:
    """Raise if a word exists without a possible head. Looks at values: only for use inside operators."""
    bad = word_mask(arcs) & ~arcs.any(-2)
    if bad.any():
        flat = bad.reshape(-1, bad.shape[-1])
        instance, word = (int(i) for i in flat.nonzero()[0])
        raise headless_error(instance, tuple(arcs.shape[:-2]), word)


def compact(arcs: Tensor) -> tuple[Tensor, Tensor]:
    """Order that puts the root first, then the words that exist, then the rest; and the number of words.

    Returns:
        The positions in that order, `(batch, n)`, and the lengths, `(batch,)`.
    """
    words = word_mask(arcs)
    rank = (~words).to(torch.int8)
    rank[:, 0] = -1
    return rank.argsort(dim=-1, stable=True), words.sum(-1)


def reorder(square: Tensor, order: Tensor) -> Tensor:
    """Rows and columns of `(batch, n, n)` in the given order, `(batch, n)`."""
    n = square.shape[-1]
    rows = square.gather(1, order.unsqueeze(2).expand(-1, -1, n))
    return rows.gather(2, order.unsqueeze(1).expand(-1, n, -1))


def arcs_from_heads(heads: Tensor, order: Tensor, lengths: Tensor, like: Tensor) -> Tensor:
    """0/1 arcs in the caller's positions from heads of the compacted words."""
    n = order.shape[-1]
    batch, word = (torch.arange(n, device=order.device) < lengths.unsqueeze(-1) + 1).nonzero(as_tuple=True)
    batch, word = batch[word > 0], word[word > 0]
    z = torch.zeros(len(order), n, n, dtype=like.dtype, device=like.device)
    z[batch, order[batch, heads[batch, word]], order[batch, word]] = 1
    return z


def finite_scores(scores: Tensor, arcs: Tensor) -> Tensor:
    """Scores in float64, with infinities replaced by numbers that no sum of the others outweighs.

    Unmasked scores may be infinite; a decoder must still return a tree, and the best one: as few `-inf` and as many
    `+inf` arcs as possible, then the best finite sum.
    """
    scores = scores.double()
    scores = scores.masked_fill(~arcs, 0)
    infinite = scores.isinf()
    finite = scores.masked_fill(infinite, 0)
    top = finite.abs().amax((-2, -1), keepdim=True)
    shrink = torch.where(top > 1e290, torch.full_like(top, 2.0**-64), torch.ones_like(top))
    limit = 1 + 2 * (finite * shrink).abs().amax(-2, keepdim=True).sum(-1, keepdim=True)
    return torch.where(infinite, limit * scores.sign(), finite * shrink)


class TreeKind(NamedTuple):
    """A kind of dependency trees. Operators take its two fields, `*kind`.

    Attributes:
        projective: Whether arcs must not cross.
        single_root: Whether exactly one word hangs on the root, or any number of them.

    Example:
        >>> TreeKind(projective=False, single_root=True).words
        'tree with a single root'
    """

    projective: bool
    single_root: bool

    @property
    def words(self) -> str:
        """What an error calls it."""
        return ("projective tree" if self.projective else "tree") + (" with a single root" if self.single_root else "")


def raise_tree_fault(fault: Fault | None, arcs: Tensor, kind: TreeKind) -> None:
    """As `raise_fault`, for trees."""
    raise_fault(fault, arcs, 2, "scores", kind.words)
