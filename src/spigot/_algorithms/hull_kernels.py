"""Projections onto hulls by the native search: `active_set.py`, for structures whose best member is quick to find.

The kernels know trees and chains. All their members have equally many parts, one of each kind.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from spigot._algorithms.active_set import MAX_ROUNDS, TOLERANCE
from spigot._algorithms.chains import raise_chain_fault
from spigot._algorithms.kernels import Fault, flatten, raise_tree_fault
from spigot._algorithms.tree_kinds import TreeKind
from spigot._runtime import native
from spigot._runtime.threads import kernel_threads
from spigot.interface.records import HullResult, PackedSupport


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

    return _search(native.kernels.project_tree_hull, point, mask, start, 2, kind, support, refuse)


def project_chain_hull(point: Tensor, mask: Tensor, start: Tensor | None, *, support: bool = True) -> HullResult:
    """Nearest points of the hull of chains.

    Args:
        point: `(*batch, n, 1 + k, k)`; from an accelerator it goes by way of the host.
        mask: Parts that exist.
        start: A chain for each instance to begin with; the best for `point` if omitted.
        support: Whether to hand over the chains whose mixture is the answer.
    """

    def refuse(fault: Fault | None) -> None:
        raise_chain_fault(fault, point)

    return _search(native.kernels.project_chain_hull, point, mask, start, 3, (), support, refuse)


def _search(
    kernel: Callable[..., tuple],
    point: Tensor,
    mask: Tensor,
    start: Tensor | None,
    ndim: int,
    kind: tuple[bool, ...],
    support: bool,
    refuse: Callable[[Fault | None], None],
) -> HullResult:
    source, exists = flatten(point.cpu(), ndim), flatten(mask.cpu(), ndim)
    first = None if start is None else flatten(start.to(source), ndim)
    projected = torch.empty_like(source)
    gap = source.new_empty(len(source), dtype=torch.float64)
    limits = (TOLERANCE[point.dtype], MAX_ROUNDS, support)
    fault, *arrays = kernel(source, exists, first, *kind, *limits, projected, gap, kernel_threads())
    refuse(fault)
    packed = PackedSupport(*(torch.from_numpy(array) for array in arrays))
    return HullResult(projected.reshape(len(source), -1).to(point), gap.to(point), packed)
