r"""Non-projective trees in plain torch and numpy: the best by Chu-Liu/Edmonds, sums by an elimination, draws.

*Sums.* The matrix-tree theorem writes the sum over trees as a determinant of the Laplacian. Two words that prefer each
other make that matrix singular to working precision, and LU loses every digit. Eliminating the words one by one
instead, as Grassmann, Taksar and Heyman do for Markov chains, only ever adds and multiplies positive numbers: to
eliminate word $k$ with total weight $d_k = \sum_h w_{h\to k}$, every word that chose $k$ as its head chooses among the
heads of $k$ in proportion, $w_{h\to m} \mathrel{+}= w_{k\to m}\, w_{h\to k} / d_k$, and loops are dropped. Then
$Z = \prod_k d_k$.

*Draws.* Word by word, the head is drawn from its exact marginal given the heads drawn before.

References:
    Chu, Liu (1965), On the shortest arborescence of a directed graph. Edmonds (1967), Optimum branchings.
    Tarjan (1977), Finding optimum branchings.
    Koo, Globerson, Carreras, Collins (2007), Structured prediction models via the matrix-tree theorem.
    Grassmann, Taksar, Heyman (1985), Regenerative analysis and steady state distributions for Markov chains.
    Colbourn, Myrvold, Neufeld (1996), Two algorithms for unranking arborescences.
    Zmigrod, Vieira, Cotterell (2021), Efficient sampling of dependency structures.
"""

import math

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from spigot._algorithms.sampling import STRIDE, gumbel
from spigot._runtime.reduce import masked_logsumexp


