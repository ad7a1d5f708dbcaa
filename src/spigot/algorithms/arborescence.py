r"""Non-projective trees: maximum spanning arborescences.

References:
    Chu, Liu (1965), On the shortest arborescence of a directed graph. Edmonds (1967), Optimum branchings.
    Tarjan (1977), Finding optimum branchings.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spigot import native
from spigot.algorithms.checks import impossible_error
from spigot.algorithms.kernels import TREES, flatten, tree_argmax
from spigot.algorithms.reduce import refuse_nan
from spigot.algorithms.words import (
    arcs_from_heads,
    compact_words,
    finite_scores,
    refuse_headless,
    reorder,
    tree_arcs,
)


@torch.library.custom_op("spigot::nonprojective_argmax", mutates_args=())
def nonprojective_argmax(scores: Tensor, mask: Tensor, single_root: bool) -> Tensor:
    """The best tree of each `(n, n)` instance. Ties go to the first head; tensors elsewhere are decoded on the CPU."""
    n = scores.shape[-1]
    kind = "nonprojective-single" if single_root else "nonprojective"
    if native.serves(scores):
        return tree_argmax(scores, mask, kind)
    arcs = tree_arcs(mask)
    refuse_nan(scores, arcs, 2)
    refuse_headless(arcs)
    flat, exists = flatten(scores, 2), flatten(arcs, 2)
    order, lengths = compact_words(exists)
    arcs = reorder(exists, order)
    safe = finite_scores(reorder(flat, order), arcs).cpu().numpy()
    heads = np.zeros((len(safe), n), dtype=np.int64)
    for b, length in enumerate(lengths.tolist()):
        found = arborescence_reference(
            safe[b, : length + 1, : length + 1], arcs[b, : length + 1, : length + 1].cpu().numpy(), single_root
        )
        if found is None:
            raise impossible_error(b, tuple(scores.shape[:-2]), TREES[kind])
        heads[b, : length + 1] = found
    return arcs_from_heads(torch.from_numpy(heads).to(scores.device), order, lengths, scores).reshape(scores.shape)


@nonprojective_argmax.register_fake
def _(scores: Tensor, mask: Tensor, single_root: bool) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


def arborescence_reference(
    scores: NDArray[np.float64], arcs: NDArray[np.bool_], single_root: bool
) -> NDArray[np.int64] | None:
    """Heads of the best tree of one sentence, or None if there is none.

    Weights are compared lexicographically: first arcs that do not exist, then the number of roots, then the score.
    A large constant on the root arcs would do the same and lose digits.
    """
    rank = np.where(arcs, 0, -len(arcs))
    if single_root:
        rank[0] -= 1
    heads = _contract(rank, np.where(arcs, scores, 0.0))
    words = np.arange(1, len(heads))
    if not arcs[heads[1:], words].all() or (single_root and len(words) and (heads[1:] == 0).sum() != 1):
        return None
    return heads


def _contract(rank: NDArray[np.int64], score: NDArray[np.float64]) -> NDArray[np.int64]:
    """Chu-Liu/Edmonds on pairs (rank, score): greedy heads, and recursion on the graph with one cycle shrunk."""
    n = len(rank)
    heads = np.zeros(n, dtype=np.int64)
    for m in range(1, n):
        candidates = np.flatnonzero(np.arange(n) != m)
        heads[m] = candidates[np.lexsort((-score[candidates, m], -rank[candidates, m]))[0]]
    cycle = _find_cycle(heads)
    if cycle is None:
        return heads
    inside = np.zeros(n, dtype=bool)
    inside[cycle] = True
    outside = np.flatnonzero(~inside)
    # Entering the cycle at v costs v its head inside; leaving it takes the best word of the cycle.
    enter_rank = rank[np.ix_(outside, cycle)] - rank[heads[cycle], cycle]
    enter_score = score[np.ix_(outside, cycle)] - score[heads[cycle], cycle]
    entry = np.array([np.lexsort((-s, -r))[0] for r, s in zip(enter_rank, enter_score, strict=True)])
    leave_rank, leave_score = rank[np.ix_(cycle, outside)], score[np.ix_(cycle, outside)]
    exit_ = np.array([np.lexsort((-s, -r))[0] for r, s in zip(leave_rank.T, leave_score.T, strict=True)])
    k = len(outside)
    small_rank, small_score = np.zeros((k + 1, k + 1), dtype=np.int64), np.zeros((k + 1, k + 1))
    rows = np.arange(k)
    small_rank[:k, :k], small_score[:k, :k] = rank[np.ix_(outside, outside)], score[np.ix_(outside, outside)]
    small_rank[:k, k], small_score[:k, k] = enter_rank[rows, entry], enter_score[rows, entry]
    small_rank[k, :k], small_score[k, :k] = leave_rank[exit_, rows], leave_score[exit_, rows]
    small = _contract(small_rank, small_score)
    for row in range(1, k):
        heads[outside[row]] = cycle[exit_[row]] if small[row] == k else outside[small[row]]
    heads[cycle[entry[small[k]]]] = outside[small[k]]
    return heads


def _find_cycle(heads: NDArray[np.int64]) -> NDArray[np.int64] | None:
    seen = np.zeros(len(heads), dtype=np.int64)
    for start in range(1, len(heads)):
        node = start
        while node and not seen[node]:
            seen[node] = start
            node = heads[node]
        if node and seen[node] == start:
            cycle = [node]
            while heads[cycle[-1]] != node:
                cycle.append(heads[cycle[-1]])
            return np.array(cycle)
    return None
