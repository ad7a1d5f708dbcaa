"""Random masks of small instances, and lists of vertices that only the tests need: what cases are made of."""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor

from spigot.factors import AtMostOne, Implies, Or
from tests.spigot import brute


def coin(generator: Generator, *shape: int, p: float) -> Tensor:
    return torch.rand(*shape, generator=generator) < p


def any_mask(generator: Generator, *parts: int) -> Tensor:
    """Parts missing at random; now and then all of them."""
    return coin(generator, *parts, p=0.8) & bool(coin(generator, 1, p=0.95))


def tree_mask(generator: Generator, n: int, members: Callable[[Tensor], Tensor]) -> Tensor:
    """Positions missing at random, in the middle too, then arcs missing at random, but a tree must remain."""
    arcs = ~torch.eye(n, dtype=torch.bool)
    arcs[:, 0] = False
    while True:
        exists = coin(generator, n, p=0.8)
        exists[0] = True
        mask = arcs & exists[:, None] & exists[None, :] & coin(generator, n, n, p=0.8)
        if len(members(mask)) and _words(mask) == int(exists[1:].sum()):
            return mask


def _words(mask: Tensor) -> int:
    return int((mask.any(0) | mask.any(1))[1:].sum())


def graph_mask(generator: Generator, n: int, labels: int) -> Tensor:
    """Any parts missing, also an arc without its labels, labels without their arc, arcs without their predicate."""
    mask = coin(generator, n, n, 1 + labels, p=0.85)
    mask[:, 0] = False
    mask[range(n), range(n), 1:] = False
    mask[range(n), range(n), 0] = coin(generator, n, p=0.85)
    return mask & bool(coin(generator, 1, p=0.95))


def chain_mask(generator: Generator, n: int, k: int) -> Tensor:
    """Padding at the end, then states and transitions missing at random, but a chain must remain."""
    while True:
        length = int(torch.randint(n + 1, (1,), generator=generator))
        mask = coin(generator, n, 1 + k, k, p=0.85) & (torch.arange(n) < length)[:, None, None]
        mask[0, 1:] = False
        if bool(mask[:length, 0].any(-1).all()) and len(brute.chains(mask)):
            return mask


def steps(mask: Tensor) -> Tensor:
    """One state for each position and one transition for each step, whether they fit or not."""
    n, _, k = mask.shape
    there = mask[:, 0].any(-1)
    options = [mask[t, 0].nonzero().flatten().tolist() for t in range(n) if there[t]]
    pairs = [
        [(1 + i, j) for i, j in itertools.product(range(k), range(k)) if mask[t, 1 + i, j] and mask[t - 1, 0, i]]
        for t in range(1, len(options))
    ]
    pairs = [[(i, j) for i, j in pair if mask[t, 0, j]] for t, pair in enumerate(pairs, 1)]
    rows = list(itertools.product(*options, *pairs))
    z = torch.zeros(len(rows), *mask.shape, dtype=torch.float64)
    for row, chosen in enumerate(rows):
        for t, state in enumerate(chosen[: len(options)]):
            z[row, t, 0, state] = 1
        for t, (i, j) in enumerate(chosen[len(options) :], 1):
            z[row, t, i, j] = 1
    return z


def heads(mask: Tensor) -> Tensor:
    """The vertices of Eq. 5: one head for each word, cycles and all."""
    n = mask.shape[-1]
    words = [j for j in range(1, n) if mask[:, j].any() or mask[j].any()]
    options = [[i for i in range(n) if mask[i, j]] for j in words]
    rows = list(itertools.product(*options))
    z = torch.zeros(len(rows), n, n, dtype=torch.float64)
    for row, chosen in enumerate(rows):
        z[row, list(chosen), words] = 1
    return z


