"""The best label of each pair of words by a biaffine score, in whole numbers."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spigot import kernels
from spigot.kernels import kernel_threads
from spigot_nlp.nn.whole import LARGEST, WholeWeights, whole_product_reference

WIDEST = (2**31 - 1) // LARGEST**2
"""Units of a side whose products cannot exceed 32 bits together."""


def best_products(
    heads: Float[Tensor, "batch n h"],
    dependents: Float[Tensor, "batch n h"],
    lengths: Int[Tensor, " batch"],
    weights: WholeWeights,
    labels: int,
    root: int | None = None,
) -> tuple[Float[Tensor, "batch n n"], Int[Tensor, "batch n n"]]:
    """The best score of each pair (head, dependent), and its label, by the kernel.

    Args:
        heads: What each word is as a head; at most `WIDEST` units.
        dependents: The same as a dependent.
        lengths: Words of each sentence, behind the root.
        weights: What makes of a dependent, for each label, what a head is multiplied with, and what is added.
        labels: How many there are.
        root: The label of all pairs whose head is the first word, and of no others; any may be any if omitted.

    Returns:
        Both, with -inf and -1 behind the end of a sentence and for the root as a dependent.
    """
    batch, n, width = heads.shape
    if width > WIDEST:
        raise ValueError(f"a side has {width} units; sums of so many need more than 32 bits, {WIDEST} are the most.")
    if len(lengths) and not 0 <= int(lengths.min()) <= int(lengths.max()) < n:
        raise ValueError(f"lengths go from {lengths.min()} to {lengths.max()}; they must be between 0 and {n - 1}.")
    best, which = heads.new_empty(batch, n, n), heads.new_empty(batch, n, n, dtype=torch.int32)
    if best.numel():
        kernels.compiled.best_products(
            heads.contiguous(),
            dependents.contiguous(),
            lengths + 1,
            *weights,
            best,
            which,
            labels,
            -1 if root is None else root,
            kernel_threads(),
        )
    return best, which


def best_products_reference(
    heads: Float[Tensor, "batch n h"],
    dependents: Float[Tensor, "batch n h"],
    lengths: Int[Tensor, " batch"],
    weight: Float[Tensor, "h+1 labels h+1"],
    root: int | None = None,
) -> tuple[Float[Tensor, "batch n n"], Int[Tensor, "batch n n"]]:
    """The same in plain torch, from the weights of a scorer: what the kernel is held to.

    Example:
        >>> sides = torch.tensor([[[1.0], [2.0], [0.0]]]), torch.tensor([[[0.0], [1.0], [0.0]]])
        >>> weight = torch.zeros(2, 2, 2)
        >>> weight[0, 1, 0] = 3.0                                            # of label 1: three times the product
        >>> best, which = best_products_reference(*sides, torch.tensor([1]), weight)
        >>> best[0].round().tolist(), which[0].tolist()
        ([[-inf, 3.0, -inf], [-inf, 6.0, -inf], [-inf, -inf, -inf]], [[-1, 1, -1], [-1, 1, -1], [-1, -1, -1]])
    """
    turned = whole_product_reference(dependents, weight[:-1].flatten(1).t(), weight[-1].flatten())
    turned = turned.unflatten(-1, weight.shape[1:])
    rows, row_worth = _whole(turned[..., :-1])
    columns, column_worth = _whole(heads)
    sums = torch.einsum("bjlk,bik->bijl", rows, columns).float()  # doubles hold these sums exactly
    scores = sums * (column_worth.unsqueeze(2) * row_worth.squeeze(-1).unsqueeze(1)) + turned[..., -1].unsqueeze(1)
    if root is not None:
        scores = scores.masked_fill(~root_labels(scores.shape[1], scores.shape[-1], root), -torch.inf)
    best, which = scores.max(-1)
    place = torch.arange(heads.shape[1])
    inside = place <= lengths.unsqueeze(-1)
    exists = inside.unsqueeze(-1) & (inside & (place > 0)).unsqueeze(1)
    return best.masked_fill(~exists, -torch.inf), which.masked_fill(~exists, -1).to(torch.int32)


def root_labels(n: int, labels: int, root: int) -> Bool[Tensor, "n 1 labels"]:
    """Which labels pairs may have, by their head, where one label is for all that hang on the root and for no others.

    Example:
        >>> root_labels(3, 2, 1).squeeze(1).int()
        tensor([[0, 1],
                [1, 0],
                [1, 0]], dtype=torch.int32)
    """
    allowed = torch.ones(n, 1, labels, dtype=torch.bool)
    allowed[1:, :, root] = False
    allowed[:1] = False
    allowed[:1, :, root] = True
    return allowed


def _whole(values: Float[Tensor, "*any d"]) -> tuple[Float[Tensor, "*any d"], Float[Tensor, "*any 1"]]:
    """Rows as whole numbers, in doubles, and what one of them is worth."""
    most = values.abs().amax(-1, keepdim=True)
    return torch.where(most > 0, values * (LARGEST / most), 0).round().double(), most / LARGEST
