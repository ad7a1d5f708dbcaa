r"""Semantic graphs: predicates, arcs, labelled arcs, and roles that a predicate may use once.

All constraints are local to a predicate, so the best graph is found predicate by predicate: each possible argument
takes its best label if that gains anything; if a deterministic role is then used twice, an assignment of roles to
arguments replaces the local choice; the predicate is kept if the whole is worth it. Without deterministic roles
predicates do not compete, nor do the arcs of one predicate: sums, lists of the best and draws are local, and combined.
"""

from collections.abc import Sequence

import numpy as np
import scipy  # its parts load when they are used
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spigot._algorithms.k_best import combine
from spigot._algorithms.kernel_calls import flatten, raise_fault
from spigot._algorithms.sampling import STRIDE, uniform
from spigot._runtime import native
from spigot._runtime.native import kernel_threads
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import masked_logsumexp, refuse_infinite, refuse_nan, summable


@operator("spigot::graph_argmax")
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
        fault = native.kernels.graph_argmax(flat, flatten(mask, 3), roles, z, kernel_threads())
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
    used = torch.zeros_like(scores[..., 1:])
    if labels:
        used.scatter_(-1, label.unsqueeze(-1), kept.unsqueeze(-1).to(scores.dtype))
    if deterministic:
        clash = (used[..., list(deterministic)].sum(-2) > 1).any(-1)
        for b, i in clash.nonzero().tolist():
            used[b, i] = _assign(scores[b, i], exists[b, i] & off[i, :, None], deterministic)
    predicate = exists[..., 0].diagonal(dim1=-2, dim2=-1)
    taken = torch.cat((used.any(-1, keepdim=True), used > 0), -1)
    taken |= (torch.eye(n, dtype=torch.bool, device=scores.device) & exists[..., 0]).unsqueeze(-1) & _first(taken)
    on = predicate & _gains(torch.where(taken, scores, 0.0).flatten(-2))
    z[..., 1:] = used * on[..., None, None]
    z[..., 0] = z[..., 1:].sum(-1)
    z[..., 0] = torch.where(off, z[..., 0], torch.diag_embed(on.to(scores.dtype)))
    return z


def _first(parts: Tensor) -> Tensor:
    """The first channel of parts."""
    return torch.arange(parts.shape[-1], device=parts.device) == 0


def _gains(parts: Float[Tensor, "*batch k"]) -> Bool[Tensor, "*batch"]:
    """Whether scores come to more than nothing: an infinity outweighs every finite number, one of each kind cancels.

    Numbers that could overflow together are scaled down by a power of two, which loses nothing of them.
    """
    infinities = (parts.isposinf().sum(-1) - parts.isneginf().sum(-1)).sign()
    finite = torch.where(parts.isinf(), 0.0, parts)
    large = finite.abs().amax(-1, keepdim=True) > 2.0**900
    total = torch.where(large, finite * 2.0**-100, finite).sum(-1)
    return (infinities > 0) | ((infinities == 0) & (total > 0))


def _assign(scores: Tensor, exists: Tensor, deterministic: tuple[int, ...]) -> Tensor:
    """Labels of one predicate's arguments with each deterministic role at most once."""
    n, labels = scores.shape[0], scores.shape[1] - 1
    top = torch.where(exists & scores.isfinite(), scores, 0.0).abs().amax()
    scores = scores * (2.0**-600 if top > 2.0**400 else 1.0)  # a power of two, so that sums stay below the largest
    giant = 8 * (n + 1) * (top * (2.0**-600 if top > 2.0**400 else 1.0)) if top > 0 else torch.ones_like(top)
    worth = (scores[:, 1:] + scores[:, :1]).nan_to_num(0.0, torch.inf, -torch.inf).clamp(-giant, giant)
    worth = worth.masked_fill(~(exists[:, 1:] & exists[:, :1]), -torch.inf)
    single = torch.zeros(labels, dtype=torch.bool, device=scores.device)
    single[list(deterministic)] = True
    free, free_label = worth.masked_fill(single, -torch.inf).max(-1)
    fallback = free.clamp(min=0)
    gain = (worth[:, single] - fallback.unsqueeze(-1)).clamp(min=0).cpu().numpy()
    rows, columns = scipy.optimize.linear_sum_assignment(-gain)
    chosen = torch.zeros(n, labels, dtype=scores.dtype, device=scores.device)
    chosen[torch.arange(n, device=scores.device), free_label] = (free > 0).to(scores.dtype)
    roles = np.flatnonzero(single.cpu().numpy())
    for row, column in zip(rows, columns, strict=True):
        if gain[row, column] > 0:
            chosen[row] = 0
            chosen[row, roles[column]] = 1
    return chosen


def summing_limit(scores: Tensor) -> float:
    """How large scores may be for sums in their own dtype."""
    return 1e290 if scores.dtype == torch.float64 else 1e30


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


