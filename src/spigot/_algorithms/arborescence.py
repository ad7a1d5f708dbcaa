r"""Non-projective trees: maximum spanning arborescences.

References:
    Chu, Liu (1965), On the shortest arborescence of a directed graph. Edmonds (1967), Optimum branchings.
    Tarjan (1977), Finding optimum branchings.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor


def arborescences_reference(
    scores: Float[Tensor, "batch n n"],
    arcs: Bool[Tensor, "batch n n"],
    lengths: Int[Tensor, "batch"],
    single_root: bool,
) -> tuple[Int[Tensor, "batch n"], Float[Tensor, "batch"]]:
    """Heads and value of the best tree over compacted words, one sentence at a time on the CPU; `-inf` for none."""
    heads = np.zeros(scores.shape[:2], dtype=np.int64)
    values = np.zeros(len(scores))
    safe, exists = scores.cpu().numpy(), arcs.cpu().numpy()
    for b, length in enumerate(lengths.tolist()):
        inside = slice(0, length + 1)
        found = arborescence_reference(safe[b, inside, inside], exists[b, inside, inside], single_root)
        if found is None:
            values[b] = -np.inf
        else:
            heads[b, inside] = found
            values[b] = safe[b, found[1:], np.arange(1, length + 1)].sum()
    return torch.from_numpy(heads).to(scores.device), torch.from_numpy(values).to(scores.device)


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
