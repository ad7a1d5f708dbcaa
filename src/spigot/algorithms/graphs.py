r"""Semantic graphs: predicates, arcs, labelled arcs, and roles that a predicate may use once.

All constraints are local to a predicate, so the best graph is found predicate by predicate: each possible argument
takes its best label if that gains anything; if a deterministic role is then used twice, an assignment of roles to
arguments replaces the local choice; the predicate is kept if the whole is worth it.
"""

from collections.abc import Sequence

import numpy as np
import scipy  # its parts load when they are used
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spigot import native
from spigot.algorithms.kernels import flatten, raise_fault
from spigot.algorithms.operators import batched, through_host
from spigot.algorithms.reduce import masked_logsumexp, refuse_nan


@torch.library.custom_op("spigot::graph_argmax", mutates_args=())
@through_host
def graph_argmax(scores: Tensor, mask: Tensor, deterministic: Sequence[int]) -> Tensor:
    """The best graph of each `(n, n, 1 + l)` instance. A part that gains nothing is left out; ties go to the first."""
    if scores.numel() == 0:
        return torch.zeros_like(scores)
    flat = flatten(scores, 3)
    if native.serves(scores):
        z = torch.empty_like(flat)
        roles = torch.zeros(scores.shape[-1] - 1, dtype=torch.bool)
        roles[list(deterministic)] = True
        fault = native.kernels.graph_argmax(flat, flatten(mask, 3), roles, z, torch.get_num_threads())
        raise_fault(fault, scores, 3, "scores")
        return z.reshape(scores.shape)
    exists = graph_parts(mask)
    refuse_nan(scores, exists, 3)
    z = graph_reference(flat.double(), flatten(exists, 3), tuple(deterministic))
    return z.to(scores.dtype).reshape(scores.shape)


@graph_argmax.register_fake
def _(scores: Tensor, mask: Tensor, deterministic: Sequence[int]) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


batched(graph_argmax)


def graph_parts(mask: Bool[Tensor, "*batch n n c"]) -> Bool[Tensor, "*batch n n c"]:
    """The parts that can take part in a graph: an arc needs its predicate, a label its arc; the root is no argument."""
    n = mask.shape[-2]
    diagonal = torch.eye(n, dtype=torch.bool, device=mask.device).unsqueeze(-1)
    predicate = mask[..., 0].diagonal(dim1=-2, dim2=-1)[..., :, None, None]
    argument = torch.arange(n, device=mask.device).gt(0)[:, None]
    arcs = mask[..., :1] & ~diagonal & argument & predicate
    labels = mask[..., 1:] & arcs
    return torch.cat((arcs | (mask[..., :1] & diagonal), labels), -1)


def graph_reference(
    scores: Float[Tensor, "batch n n c"], exists: Bool[Tensor, "batch n n c"], deterministic: tuple[int, ...]
) -> Float[Tensor, "batch n n c"]:
    """`graph_argmax` in plain torch, with scipy for the assignments."""
    n, labels = scores.shape[-2], scores.shape[-1] - 1
    z = torch.zeros_like(scores)
    if labels == 0:
        value = scores.new_full((*scores.shape[:-1],), -torch.inf)
        label = torch.zeros_like(value, dtype=torch.int64)
    else:
        value, label = scores[..., 1:].masked_fill(~exists[..., 1:], -torch.inf).max(-1)
        value = value + scores[..., 0].masked_fill(~exists[..., 0], -torch.inf)
    off = ~torch.eye(n, dtype=torch.bool, device=scores.device)
    kept = (value > 0) & off
    gain = torch.where(kept, value, 0.0).sum(-1)
    used = torch.zeros_like(scores[..., 1:])
    if labels:
        used.scatter_(-1, label.unsqueeze(-1), kept.unsqueeze(-1).to(scores.dtype))
    if deterministic:
        clash = (used[..., list(deterministic)].sum(-2) > 1).any(-1)
        for b, i in clash.nonzero().tolist():
            used[b, i], gain[b, i] = _assign(scores[b, i], exists[b, i] & off[i, :, None], deterministic)
    predicate = exists[..., 0].diagonal(dim1=-2, dim2=-1)
    on = predicate & (scores[..., 0].diagonal(dim1=-2, dim2=-1) + gain > 0)
    z[..., 1:] = used * on[..., None, None]
    z[..., 0] = z[..., 1:].sum(-1)
    z[..., 0] = torch.where(off, z[..., 0], torch.diag_embed(on.to(scores.dtype)))
    return z


