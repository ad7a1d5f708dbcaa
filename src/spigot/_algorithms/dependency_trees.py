r"""Dependency trees, projective or not, with one root or many: the best, the k best, sums, draws and the hull.

Natively one operator gives $\log Z$ and $\mu = \nabla \log Z$, and a second one, with dual numbers, the product of the
Hessian of $\log Z$ with a direction, which is the backward pass of $\mu$. Elsewhere plain torch computes $\log Z$ in
log space and its gradient is taken as is: `eisner.py` for projective trees, `spanning_trees.py` for the others.

Draws of projective trees split each span, from the whole sentence down, in proportion to what its splits are worth.
The others are Wilson's loop-erased walks in the kernels, with the determinant as a way out where words insist on each
other (`native/wilson.hpp` argues why switching is exact), and the determinant alone in plain torch.

References:
    Wilson (1996), Generating random spanning trees more quickly than the cover time.
    Propp, Wilson (1998), How to get a perfectly random sample from a generic Markov chain and generate a random
    spanning tree of a directed graph.
"""

import torch
from torch import Tensor

from spigot._algorithms.active_set import search_in_kernel
from spigot._algorithms.arc_mask import (
    TreeKind,
    arcs_from_heads,
    check_heads,
    compact,
    finite_scores,
    raise_tree_fault,
    reorder,
    tree_arcs,
)
from spigot._algorithms.eisner import best_projective, projective_draws, projective_log_partition
from spigot._algorithms.k_best import k_best_choices
from spigot._algorithms.kernel_calls import Fault, flatten
from spigot._algorithms.spanning_trees import best_spanning_trees, matrix_tree_log_partition, nonprojective_draws
from spigot._runtime import native
from spigot._runtime.checks import impossible_error
from spigot._runtime.native import kernel_threads
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import refuse_infinite, refuse_nan, summable
from spigot._runtime.sums import register_checked, register_sums
from spigot.types import HullResult


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
    check_heads(arcs)
    exists = flatten(arcs, 2)
    order, lengths = compact(exists)
    arcs = reorder(exists, order)
    decode = best_projective if projective else best_spanning_trees
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


def tree_log_partition(scores: Tensor, mask: Tensor, kind: TreeKind) -> Tensor:
    r"""$\log Z$ of each `(n, n)` instance."""
    if native.available:
        return _tree_sums(scores, mask, *kind, torch.is_grad_enabled() and scores.requires_grad)[0]
    arcs = tree_arcs(mask)
    return _plain_log_partition(checked_arcs(scores, arcs, *kind), arcs, kind)


def tree_marginals(scores: Tensor, mask: Tensor, kind: TreeKind) -> Tensor:
    r"""$\nabla \log Z$ of each `(n, n)` instance, within $[0, 1]$."""
    if native.available:
        return _tree_sums(scores, mask, *kind, True)[1]
    arcs = tree_arcs(mask)
    safe = checked_arcs(scores, arcs, *kind)
    if scores.shape[-1] == 1 or scores.numel() == 0:
        return safe  # no words: zeros
    mu = torch.func.grad(lambda s: _plain_log_partition(s, arcs, kind).sum())(safe)
    return mu.clamp(0, 1)  # rounding may leave [0, 1]


def _plain_log_partition(scores: Tensor, arcs: Tensor, kind: TreeKind) -> Tensor:
    exists = flatten(arcs, 2)
    order, lengths = compact(exists)
    function = projective_log_partition if kind.projective else matrix_tree_log_partition
    safe = reorder(flatten(scores, 2).double(), order)
    values = function(safe, reorder(exists, order), lengths, kind.single_root)
    return values.to(scores.dtype).reshape(scores.shape[:-2])


@operator("spigot::checked_arcs")
def checked_arcs(scores: Tensor, arcs: Tensor, projective: bool, single_root: bool) -> Tensor:
    """The scores with zeros outside, after making sure that a tree exists and that none inside is NaN."""
    kind = TreeKind(projective, single_root)
    refuse_nan(scores, arcs, 2)
    refuse_infinite(scores.isposinf() & arcs, 2, "scores")
    check_heads(arcs)
    dead = _plain_log_partition(torch.zeros_like(scores), arcs, kind).isneginf()
    if dead.any():
        instance = int(dead.flatten().nonzero()[0])
        raise impossible_error(instance, tuple(scores.shape[:-2]), kind.words)
    return summable(scores, arcs, 2).masked_fill(~arcs, 0)


