"""Noise that belongs to an instance: the convention of estimators and losses. (`structure.sample` takes a generator.)

What is drawn follows from a seed and from the scores of the instance itself, not from a shared stream. So the layer
stays a function: the same scores get the same noise in whichever batch, padding or process they come, a resumed
training needs no generator states, and `explain` replays what happened. Scores that change, as they do in training,
get fresh noise.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from spigot.types import Mask, Parts

# SplitMix64 in signed integers, which wrap around alike.
_STEP = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def gumbel(scores: Parts, mask: Mask, event_ndim: int, seed: int, samples: int) -> Float[Tensor, "samples *parts"]:
    """Standard Gumbel noise for each part, `samples` times.

    Example:
        >>> scores, mask = torch.tensor([[0.1, 0.2], [0.3, 0.4]]), torch.ones(2, 2, dtype=torch.bool)
        >>> both = gumbel(scores, mask, 1, seed=0, samples=3)
        >>> torch.equal(both[:2, 1], gumbel(scores[1], mask[1], 1, seed=0, samples=2))
        True
    """
    return -(-_uniform(scores, mask, event_ndim, seed, samples).log()).log()


def gaussian(scores: Parts, mask: Mask, event_ndim: int, seed: int, samples: int) -> Float[Tensor, "samples *parts"]:
    """Standard normal noise for each part, `samples` times.

    Example:
        >>> drawn = gaussian(torch.zeros(2), torch.ones(2, dtype=torch.bool), 1, seed=0, samples=10_000)
        >>> [round(abs(float(moment)), 1) for moment in (drawn.mean(), drawn.std())]
        [0.0, 1.0]
    """
    return torch.special.ndtri(_uniform(scores, mask, event_ndim, seed, samples))


def seeds(scores: Parts, mask: Mask, event_ndim: int, seed: int, samples: int) -> Int[Tensor, "samples *batch"]:
    """A seed for each draw and instance, for structures that are drawn from.

    Example:
        >>> scores, mask = torch.tensor([[0.1, 0.2], [0.3, 0.4]]), torch.ones(2, 2, dtype=torch.bool)
        >>> both = seeds(scores, mask, 1, seed=0, samples=3)
        >>> torch.equal(both[:2, 1], seeds(scores[1], mask[1], 1, seed=0, samples=2)), len(both.unique())
        (True, 6)
    """
    drawn = _streams(scores, mask, event_ndim, _places(scores, event_ndim), seed, samples)
    return drawn.flatten(scores.ndim - event_ndim + 1).squeeze(-1) & 0x7FFFFFFFFFFFFFFF


def _uniform(scores: Parts, mask: Mask, event_ndim: int, seed: int, samples: int) -> Float[Tensor, "samples *parts"]:
    """Numbers strictly between 0 and 1."""
    place = _places(scores, event_ndim)
    drawn = _mix(_streams(scores, mask, event_ndim, place, seed, samples) + place)
    # 23 bits and a half: exact in float32, and neither 0 nor 1, so that the logarithms are finite.
    return (((drawn >> 41) & 0x7FFFFF).to(scores.dtype) + 0.5) * 2.0**-23


def _places(scores: Parts, event_ndim: int) -> Tensor:
    """A number for each part."""
    place = scores.new_zeros((), dtype=torch.int64)
    for size in scores.shape[scores.ndim - event_ndim :]:  # by position, not by memory: padding changes nothing
        place = place.unsqueeze(-1) * _STEP + torch.arange(size, device=scores.device)
    return _mix(place + _STEP)


def _streams(scores: Parts, mask: Mask, event_ndim: int, place: Tensor, seed: int, samples: int) -> Tensor:
    """A number for each draw and instance, beside the parts."""
    # Adding zero makes one zero of the two; what stands outside the mask has no say.
    values = (scores.detach() + 0.0).masked_fill(~mask, 0)
    bits = values.view(torch.int32 if scores.dtype == torch.float32 else torch.int64).long()
    axes = tuple(range(-event_ndim, 0))
    key = (bits * (place | 1)).sum(axes, keepdim=True)
    draw = torch.arange(1, samples + 1, device=scores.device).reshape(samples, *[1] * scores.ndim)
    return _mix(_mix(_mix(key) + seed) + draw * _STEP)


def _mix(x: Tensor) -> Tensor:
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * _FIRST
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * _SECOND
    return x ^ ((x >> 31) & 0x1FFFFFFFF)
