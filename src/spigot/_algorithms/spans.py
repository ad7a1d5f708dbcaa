"""Binary trees over labelled spans: the best one, sums over all, draws and the k best.

Natively CKY runs in C++; elsewhere `spans_reference.py` does the same in plain torch, width by width.
"""

import torch
from torch import Tensor

from spigot._algorithms import spans_reference
from spigot._algorithms.recursions import Recursion

BINARY_TREES = Recursion("span", spans_reference, 3, member="binary tree", parts="spans")


def span_parts(mask: Tensor) -> Tensor:
    """The parts that can take part in a tree: spans from left to right, of words that exist, up to the last."""
    n = mask.shape[-2]
    word = mask.any(-1).diagonal(dim1=-2, dim2=-1)
    inside = word.flip(-1).cummax(-1).values.flip(-1)  # up to the last word that may have a label
    place = torch.arange(n, device=mask.device)
    return mask & (place[:, None] <= place).unsqueeze(-1) & inside[..., None, :, None]
