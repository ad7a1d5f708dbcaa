"""Projection onto the hull of dependency trees: the search of `active_set.py` in the native kernels."""

import torch
from torch import Tensor

from spigot import native
from spigot.algorithms.active_set import MAX_ROUNDS, TOLERANCE
from spigot.algorithms.kernels import flatten, raise_tree_fault
from spigot.algorithms.tree_kinds import TreeKind
from spigot.records import HullResult, PackedSupport


def project_tree_hull(point: Tensor, mask: Tensor, start: Tensor | None, kind: TreeKind) -> HullResult:
    """Nearest points of the hull of trees.

    Args:
        point: `(*batch, n, n)`; from an accelerator it goes by way of the host.
        mask: Arcs that exist.
        start: A tree for each instance to begin with; the best for `point` if omitted.
        kind: Which trees.
    """
    source, exists = flatten(point.cpu(), 2), flatten(mask.cpu(), 2)
    first = None if start is None else flatten(start.to(source), 2)
    projected = torch.empty_like(source)
    gap = source.new_empty(len(source), dtype=torch.float64)
    fault, *support = native.kernels.project_tree_hull(
        source, exists, first, *kind, TOLERANCE[point.dtype], MAX_ROUNDS, projected, gap, torch.get_num_threads()
    )
    raise_tree_fault(fault, point, kind)
    packed = PackedSupport(*(torch.from_numpy(array) for array in support))
    return HullResult(projected.reshape(len(source), -1).to(point), gap.to(point), packed)
