"""Randomness for draws: a 64-bit seed for each draw and instance, from which whoever draws makes its own numbers.

Seeds come from the caller's generator, and how many does not depend on the scores; what becomes of one does not depend
on the batch it stands in, nor on whether a kernel or torch expands it.
"""

import torch
from torch import Generator, Tensor

# SplitMix64 in signed integers, which wrap around alike.
_STEP = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def draw_seeds(samples: int, batch: tuple[int, ...], like: Tensor, generator: Generator | None) -> Tensor:
    """A seed for each draw of each instance, `(samples, *batch)`, on the device of `like`."""
    if samples < 0:
        raise ValueError(f"samples is {samples}; it counts draws and cannot be negative.")
    device = like.device if generator is None else generator.device
    limits = torch.iinfo(torch.int64)
    return torch.randint(limits.min, limits.max, (samples, *batch), generator=generator, device=device).to(like.device)


def uniforms(seeds: Tensor, count: int, first: int = 0) -> Tensor:
    """Numbers in [0, 1) in float64, `count` of each seed along a new last axis, from number `first` of its stream on.

    Example:
        >>> seeds = torch.tensor([3, 4])
        >>> torch.equal(uniforms(seeds, 2, first=1)[1], uniforms(seeds[1], 3)[1:])
        True
    """
    place = torch.arange(first + 1, first + count + 1, device=seeds.device)
    x = seeds.unsqueeze(-1) + place * _STEP
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * _FIRST
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * _SECOND
    x = x ^ ((x >> 31) & 0x1FFFFFFFF)
    return ((x >> 11) & (2**53 - 1)).double() * 2.0**-53
