"""The best tree, projective or not, with one root or many."""

import torch
from torch import Tensor

from spigot._algorithms.active_set import search_in_kernel
from spigot._algorithms.arborescence import arborescences_reference
from spigot._algorithms.eisner import eisner_reference
from spigot._algorithms.kernel_calls import Fault, flatten, raise_tree_fault
from spigot._algorithms.tree_kinds import TreeKind
from spigot._algorithms.words import (
    arcs_from_heads,
    compact_words,
    finite_scores,
    refuse_headless,
    reorder,
    tree_arcs,
)
from spigot._runtime import native
from spigot._runtime.checks import impossible_error
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import refuse_nan
from spigot._runtime.threads import kernel_threads
from spigot.interface.records import HullResult


@operator("spigot::tree_argmax")
@through_host
def tree_argmax(scores: Tensor, mask: Tensor, projective: bool, single_root: bool) -> Tensor:
    """The best tree of each `(n, n)` instance.

    Args:
        scores: `(*batch, n, n)` indexed `[head, modifier]`, the root at 0.
        mask: Arcs that exist. Self-loops and arcs into the root never do.
        projective: Whether arcs must not cross.
        single_root: Whether exactly one word hangs on the root.
    """
    kind = TreeKind(projective, single_root)
    flat = flatten(scores, 2)
    if native.serves(scores):
        z = torch.empty_like(flat)
        fault = native.kernels.tree_argmax(flat, flatten(mask, 2), *kind, z, kernel_threads())
        raise_tree_fault(fault, scores, kind)
        return z.reshape(scores.shape)
    arcs = tree_arcs(mask)
    refuse_nan(scores, arcs, 2)
    refuse_headless(arcs)
    exists = flatten(arcs, 2)
    order, lengths = compact_words(exists)
    arcs = reorder(exists, order)
    decode = eisner_reference if projective else arborescences_reference
    heads, value = decode(finite_scores(reorder(flat, order), arcs), arcs, lengths, single_root)
    if value.isneginf().any():
        raise impossible_error(int(value.isneginf().nonzero()[0]), tuple(scores.shape[:-2]), kind.words)
    return arcs_from_heads(heads, order, lengths, scores).reshape(scores.shape)


@tree_argmax.register_fake
def _(scores: Tensor, mask: Tensor, projective: bool, single_root: bool) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


batched(tree_argmax)


def project_tree_hull(
    point: Tensor, mask: Tensor, start: Tensor | None, kind: TreeKind, *, support: bool = True
) -> HullResult:
    r"""Nearest points of the hull of trees.

    The hull of non-projective trees is known by its inequalities: one head for each word, exactly or at least 1 from
    the root, and no more than $|S| - 1$ inside any set $S$ of words. For a flat point the nearest one that meets the
    first two often meets all, which is checked by the flow from the root to each word; it is then the answer.

    Args:
        point: `(*batch, n, n)`; from an accelerator it goes by way of the host.
        mask: Arcs that exist.
        start: A tree for each instance to begin with; the best for `point` if omitted.
        kind: Which trees.
        support: Whether to find trees whose mixture is the answer even if it is known without them.
    """

    def refuse(fault: Fault | None) -> None:
        raise_tree_fault(fault, point, kind)

    return search_in_kernel(native.kernels.project_tree_hull, point, mask, start, 2, kind, support, refuse)