def labelled_heads(mask: Tensor) -> Tensor:
    """The vertices of Eq. 5 with labels: one head with one of its labels for each word."""
    n, _, labels = mask.shape
    words = [j for j in range(1, n) if mask[:, j].any() or mask[j].any()]
    options = [mask[:, j].nonzero().tolist() for j in words]
    z = torch.zeros(math.prod(map(len, options)), n, n, labels, dtype=torch.float64)
    for row, chosen in enumerate(itertools.product(*options)):
        for j, (i, label) in zip(words, chosen, strict=True):
            z[row, i, j, label] = 1
    return z


def arc_labels(mask: Tensor) -> Tensor:
    """The vertices of Eq. 6: each predicate on or off, each arc off or on with one label, all independent."""
    n = mask.shape[0]
    blocks: list[list[list[tuple[int, int, int]]]] = []
    for i, j in itertools.product(range(n), range(n)):
        if i == j and mask[i, i, 0]:
            blocks.append([[], [(i, i, 0)]])
        elif mask[i, j, 0]:
            blocks.append([[], *([(i, j, 0), (i, j, 1 + int(l))] for l in mask[i, j, 1:].nonzero()[:, 0])])
    z = torch.zeros(1, *mask.shape, dtype=torch.float64)
    for block in blocks:
        z = z.repeat(len(block), 1, 1, 1)
        for part, choice in zip(z.chunk(len(block)), block, strict=True):
            for where in choice:
                part[(slice(None), *where)] = 1
    return z


def labelled_mask(generator: Generator, n: int, labels: int, members: Callable[[Tensor], Tensor]) -> Tensor:
    """The mask of a tree, and then labels missing at random, but each arc keeps one."""
    arcs = tree_mask(generator, n, members)
    mask = arcs.unsqueeze(-1) & coin(generator, n, n, labels, p=0.7)
    mask[..., 0] |= arcs & ~mask.any(-1)
    return mask


def matching_mask(generator: Generator, n: int, m: int, complete: bool) -> Tensor:
    """Rows, columns and parts missing at random; now and then all; but a matching must remain."""
    while True:
        mask = coin(generator, n, m, p=0.85) & coin(generator, n, 1, p=0.9) & coin(generator, 1, m, p=0.9)
        mask = mask & bool(coin(generator, 1, p=0.95))
        if len(brute.matchings(mask, complete=complete)):
            return mask


def alignment_mask(generator: Generator, n: int, m: int) -> Tensor:
    """A grid of 0 to n rows and 0 to m columns with most of its cells, at least one path among them."""
    while True:
        rows, columns = (int(torch.randint(size + 1, (), generator=generator)) for size in (n, m))
        mask = coin(generator, n, m, p=0.85)
        mask[rows:] = False
        mask[:, columns:] = False
        if len(brute.alignments(mask)):
            return mask


def diagonals(mask: Tensor) -> Tensor:
    """The vertices of `DiagonalSimplex`: the first and the last cell, and at most one of every other anti-diagonal."""
    n, m = mask.shape
    if not mask.any():
        return torch.zeros(1, n, m, dtype=torch.float64)
    last = sum(int(mask.any(axis).nonzero()[-1, 0]) for axis in (1, 0))
    choices = []
    for d in range(last + 1):
        cells = [(i, d - i) for i in range(n) if 0 <= d - i < m and mask[i, d - i]]
        choices.append(cells if d in (0, last) else [*cells, None])
    z = torch.zeros(math.prod(map(len, choices)), n, m, dtype=torch.float64)
    for row, cells in enumerate(itertools.product(*choices)):
        for cell in filter(None, cells):
            z[(row, *cell)] = 1
    return z


def span_mask(generator: Generator, n: int, labels: int) -> Tensor:
    """A sentence of 0 to n words with most of its labelled spans, at least one tree among them."""
    words = int(torch.randint(n + 1, (), generator=generator))
    while True:
        mask = torch.rand(n, n, labels, generator=generator) < 0.85
        mask[words:] = False
        mask[:, words:] = False
        mask &= torch.ones(n, n).triu().bool().unsqueeze(-1)
        kept = int(mask.any(-1).diagonal().sum()) == words
        if kept and len(brute.span_trees(mask)):
            return mask


