r"""Chains of states: which parts can take part, and what is wrong with a mask or its scores.

Parts are `(*batch, n, 1 + k, k)`: row 0 of a position holds its states, row `1 + i` the transitions into it from state
i of the position before. The first position has no transitions into it.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from spigot._algorithms.kernel_calls import Fault, raise_fault
from spigot._runtime import native
from spigot._runtime.checks import NoStructureError, instance_name


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
    flat = parts.reshape(parts.shape[:-3].numel(), *parts.shape[-3:])
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


def within(states: Int[Tensor, "batch n"], lengths: Int[Tensor, "batch"]) -> Int[Tensor, "batch n"]:
    """The states with -1 beyond the end of each chain."""
    return states.masked_fill(torch.arange(states.shape[-1], device=states.device) >= lengths.unsqueeze(-1), -1)


def part_places(states: Int[Tensor, "*batch n"], k: int) -> Int[Tensor, "*batch parts"]:
    """Where the parts of chains stand in the flat `n * (1 + k) * k` parts, -1 for those that a chain does not have.

    First the states, then the transitions.
    """
    n = states.shape[-1]
    first = torch.arange(n, device=states.device) * (1 + k) * k
    own = torch.where(states < 0, -1, first + states)
    steps = torch.where(states[..., 1:] < 0, -1, own[..., 1:] + (1 + states[..., :-1]) * k)
    return torch.cat((own, steps), -1)


def write_chains(states: Int[Tensor, "*batch n"], like: Tensor) -> Tensor:
    """0/1 parts `(*batch, n, 1 + k, k)` in the dtype of `like`, from states, -1 where there is none.

    Looks at values: only for use inside operators.
    """
    k, n = like.shape[-1], states.shape[-1]
    size = n * (1 + k) * k
    places = part_places(states, k)
    places = places.reshape(places.shape[:-1].numel(), places.shape[-1])
    z = torch.zeros(*states.shape[:-1], n, 1 + k, k, dtype=like.dtype, device=like.device)
    offsets = torch.arange(len(places), device=places.device).unsqueeze(-1) * size
    z.view(-1)[(places + offsets)[places >= 0]] = 1
    return z