def _assign(scores: Tensor, exists: Tensor, deterministic: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Labels of one predicate's arguments with each deterministic role at most once, and what they are worth."""
    n, labels = scores.shape[0], scores.shape[1] - 1
    worth = (scores[:, 1:] + scores[:, :1]).masked_fill(~(exists[:, 1:] & exists[:, :1]), -torch.inf)
    single = torch.zeros(labels, dtype=torch.bool, device=scores.device)
    single[list(deterministic)] = True
    free, free_label = worth.masked_fill(single, -torch.inf).max(-1)
    fallback = free.clamp(min=0)
    gain = (worth[:, single] - fallback.unsqueeze(-1)).clamp(min=0).nan_to_num(neginf=0).cpu().numpy()
    rows, columns = scipy.optimize.linear_sum_assignment(-gain)
    chosen = torch.zeros(n, labels, dtype=scores.dtype, device=scores.device)
    chosen[torch.arange(n, device=scores.device), free_label] = (free > 0).to(scores.dtype)
    roles = np.flatnonzero(single.cpu().numpy())
    total = fallback.sum()
    for row, column in zip(rows, columns, strict=True):
        if gain[row, column] > 0:
            chosen[row] = 0
            chosen[row, roles[column]] = 1
            total = total + float(gain[row, column])
    return chosen, total


def graph_log_partition(scores: Float[Tensor, "*batch n n c"], exists: Bool[Tensor, "*batch n n c"]) -> Tensor:
    r"""$\log Z = \sum_i \log(1 + e^{s_i} \prod_j (1 + e^{a_{ij}}))$.

    Here $a_{ij} = s_{ij} + \log\sum_\ell e^{s_{ij\ell}}$ is an arc with its labels summed out.
    """
    predicate, arcs, _ = energies(scores, exists)
    total = predicate + torch.nn.functional.softplus(arcs).sum(-1)
    return torch.where(total.isneginf(), 0.0, torch.nn.functional.softplus(total)).sum(-1)


def graph_marginals(scores: Float[Tensor, "*batch n n c"], exists: Bool[Tensor, "*batch n n c"]) -> Tensor:
    r"""$P(i) = \sigma(s_i + \sum_j \log(1 + e^{a_{ij}}))$, $P(i \to j) = P(i)\,\sigma(a_{ij})$, labels by softmax."""
    predicate, arcs, labels = energies(scores, exists)
    on = torch.sigmoid(predicate + torch.nn.functional.softplus(arcs).sum(-1))
    arc = on.unsqueeze(-1) * torch.sigmoid(arcs)
    shifted = labels - torch.where(arcs.isfinite(), arcs, 0.0).unsqueeze(-1)
    labelled = arc.unsqueeze(-1) * shifted.exp()
    return torch.cat(((arc + torch.diag_embed(on)).unsqueeze(-1), labelled), -1).masked_fill(~exists, 0)


def energies(scores: Tensor, exists: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores of predicates, of arcs with their labels summed out, and of arcs with each label; `-inf` where absent."""
    n = scores.shape[-2]
    off = ~torch.eye(n, dtype=torch.bool, device=scores.device)
    whole = scores.masked_fill(~exists, -torch.inf)
    predicate = whole[..., 0].diagonal(dim1=-2, dim2=-1)
    arc = exists[..., 0] & off
    labels = (scores[..., 1:] + scores[..., :1]).masked_fill(~(exists[..., 1:] & arc.unsqueeze(-1)), -torch.inf)
    if labels.shape[-1] == 0:
        return predicate, torch.full_like(scores[..., 0], -torch.inf), labels
    return predicate, masked_logsumexp(labels, exists[..., 1:], -1), labels
