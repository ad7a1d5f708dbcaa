r"""What SPIGOT and LPGD send back over products of simplices, in one pass over memory.

In a training step this is most of what the layer costs. Each operator computes, in double precision throughout,
$z - \operatorname{proj}(z - \eta g)$; or, where it is given scores and their scale $1 / \rho$, with $v = z + s / \rho$,
$\operatorname{proj}(v) - \operatorname{proj}(v - \eta g)$.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from spigot._algorithms.kernel_calls import flatten, raise_fault
from spigot._algorithms.simplex import arc_labels_reference, project_heads, project_simplex
from spigot._runtime import native
from spigot._runtime.operators import batched, operator
from spigot._runtime.precision import exact
from spigot._runtime.threads import kernel_threads
from spigot.interface.polytopes import steps


@operator("spigot::pull_simplex")
def pull_simplex(
    z: Tensor,
    grad: Tensor,
    mask: Tensor,
    eta: float,
    scores: Tensor | None = None,
    scale: Tensor | None = None,
    two_sided: bool = False,
) -> Tensor:
    """The pull over the simplex along the last axis.

    Args:
        z: A point of the polytope.
        grad: The gradient g there, zero outside of the mask.
        mask: Parts that exist.
        eta: The step size.
        scores: The scores that z was found by, for LPGD.
        scale: Their scale in each instance, `(*batch, 1)`.
        two_sided: Whether LPGD steps both ways.

    Example:
        >>> mask = torch.ones(3, dtype=torch.bool)
        >>> pull_simplex(torch.tensor([0.0, 1.0, 0.0]), torch.tensor([-0.4, 0.0, 0.2]), mask, 1.0)
        tensor([-0.2000,  0.2000,  0.0000])
    """
    if z.numel() == 0:
        return torch.zeros_like(z)
    if native.serves(z):
        return _in_kernel(native.kernels.pull_rows, 1, z, grad, mask, eta, scores, scale, two_sided)
    return _in_torch(project_simplex, z, grad, mask, eta, scores, scale, two_sided)


@operator("spigot::pull_heads")
def pull_heads(
    z: Tensor,
    grad: Tensor,
    mask: Tensor,
    eta: float,
    scores: Tensor | None = None,
    scale: Tensor | None = None,
    two_sided: bool = False,
) -> Tensor:
    r"""The pull over $\mathcal P_{\text{DEP}}$ (Eq. 5); arguments as for `pull_simplex`, over `(*batch, n, n)`."""
    if z.numel() == 0:
        return torch.zeros_like(z)
    if native.serves(z):
        return _in_kernel(native.kernels.pull_heads, 2, z, grad, mask, eta, scores, scale, two_sided)
    return _in_torch(project_heads, z, grad, mask, eta, scores, scale, two_sided)


@operator("spigot::pull_arc_labels")
def pull_arc_labels(
    z: Tensor,
    grad: Tensor,
    mask: Tensor,
    eta: float,
    sequential: bool,
    scores: Tensor | None = None,
    scale: Tensor | None = None,
    two_sided: bool = False,
) -> Tensor:
    r"""The pull over $\mathcal P_{\text{SDP}}$ (Eq. 6); arguments as for `pull_simplex`, over `(*batch, n, n, 1 + l)`.

    `sequential` is as for `project_arc_labels`.

    Example:
        >>> z, grad = torch.zeros(1, 2, 2, 2), torch.zeros(1, 2, 2, 2)
        >>> grad[0, 0, 1, 1] = -0.5                             # the loss wants the label of an absent arc
        >>> mask = torch.ones(1, 2, 2, 2, dtype=torch.bool)
        >>> pull_arc_labels(z, grad, mask, 1.0, False)[0, 0, 1]
        tensor([-0.2500, -0.2500])
        >>> scores = torch.full_like(z, -3.0)                   # which is far from being chosen
        >>> pull_arc_labels(z, grad, mask, 1.0, False, scores, torch.ones(1, 1, 1, 1))[0, 0, 1]
        tensor([0., 0.])
    """
    if z.numel() == 0:
        return torch.zeros_like(z)
    if native.serves(z):
        kernel = native.kernels.pull_arc_labels
        return _in_kernel(kernel, 3, z, grad, mask, eta, scores, scale, two_sided, sequential)

    def project(point: Tensor, mask: Tensor) -> Tensor:
        return arc_labels_reference(point, mask, sequential).masked_fill(~mask, 0)

    return _in_torch(project, z, grad, mask, eta, scores, scale, two_sided)


def _in_kernel(
    kernel: Callable[..., tuple[int, int, int, int, int] | None],
    ndim: int,
    z: Tensor,
    grad: Tensor,
    mask: Tensor,
    eta: float,
    scores: Tensor | None,
    scale: Tensor | None,
    *options: bool,
) -> Tensor:
    source = flatten(z, ndim)
    result = torch.empty_like(source)
    known = None if scores is None else flatten(scores, ndim)
    scales = None if scale is None else scale.double().reshape(-1).contiguous()
    inputs = (source, flatten(grad, ndim), flatten(mask, ndim), eta, known, scales)
    raise_fault(kernel(*inputs, *options, result, kernel_threads()), z, ndim, "points")
    return result.reshape(z.shape)


def _in_torch(
    project: Callable[[Tensor, Tensor], Tensor],
    z: Tensor,
    grad: Tensor,
    mask: Tensor,
    eta: float,
    scores: Tensor | None,
    scale: Tensor | None,
    two_sided: bool,
) -> Tensor:
    if scores is None or scale is None:
        point = exact(z)
        moved = point - project(point - eta * grad.to(point), mask)
        return torch.where(mask, moved, 0).to(z.dtype)
    high, low, mask = steps(z, scores, scale, grad, eta, mask, two_sided)
    moved = project(high, mask) - project(low, mask)
    return (moved / 2 if two_sided else moved).to(z.dtype)


for _operator in (pull_simplex, pull_heads, pull_arc_labels):
    _operator.register_fake(lambda z, *_: torch.empty_like(z, memory_format=torch.contiguous_format))
    batched(_operator)
