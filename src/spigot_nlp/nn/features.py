"""What an end model reads off a structure. Differentiable in z: this is all the layer asks of what follows it."""

import torch
from jaxtyping import Float
from torch import Tensor


def head_features(states: Float[Tensor, "batch n d"], z: Float[Tensor, "batch n n"]) -> Float[Tensor, "batch n 2*d"]:
    r"""Each word's state beside that of its head: $\tilde h_j = [h_j ; \sum_i z_{ij} h_i]$ (Eq. 7).

    Args:
        states: One state for each position, the root included.
        z: Arcs i -> j. The root has no head, so its second half is zero.

    Example:
        >>> states = torch.tensor([[[1.0], [2.0], [3.0]]])
        >>> z = torch.tensor([[[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])    # 0 -> 2 -> 1
        >>> head_features(states, z)[0].tolist()
        [[1.0, 0.0], [2.0, 3.0], [3.0, 1.0]]
    """
    return torch.cat((states, z.transpose(-1, -2) @ states), -1)
