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


try:
    from torchcrf import CRF
except ImportError:
    CRF = None


def chain_crf(transitions: Tensor):
    """pytorch-crf with these transitions and no scores at the ends."""
    assert CRF is not None
    crf = CRF(len(transitions), batch_first=True)
    with torch.no_grad():
        crf.transitions.copy_(transitions)
        crf.start_transitions.zero_()
        crf.end_transitions.zero_()
    return crf


def struct_chain(unary: Tensor, transitions: Tensor, lengths: Tensor, verb: str) -> Tensor:
    """An answer of torch-struct about chains, from our layout and back in it: `[t, i, j]` from state i to state j."""
    assert torch_struct is not None
    potentials = (transitions + unary[:, 1:, None, :]).mT.contiguous()  # its own are indexed [to, from]
    potentials[:, 0] += unary[:, 0, None, :]
    potentials.requires_grad_()  # its release fails on inputs that do not
    return getattr(torch_struct.LinearChainCRF(potentials, lengths), verb).detach().mT


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
