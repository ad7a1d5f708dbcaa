r"""Trees drawn at random from $p(z) \propto \exp(z^\top s)$.

*Projective:* sums over spans (inside), then from the whole sentence down each span is split in proportion to what its
splits are worth. *Non-projective:* Wilson's loop-erased walks in the kernels, with the determinant as a way out where
words insist on each other (`native/wilson.hpp` argues why switching is exact); in plain torch the determinant alone:
word by word, the head is drawn from its exact marginal given the heads drawn before. Both are exact, also for a single
root.

References:
    Wilson (1996), Generating random spanning trees more quickly than the cover time.
    Propp, Wilson (1998), How to get a perfectly random sample from a generic Markov chain and generate a random
    spanning tree of a directed graph.
    Colbourn, Myrvold, Neufeld (1996), Two algorithms for unranking arborescences.
    Zmigrod, Vieira, Cotterell (2021), Efficient sampling of dependency structures.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spigot._algorithms.eisner import Chart, follow, inside_reference
from spigot._algorithms.kernel_calls import flatten, raise_tree_fault
from spigot._algorithms.matrix_tree import matrix_tree_reference, rare_roots
from spigot._algorithms.sampling import STRIDE, gumbel
from spigot._algorithms.tree_kinds import TreeKind
from spigot._algorithms.tree_sums import checked_arcs
from spigot._algorithms.words import arcs_from_heads, compact_words, reorder, tree_arcs
from spigot._runtime import native
from spigot._runtime.operators import batched, operator, through_host
from spigot._runtime.reduce import masked_logsumexp, summable
from spigot._runtime.threads import kernel_threads


@operator("spigot::sample_trees")
@through_host
def sample_trees(scores: Tensor, mask: Tensor, seeds: Tensor, projective: bool, single_root: bool) -> Tensor:
    """Independent draws of each `(n, n)` instance.

    Args:
        scores: `(*batch, n, n)` indexed `[head, modifier]`, the root at 0.
        mask: Arcs that exist. Self-loops and arcs into the root never do.
        seeds: `(*batch, samples)`, a seed for each draw.
        projective: Whether arcs must not cross.
        single_root: Whether exactly one word hangs on the root.

    Returns:
        Trees, `(*batch, samples, n, n)`. Where no tree scores above $-\\infty$, they have as few such arcs as can be.
    """
    kind = TreeKind(projective, single_root)
    n, samples = scores.shape[-1], seeds.shape[-1]
    shape = (*scores.shape[:-2], samples, n, n)
    flat, flat_seeds = flatten(summable(scores, tree_arcs(mask), 2), 2), flatten(seeds, 1)
    if native.serves(scores):
        z = flat.new_empty(len(flat), samples, n, n)
        fault = native.kernels.sample_trees(flat, flatten(mask, 2), flat_seeds, *kind, z, kernel_threads())
        raise_tree_fault(fault, scores, kind)
        return z.reshape(shape)
    arcs = tree_arcs(mask)
    safe = flatten(checked_arcs(scores, arcs, *kind), 2).double()
    exists = flatten(arcs, 2)
    order, lengths = compact_words(exists)
    logs, exists = reorder(safe, order), reorder(exists, order)
    total = inside_reference if projective else matrix_tree_reference
    massless = total(logs, exists, lengths, single_root).isneginf()
    logs = torch.where(massless[:, None, None] & logs.isneginf(), _least(logs), logs)
    draw = _projective_draws if projective else _nonprojective_draws
    heads = draw(logs, exists, lengths, single_root, flat_seeds)
    owner = torch.arange(len(flat), device=flat.device).repeat_interleave(samples)
    return arcs_from_heads(heads, order[owner], lengths[owner], scores).reshape(shape)


@sample_trees.register_fake
def _(scores: Tensor, mask: Tensor, seeds: Tensor, projective: bool, single_root: bool) -> Tensor:
    return scores.new_empty(*scores.shape[:-2], seeds.shape[-1], *scores.shape[-2:])


batched(sample_trees)


def _least(logs: Tensor) -> Tensor:
    """A score far below all others, for draws where there is nothing but -inf."""
    return -1e9 - 1e3 * torch.where(logs.isfinite(), logs, 0).abs().amax((-2, -1), keepdim=True)


def _projective_draws(
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
    owner = torch.arange(len(logs), device=logs.device).repeat_interleave(samples)
    logs = logs.masked_fill(~arcs, -torch.inf)
    first = 1 if single_root else 0
    chart = Chart(logs[:, first:, first:], lambda v: masked_logsumexp(v, torch.ones_like(v, dtype=torch.bool), -1))
    places = torch.arange(n, device=logs.device)

    def choose(values: Tensor, draw: Tensor, which: int, i: Tensor) -> Tensor:
        """A split of each span in proportion to its exponentiated value."""
        index = (which * STRIDE + i).unsqueeze(-1) * STRIDE + places[: values.shape[-1]]
        return (values[owner[draw], i] + gumbel(seed[draw].unsqueeze(-1), index)).argmax(-1)

    size = n - first
    wanted = {kind: torch.zeros(len(seed), size, size, dtype=torch.bool, device=logs.device) for kind in "rlRL"}
    everyone = torch.arange(len(seed), device=logs.device)
    last = (lengths[owner] - first).clamp(min=0)
    if single_root:
        roots = chart.roots(logs[:, 0, 1:], lengths)
        root = choose(roots.unsqueeze(1), everyone, 0, torch.zeros_like(everyone))
        root = torch.where(lengths[owner] > 0, root, 0)
        wanted["l"][everyone, 0, root] = True
        wanted["r"][everyone, root, last] = True
    else:
        wanted["r"][everyone, 0, last] = True
    for w in range(size - 1, 0, -1):
        follow(chart, wanted, heads, w, size, first, choose)
    return heads


def _nonprojective_draws(
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
    weights = rare_roots(logs, arcs, lengths, single_root)[0].repeat_interleave(samples, 0)
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

    All words but the first are eliminated from the last on, as in `matrix_tree.py`; then each knows its own from those
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
