r"""Labelled trees: what the labels of each arc come to, and back from trees to labels.

Labels are chosen arc by arc: the best labelled tree has the best label on each arc of the best tree for these, sums
over labelled trees are sums over trees of arcs that weigh as much as all their labels together, and a draw of a
labelled tree is a draw of a tree and of a label for each of its arcs.
"""

import torch
from torch import Tensor

from spigot._algorithms.arc_mask import finite_scores, labelled_arcs
from spigot._algorithms.dependency_trees import k_best_heads, sample_trees, tree_argmax
from spigot._algorithms.kernel_calls import flatten, raise_fault
from spigot._algorithms.sampling import gumbel
from spigot._runtime import native
from spigot._runtime.native import kernel_threads
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import masked_logsumexp, refuse_infinite, refuse_nan, summable

LABELS_FROM = 1 << 50
"""Where the random numbers for labels begin in the stream of a seed: far beyond those for trees."""


@operator("spigot::labelled_argmax")
@through_host
def labelled_argmax(scores: Tensor, mask: Tensor, projective: bool, single_root: bool) -> Tensor:
    """The best labelled tree of each `(n, n, l)` instance, indexed `[head, modifier, label]`."""
    best, which = _best_labels(flatten(scores, 3), flatten(mask, 3), scores)
    batch = scores.shape[:-3]
    arcs = (which >= 0).reshape(*batch, *which.shape[1:])
    tree = tree_argmax(best.reshape(arcs.shape), arcs, projective, single_root)
    z = scores.new_zeros(scores.shape)
    if scores.shape[-1]:
        z.scatter_(-1, which.reshape(arcs.shape).clamp(min=0).long().unsqueeze(-1), tree.unsqueeze(-1))
    return z