def span_labels(mask: Tensor) -> Tensor:
    """The vertices of `SpanSimplex`: one label of each word and of the sentence, at most one of other spans."""
    n = mask.shape[0]
    words = int(mask.any(-1).diagonal().sum())
    choices = []
    for i in range(n):
        for j in range(n):
            labels = mask[i, j].nonzero()[:, 0].tolist()
            needed = words and (i == j < words or (i, j) == (0, words - 1))
            if labels:
                choices.append([(i, j, l) for l in labels] + ([] if needed else [None]))
    z = torch.zeros(math.prod(map(len, choices)), *mask.shape, dtype=torch.float64)
    for row, parts in enumerate(itertools.product(*choices)):
        for part in filter(None, parts):
            z[(row, *part)] = 1
    return z


INTERVALS = torch.tensor([[1.0, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 1, 1]]), torch.tensor([1.0, 2, 1])
"""Rows of consecutive ones: totally unimodular, so that the relaxation has no fractional vertices."""


def intervals(mask: Tensor) -> Tensor:
    rows, bound = (value.double() for value in INTERVALS)
    z = brute.subsets(mask)
    return z[(z @ rows.T <= bound).all(1)]


DEMANDS = (AtMostOne([0, 1]), Or([1, 2], output=3), Implies([3], output=4))
"""Factors that form a tree, so that the local polytope is the hull."""


def demanded(mask: Tensor) -> Tensor:
    z = brute.subsets(mask)
    a, b, c, d, e = z.unbind(1)
    return z[(a + b <= 1) & (d == torch.maximum(b, c)) & (d <= e)]


def joint_mask(generator: Generator) -> Tensor:
    """Two kinds of graphs over one word, with one label and with two, and a part across them."""
    kinds = [graph_mask(generator, 2, labels) for labels in (1, 2)]
    across = coin(generator, 2, 2, 1, p=0.85)
    across[:, 0] = across[range(2), range(2)] = False
    return torch.cat((*kinds, across), -1)


def joint_graphs(mask: Tensor) -> Tensor:
    kinds = [brute.graphs(mask[..., :2]), brute.graphs(mask[..., 2:5])]
    first = kinds[0].repeat_interleave(len(kinds[1]), 0)
    second = kinds[1].repeat(len(kinds[0]), 1, 1, 1)
    both = first[..., :1] * second[..., :1] * mask[..., 5:] * ~torch.eye(2, dtype=torch.bool).unsqueeze(-1)
    return torch.cat((first, second, both), -1)


def at_most_two(mask: Tensor) -> Tensor:
    z = brute.subsets(mask)
    return z[z.sum(1) <= 2]


def best_two(scores: Tensor, mask: Tensor) -> Tensor:
    """The argmax of an oracle of the user's: the two best of those that exist and are worth taking."""
    order = scores.masked_fill(~mask, -torch.inf).argsort(-1, descending=True).argsort(-1)
    return ((order < 2) & (scores > 0) & mask).to(scores.dtype)


def more_than_two(z: Tensor, mask: Tensor) -> list[str]:
    return [f"{int(z.sum())} parts are taken, more than 2"] if z.sum() > 2 else []


def sized(mask: Tensor, minimum: int, maximum: int) -> Tensor:
    """Subsets of these sizes; the empty one if nothing exists."""
    z = brute.subsets(mask)
    size = z.sum(1)
    return z[(size >= (minimum if mask.any() else 0)) & (size <= maximum)]


def subset_mask(generator: Generator, minimum: int) -> Tensor:
    """Any entries missing, but not so many that none is left to choose."""
    while 0 < (mask := any_mask(generator, 5)).sum() < minimum:
        pass
    return mask
