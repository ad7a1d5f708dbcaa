r"""Projection onto $\operatorname{conv}\mathcal Z$ with nothing but an argmax oracle.

Wolfe's method keeps a few structures $z_1, \dots, z_k$ with weights $w$ such that $\mu = \sum_i w_i z_i$. One round
asks the oracle for the structure that the residual $v - \mu$ likes best. If it gains nothing over $\mu$, then $\mu$ is
the projection; the gain that is left is the duality gap. Otherwise it joins, the nearest point of the *affine* hull of
the set is found by a small linear system, and structures whose weight would turn negative leave.

All arithmetic is in float64, whatever the dtype of the point.

References:
    Wolfe (1976), Finding the nearest point in a polytope.
    Niculae, Martins, Blondel, Cardie (2018), SparseMAP: Differentiable sparse structured inference, §3.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spigot._algorithms.kernel_calls import Fault, flatten
from spigot._runtime import native
from spigot._runtime.native import kernel_threads
from spigot._runtime.operators import operator
from spigot.interface import AbstractStructure
from spigot.types import HullResult, PackedSupport

Argmax = Callable[[Tensor, Tensor], Tensor]

TOLERANCE = {torch.float64: 5e-10, torch.float32: 1e-7}
"""Duality gap at which the search ends, times the scale of the point."""

MAX_ROUNDS = 20_000
"""Rounds after which an instance is returned with whatever gap is left."""


def project_hull(point: Tensor, mask: Tensor, start: Tensor, argmax: Argmax, shape: tuple[int, ...]) -> HullResult:
    r"""Nearest points of $\operatorname{conv}\mathcal Z$, for any structure.

    Args:
        point: `(batch, parts)`, both axes flat.
        mask: Parts that exist.
        start: A structure for each instance to begin with.
        argmax: The oracle, from scores and mask of the full shape to structures. Instances that are done keep their
            place, with everything masked, since a structure may differ from one instance to the next.
        shape: The full shape, batch and parts, that the oracle takes.
    """
    tolerance = TOLERANCE[point.dtype]
    exists = mask.cpu().numpy()
    target = np.where(exists, point.detach().double().cpu().numpy(), 0.0)
    sets = [_ActiveSet(v, z) for v, z in zip(target, start.double().cpu().numpy(), strict=True)]
    gaps = np.zeros(len(sets))
    running = list(range(len(sets)))
    for _ in range(MAX_ROUNDS):
        if not running:
            break
        residual, alive = np.zeros_like(target), torch.zeros_like(mask)
        residual[running] = np.stack([sets[b].residual for b in running])
        alive[running] = mask[running]
        best = argmax(torch.from_numpy(residual).to(point.device).reshape(shape), alive.reshape(shape))
        rivals = best.reshape(point.shape).double().cpu().numpy()
        going = []
        for b in running:
            gaps[b] = sets[b].gain(rivals[b])
            if gaps[b] > tolerance * sets[b].scale and sets[b].add(rivals[b]):
                going.append(b)
        running = going
    projected = np.stack([s.point for s in sets]) if sets else target
    return HullResult(
        torch.from_numpy(np.where(exists, projected, 0.0)).to(point),
        torch.from_numpy(np.maximum(gaps, 0.0)).to(point),
        _pack(sets),
    )


def search_in_kernel(
    kernel: Callable[..., tuple],
    point: Tensor,
    mask: Tensor,
    start: Tensor | None,
    ndim: int,
    kind: tuple[bool, ...],
    support: bool,
    refuse: Callable[[Fault | None], None],
) -> HullResult:
    """`project_hull` by a kernel, for structures whose members have equally many parts, one of each kind."""
    source, exists = flatten(point.cpu(), ndim), flatten(mask.cpu(), ndim)
    first = None if start is None else flatten(start.to(source), ndim)
    projected = torch.empty_like(source)
    gap = source.new_empty(len(source), dtype=torch.float64)
    limits = (TOLERANCE[point.dtype], MAX_ROUNDS, support)
    fault, *arrays = kernel(source, exists, first, *kind, *limits, projected, gap, kernel_threads())
    refuse(fault)
    packed = PackedSupport(*(torch.from_numpy(array) for array in arrays))
    return HullResult(projected.reshape(len(source), -1).to(point), gap.to(point), packed)


class _ActiveSet:
    """Structures, weights and the point they make, for one instance. Structures are kept as their non-zero entries."""

    def __init__(self, target: NDArray[np.float64], vertex: NDArray[np.float64]) -> None:
        self.target = target
        self.indices: list[NDArray[np.int64]] = []
        self.values: list[NDArray[np.float64]] = []
        self.gram = np.zeros((0, 0))
        self.weights = np.zeros(0)
        self._append(vertex, 1.0)

    @property
    def scale(self) -> float:
        """How large the point is where there is mass: what the other parts are does not touch the answer."""
        return float(np.abs(self.target[self.point != 0]).max(initial=1e-3))

    @property
    def residual(self) -> NDArray[np.float64]:
        return self.target - self.point

    def gain(self, rival: NDArray[np.float64]) -> float:
        """What the residual thinks the rival is worth beyond the present point: the duality gap."""
        return float(self.residual @ (rival - self.point))

    def add(self, rival: NDArray[np.float64]) -> bool:
        """Let a structure in and settle the weights; False if it was in already, so that nothing can improve."""
        chosen = rival.nonzero()[0]
        for indices, values in zip(self.indices, self.values, strict=True):
            if np.array_equal(indices, chosen) and np.array_equal(values, rival[chosen]):
                return False
        self._append(rival, 0.0)
        while True:
            worth = self._products(self.residual)
            goal = self.weights + affine_weights(self.gram, worth - worth.max())
            if (goal > 0).all() or len(goal) == 1:
                self._move(goal)
                return True
            falling = goal <= 0
            room = self.weights[falling] / np.maximum(self.weights[falling] - goal[falling], 1e-300)
            leaves = falling.nonzero()[0][room.argmin()]
            weights = np.maximum(self.weights + room.min() * (goal - self.weights), 0.0)
            keep = weights > 1e-14
            keep[leaves] = False
            self.indices = [row for row, kept in zip(self.indices, keep, strict=True) if kept]
            self.values = [row for row, kept in zip(self.values, keep, strict=True) if kept]
            self.gram = self.gram[np.ix_(keep, keep)]
            self._move(weights[keep])

    def _products(self, dense: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inner product of each structure with a dense vector."""
        return np.array([values @ dense[row] for row, values in zip(self.indices, self.values, strict=True)])

    def _append(self, vertex: NDArray[np.float64], weight: float) -> None:
        row = vertex.nonzero()[0]
        self.indices.append(row)
        self.values.append(vertex[row])
        size = len(self.indices)
        gram = np.empty((size, size))
        gram[:-1, :-1] = self.gram
        gram[-1] = gram[:, -1] = self._products(vertex)
        self.gram = gram
        self._move(np.append(self.weights, weight))

    def _move(self, weights: NDArray[np.float64]) -> None:
        self.weights = weights / weights.sum()
        self.point = np.zeros_like(self.target)
        for row, values, weight in zip(self.indices, self.values, self.weights, strict=True):
            self.point[row] += weight * values


