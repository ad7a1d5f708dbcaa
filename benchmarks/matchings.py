"""Matchings: assignment against scipy, and projections onto their hull."""

from collections.abc import Iterator

import scipy.optimize
import torch

import spigot
from benchmarks.timing import Row, best, faster, within


def matchings() -> Iterator[Row]:
    generator = torch.Generator().manual_seed(0)
    structure = spigot.Matchings()
    for name, n, m, want in (("50x50", 50, 50, 3.0), ("100x100", 100, 100, None), ("20x80", 20, 80, None)):
        scores = torch.randn(64, n, m, generator=generator)
        arrays = [s.double().numpy() for s in scores]  # outside the clock: the conversion is not theirs to pay
        ours = best(lambda: structure.argmax(scores))
        theirs = best(lambda: [scipy.optimize.linear_sum_assignment(s, maximize=True) for s in arrays])
        yield faster(f"assignment, 64 of {name}", ours, "scipy in a loop", theirs, want)
    scores = torch.randn(64, 10, 10, generator=generator)
    yield Row("10 best assignments, 64 of 10x10", best(lambda: structure.k_best(scores, 10)))
    for n in (10, 50):
        scores = torch.randn(64, n, n, generator=generator)
        for scale in (0.01, 1.0, 30.0):
            point = scale * scores
            yield Row(
                f"Birkhoff projection, 64 of {n}x{n}, scale {scale:g}", best(lambda: spigot.Birkhoff().project(point))
            )
    leaf, grad = torch.randn(64, 10, 10, requires_grad=True), torch.randn(64, 10, 10, generator=generator)
    step = best(lambda: (spigot.argmax(leaf, structure, spigot.Spigot()) * grad).sum().backward())
    yield within("matching layer, forward and SPIGOT backward, 64 of 10x10", step, 10.0)
