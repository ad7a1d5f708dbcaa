"""Single graphs out of many: the k best, and draws, of semantic graphs without deterministic roles.

Predicates do not compete, nor do the arcs of one predicate: lists of the best and chances are local, and combined.
"""

import torch
from torch import Tensor

from spigot._algorithms.graphs import energies, graph_parts
from spigot._algorithms.k_best import combine
from spigot._algorithms.sampling import STRIDE, uniform
from spigot._runtime.operators import batched, operator
from spigot._runtime.reduce import refuse_infinite, refuse_nan, summable


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
