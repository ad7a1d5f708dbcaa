"""Randomness for draws: numbers from seeds.

A draw is a function of its seed, whatever the device, the threads and the other instances. Kernels and plain torch
expand a seed by the same counter and hash (SplitMix64), in their own order.
"""

import torch
from torch import Tensor

STRIDE = 1 << 20
"""More positions than any instance has: what numbers pairs of positions get does not depend on the size then."""

_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST, _SECOND = 0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64


def uniform(seeds: Tensor, index: Tensor | int) -> Tensor:
    """The numbers of seeds at these places of their streams, in float64 and strictly between 0 and 1.

    Example:
        >>> uniform(torch.tensor([7, 8]), torch.tensor([0, 0])).round(decimals=3)
        tensor([0.3900, 0.6190], dtype=torch.float64)
    """
    place = torch.as_tensor(index, device=seeds.device)
    x = seeds + (place + 1) * _GOLDEN  # int64 wraps around, which is what is meant
    x = (x ^ _shift(x, 30)) * _FIRST
    x = (x ^ _shift(x, 27)) * _SECOND
    x = x ^ _shift(x, 31)
    return (_shift(x, 11).double() + 0.5) * 2.0**-53


def uniforms(seeds: Tensor, count: int, first: int = 0) -> Tensor:
    """As `uniform`, `count` numbers of each seed along a new last axis, from number `first` of its stream on.

    Example:
        >>> seeds = torch.tensor([3, 4])
        >>> torch.equal(uniforms(seeds, 2, first=1)[1], uniforms(seeds[1], 3)[1:])
        True
    """
    return uniform(seeds.unsqueeze(-1), torch.arange(first, first + count, device=seeds.device))


def gumbel(seeds: Tensor, index: Tensor) -> Tensor:
    """Gumbel noise: the largest of scores plus noise is a draw from their softmax."""
    return -(-uniform(seeds, index).log()).log()


def categorical(logs: Tensor, cut: Tensor) -> Tensor:
    """The entry of the last axis at which the running share of the weight passes the cut; never one without weight."""
    top = logs.amax(-1, keepdim=True)
    weights = (logs - torch.where(top.isfinite(), top, 0.0)).exp()
    running = weights.cumsum(-1)
    passed = (running > cut.unsqueeze(-1) * running[..., -1:]) & (weights > 0)
    return passed.to(torch.uint8).argmax(-1)


def _shift(x: Tensor, bits: int) -> Tensor:
    """To the right, zeros from the left."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