def best_spanning_trees(
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
        found = _chu_liu_edmonds(safe[b, inside, inside], exists[b, inside, inside], single_root)
        if found is None:
            values[b] = -np.inf
        else:
            heads[b, inside] = found
            values[b] = safe[b, found[1:], np.arange(1, length + 1)].sum()
    return torch.from_numpy(heads).to(scores.device), torch.from_numpy(values).to(scores.device)


def _chu_liu_edmonds(
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


def matrix_tree_log_partition(
    scores: Float[Tensor, "batch n n"],
    arcs: Bool[Tensor, "batch n n"],
    lengths: Int[Tensor, "batch"],
    single_root: bool,
) -> Float[Tensor, "batch"]:
    """Log-partition over compacted words, in plain torch, in log space; differentiable as often as one likes."""
    batch, n, _ = scores.shape
    if n == 1 or batch == 0:
        return scores.sum((-2, -1)) * 0
    log, penalty, high = _rare_roots(scores, arcs, lengths, single_root)
    value = _eliminate(log) + penalty
    feasible = (value > -penalty / 2) | (penalty == 0)
    return torch.where(feasible, value + high, -torch.inf).masked_fill(lengths == 0, 0)


def _rare_roots(
    scores: Float[Tensor, "batch n n"],
    arcs: Bool[Tensor, "batch n n"],
    lengths: Int[Tensor, "batch"],
    single_root: bool,
) -> tuple[Float[Tensor, "batch n n"], Float[Tensor, "batch"], Float[Tensor, "batch"]]:
    """Log weights under which only the trees that are wanted count, as trees with any number of roots.

    Returns:
        The log weights, and what each tree has lost by them: on purpose, and because the best head of each word counts
        as nothing. Both are zero if any number of roots is wanted.
    """
    # A padded word hangs on word 1 with weight one, and word 1 itself, if padded, on the root: a factor of one.
    n = scores.shape[-1]
    word = torch.arange(n, device=scores.device)
    padded = word > lengths.unsqueeze(-1)
    hang = torch.where(word == 1, 0, 1)
    dummy = padded.unsqueeze(1) & (word.unsqueeze(1) == hang)
    log = scores.masked_fill(~arcs, -torch.inf).masked_fill(dummy, 0)
    if not single_root:
        none = torch.zeros_like(log[:, 0, 0])
        return log, none, none
    # With one root, the trees with fewest root arcs are singled out by a root weight that is small enough: beyond the
    # whole range of the other scores, so that two root arcs never pay. The range keeps it no larger than it must be.
    # Scores count from the best of their word: beside a score of 1e20 any weight would be lost to rounding.
    real = (arcs | dummy) & log.isfinite()
    high = torch.where(real.any(-2), log.masked_fill(~real, -torch.inf).amax(-2), 0.0).detach()
    log = log - high.unsqueeze(-2)
    low = torch.where(real, log, 0.0).amin(-2).detach()
    penalty = 100 + 2 * n * math.log(n) - 3 * low.sum(-1)
    rooted = torch.cat((log[:, :1] - torch.where(padded, 0.0, penalty.unsqueeze(-1)).unsqueeze(1), log[:, 1:]), 1)
    return rooted, penalty, high.sum(-1)


def _eliminate(log: Float[Tensor, "batch n n"]) -> Float[Tensor, "batch"]:
    """The log of the product of pivots."""
    total = torch.zeros_like(log[:, 0, 0])
    for k in range(log.shape[-1] - 1, 0, -1):
        into = log[:, :k, k]
        pivot = masked_logsumexp(into, torch.ones_like(into, dtype=torch.bool), -1)
        total = total + pivot
        alive = pivot.isfinite().unsqueeze(-1)
        share = torch.where(alive, into - torch.where(alive, pivot.unsqueeze(-1), 0), -torch.inf)
        detour = share.unsqueeze(-1) + log[:, k, None, :k]
        both = torch.stack((log[:, :k, :k], detour), -1)
        keep = ~torch.eye(k, dtype=torch.bool, device=log.device)
        log = masked_logsumexp(both, keep.unsqueeze(-1).expand_as(both), -1)
    return total


def nonprojective_draws(
    logs: Float[Tensor, "batch n n"],
    arcs: Bool[Tensor, "batch n n"],
    lengths: Int[Tensor, "batch"],
    single_root: bool,
    seeds: Int[Tensor, "batch samples"],
) -> Int[Tensor, "draws n"]:
    """Heads of each draw, the draws of an instance one after another."""
    n, samples = logs.shape[-1], seeds.shape[-1]
    seed = seeds.flatten()
    heads = torch.zeros(len(seed), n, dtype=torch.int64, device=logs.device)
    if n == 1 or len(seed) == 0:
        return heads
    weights = _rare_roots(logs, arcs, lengths, single_root)[0].repeat_interleave(samples, 0)
    place = torch.arange(n, device=logs.device)
    for word in range(1, n):
        order = place.clone()
        order[[1, word]] = order[[word, 1]]
        log = weights[:, order][:, :, order]
        ends = _ending(log)[:, order]  # its own inverse
        noise = gumbel(seed.unsqueeze(-1), word * STRIDE + place)
        heads[:, word] = (weights[:, :, word] + ends + noise).argmax(-1)
        chosen = place.unsqueeze(0) == heads[:, word, None]
        weights[:, :, word] = torch.where(chosen, 0.0, -torch.inf)
    return heads


def _ending(log: Float[Tensor, "batch n n"]) -> Float[Tensor, "batch n"]:
    """The log probability that following heads from each position leads to the root before it comes to word 1.

    All words but the first are eliminated from the last on, as above; then each knows its own from those
    of the words before it.
    """
    n = log.shape[-1]
    shares: list[Tensor] = []
    for k in range(n - 1, 1, -1):
        into = log[:, :k, k]
        pivot = masked_logsumexp(into, torch.ones_like(into, dtype=torch.bool), -1).unsqueeze(-1)
        share = torch.where(pivot.isfinite(), into - torch.where(pivot.isfinite(), pivot, 0), -torch.inf)
        shares.append(share)
        log = torch.logaddexp(log[:, :k, :k], share.unsqueeze(-1) + log[:, k, None, :k])
        log = log.masked_fill(torch.eye(k, dtype=torch.bool, device=log.device), -torch.inf)
    ends = log.new_full((len(log), n), -torch.inf)
    ends[:, 0] = 0
    for k, share in zip(range(2, n), reversed(shares), strict=True):
        ends[:, k] = masked_logsumexp(share + ends[:, :k], torch.ones_like(share, dtype=torch.bool), -1)
    return ends