register_checked(checked_arcs)


@operator("spigot::tree_sums")
@through_host
def _tree_sums(
    scores: Tensor, mask: Tensor, projective: bool, single_root: bool, marginals: bool
) -> tuple[Tensor, Tensor]:
    r"""$\log Z$ and, if wanted, $\mu$ (otherwise an empty tensor), by the native kernels."""
    flat, exists = flatten(summable(scores, tree_arcs(mask), 2), 2), flatten(mask, 2)
    log_partition = flat.new_empty(len(flat))
    mu = torch.empty_like(flat) if marginals else flat.new_empty(0)
    fault = native.kernels.tree_sums(
        flat, exists, projective, single_root, log_partition, mu if marginals else None, kernel_threads()
    )
    raise_tree_fault(fault, scores, TreeKind(projective, single_root))
    return log_partition.reshape(scores.shape[:-2]), mu.reshape(scores.shape) if marginals else mu


@operator("spigot::tree_hessian")
@through_host
def _tree_hessian(scores: Tensor, mask: Tensor, direction: Tensor, projective: bool, single_root: bool) -> Tensor:
    r"""$\nabla^2 \log Z \cdot v$: the derivative of the marginals along a direction."""
    flat = flatten(summable(scores, tree_arcs(mask), 2), 2)
    result = torch.empty_like(flat)
    fault = native.kernels.tree_hessian(
        flat, flatten(mask, 2), flatten(direction, 2), projective, single_root, result, kernel_threads()
    )
    raise_tree_fault(fault, scores, TreeKind(projective, single_root))
    return result.reshape(scores.shape)


register_sums(_tree_sums, _tree_hessian, 2)


@operator("spigot::sample_trees")
@through_host
def sample_trees(scores: Tensor, mask: Tensor, seeds: Tensor, projective: bool, single_root: bool) -> Tensor:
    """Independent draws of each `(n, n)` instance.

    Args:
        scores: `(*batch, n, n)` indexed `[head, modifier]`, the root at 0.
        mask: Arcs that exist. Self-loops and arcs into the root never do.
        seeds: `(*batch, samples)`, a seed for each draw.
        projective: Whether arcs must not cross.
        single_root: Whether exactly one word hangs on the root.

    Returns:
        Trees, `(*batch, samples, n, n)`. Where no tree scores above $-\\infty$, they have as few such arcs as can be.
    """
    kind = TreeKind(projective, single_root)
    n, samples = scores.shape[-1], seeds.shape[-1]
    shape = (*scores.shape[:-2], samples, n, n)
    flat, flat_seeds = flatten(summable(scores, tree_arcs(mask), 2), 2), flatten(seeds, 1)
    if native.serves(scores):
        z = flat.new_empty(len(flat), samples, n, n)
        fault = native.kernels.sample_trees(flat, flatten(mask, 2), flat_seeds, *kind, z, kernel_threads())
        raise_tree_fault(fault, scores, kind)
        return z.reshape(shape)
    arcs = tree_arcs(mask)
    safe = flatten(checked_arcs(scores, arcs, *kind), 2).double()
    exists = flatten(arcs, 2)
    order, lengths = compact(exists)
    logs, exists = reorder(safe, order), reorder(exists, order)
    total = projective_log_partition if projective else matrix_tree_log_partition
    massless = total(logs, exists, lengths, single_root).isneginf()
    logs = torch.where(massless[:, None, None] & logs.isneginf(), _least(logs), logs)
    draw = projective_draws if projective else nonprojective_draws
    heads = draw(logs, exists, lengths, single_root, flat_seeds)
    owner = torch.arange(len(flat), device=flat.device).repeat_interleave(samples)
    return arcs_from_heads(heads, order[owner], lengths[owner], scores).reshape(shape)


@sample_trees.register_fake
def _(scores: Tensor, mask: Tensor, seeds: Tensor, projective: bool, single_root: bool) -> Tensor:
    return scores.new_empty(*scores.shape[:-2], seeds.shape[-1], *scores.shape[-2:])


batched(sample_trees)


def _least(logs: Tensor) -> Tensor:
    """A score far below all others, for draws where there is nothing but -inf."""
    return -1e9 - 1e3 * torch.where(logs.isfinite(), logs, 0).abs().amax((-2, -1), keepdim=True)
