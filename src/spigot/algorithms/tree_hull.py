"""Projection onto the hull of dependency trees: the search of `active_set.py` in the native kernels."""

import torch
from torch import Tensor

from spigot import native
from spigot.algorithms.active_set import MAX_ROUNDS, TOLERANCE
from spigot.algorithms.kernels import flatten, raise_tree_fault
from spigot.algorithms.tree_kinds import TreeKind
from spigot.records import HullResult, PackedSupport


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
    source, exists = flatten(point.cpu(), 2), flatten(mask.cpu(), 2)
    first = None if start is None else flatten(start.to(source), 2)
    projected = torch.empty_like(source)
    gap = source.new_empty(len(source), dtype=torch.float64)
    tolerance, threads = TOLERANCE[point.dtype], torch.get_num_threads()
    fault, *arrays = native.kernels.project_tree_hull(
        source, exists, first, *kind, tolerance, MAX_ROUNDS, support, projected, gap, threads
    )
    raise_tree_fault(fault, point, kind)
    packed = PackedSupport(*(torch.from_numpy(array) for array in arrays))
    return HullResult(projected.reshape(len(source), -1).to(point), gap.to(point), packed)
