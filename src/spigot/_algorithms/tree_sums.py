r"""Log-partition and marginals of trees, with derivatives.

Natively one operator gives $\log Z$ and $\mu = \nabla \log Z$, and a second one, with dual numbers, the product of the
Hessian of $\log Z$ with a direction, which is the backward pass of $\mu$. Elsewhere plain torch computes $\log Z$ in
log space and its gradient is taken as is.
"""

import torch
from torch import Tensor

from spigot._algorithms.eisner import inside_reference
from spigot._algorithms.kernel_calls import flatten, raise_tree_fault
from spigot._algorithms.matrix_tree import matrix_tree_reference
from spigot._algorithms.tree_kinds import TreeKind
from spigot._algorithms.words import compact_words, refuse_headless, reorder, tree_arcs
from spigot._runtime import native
from spigot._runtime.checks import impossible_error
from spigot._runtime.operators import operator, through_host
from spigot._runtime.reduce import refuse_infinite, refuse_nan, summable
from spigot._runtime.sums import register_checked, register_sums
from spigot._runtime.threads import kernel_threads


def tree_log_partition(scores: Tensor, mask: Tensor, kind: TreeKind) -> Tensor:
    r"""$\log Z$ of each `(n, n)` instance."""
    if native.available:
        return _tree_sums(scores, mask, *kind, torch.is_grad_enabled() and scores.requires_grad)[0]
    arcs = tree_arcs(mask)
    return _reference(checked_arcs(scores, arcs, *kind), arcs, kind)


def tree_marginals(scores: Tensor, mask: Tensor, kind: TreeKind) -> Tensor:
    r"""$\nabla \log Z$ of each `(n, n)` instance, within $[0, 1]$."""
    if native.available:
        return _tree_sums(scores, mask, *kind, True)[1]
    arcs = tree_arcs(mask)
    safe = checked_arcs(scores, arcs, *kind)
    if scores.shape[-1] == 1 or scores.numel() == 0:
        return safe  # no words: zeros
    mu = torch.func.grad(lambda s: _reference(s, arcs, kind).sum())(safe)
    return mu.clamp(0, 1)  # rounding may leave [0, 1]


def _reference(scores: Tensor, arcs: Tensor, kind: TreeKind) -> Tensor:
    exists = flatten(arcs, 2)
    order, lengths = compact_words(exists)
    function = inside_reference if kind.projective else matrix_tree_reference
    safe = reorder(flatten(scores, 2).double(), order)
    values = function(safe, reorder(exists, order), lengths, kind.single_root)
    return values.to(scores.dtype).reshape(scores.shape[:-2])


@operator("spigot::checked_arcs")
def checked_arcs(scores: Tensor, arcs: Tensor, projective: bool, single_root: bool) -> Tensor:
    """The scores with zeros outside, after making sure that a tree exists and that none inside is NaN."""
    kind = TreeKind(projective, single_root)
    refuse_nan(scores, arcs, 2)
    refuse_infinite(scores.isposinf() & arcs, 2, "scores")
    refuse_headless(arcs)
    dead = _reference(torch.zeros_like(scores), arcs, kind).isneginf()
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
