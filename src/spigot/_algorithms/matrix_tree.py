r"""Sums over non-projective trees, by an elimination without subtractions.

The matrix-tree theorem writes the sum over trees as a determinant of the Laplacian. Two words that prefer each other
make that matrix singular to working precision, and LU loses every digit. Eliminating the words one by one instead, as
Grassmann, Taksar and Heyman do for Markov chains, only ever adds and multiplies positive numbers: to eliminate word
$k$ with total weight $d_k = \sum_h w_{h\to k}$, every word that chose $k$ as its head chooses among the heads of $k$
in proportion, $w_{h\to m} \mathrel{+}= w_{k\to m}\, w_{h\to k} / d_k$, and loops are dropped. Then $Z = \prod_k d_k$.

References:
    Koo, Globerson, Carreras, Collins (2007), Structured prediction models via the matrix-tree theorem.
    Grassmann, Taksar, Heyman (1985), Regenerative analysis and steady state distributions for Markov chains.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spigot._runtime.reduce import masked_logsumexp


def matrix_tree_reference(
    scores: Float[Tensor, "batch n n"],
    arcs: Bool[Tensor, "batch n n"],
    lengths: Int[Tensor, "batch"],
    single_root: bool,
) -> Float[Tensor, "batch"]:
    """Log-partition over compacted words, in plain torch, in log space; differentiable as often as one likes."""
    batch, n, _ = scores.shape
    if n == 1 or batch == 0:
        return scores.sum((-2, -1)) * 0
    log, penalty, high = rare_roots(scores, arcs, lengths, single_root)
    value = _eliminate(log) + penalty
    feasible = (value > -penalty / 2) | (penalty == 0)
    return torch.where(feasible, value + high, -torch.inf).masked_fill(lengths == 0, 0)


def rare_roots(
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
