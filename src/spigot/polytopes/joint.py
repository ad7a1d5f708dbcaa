"""The local polytope of semantic graphs of several kinds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from spigot.algorithms.host import HostFunction
from spigot.algorithms.joint_networks import JointLayout, JointNetwork
from spigot.checks import check_parts
from spigot.interface import AbstractPolytope
from spigot.polytopes.local import LocalPolytope
from spigot.types import Flags, Mask, Parts


@final
@dataclass(frozen=True)
class JointPolytope(AbstractPolytope):
    """Points that suit every factor of a `JointGraphs` alone: see `LocalPolytope`.

    Attributes:
        layout: Which channels are what.

    Example:
        >>> import spigot
        >>> graphs = spigot.JointGraphs((spigot.SemanticGraphs(1), spigot.SemanticGraphs(1)), arcs=((0, 1),))
        >>> point = torch.zeros(2, 2, 5)
        >>> point[0, 1, 0], point[0, 1, 1] = 0.8, 0.4                         # an arc, and its only label
        >>> graphs.relaxation.project(point)[0, 1, :2].round(decimals=4)
        tensor([0.4000, 0.4000])
    """

    layout: JointLayout
    _projector: HostFunction = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_projector", HostFunction(partial(_project, layout=self.layout), 3, "point"))

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        return self._projector(point.detach(), check_parts(point, mask, 3, "point"))

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = check_parts(point, mask, 3, "point")
        inside = _in_network(lambda polytope, p, exists: polytope.contains(p, exists, atol=atol), point, mask, self.layout)
        stray = ((point.abs() > atol) & ~self.layout.existing(mask)).flatten(-3).any(-1)
        return inside.reshape(stray.shape).to(point.device) & ~stray


def _in_network(verb: Callable[..., Tensor], point: Tensor, mask: Tensor, layout: JointLayout, **how: Any) -> Tensor:
    """Ask the local polytope of the factor graphs of some sentences."""
    flat = point.detach().double().cpu().reshape(-1, *point.shape[-3:])
    exists = layout.existing(mask.cpu().reshape(flat.shape)).numpy()
    joint = JointNetwork.of(layout, exists)
    values = torch.from_numpy(joint.variables(flat.numpy().reshape(len(flat), -1)))
    found = verb(LocalPolytope(joint.network, np.arange(len(flat))), values, torch.from_numpy(joint.exists), **how)
    if found.ndim == 1:
        return found
    return torch.from_numpy(joint.parts(found.numpy(), (len(flat), int(np.prod(flat.shape[1:])))))


def _project(point: Tensor, mask: Tensor, layout: JointLayout) -> Tensor:
    projected = _in_network(LocalPolytope.project, point, mask, layout)
    return projected.to(point).reshape(point.shape)
