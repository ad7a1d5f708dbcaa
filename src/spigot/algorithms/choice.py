"""One of k: the best entry of the last axis."""

import torch
from torch import Tensor

from spigot.algorithms.operators import batched
from spigot.algorithms.reduce import refuse_nan


@torch.library.custom_op("spigot::one_of", mutates_args=())
def one_of(scores: Tensor, mask: Tensor) -> Tensor:
    """One-hot of the first best unmasked entry of each row; zeros where there is none."""
    refuse_nan(scores, mask, 1)
    if scores.numel() == 0:
        return torch.zeros_like(scores)
    values = scores.masked_fill(~mask, -torch.inf)
    best = mask & (values == values.amax(-1, keepdim=True))
    first = best.to(torch.uint8).argmax(-1, keepdim=True)
    return torch.zeros_like(scores, memory_format=torch.contiguous_format).scatter(
        -1, first, best.any(-1, keepdim=True).to(scores.dtype)
    )


@one_of.register_fake
def _(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


batched(one_of)
