"""Draws and k-best lists of trees, and labelled trees, against the same written straightforwardly in torch."""

from collections.abc import Iterator

import torch
from torch import Tensor

import spigot
from benchmarks.timing import Row, at_most, best, faster, within


def wilson(scores: Tensor) -> Tensor:
    """One tree with any number of roots, for one sentence: Wilson's algorithm as one would write it in torch."""
    n = len(scores)
    loops = torch.eye(n, dtype=torch.bool)
    p = scores.masked_fill(loops, -torch.inf).softmax(0)  # heads of each word; the column of the root is not used
    heads, inside = torch.zeros(n, dtype=torch.long), torch.zeros(n, dtype=torch.bool)
    inside[0] = True
    for start in range(1, n):
        word = start
        while not inside[word]:
            heads[word] = torch.multinomial(p[:, word], 1)
            word = int(heads[word])
        word = start
        while not inside[word]:
            inside[word] = True
            word = int(heads[word])
    z = torch.zeros(n, n)
    z[heads[1:], torch.arange(1, n)] = 1
    return z


def tree_verbs() -> Iterator[Row]:
    n, batch = 50, 64
    scores = torch.randn(batch, n + 1, n + 1, generator=torch.Generator().manual_seed(n))
    many, one = spigot.NonProjectiveTrees(single_root=False), spigot.NonProjectiveTrees()
    assert many.contains(wilson(scores[0]))
    ours = best(lambda: many.sample(scores))
    loop = best(lambda: wilson(scores[0]), least=5) * batch
    yield faster("non-projective sampling, n=50, many roots", ours, "a Wilson loop in torch", loop, 10)
    ours = best(lambda: one.sample(scores))
    yield faster("non-projective sampling, n=50, single root", ours, "a Wilson loop in torch, many roots", loop, 10)
    for scale in (5, 100):
        peaked = scores * scale
        ours = best(lambda: one.sample(peaked))
        yield Row(f"non-projective sampling, n=50, single root, scores x{scale}", ours)
    projective = spigot.ProjectiveTrees()
    ours, sums = best(lambda: projective.sample(scores)), best(lambda: projective.marginals(scores))
    yield at_most("projective sampling, n=50", ours, "our marginals", sums, 1.0)
    ours = best(lambda: projective.sample(scores, None, 10)) / 10
    yield Row("projective sampling, n=50, each of ten draws", ours)
    for trees in (projective, one):
        ours = best(lambda: trees.k_best(scores[:8], 10)) / 8
        yield within(f"10 best of {type(trees).__name__}, n=50, a sentence", ours, 10.0)
    yield from _labelled()


def _labelled() -> Iterator[Row]:
    trees = spigot.LabelledTrees(spigot.NonProjectiveTrees(), 40)
    scores = torch.randn(32, 26, 26, 40, generator=torch.Generator().manual_seed(0))
    mask = trees.mask(torch.full((32,), 25))
    ours, largest = best(lambda: trees.argmax(scores, mask)), best(lambda: scores.max(-1))
    yield at_most("labelled argmax, n=25, 40 labels, batch 32", ours, "torch.max over labels alone", largest, 1.5)
    yield Row("labelled marginals, the same", best(lambda: trees.marginals(scores, mask)))
    yield Row("labelled sampling, the same", best(lambda: trees.sample(scores, mask)))