@operator("spigot::rank_graphs")
def rank_graphs(scores: Tensor, mask: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    """The best graphs in order, `(*batch, ranks, n, n, 1 + l)`, zero beyond those there are, and their number."""
    predicate, _, labels = _checked(scores, mask)
    z = scores.new_zeros(*scores.shape[:-3], ranks, *scores.shape[-3:])
    if z.numel() == 0:
        return z, scores.new_zeros(scores.shape[:-3], dtype=torch.int64)
    # An arc: none, or one of its labels. A predicate: off, or on with arcs. A graph: one of each.
    none = labels.new_zeros(*labels.shape[:-1], 1)
    worth, option = torch.cat((none, labels), -1).sort(dim=-1, descending=True, stable=True)
    arcs, arc_choice = combine(worth, ranks)
    off = predicate.new_zeros(*predicate.shape, 1)
    worth, state = torch.cat((off, arcs + predicate.unsqueeze(-1)), -1).sort(dim=-1, descending=True, stable=True)
    values, choice = combine(worth, ranks)
    state = state.gather(-1, choice)  # (*batch, n, found): 0 is off, r + 1 is on with the r-th list of arcs
    on = state > 0
    wide = (state - 1).clamp(min=0).unsqueeze(-2)
    rank = arc_choice.gather(-1, wide.expand(*arc_choice.shape[:-1], wide.shape[-1]))
    label = option.gather(-1, rank) * on.unsqueeze(-2)  # (*batch, n, n, found): 0 is no arc
    found = values.isfinite().sum(-1)
    here = torch.arange(values.shape[-1], device=values.device) < found.unsqueeze(-1)
    best = _graph(on.movedim(-1, -2), label.movedim(-1, -3), labels.shape[-1]) & here[..., None, None, None]
    z[..., : values.shape[-1], :, :, :] = best.to(z.dtype)
    return z, found


@rank_graphs.register_fake
def _(scores: Tensor, mask: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    batch = scores.shape[:-3]
    return scores.new_empty(*batch, ranks, *scores.shape[-3:]), scores.new_empty(batch, dtype=torch.int64)


@operator("spigot::draw_graphs")
def draw_graphs(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
    """Graphs drawn with the chances they have: `(*batch, samples)` seeds, `(*batch, samples, n, n, 1 + l)`.

    First the predicates, then the arcs of those that are on, then a label for each arc.
    """
    predicate, arcs, labels = _checked(scores, mask)
    n = scores.shape[-2]
    width = labels.shape[-1]
    place = torch.arange(n, device=scores.device)
    place = 2 * (STRIDE * place.unsqueeze(-1) + place)  # by position, not by size: padding changes nothing
    drawn, second = uniform(seeds[..., None, None], place), uniform(seeds[..., None, None], place + 1)
    square = drawn.shape
    on = torch.sigmoid(predicate + torch.nn.functional.softplus(arcs).sum(-1))
    on = drawn.diagonal(dim1=-2, dim2=-1) < on.unsqueeze(-2)
    arc = drawn < torch.sigmoid(arcs).unsqueeze(-3)
    if width == 0:
        label = torch.zeros(square, dtype=torch.int64, device=scores.device)
    else:
        top = torch.where(arcs.isfinite(), arcs, 0).unsqueeze(-1)
        sums = (labels - top).exp().cumsum(-1)
        cut = second * sums[..., -1].unsqueeze(-3)
        cut = cut.movedim(-3, -1).contiguous()
        exists = labels.isfinite()
        last = width - 1 - exists.flip(-1).to(torch.uint8).argmax(-1, keepdim=True)
        label = torch.minimum(torch.searchsorted(sums, cut, right=True), last).movedim(-1, -3) + 1
    label = label * (arc & on.unsqueeze(-1))
    return _graph(on, label, width).to(scores.dtype)


@draw_graphs.register_fake
def _(scores: Tensor, mask: Tensor, seeds: Tensor) -> Tensor:
    return scores.new_empty(*scores.shape[:-3], seeds.shape[-1], *scores.shape[-3:])


batched(rank_graphs)
batched(draw_graphs)


def _checked(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Energies of predicates, arcs and labelled arcs in float64."""
    exists = graph_parts(mask)
    refuse_nan(scores, exists, 3)
    refuse_infinite(scores.isposinf() & exists, 3, "scores")
    scores = summable(scores, exists, 3)
    exact = scores if scores.device.type == "mps" else scores.double()
    return energies(exact.masked_fill(~exists, 0), exists)


def _graph(on: Tensor, label: Tensor, labels: int) -> Tensor:
    """Parts from predicates `(..., n)` and the label of each arc `(..., n, n)`, 0 where there is no arc."""
    role = torch.arange(1, labels + 1, device=label.device)
    labelled = label.unsqueeze(-1) == role
    return torch.cat((((label > 0) | torch.diag_embed(on)).unsqueeze(-1), labelled), -1)
