"""The peers, called as their users call them."""

import warnings

import torch
from torch import Tensor

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch_struct
except ImportError:
    torch_struct = None

try:
    from ufal.chu_liu_edmonds import chu_liu_edmonds
except ImportError:
    chu_liu_edmonds = None

try:
    from entmax import sparsemax
except ImportError:
    sparsemax = None


def struct_scores(scores: Tensor) -> Tensor:
    """Our arc scores in the layout of torch-struct: words only, root scores on the diagonal."""
    inner = scores[:, 1:, 1:].clone()
    inner.diagonal(dim1=1, dim2=2).copy_(scores[:, 0, 1:])
    return inner.requires_grad_()  # its release fails on inputs that do not


def struct_trees(scores: Tensor, lengths: Tensor, single_root: bool = False):
    """torch-struct's distribution over projective trees."""
    assert torch_struct is not None
    return torch_struct.DependencyCRF(scores, lengths=lengths, multiroot=not single_root)


def ufal_trees(scores: list) -> list:
    """ufal's maximum spanning trees, one matrix at a time, as it is called."""
    assert chu_liu_edmonds is not None
    return [chu_liu_edmonds(matrix) for matrix in scores]


def struct_value(scores: Tensor, trees: Tensor) -> Tensor:
    return (torch.where(trees > 0, scores, 0.0)).sum((-2, -1))
