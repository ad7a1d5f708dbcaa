"""Random numbers that belong to a sentence.

Dropout decides from the sentence's own seed, not from a shared stream. So the decisions are the same whichever batch
or process the sentence falls into, and a resumed training needs no generator states.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

_STEP = np.uint64(0x9E3779B97F4A7C15)


def uniform(seeds: Int[Tensor, " batch"], size: int, stream: int) -> Float[Tensor, "batch size"]:
    """Numbers in [0, 1), a row for each seed: the SplitMix64 generator, read at `size` places of one of its streams.

    Args:
        seeds: One seed a sentence.
        size: How many numbers each needs.
        stream: Tells independent uses of the same seed apart.

    Example:
        >>> alone = uniform(torch.tensor([7]), 3, stream=0)
        >>> bool((uniform(torch.tensor([5, 7]), 3, stream=0)[1] == alone[0]).all())
        True
    """
    offset = np.full(1, stream + 1, dtype=np.uint64) * _STEP  # arrays wrap around silently, as meant
    start = _mix(seeds.cpu().numpy().astype(np.uint64) + offset)
    bits = _mix(start[:, None] + _STEP * np.arange(1, size + 1, dtype=np.uint64))
    return torch.from_numpy((bits >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)).to(seeds.device)


def locked_dropout(
    states: Float[Tensor, "time batch d"], seeds: Int[Tensor, " batch"] | None, rate: float, stream: int
) -> Float[Tensor, "time batch d"]:
    """Leave out the same units at every position of a sentence, and scale the others up.

    Example:
        >>> dropped = locked_dropout(torch.ones(4, 1, 8), torch.tensor([5]), 0.5, stream=0)
        >>> bool((dropped[0] == dropped[3]).all()), sorted(set(dropped.flatten().tolist()))
        (True, [0.0, 2.0])
    """
    if seeds is None or rate == 0:
        return states
    kept = uniform(seeds, states.shape[-1], stream) >= rate
    return states * (kept.to(states.dtype) / (1 - rate))


def dropout(
    states: Float[Tensor, "time batch d"], seeds: Int[Tensor, " batch"] | None, rate: float, stream: int
) -> Float[Tensor, "time batch d"]:
    """Leave out units of every position on its own, and scale the others up.

    What is left out at a position does not depend on how far the batch is padded.

    Example:
        >>> dropped = dropout(torch.ones(4, 1, 8), torch.tensor([5]), 0.5, stream=0)
        >>> bool((dropped[0] == dropped[3]).all()), sorted(set(dropped.flatten().tolist()))
        (False, [0.0, 2.0])
    """
    if seeds is None or rate == 0:
        return states
    time, batch, units = states.shape
    kept = uniform(seeds, time * units, stream).view(batch, time, units).transpose(0, 1) >= rate
    return states * (kept.to(states.dtype) / (1 - rate))


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
