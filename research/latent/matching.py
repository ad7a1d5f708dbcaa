"""Clusters have no names: which found one stands for which true one?"""

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor


def match(chosen: Tensor, true: Tensor, clusters: int) -> Tensor:
    """Which true cluster each chosen one stands for, one to one, so that most points agree (Hungarian algorithm).

    Example:
        >>> match(torch.tensor([2, 2, 0, 1]), torch.tensor([0, 0, 1, 2]), 3)
        tensor([1, 2, 0])
    """
    together = torch.bincount(chosen * clusters + true, minlength=clusters**2).reshape(clusters, clusters)
    _, columns = linear_sum_assignment(together.numpy(), maximize=True)
    return torch.from_numpy(columns)
