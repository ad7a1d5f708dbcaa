"""Subsets of long rows: 64 rows of 10,000 unit normal scores."""

from collections.abc import Iterator

import torch

import spigot
from benchmarks.timing import Row, at_most, best


def subsets() -> Iterator[Row]:
    scores = torch.randn(64, 10_000, generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(scores, dtype=torch.bool)
    for k in (10, 100):
        structure = spigot.Subsets(k)
        polytope = structure.relaxation
        theirs = best(lambda: scores.topk(k))
        ours = best(lambda: polytope.project(scores, mask))
        yield at_most(f"top-{k} projection, 64x10,000", ours, "torch.topk", theirs, 2.0)
        argmax = best(lambda: structure.argmax(scores, mask))
        yield Row(f"top-{k} argmax, the same", argmax, "torch.topk", theirs, ratio=argmax / theirs)
        yield Row(f"top-{k} marginals, the same", best(lambda: structure.marginals(scores, mask)))
        yield Row(f"top-{k} sample, the same", best(lambda: structure.sample(scores, mask)))
        yield Row(f"ten best of top-{k}, the same", best(lambda: structure.k_best(scores, 10, mask)))
    half = spigot.Subsets(5000)
    yield Row("marginals of 5,000 of 10,000, the same", best(lambda: half.marginals(scores, mask)))
