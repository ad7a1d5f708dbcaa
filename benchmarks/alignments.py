"""Alignments: the best path, sums, draws and the k best, against the same in plain torch."""

from collections.abc import Iterator

import torch

import spigot
from benchmarks.timing import Row, best, faster, torch_only


def alignments() -> Iterator[Row]:
    scores = torch.randn(64, 50, 50, generator=torch.Generator().manual_seed(0))
    structure = spigot.Alignments()
    cases = {
        "best path": lambda: structure.argmax(scores),
        "marginals": lambda: structure.marginals(scores),
        "a draw": lambda: structure.sample(scores),
        "10 best": lambda: structure.k_best(scores, 10),
    }
    for name, case in cases.items():
        native = best(case)
        with torch_only():
            plain = best(case, least=1)
        yield faster(f"alignments, {name}, 64 of 50x50", native, "our torch reference", plain)