def _best_labels(flat: Tensor, mask: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """The best label of each arc: its score, and its index or -1; one pass over memory."""
    if native.serves(flat):
        best = flat.new_empty(flat.shape[:3])
        which = flat.new_empty(flat.shape[:3], dtype=torch.int32)
        fault = native.kernels.best_labels(flat, mask, best, which, kernel_threads())
        raise_fault(fault, scores, 3, "scores")
        return best, which
    mask = labelled_arcs(mask)
    refuse_nan(flat.reshape(scores.shape), mask.reshape(scores.shape), 3)
    if flat.shape[-1] == 0:
        return flat.new_full(flat.shape[:3], -torch.inf), flat.new_full(flat.shape[:3], -1, dtype=torch.int32)
    values = flat.masked_fill(~mask, -torch.inf)
    best = values.amax(-1)
    first = (mask & (values == best.unsqueeze(-1))).to(torch.uint8).argmax(-1)
    return best, torch.where(mask.any(-1), first, -1).to(torch.int32)


@operator("spigot::label_sums")
@through_host
def label_sums(scores: Tensor, mask: Tensor, shares: bool) -> tuple[Tensor, Tensor, Tensor]:
    r"""What the labels of each arc come to, twice differentiable, in one pass over memory.

    Args:
        scores: `(*batch, n, n, l)` indexed `[head, modifier, label]`.
        mask: Parts that exist. Self-loops and arcs into the root never do.
        shares: Whether to compute the second result, without which there is no gradient.

    Returns:
        $\log \sum_\ell \exp s_\ell$ of each arc, $-\infty$ where there is no mass; the share of each label in the sum,
        or an empty tensor; and which arcs exist.
    """
    flat, exists = flatten(summable(scores, labelled_arcs(mask), 3), 3), flatten(mask, 3)
    if native.serves(flat):
        log_sum, arcs = flat.new_empty(flat.shape[:3]), exists.new_empty(flat.shape[:3])
        share = torch.empty_like(flat) if shares else flat.new_empty(0)
        fault = native.kernels.label_sums(flat, exists, log_sum, share if shares else None, arcs, kernel_threads())
        raise_fault(fault, scores, 3, "scores")
    else:
        exists = labelled_arcs(exists)
        refuse_nan(scores, exists.reshape(scores.shape), 3)
        refuse_infinite(scores.isposinf() & exists.reshape(scores.shape), 3, "scores")
        arcs, logs = exists.any(-1), masked_logsumexp(flat.double(), exists, -1)
        safe = torch.where(logs.isfinite(), logs, 0).unsqueeze(-1)
        share = torch.where(exists, flat.double() - safe, -torch.inf).exp().to(flat) if shares else flat.new_empty(0)
        log_sum = logs.to(flat)
    shape = scores.shape[:-1]
    return log_sum.reshape(shape), share.reshape(scores.shape) if shares else share, arcs.reshape(shape)


def _save_shares(ctx, inputs, output) -> None:
    ctx.save_for_backward(inputs[1], output[1])
    ctx.set_materialize_grads(False)


def _label_sums_backward(ctx, grad_log: Tensor | None, grad_share: Tensor | None, _: Tensor | None):
    mask, share = ctx.saved_tensors
    grad = None
    if grad_log is not None:
        grad = torch.where(mask, grad_log.unsqueeze(-1), 0) * share
    if grad_share is not None:
        weighted = torch.where(mask, grad_share, 0) * share
        curved = weighted - share * weighted.sum(-1, keepdim=True)
        grad = curved if grad is None else grad + curved
    return grad, None, None


label_sums.register_autograd(_label_sums_backward, setup_context=_save_shares)


@operator("spigot::sample_labelled")
@through_host
def sample_labelled(scores: Tensor, mask: Tensor, seeds: Tensor, projective: bool, single_root: bool) -> Tensor:
    """Draws of labelled trees, `(*batch, samples, n, n, l)`, from seeds `(*batch, samples)`."""
    labels, samples = scores.shape[-1], seeds.shape[-1]
    logs, _, arcs = label_sums(scores.double(), mask, False)
    trees = sample_trees(logs, arcs, seeds, projective, single_root)
    z = scores.new_zeros(*scores.shape[:-3], samples, *scores.shape[-3:])
    *where, sample, head, word = trees.nonzero(as_tuple=True)
    if len(word) == 0:
        return z
    arc = (*where, head, word)
    options = torch.where(mask[arc], scores[arc].double().clamp(min=-1e300), -torch.inf)  # also if all are -inf
    index = LABELS_FROM + word.unsqueeze(-1) * labels + torch.arange(labels, device=scores.device)
    label = (options + gumbel(seeds[(*where, sample)].unsqueeze(-1), index)).argmax(-1)
    z[(*where, sample, head, word, label)] = 1
    return z


@operator("spigot::k_best_labelled")
@through_host
def k_best_labelled(scores: Tensor, mask: Tensor, k: int, projective: bool, single_root: bool) -> tuple[Tensor, Tensor]:
    """The k best labelled trees, `(*batch, k, n, n, l)`, and which of them exist, `(*batch, k)`.

    They are labelled versions of the k best trees, taken with the best label of each arc: a tree behind these has k
    better ones before it. For each of these trees the k best ways to label it are found word by word, as only the k
    best ways to label the words so far can be part of them.
    """
    shape, n, labels = scores.shape, scores.shape[-2], scores.shape[-1]
    mask = labelled_arcs(mask)
    refuse_nan(scores, mask, 3)
    exists = flatten(mask, 3)
    choices = exists.transpose(2, 3).flatten(1, 2)  # (batch, heads and labels, words)
    safe = finite_scores(flatten(scores, 3).transpose(2, 3).flatten(1, 2), choices)
    safe = safe.masked_fill(~choices, -torch.inf).unflatten(1, (n, labels)).transpose(2, 3)
    z = scores.new_zeros(len(safe), k, n, n, labels)
    arcs = safe.amax(-1) if labels else safe.sum(-1) - torch.inf
    batch = shape[:-3]
    heads, found = k_best_heads(
        arcs.reshape(*batch, n, n), exists.any(-1).reshape(*batch, n, n), k, projective, single_root
    )
    if len(safe) == 0 or labels == 0 or k == 0:
        return z.reshape(*batch, k, n, n, labels), found.reshape(*batch, k)
    everyone = torch.arange(len(safe), device=scores.device)[:, None, None]
    words = torch.arange(n, device=scores.device)
    used = heads >= 0
    options, which = safe[everyone, heads.clamp(min=0), words].topk(min(k, labels), -1)  # (batch, trees, words, best)
    only = torch.arange(options.shape[-1], device=scores.device) == 0
    options = torch.where(used.unsqueeze(-1), options, torch.where(only, 0.0, -torch.inf))
    value, chosen = _k_best_sums(options.flatten(0, 1), k)
    value = value.unflatten(0, (-1, k)).masked_fill(~found.unsqueeze(-1), -torch.inf)
    value, rank = value.flatten(1).topk(k, 1)
    found = value > -torch.inf
    place = everyone[..., 0]
    tree, way = rank // k, rank % k
    heads, used = heads[place, tree], used[place, tree] & found.unsqueeze(-1)
    picked = chosen.unflatten(0, (-1, k))[place, tree, way]
    label = which[place, tree].gather(-1, picked.unsqueeze(-1)).squeeze(-1)
    b, rank, word = used.nonzero(as_tuple=True)
    z[b, rank, heads[b, rank, word], word, label[b, rank, word]] = 1
    return z.reshape(*batch, k, n, n, labels), found.reshape(*batch, k)


def _k_best_sums(options: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best ways to take one option of each group, from options `(batch, groups, options)`.

    Returns:
        What they sum to, `(batch, k)`, -inf where there are fewer, and what they take, `(batch, k, groups)`.
    """
    rows, groups, width = options.shape
    value = options.new_full((rows, k), -torch.inf)
    value[:, 0] = 0
    chosen = options.new_zeros(rows, k, groups, dtype=torch.int64)
    for group in range(groups):
        sums = (value.unsqueeze(-1) + options[:, None, group]).flatten(1)
        value, index = sums.topk(k, 1)
        chosen = chosen.gather(1, (index // width).unsqueeze(-1).expand(-1, -1, groups))
        chosen[..., group] = index % width
    return value, chosen


@labelled_argmax.register_fake
def _(scores: Tensor, mask: Tensor, projective: bool, single_root: bool) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


@label_sums.register_fake
def _(scores: Tensor, mask: Tensor, shares: bool) -> tuple[Tensor, Tensor, Tensor]:
    share = torch.empty_like(scores, memory_format=torch.contiguous_format) if shares else scores.new_empty(0)
    shape = scores.shape[:-1]
    return scores.new_empty(shape), share, scores.new_empty(shape, dtype=torch.bool)


@sample_labelled.register_fake
def _(scores: Tensor, mask: Tensor, seeds: Tensor, projective: bool, single_root: bool) -> Tensor:
    return scores.new_empty(*scores.shape[:-3], seeds.shape[-1], *scores.shape[-3:])


@k_best_labelled.register_fake
def _(scores: Tensor, mask: Tensor, k: int, projective: bool, single_root: bool) -> tuple[Tensor, Tensor]:
    shape = (*scores.shape[:-3], k)
    return scores.new_empty(*shape, *scores.shape[-3:]), scores.new_empty(shape, dtype=torch.bool)


batched(labelled_argmax)
batched(label_sums)
batched(sample_labelled)
batched(k_best_labelled)
