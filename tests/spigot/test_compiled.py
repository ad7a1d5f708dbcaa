"""What only the default backend of torch.compile shows."""

import warnings

import torch
from torch import Tensor

import spigot


def test_hull_and_mask_inside_a_compiled_model_with_the_default_backend() -> None:
    """What the hull returns must be memory that compiled code can use; masks may be made inside, given their size."""

    def model(scores: Tensor, lengths: Tensor) -> Tensor:
        mask = spigot.OneOf().mask(lengths, 5)
        return (spigot.argmax(scores, spigot.OneOf(), spigot.SparseMAP(), mask=mask) * scores).sum()

    scores, lengths = torch.randn(2, 5, requires_grad=True), torch.tensor([5, 3])
    plain = torch.autograd.grad(model(scores, lengths), scores)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.autograd.grad(torch.compile(model, fullgraph=True)(scores, lengths), scores)[0]
    torch.testing.assert_close(compiled, plain)
