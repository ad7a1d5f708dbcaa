"""The local polytope of semantic graphs of several kinds."""

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from spigot._algorithms.joint_networks import JointLayout, JointNetwork
from spigot._runtime.checks import check_graphs
from spigot._runtime.host import HostFunction
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
    _derivative: HostFunction = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_projector", HostFunction(partial(_project, layout=self.layout), 3, "point"))
        object.__setattr__(self, "_derivative", HostFunction(partial(_pull, layout=self.layout), 3, "point"))

    def project(self, point: Parts, mask: Mask | None = None) -> Parts:
        return self._projector(
            point.detach(), self.layout.existing(check_graphs(point, mask, self.layout.channels, "point"))
        )

    def pull_back(self, point: Parts, grad: Parts, mask: Mask) -> Parts:
        both = torch.stack((point.detach(), grad.detach().to(point)))
        return self._derivative(both, self.layout.existing(mask).expand_as(both))[0]

    def contains(self, point: Parts, mask: Mask | None = None, *, atol: float = 1e-5) -> Flags:
        mask = check_graphs(point, mask, self.layout.channels, "point")
        factors = _Factors.of(mask, self.layout)
        inside = factors.polytope.contains(factors.variables(point), factors.mask, atol=atol)
        stray = ((point.abs() > atol) & ~self.layout.existing(mask)).flatten(-3).any(-1)
        return inside.reshape(stray.shape).to(point.device) & ~stray


class _Factors(NamedTuple):
    """The factor graphs of some sentences, and their local polytope."""

    joint: JointNetwork
    polytope: LocalPolytope

    @classmethod
    def of(cls, mask: Tensor, layout: JointLayout) -> "_Factors":
        exists = layout.existing(mask.detach().cpu().reshape(-1, *mask.shape[-3:]))
        joint = JointNetwork.of(layout, exists.numpy())
        return cls(joint, LocalPolytope(joint.network, np.arange(len(exists))))

    @property
    def mask(self) -> Tensor:
        return torch.from_numpy(self.joint.exists)

    def variables(self, parts: Tensor) -> Tensor:
        """Values of parts as variables of the graphs."""
        return torch.from_numpy(self.joint.variables(_flat(parts.detach().double().cpu()).numpy()))

    def parts(self, values: Tensor, like: Tensor) -> Tensor:
        """Values of variables as parts."""
        own = values.numpy()
        return torch.from_numpy(self.joint.parts(own, tuple(_flat(like).shape), own.dtype)).to(like).reshape(like.shape)


def _flat(parts: Tensor) -> Tensor:
    """One axis of sentences and one of parts."""
    return parts.reshape(parts.shape[:-3].numel(), parts.shape[-3:].numel())


def _project(point: Tensor, mask: Tensor, layout: JointLayout) -> Tensor:
    factors = _Factors.of(mask, layout)
    return factors.parts(factors.polytope.project(factors.variables(point), factors.mask), point)


def _pull(both: Tensor, mask: Tensor, layout: JointLayout) -> Tensor:
    """The derivative at the first of two, applied to the second."""
    factors = _Factors.of(mask[0], layout)
    point, direction = (factors.variables(one) for one in both)
    pulled = factors.polytope.pull_back(point, direction, factors.mask)
    found = factors.parts(pulled, both[0])
    return torch.stack((found, torch.zeros_like(found)))
