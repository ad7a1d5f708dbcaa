r"""Chains of states: the best one and the k best by Viterbi's recursion, sums by forward-backward, and draws.

Parts are `(*batch, n, 1 + k, k)`: row 0 of a position holds its states, row `1 + i` the transitions into it from state
i of the position before. The first position has no transitions into it.

Natively the recursion runs in C++; elsewhere in plain torch, for a batch of chains at once, position by position.

References:
    Viterbi (1967), Error bounds for convolutional codes and an asymptotically optimum decoding algorithm.
    Seshadri, Sundberg (1994), List Viterbi decoding algorithms with applications, §III.
    Rabiner (1989), A tutorial on hidden Markov models and selected applications in speech recognition, §III.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from spigot._algorithms.active_set import search_in_kernel
from spigot._algorithms.kernel_calls import Fault
from spigot._algorithms.recursions import Recursion
from spigot._algorithms.semirings import AbstractSemiring
from spigot._runtime import native
from spigot._runtime.checks import NoStructureError, instance_name
from spigot.types import HullResult


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


def chains(scores: Tensor, exists: Tensor, semiring: AbstractSemiring) -> Tensor:
    """All chains up to the last position that has a state; where there is none, the empty chain."""
    lengths = chain_lengths(exists)
    first, *later = scores.masked_fill(~exists, -torch.inf).unbind(-3)
    value = semiring.lift(first[..., 0, :])
    for t, position in enumerate(later, 1):
        ways = value.unsqueeze(-1) + position[..., 1:, :]  # from state to state
        into = position[..., 0, :] + semiring.plus(ways.mT, torch.tensor(t - 1))
        value = torch.where((t < lengths).unsqueeze(-1), into, value)
    total = semiring.plus(value, lengths - 1)
    return torch.where(lengths == 0, semiring.lift(torch.zeros_like(scores[..., 0, 0, 0])), total)


def _broken(parts: Bool[Tensor, "*batch n r k"]) -> NoStructureError:
    """What is wrong with parts that leave some instance no chain."""
    batch, n = tuple(parts.shape[:-3]), parts.shape[-3]
    flat = parts.flatten(0, -4) if batch else parts.unsqueeze(0)
    inside = torch.arange(n, device=parts.device) < chain_lengths(flat).unsqueeze(-1)
    gaps = (inside & ~flat[:, :, 0].any(-1)).T.nonzero()  # the first position, and of its instances the first
    if len(gaps):
        t, instance = gaps[0].tolist()
        return NoStructureError(
            f"position {t} of {instance_name(instance, batch)} has no state in the mask, but a later one has; unmask a "
            "state of it, or mask all positions after it if it is padding."
        )
    alive, dead, t = flat[:, 0, 0], torch.zeros_like(inside[:, 0]), 0
    while not dead.any():
        t += 1
        alive = (flat[:, t, 1:] & alive.unsqueeze(-1)).any(-2)
        dead = inside[:, t] & ~alive.any(-1)
    return NoStructureError(
        f"the mask of {instance_name(int(dead.nonzero()[0]), batch)} leaves no chain: no transition that it allows "
        f"leads on from position {t - 1} to position {t}; unmask one."
    )


def part_places(states: Int[Tensor, "*batch n"], k: int) -> Int[Tensor, "*batch parts"]:
    """Where the parts of chains stand in the flat `n * (1 + k) * k` parts, -1 for those that a chain does not have.

    First the states, then the transitions.
    """
    n = states.shape[-1]
    first = torch.arange(n, device=states.device) * (1 + k) * k
    own = torch.where(states < 0, -1, first + states)
    steps = torch.where(states[..., 1:] < 0, -1, own[..., 1:] + (1 + states[..., :-1]) * k)
    return torch.cat((own, steps), -1)


def _list_best(flat: Tensor, mask: Tensor, z: Tensor, count: Tensor, threads: int) -> Fault | None:
    """The kernel, which lists states, and the chains of these."""
    states = torch.empty(z.shape[:3], dtype=torch.int64)
    fault = native.kernels.chain_k_best(flat, mask, states, count, threads)
    if fault is None:
        places = part_places(states.flatten(0, 1), z.shape[-1])
        offsets = torch.arange(len(places)).unsqueeze(-1) * z[0, 0].numel()
        z.zero_().view(-1)[(places + offsets)[places >= 0]] = 1
    return fault


CHAINS = Recursion(
    "chain",
    chains,
    3,
    member="chain",
    parts="states or transitions",
    existing=chain_parts,
    explain=_broken,
    list_best=_list_best,
)


def project_chain_hull(point: Tensor, mask: Tensor, start: Tensor | None, *, support: bool = True) -> HullResult:
    """Nearest points of the hull of chains.

    Args:
        point: `(*batch, n, 1 + k, k)`; from an accelerator it goes by way of the host.
        mask: Parts that exist.
        start: A chain for each instance to begin with; the best for `point` if omitted.
        support: Whether to hand over the chains whose mixture is the answer.
    """

    def refuse(fault: Fault | None) -> None:
        CHAINS.raise_fault(fault, point, mask)

    return search_in_kernel(native.kernels.project_chain_hull, point, mask, start, 3, (), support, refuse)
