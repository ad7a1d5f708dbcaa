"""Masks from lengths."""

import torch
from torch import Tensor

from spigot._algorithms.arc_mask import tree_arcs
from spigot.types import Mask


def arc_mask(lengths: Tensor, size: int | None) -> Mask:
    """Arcs `(*batch, n, n)` of sentences of these lengths: no padding, no loops, none into the root."""
    n = padded_size(lengths, size)
    position = torch.arange(n, device=lengths.device)
    inside = position <= lengths.unsqueeze(-1)
    return tree_arcs(inside.unsqueeze(-1) & inside.unsqueeze(-2))


def padded_size(lengths: Tensor, size: int | None) -> int:
    """Positions including the root: the longest sentence and one, or the size asked for."""
    check_lengths(lengths)
    if size is not None and torch.compiler.is_compiling():
        return size  # a compiled graph cannot look at values
    longest = int(lengths.max()) if lengths.numel() else 0
    if size is not None and size <= longest:
        raise ValueError(f"size is {size}, but {longest} words and the root need at least {longest + 1} positions.")
    return longest + 1 if size is None else size


def entry_mask(lengths: Tensor, size: int | None) -> Mask:
    """The first entries of rows of these lengths, `(*batch, size)`."""
    check_lengths(lengths)
    if size is None or not torch.compiler.is_compiling():  # a compiled graph cannot look at values
        longest = int(lengths.max()) if lengths.numel() else 0
        size = longest if size is None else size
        if size < longest:
            raise ValueError(f"size is {size}, but an instance has {longest} choices.")
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1)


def cube_mask(lengths: Tensor, size: int | None, axes: int) -> Mask:
    """The parts `(*batch, size, ..., size)` of which every index is below the length."""
    inside = mask = entry_mask(lengths, size)
    for _ in range(axes - 1):
        ones = [1] * (mask.ndim - lengths.ndim)
        mask = mask.unsqueeze(-1) & inside.reshape(*lengths.shape, *ones, inside.shape[-1])
    return mask


def grid_mask(lengths: Tensor, size: int | tuple[int, int] | None, columns: Tensor | None) -> Mask:
    """The pairs `(*batch, n, m)` of so many rows and columns; as many of the one as of the other if not given."""
    across = lengths if columns is None else columns
    check_lengths(lengths)
    check_lengths(across)
    if across.shape != lengths.shape:
        raise ValueError(
            f"lengths has shape {tuple(lengths.shape)} and columns {tuple(across.shape)}; they must be equal."
        )
    sizes = (size, size) if size is None or isinstance(size, int) else tuple(size)
    if len(sizes) != 2:
        raise ValueError(f"size is {size}; it must be one number, or two: rows and columns.")
    down, along = (
        torch.arange(_padded(count, room, name), device=count.device) < count.unsqueeze(-1)
        for count, room, name in ((lengths, sizes[0], "rows"), (across, sizes[1], "columns"))
    )
    return down.unsqueeze(-1) & along.unsqueeze(-2)


def _padded(count: Tensor, size: int | None, what: str) -> int:
    if size is not None and torch.compiler.is_compiling():
        return size  # a compiled graph cannot look at values
    longest = int(count.max()) if count.numel() else 0
    if size is not None and size < longest:
        raise ValueError(f"size is {size}, but an instance has {longest} {what}.")
    return longest if size is None else size


def check_lengths(lengths: Tensor) -> None:
    """Lengths are whole numbers, zero or more."""
    if not isinstance(lengths, Tensor):
        raise TypeError(f"lengths is a {type(lengths).__name__}; it must be a tensor of integers, one an instance.")
    if lengths.dtype.is_floating_point or lengths.dtype == torch.bool:
        raise TypeError(f"lengths has dtype {lengths.dtype}; it must be a tensor of integers.")
    if not torch.compiler.is_compiling() and lengths.numel() and int(lengths.min()) < 0:
        raise ValueError(f"lengths has a negative entry, {int(lengths.min())}; a length is zero or more.")