def affine_weights(gram: NDArray[np.float64], goal: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""$\arg\min_w \tfrac12 \lVert Z^\top w \rVert^2 - w^\top b$ subject to $\mathbf 1^\top w = 0$, from $Z Z^\top$.

    Adding $\mathbf 1 \mathbf 1^\top$ to the Gram matrix changes nothing on the constraint and makes it invertible
    whenever the structures are affinely independent.
    """
    right = np.stack((goal, np.ones(len(goal))), -1)
    try:
        solution = np.linalg.solve(gram + 1.0, right)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(gram + 1.0, right, rcond=None)[0]
    free, ones = solution.T
    return free - ones * (free.sum() / ones.sum())


@operator("spigot::project_face")
def project_face(
    grad: Tensor, offsets: Tensor, weights: Tensor, starts: Tensor, indices: Tensor, values: Tensor
) -> Tensor:
    r"""The Jacobian of the hull projection, applied to a gradient: SparseMAP's backward pass.

    Around $v$ the projection moves inside the affine hull of its support, so that its Jacobian is the orthogonal
    projection onto the differences of the support: $J g = Z^\top w$ with $w$ from `affine_weights`.

    Args:
        grad: `(batch, parts)`.
        offsets, weights, starts, indices, values: The `PackedSupport` of the forward pass.
    """
    if native.serves(grad):
        result = torch.zeros_like(grad, dtype=torch.float64, memory_format=torch.contiguous_format)
        gradient = grad.double().contiguous()
        native.kernels.project_face(gradient, offsets, starts, indices, values, result, kernel_threads())
        return result.to(grad.dtype)
    gradient = grad.double().cpu().numpy()
    result = np.zeros_like(gradient)
    support = PackedSupport(offsets, weights, starts, indices, values)
    for b, (_, vertices) in enumerate(unpack_support(support, gradient.shape[-1])):
        dense = vertices.numpy()
        result[b] = affine_weights(dense @ dense.T, dense @ gradient[b]) @ dense
    return torch.from_numpy(result).to(grad)


@project_face.register_fake
def _(grad: Tensor, offsets: Tensor, weights: Tensor, starts: Tensor, indices: Tensor, values: Tensor) -> Tensor:
    return torch.empty_like(grad, memory_format=torch.contiguous_format)


def unpack_support(support: PackedSupport, parts: int) -> list[tuple[Tensor, Tensor]]:
    """Weights `(k,)` and dense structures `(k, parts)` of each instance."""
    offsets, weights, starts, indices, values = (part.cpu() for part in support)
    unpacked = []
    for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        vertices = torch.zeros(last - first, parts, dtype=torch.float64)
        for row, t in enumerate(range(first, last)):
            inside = slice(int(starts[t]), int(starts[t + 1]))
            vertices[row, indices[inside]] = values[inside]
        unpacked.append((weights[first:last], vertices))
    return unpacked


def _pack(sets: list[_ActiveSet]) -> PackedSupport:
    offsets = np.cumsum([0, *(len(s.weights) for s in sets)])
    rows = [row for s in sets for row in s.indices]
    starts = np.cumsum([0, *(len(row) for row in rows)])
    none = np.zeros(0)
    return PackedSupport(
        torch.from_numpy(offsets.astype(np.int64)),
        torch.from_numpy(np.concatenate([none, *(s.weights for s in sets)])),
        torch.from_numpy(starts.astype(np.int64)),
        torch.from_numpy(np.concatenate([none, *rows]).astype(np.int64)),
        torch.from_numpy(np.concatenate([none, *(values for s in sets for values in s.values)])),
    )


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
