"""Projection onto the relaxation of chains: a simplex for the states of each position, and one for each step."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spigot._algorithms.chains import chain_parts
from spigot._algorithms.kernel_calls import flatten, raise_fault
from spigot._algorithms.simplex import simplex_reference
from spigot._runtime import native
from spigot._runtime.operators import batched, operator
from spigot._runtime.reduce import refuse_infinite, refuse_nan
from spigot._runtime.threads import kernel_threads


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
