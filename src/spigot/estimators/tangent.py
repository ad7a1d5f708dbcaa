"""Which directions of the scores a decision can see at all.

Adding the same number to the scores of all heads of a word changes no tree: every tree has one of them. Such directions
are orthogonal to every difference of two structures. Here they are taken out.
"""

from functools import partial

import torch
from torch import Tensor

from spigot.algorithms.host import HostFunction, assume_constant, host_call
from spigot.interface import AbstractStructure
from spigot.polytopes.blocks import ArcLabel, Box, HeadSimplex, Simplex
from spigot.types import Mask, Parts


def tangent(structure: AbstractStructure, direction: Parts, mask: Mask) -> Parts:
    """The nearest direction that stays inside the affine hull of the relaxation.

    Closed forms where the relaxation consists of simplices and intervals. For any other, the affine hull is that of the
    structure itself, found through its argmax: twice for each dimension, so for small sets only.

    Example:
        >>> import spigot
        >>> tangent(spigot.OneOf(), torch.tensor([1.0, 2.0, 6.0]), torch.tensor([True, True, True]))
        tensor([-2., -1.,  3.])
    """
    direction = direction.masked_fill(~mask, 0)
    relaxation = structure.relaxation
    if isinstance(relaxation, Box):
        return direction
    if isinstance(relaxation, Simplex):
        return _centre(direction, mask, -1)
    if isinstance(relaxation, HeadSimplex):
        return _centre(direction, mask, -2)
    if isinstance(relaxation, ArcLabel):
        return _centre_labels(direction, mask)
    if torch.compiler.is_compiling():
        return host_call(direction, mask, _handle(structure))
    return _along_differences(direction, mask, structure)


def _centre(direction: Tensor, mask: Tensor, axis: int) -> Tensor:
    mean = direction.sum(axis, keepdim=True) / mask.sum(axis, keepdim=True).clamp(min=1)
    return (direction - mean).masked_fill(~mask, 0)


def _centre_labels(direction: Tensor, mask: Tensor) -> Tensor:
    """The labels of an arc, and the arc turned round, sum to a constant: to one, counting "no arc" instead of it."""
    diagonal = torch.eye(mask.shape[-2], dtype=torch.bool, device=mask.device).unsqueeze(-1)
    arcs = mask[..., :1] & ~diagonal
    lifted = torch.cat((-direction[..., :1], direction[..., 1:]), -1)
    exists = torch.cat((arcs, mask[..., 1:] & arcs), -1)
    back = _centre(lifted.masked_fill(~exists, 0), exists, -1)
    # Predicates, on the diagonal, are intervals of their own.
    return torch.cat((torch.where(diagonal, direction[..., :1], -back[..., :1]), back[..., 1:]), -1)


def _along_differences(direction: Tensor, mask: Tensor, structure: AbstractStructure) -> Tensor:
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


_hosted: list[tuple[AbstractStructure, HostFunction]] = []


@assume_constant
def _handle(structure: AbstractStructure) -> int:
    """A number by which a compiled graph can name the structure, which stays alive as long as the graph may."""
    for known, function in _hosted:
        if known == structure:
            return function.handle
    function = HostFunction(
        partial(_along_differences, structure=structure), structure.event_ndim, "gradients", cpu=False
    )
    _hosted.append((structure, function))
    return function.handle
