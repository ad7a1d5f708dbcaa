r"""Products of simplices: rows, the heads of each word (Eq. 5), the labels of each arc (Eq. 6), the blocks of chains.

Their projections, and in one pass over memory what SPIGOT and LPGD send back over them, which in a training step is
most of what the layer costs: in double precision throughout, $z - \operatorname{proj}(z - \eta g)$; or, given scores
and their scale $1 / \rho$, with $v = z + s / \rho$, $\operatorname{proj}(v) - \operatorname{proj}(v - \eta g)$.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spigot._algorithms.arc_mask import check_heads, labelled_arcs, tree_arcs
from spigot._algorithms.kernel_calls import flatten, raise_fault
from spigot._algorithms.viterbi import chain_parts
from spigot._runtime import native
from spigot._runtime.checks import infinite_error
from spigot._runtime.native import kernel_threads
from spigot._runtime.operators import batched, operator
from spigot._runtime.precision import to_float64
from spigot._runtime.reduce import refuse_infinite, refuse_nan


@operator("spigot::project_simplex")
def project_simplex(point: Tensor, mask: Tensor) -> Tensor:
    r"""Nearest point of the probability simplex, along the last axis.

    Solves, for each row,
    $$\min_{p} \tfrac12 \lVert p - v \rVert_2^2 \quad\text{s.t.}\quad p \ge 0,\; \mathbf 1^\top p = 1,$$
    over unmasked entries. This is line 3 of Algorithm 2.

    Args:
        point: The vectors $v$; `-inf` stands for an entry that gets nothing.
        mask: Entries that exist. Rows without any are returned as zeros.

    Returns:
        The projections, zero where masked.

    Example:
        >>> project_simplex(torch.tensor([1.0, 0.5, -1.0]), torch.ones(3, dtype=torch.bool))
        tensor([0.7500, 0.2500, 0.0000])

    References:
        Brucker (1984), An O(n) algorithm for quadratic knapsack problems.
        Michelot (1986), A finite algorithm for finding the projection of a point onto the canonical simplex.
    """
    if point.numel() == 0:
        return torch.zeros_like(point)
    if native.serves(point):
        source = flatten(point, 1)
        result = torch.empty_like(source)
        fault = native.kernels.project_rows(source, flatten(mask, 1), result, kernel_threads())
        raise_fault(fault, point, 1, "points")
        return result.reshape(point.shape)
    refuse_nan(point, mask, 1, "points")
    projected = simplex_reference(point, mask)
    # A row of -inf, or any +inf, has no nearest point; it shows as NaN in what came out.
    refuse_infinite(projected.isnan() & mask, 1, "points")
    return projected


@operator("spigot::project_heads")
def project_heads(point: Tensor, mask: Tensor) -> Tensor:
    r"""Projection onto $\mathcal P_{\text{DEP}}$ (Eq. 5, Algorithm 2): a simplex over the heads of each word.

    Args:
        point: `(*batch, n, n)` indexed `[head, modifier]`, the root at 0.
        mask: Arcs that exist. Self-loops and arcs into the root never do.
    """
    if point.numel() == 0:
        return torch.zeros_like(point)
    if native.serves(point):
        source = flatten(point, 2)
        result = torch.empty_like(source)
        fault = native.kernels.project_heads(source, flatten(mask, 2), result, kernel_threads())
        raise_fault(fault, point, 2, "points")
        return result.reshape(point.shape)
    mask = tree_arcs(mask)
    refuse_nan(point, mask, 2, "points")
    check_heads(mask)
    projected = simplex_reference(point.mT, mask.mT).mT.contiguous()
    refuse_infinite(projected.isnan() & mask, 2, "points")
    return projected


@operator("spigot::project_labelled_heads")
def project_labelled_heads(point: Tensor, mask: Tensor) -> Tensor:
    """Projection onto Eq. 5 with labels: a simplex over the heads and labels of each word.

    Args:
        point: `(*batch, n, n, l)` indexed `[head, modifier, label]`, the root at 0.
        mask: Parts that exist. Self-loops and arcs into the root never do.
    """
    mask = labelled_arcs(mask)
    refuse_nan(point, mask, 3, "points")
    check_heads(mask.any(-1))
    if point.numel() == 0:
        return torch.zeros_like(point)
    heads, labels = point.shape[-3], point.shape[-1]
    flat, exists = (x.movedim(-2, -3).flatten(-2) for x in (point, mask))  # (*batch, words, heads and labels)
    if native.serves(point):
        rows = flatten(flat, 1)
        projected = torch.empty_like(rows)
        fault = native.kernels.project_rows(rows, flatten(exists, 1), projected, kernel_threads())
        if fault is not None:  # nothing but infinities is left to be wrong; a row is a word
            raise infinite_error(fault[1] // heads, tuple(point.shape[:-3]))
        projected = projected.reshape(flat.shape)
    else:
        projected = simplex_reference(flat, exists)
    back = projected.unflatten(-1, (heads, labels)).movedim(-3, -2).contiguous()
    refuse_infinite(back.isnan() & mask, 3, "points")
    return back


@operator("spigot::project_arc_labels")
def project_arc_labels(point: Tensor, mask: Tensor, sequential: bool) -> Tensor:
    r"""Projection onto $\mathcal P_{\text{SDP}}$ (Eq. 6): for each arc, its labels sum to it.

    With the slack $u = 1 - y$ standing for "no arc", an arc $y$ with labels $x$ is one simplex:
    $(x, u) = \operatorname{proj}_\Delta([v; 1 - w])$. Predicates, on the diagonal, are clipped to $[0, 1]$.

    Args:
        point: `(*batch, n, n, 1 + l)`: arcs in channel 0, labelled arcs after it, predicates at `[i, i, 0]`.
        mask: Parts that exist. A label without its arc, and an arc into the root, never do.
        sequential: Clip the arc first and then fit the labels to it, as the program published with the paper did.
            **Departure** from Eq. 6: not the Euclidean projection.
    """
    if point.numel() == 0:
        return torch.zeros_like(point)
    if native.serves(point):
        source = flatten(point, 3)
        result = torch.empty_like(source)
        fault = native.kernels.project_arc_labels(source, flatten(mask, 3), result, sequential, kernel_threads())
        raise_fault(fault, point, 3, "points")
        return result.reshape(point.shape)
    return arc_labels_reference(point, mask, sequential)


for _operator in (project_simplex, project_heads, project_labelled_heads):
    _operator.register_fake(lambda point, mask: torch.empty_like(point, memory_format=torch.contiguous_format))
project_arc_labels.register_fake(
    lambda point, mask, sequential: torch.empty_like(point, memory_format=torch.contiguous_format)
)


def _save(ctx, inputs, output) -> None:
    ctx.save_for_backward(output)


def _backward_along(axis: int):
    """The Jacobian of a simplex projection: on the support, a gradient less its mean (Martins, Astudillo 2016)."""

    def backward(ctx, grad: Tensor):
        (p,) = ctx.saved_tensors
        return _centre(grad, p > 0, axis), None

    return backward


def _centre(grad: Tensor, support: Tensor, axis: int) -> Tensor:
    inside = grad.masked_fill(~support, 0)
    mean = inside.sum(axis, keepdim=True) / support.sum(axis, keepdim=True).clamp(min=1)
    return (inside - mean).masked_fill(~support, 0)


def _save_arc_labels(ctx, inputs, output) -> None:
    point, mask, ctx.sequential = inputs
    ctx.save_for_backward(point, mask, output)


def _arc_labels_backward(ctx, grad: Tensor):
    if ctx.sequential:
        raise NotImplementedError("ArcLabel(sequential=True) has no gradient; use ArcLabel().")
    point, mask, p = ctx.saved_tensors
    diagonal = torch.eye(p.shape[-2], dtype=torch.bool, device=p.device).unsqueeze(-1)
    argument = torch.arange(p.shape[-2], device=p.device).gt(0).unsqueeze(-1)
    arcs = mask[..., :1] & ~diagonal & argument
    # The slack of an arc falls as the arc rises, in the point as in its projection.
    lifted = torch.cat((-grad[..., :1], grad[..., 1:]), -1)
    back = _centre(lifted, torch.cat((arcs & (p[..., :1] < 1), p[..., 1:] > 0), -1), -1)
    inside = mask[..., :1] & diagonal & (point[..., :1] > 0) & (point[..., :1] < 1)
    return torch.cat((torch.where(inside, grad[..., :1], -back[..., :1]), back[..., 1:]), -1), None, None


project_simplex.register_autograd(_backward_along(-1), setup_context=_save)
project_heads.register_autograd(_backward_along(-2), setup_context=_save)
project_arc_labels.register_autograd(_arc_labels_backward, setup_context=_save_arc_labels)


def simplex_reference(
    point: Float[Tensor, "*batch k"], mask: Bool[Tensor, "*batch k"], total: Float[Tensor, "*batch"] | None = None
) -> Float[Tensor, "*batch k"]:
    r"""`project_simplex` by sorting, in plain torch, in $O(k \log k)$; `total` replaces the sum of one."""
    goal = torch.ones_like(point[..., :1]) if total is None else total.unsqueeze(-1)
    v = point.masked_fill(~mask, -torch.inf)
    top = v.amax(-1, keepdim=True)
    v = v - torch.where(top.isfinite(), top, torch.zeros_like(top))
    descending = v.sort(-1, descending=True).values
    cumulative = descending.cumsum(-1) - goal
    rank = torch.arange(1, point.shape[-1] + 1, device=point.device, dtype=point.dtype)
    count = (descending * rank > cumulative).sum(-1, keepdim=True).clamp(min=1)
    tau = cumulative.gather(-1, count - 1) / count
    return (v - tau).clamp(min=0).masked_fill(~mask, 0)


def arc_labels_reference(point: Tensor, mask: Tensor, sequential: bool) -> Tensor:
    """`project_arc_labels` in plain torch."""
    n = point.shape[-2]
    diagonal = torch.eye(n, dtype=torch.bool, device=point.device)
    predicates = (mask[..., 0] & diagonal).unsqueeze(-1)
    arcs = mask[..., :1] & ~diagonal.unsqueeze(-1)
    arcs[..., :, 0, :] = False
    labels = mask[..., 1:] & arcs
    exists = torch.cat((arcs | predicates, labels), -1)
    refuse_nan(point, exists, 3, "points")
    safe = point.masked_fill(~exists, 0)
    if sequential:
        y = safe[..., :1].clamp(0, 1).masked_fill(~labels.any(-1, keepdim=True), 0)
        x = simplex_reference(safe[..., 1:], labels, total=y.squeeze(-1))
        x = torch.where(y > 0, x, torch.zeros_like(x))
    else:
        lifted = torch.cat((1 - safe[..., :1], safe[..., 1:]), -1)
        lifted = simplex_reference(lifted, torch.cat((arcs, labels), -1))
        y, x = 1 - lifted[..., :1], lifted[..., 1:]
    y = torch.where(predicates, safe[..., :1].clamp(0, 1), y.masked_fill(~arcs, 0))
    # An arc of -inf, or a label of +inf, has no nearest point.
    refuse_infinite(torch.cat((y.isnan(), safe[..., 1:].isposinf() & labels), -1), 3, "points")
    return torch.cat((y, x.masked_fill(~labels, 0)), -1)


for _operator in (project_simplex, project_heads, project_labelled_heads, project_arc_labels):
    batched(_operator)


@operator("spigot::project_chain_blocks")
def project_chain_blocks(point: Tensor, mask: Tensor) -> Tensor:
    """Nearest points of the relaxation.

    Args:
        point: `(*batch, n, 1 + k, k)`; `-inf` stands for a part that gets nothing.
        mask: Parts that exist. A transition without one of its states never does.
    """
    if point.numel() == 0:
        return torch.zeros_like(point)
    if native.serves(point):
        source = flatten(point, 3)
        result = torch.empty_like(source)
        fault = native.kernels.project_chain_blocks(source, flatten(mask, 3), result, kernel_threads())
        raise_fault(fault, point, 3, "points")
        return result.reshape(point.shape)
    return blocks_reference(point, chain_parts(mask))


@operator("spigot::pull_chain_blocks")
def pull_chain_blocks(z: Tensor, grad: Tensor, mask: Tensor, eta: float) -> Tensor:
    r"""$z - \operatorname{proj}(z - \eta g)$ over the relaxation, in double precision throughout, in one pass.

    Args:
        z: `(*batch, n, 1 + k, k)`.
        grad: The gradient g, of the same shape; outside of the mask it is not looked at.
        mask: Parts that exist.
        eta: The step size.
    """
    if z.numel() == 0:
        return torch.zeros_like(z)
    if native.serves(z, grad):
        source = flatten(z, 3)
        result = torch.empty_like(source)
        fault = native.kernels.pull_chain_blocks(
            source, flatten(mask, 3), flatten(grad.to(z.dtype), 3), eta, result, kernel_threads()
        )
        raise_fault(fault, z, 3, "points")
        return result.reshape(z.shape)
    parts = chain_parts(mask)
    exact = z if z.device.type == "mps" else z.double()  # mps has no float64
    stepped = torch.where(parts, exact - eta * grad.to(exact.dtype), 0)
    return torch.where(parts, exact - blocks_reference(stepped, parts), 0).to(z.dtype)


def blocks_reference(
    point: Float[Tensor, "*batch n r k"], parts: Bool[Tensor, "*batch n r k"]
) -> Float[Tensor, "*batch n r k"]:
    """The projection in plain torch."""
    refuse_nan(point, parts, 3, "points")
    blocks = [
        simplex_reference(point[..., rows, :].flatten(-2), parts[..., rows, :].flatten(-2))
        for rows in (slice(1), slice(1, None))
    ]
    projected = torch.cat(blocks, -1).reshape(point.shape)
    # All of a block -inf, or any +inf, has no nearest point; it shows as NaN in what came out.
    refuse_infinite(projected.isnan() & parts, 3, "points")
    return projected


@project_chain_blocks.register_fake
def _(point: Tensor, mask: Tensor) -> Tensor:
    return torch.empty_like(point, memory_format=torch.contiguous_format)


@pull_chain_blocks.register_fake
def _(z: Tensor, grad: Tensor, mask: Tensor, eta: float) -> Tensor:
    return torch.empty_like(z, memory_format=torch.contiguous_format)


batched(project_chain_blocks)
batched(pull_chain_blocks)


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


def lpgd_points(
    z: Tensor, scores: Tensor, scale: Tensor, grad: Tensor, eta: float, mask: Tensor, two_sided: bool
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The two points that LPGD projects, in float64, and the parts that take part.

    Infinite scores are settled: a part of $-\infty$ that was not chosen does not exist here, one that had to be chosen
    counts as 0, and a part of $+\infty$ outdoes whatever is finite.
    """
    point, wide, along = to_float64(z), to_float64(scores), to_float64(grad)
    step = torch.where(mask, eta * along, 0)
    shift = torch.where(mask & wide.isfinite(), wide * scale.to(wide), 0)
    reach = (shift.abs() + step.abs()).amax() if z.numel() else 0
    shift = torch.where(mask & wide.isposinf(), 4 + 4 * reach, shift)
    centre = point + shift
    return centre + step if two_sided else centre, centre - step, mask & ~(wide.isneginf() & (point == 0))


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
        point = to_float64(z)
        moved = point - project(point - eta * grad.to(point), mask)
        return torch.where(mask, moved, 0).to(z.dtype)
    high, low, mask = lpgd_points(z, scores, scale, grad, eta, mask, two_sided)
    moved = project(high, mask) - project(low, mask)
    return (moved / 2 if two_sided else moved).to(z.dtype)


for _operator in (pull_simplex, pull_heads, pull_arc_labels):
    _operator.register_fake(lambda z, *_: torch.empty_like(z, memory_format=torch.contiguous_format))
    batched(_operator)
