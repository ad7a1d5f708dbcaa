"""The affine hull of a structure, reached through its argmax alone."""

import torch
from torch import Tensor

from spigot.interface import AbstractStructure


def along_differences(direction: Tensor, mask: Tensor, structure: AbstractStructure) -> Tensor:
    """The projection onto the span of all differences of two structures.

    What is left over is the same on every structure exactly when its best and its worst score alike. Until then their
    difference is a new direction of the span.
    """
    axes = tuple(range(-structure.event_ndim, 0))
    exact = direction if direction.device.type == "mps" else direction.double()  # which has no float64
    size = torch.linalg.vector_norm(exact, dim=axes, keepdim=True)
    rest, basis = exact, []

    def dot(a: Tensor, b: Tensor) -> Tensor:
        return (a * b).sum(axes, keepdim=True)

    for _ in range(direction.shape[direction.ndim - structure.event_ndim :].numel()):
        step = structure.argmax(rest, mask) - structure.argmax(-rest, mask)
        useful = dot(rest, step) > 1e-7 * size  # solvers leave some dust
        if not useful.any():
            break
        for _ in range(2):  # once loses digits
            for known in basis:
                step = step - dot(step, known) * known
        length = torch.linalg.vector_norm(step, dim=axes, keepdim=True)
        unit = torch.where(useful, step / length, torch.zeros_like(step))
        basis.append(unit)
        rest = rest - dot(rest, unit) * unit
    return (exact - rest).to(direction.dtype)
