r"""Chains of states: which parts can take part, and what is wrong with a mask or its scores.

Parts are `(*batch, n, 1 + k, k)`: row 0 of a position holds its states, row `1 + i` the transitions into it from state
i of the position before. The first position has no transitions into it.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from spigot import native
from spigot.algorithms.kernels import Fault, raise_fault
from spigot.algorithms.operators import batched
from spigot.algorithms.reduce import refuse_infinite, refuse_nan
from spigot.algorithms.simplex import project_simplex
from spigot.checks import NoStructureError, instance_name


def chain_parts(mask: Bool[Tensor, "*batch n r k"]) -> Bool[Tensor, "*batch n r k"]:
    """The parts that can take part in a chain: a transition needs its two states, and a position before its own."""
    states = mask[..., 0, :]
    before = torch.nn.functional.pad(states[..., :-1, :], (0, 0, 1, 0)) if mask.shape[-3] else states
    transitions = mask[..., 1:, :] & before.unsqueeze(-1) & states.unsqueeze(-2)
    return torch.cat((states.unsqueeze(-2), transitions), -2)


def chain_lengths(parts: Bool[Tensor, "*batch n r k"]) -> Int[Tensor, "*batch"]:
    """Positions up to the last that has a state."""
    places = torch.arange(1, parts.shape[-3] + 1, device=parts.device)
    exists = parts[..., 0, :].any(-1)
    return torch.where(exists, places, 0).amax(-1) if len(places) else exists.sum(-1)


def refuse_broken(parts: Bool[Tensor, "*batch n r k"]) -> None:
    """Raise if a mask leaves no chain. Looks at values: only for use inside operators."""
    batch, n = tuple(parts.shape[:-3]), parts.shape[-3]
    flat = parts.reshape(-1, *parts.shape[-3:])
    lengths = chain_lengths(flat)
    alive = flat[:, 0, 0] if n else flat.new_zeros(len(flat), 0)
    for t in range(n):
        inside = t < lengths
        gap = inside & ~flat[:, t, 0].any(-1)
        if gap.any():
            raise _stateless_error(int(gap.nonzero()[0]), batch, t)
    for t in range(1, n):
        alive = (flat[:, t, 1:] & alive.unsqueeze(-1)).any(-2)
        broken = (t < lengths) & ~alive.any(-1)
        if broken.any():
            raise _broken_error(int(broken.nonzero()[0]), batch, t)


def raise_chain_fault(fault: Fault | None, parts: Tensor, batch: tuple[int, ...] | None = None) -> None:
    """Raise the error that a kernel reported, if any."""
    if fault is None:
        return
    kind, instance, position, *_ = fault
    batch = tuple(parts.shape[:-3]) if batch is None else batch
    if kind == native.kernels.FAULT_HEADLESS:
        raise _stateless_error(instance, batch, position)
    if kind == native.kernels.FAULT_IMPOSSIBLE:
        raise _broken_error(instance, batch, position)
    raise_fault(fault, parts, 3, "scores")


def _stateless_error(index: int, batch: tuple[int, ...], position: int) -> NoStructureError:
    return NoStructureError(
        f"position {position} of {instance_name(index, batch)} has no state in the mask, but a later one has; unmask a "
        "state of it, or mask all positions after it if it is padding."
    )


def _broken_error(index: int, batch: tuple[int, ...], position: int) -> NoStructureError:
    return NoStructureError(
        f"the mask of {instance_name(index, batch)} leaves no chain: no transition that it allows leads on from "
        f"position {position - 1} to position {position}; unmask one."
    )


def hopeless_error(index: int, batch: tuple[int, ...]) -> ValueError:
    """Nothing to draw from."""
    return ValueError(
        f"every chain of {instance_name(index, batch)} has a score of -inf, so that there is none to draw; raise some "
        "scores, or forbid parts by the mask."
    )


def write_chains(states: Int[Tensor, "batch n"], lengths: Int[Tensor, "batch"], like: Tensor) -> Tensor:
    """0/1 parts `(batch, n, 1 + k, k)` in the dtype of `like`, from a state for each position inside the lengths."""
    k = like.shape[-1]
    n = states.shape[-1]
    inside = torch.arange(n, device=states.device) < lengths.unsqueeze(-1)
    z = torch.zeros(len(states), n, 1 + k, k, dtype=like.dtype, device=like.device)
    b, t = inside.nonzero(as_tuple=True)
    z[b, t, 0, states[b, t]] = 1
    b, t = b[t > 0], t[t > 0]
    z[b, t, 1 + states[b, t - 1], states[b, t]] = 1
    return z


@torch.library.custom_op("spigot::project_chain_blocks", mutates_args=())
def project_chain_blocks(point: Tensor, mask: Tensor) -> Tensor:
    """Projection onto a simplex for the states of each position, and one for the transitions into it."""
    parts = chain_parts(mask)
    refuse_nan(point, parts, 3, "points")
    blocks = (point[..., :1, :].flatten(-2), point[..., 1:, :].flatten(-2))
    exist = (parts[..., :1, :].flatten(-2), parts[..., 1:, :].flatten(-2))
    for block, there in zip(blocks, exist, strict=True):  # all of a block -inf, or any +inf: there is no nearest point
        lost = there.any(-1) & ~(there & ~block.isneginf()).any(-1)
        refuse_infinite(lost[..., None, None] | (block.isposinf() & there).unsqueeze(-1), 3, "points")
    projected = [project_simplex(block, there) for block, there in zip(blocks, exist, strict=True)]
    return torch.cat(projected, -1).reshape(point.shape)


@project_chain_blocks.register_fake
def _(point: Tensor, mask: Tensor) -> Tensor:
    return torch.empty_like(point, memory_format=torch.contiguous_format)


batched(project_chain_blocks)
