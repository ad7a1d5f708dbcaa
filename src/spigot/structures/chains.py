"""Chains of states: one state at each position, and a transition between each two neighbours."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spigot._algorithms.kernel_calls import flatten
from spigot._algorithms.viterbi import CHAINS, chain_lengths, chain_parts, part_places, project_chain_hull
from spigot._runtime import native
from spigot._runtime.checks import check_parts, check_rank
from spigot.interface import AbstractRankedStructure, AbstractSamplingStructure
from spigot.interface.records import Preview
from spigot.polytopes.chains import ChainSimplex
from spigot.structures.lengths import check_lengths
from spigot.types import Flags, HullResult, Mask, Members, MemberValues, Parts, Values


@final
@dataclass(frozen=True)
class Chains(AbstractRankedStructure, AbstractSamplingStructure):
    r"""Sequences of states, scored by their states and by the transitions between neighbours: linear-chain CRFs.

    $$\mathcal Z = \{z(y) \mid y \in \{1, \dots, k\}^n\}, \qquad
      z(y)^\top s = \sum_{t=1}^n s_{t, y_t} + \sum_{t=2}^n s_{t, y_{t-1}, y_t}$$

    A member has one state at each of $n$ positions, and with them the $n - 1$ transitions from each state to the next.
    Viterbi's algorithm finds the best, forward-backward sums over all $k^n$, both in $O(n k^2)$ and right at any scale
    of scores. Ties go to the first state, decided from the last position back. An unmasked score of `-inf` is worse
    than any finite sum, and still better than a part that does not exist.

    Parts are `(*batch, n, 1 + k, k)`: row 0 of a position holds its states, row `1 + i` the transitions into it from
    state i of the position before. So all that a position has stands together, a shorter chain is a shorter tensor, and
    padding is positions at the end; only the transitions into position 0 are never used. `pack` and `unpack` go between
    this layout and two tensors, for scores, masks and members alike.

    A position exists if any of its states does. Positions that do not exist come after all that do: a gap would leave
    open which transitions bridge it, and is an error. Forbidden states and transitions are parts that the mask leaves
    out.

    Attributes:
        states: How many states there are, $k$.

    Example:
        >>> chains = Chains(states=2)
        >>> unary = torch.tensor([[1.0, 0.0], [0.4, 0.0], [0.0, 1.0]])      # three positions
        >>> stay = torch.tensor([[0.5, 0.0], [0.0, 0.5]])                   # from row to column, at every step
        >>> states, transitions = chains.unpack(chains.argmax(chains.pack(unary, stay)))
        >>> states
        tensor([[1., 0.],
                [1., 0.],
                [0., 1.]])
        >>> transitions[1]                                                  # from 0 at position 1 to 1 at position 2
        tensor([[0., 1.],
                [0., 0.]])
        >>> round(chains.log_count(chains.mask(torch.tensor([10]))).exp().item())
        1024

    References:
        Viterbi (1967), Error bounds for convolutional codes and an asymptotically optimum decoding algorithm.
        Lafferty, McCallum, Pereira (2001), Conditional random fields: Probabilistic models for segmenting and labeling
        sequence data.
    """

    states: int

    event_ndim: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if not isinstance(self.states, int) or self.states < 1:
            raise ValueError(f"states is {self.states!r}; a chain needs a whole number of states, at least one.")

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return CHAINS.argmax(scores.detach(), self._check(scores, mask))

    def k_best(self, scores: Parts, k: int, mask: Mask | None = None) -> tuple[Members, MemberValues]:
        mask = self._check(scores, mask)
        z, found = (part.movedim(scores.ndim - 3, 0) for part in CHAINS.k_best(scores.detach(), mask, check_rank(k)))
        exists, states = z[..., 0, :].max(-1)
        places = part_places(torch.where(exists > 0, states, -1), self.states)  # few of many parts
        each = scores.flatten(-3).expand(k, *scores.shape[:-3], -1).gather(-1, places.clamp(min=0))
        values = torch.where(places < 0, 0, each).sum(-1)
        return z, values.masked_fill(~found, -torch.inf)

    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        return CHAINS.log_partition(scores, self._check(scores, mask))

    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return CHAINS.marginals(scores, self._check(scores, mask))

    def sample_from_seeds(self, scores: Parts, seeds: Tensor, mask: Mask | None = None) -> Members:
        mask = self._check(scores, mask)
        return CHAINS.sample(scores.detach(), mask, seeds.movedim(0, -1)).movedim(scores.ndim - 3, 0)

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        return _are_chains(z, self._check(z, mask, "z"))

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        mask = self._check(z, mask, "z")
        parts, fine = (
            chain_parts(mask),
            _are_chains(z, mask).flatten().tolist(),
        )  # only what is broken is looked at alone
        each = zip(fine, flatten(z.detach(), 3), flatten(parts, 3), strict=True)
        return [[] if good else _violations(values, exists) for good, values, exists in each]

    def preview(self, z: Parts) -> Preview:
        return Preview(tables=(("states from left to right", self.unpack(z)[0].mT.tolist()),))

    def project_hull(
        self, point: Tensor, mask: Tensor, start: Tensor | None, *, support: bool = True
    ) -> HullResult | None:
        if not native.available or not point.numel():
            return None
        return project_chain_hull(point, mask, start, support=support)

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        """The parts of chains of these lengths; here lengths count positions, and so does `size`."""
        check_lengths(lengths)
        if size is None or not torch.compiler.is_compiling():  # a compiled graph cannot look at values
            longest = int(lengths.max()) if lengths.numel() else 0
            size = longest if size is None else size
            if size < longest:
                raise ValueError(f"size is {size}, but an instance has {longest} positions.")
        places = torch.arange(size, device=lengths.device)
        inside = (places < lengths.unsqueeze(-1))[..., None, None]
        return inside & self._possible(size, lengths.device)

    def full_mask(self, parts: Parts) -> Mask:
        self._check_shape(parts, "scores")
        return self._possible(parts.shape[-3], parts.device).expand_as(parts)

    @property
    def relaxation(self) -> ChainSimplex:
        """A simplex for the states of each position and one for each step.

        The hull is known exactly, too (transitions that agree with the states at their ends), but has no closed form to
        project by. This one costs little more than reading the gradient. What a network says about states then moves
        the scores of states, and what it says about transitions those of transitions: where it reads states alone and
        the transitions shall learn as well, `Spigot(polytope=ConvexHull(chains))` couples the two.
        """
        return ChainSimplex()

    def pack(
        self,
        unary: Float[Tensor, "*batch n k"] | Bool[Tensor, "*batch n k"],
        transitions: Float[Tensor, "*steps k k"] | Bool[Tensor, "*steps k k"],
    ) -> Tensor:
        """One tensor of parts from two; scores, masks and z alike.

        Args:
            unary: What each position says about each state, `(*batch, n, k)`.
            transitions: `(*batch, n - 1, k, k)`; `[t, i, j]` is from state i at position t to state j at position
                t + 1. A matrix `(k, k)` is shared by all steps of all instances, and so are axes that are missing or 1.
        """
        k, n = self.states, unary.shape[-2] if unary.ndim > 1 else 0
        steps = max(n - 1, 0)
        whole = (*unary.shape[:-2], steps, k, k)
        fits = len(transitions.shape) <= len(whole) and all(
            given == 1 or given == wanted for given, wanted in zip(transitions.shape[::-1], whole[::-1], strict=False)
        )
        if unary.ndim < 2 or unary.shape[-1] != k or transitions.shape[-2:] != (k, k) or not fits:
            raise ValueError(
                f"unary {tuple(unary.shape)} and transitions {tuple(transitions.shape)} do not fit (*batch, n, {k}) "
                f"and (*batch, n - 1, {k}, {k}) or ({k}, {k})."
            )
        into = transitions.expand(whole)
        if n:
            into = torch.cat((into.new_zeros(()).expand(*unary.shape[:-2], 1, k, k), into), -3)
        return torch.cat((unary.unsqueeze(-2), into), -2)

    def unpack(self, parts: Tensor) -> tuple[Tensor, Tensor]:
        """States `(*batch, n, k)` and transitions `(*batch, n - 1, k, k)`, as `pack` takes them; views, not copies."""
        self._check_shape(parts, "parts")
        return parts[..., 0, :], parts[..., 1:, 1:, :]

    def _possible(self, size: int, device: torch.device) -> Mask:
        """All parts of `size` positions but the transitions into the first."""
        later = torch.arange(size, device=device) > 0
        states = torch.arange(1 + self.states, device=device) == 0
        return (later.unsqueeze(-1) | states).unsqueeze(-1).expand(size, 1 + self.states, self.states)

    def _check(self, parts: Parts, mask: Mask | None, what: str = "scores") -> Mask:
        mask = check_parts(parts, mask, 3, what)
        self._check_shape(parts, what)
        return mask

    def _check_shape(self, parts: Tensor, what: str) -> None:
        if parts.ndim < 3 or parts.shape[-2:] != (1 + self.states, self.states):
            raise ValueError(
                f"{what} has shape {tuple(parts.shape)}; it must be (*batch, n, {1 + self.states}, {self.states}), as "
                "pack makes it."
            )


def _are_chains(z: Parts, mask: Mask) -> Flags:
    """Which instances have the states and the transitions that their first states say, and nothing else."""
    n, k = z.shape[-3], z.shape[-1]
    inside = torch.arange(n, device=z.device) < chain_lengths(mask).unsqueeze(-1)
    state = (z[..., 0, :] != 0).to(torch.uint8).argmax(-1)
    place = torch.cat((state[..., :1], (1 + state[..., :-1]) * k + state[..., 1:]), -1)  # of the way into each position
    flat, exists = z.flatten(-2), mask.flatten(-2)
    fine = torch.ones_like(inside)
    for index in (state.unsqueeze(-1), place.unsqueeze(-1)):
        fine = fine & (flat.gather(-1, index) == 1).squeeze(-1) & exists.gather(-1, index).squeeze(-1)
    parts = z.flatten(-3).count_nonzero(-1)
    return (fine | ~inside).all(-1) & (parts == (2 * inside.sum(-1) - 1).clamp(min=0))


def _violations(z: Tensor, exists: Tensor) -> list[str]:
    found = []
    for t, row, j in ((z != 0) & ((z != 1) | ~exists)).nonzero().tolist():
        name = f"state {j} of position {t}" if row == 0 else _transition(t, row - 1, j)
        value = float(z[t, row, j])
        found.append(f"{name} is {value:g}, not 0 or 1" if exists[t, row, j] else f"{name} is not in the mask")
    positions = exists[:, 0].any(-1).nonzero().flatten().tolist()
    length = positions[-1] + 1 if positions else 0
    chosen = [on.nonzero().flatten().tolist() for on in z[:, 0] != 0]
    for t in range(length):
        if len(chosen[t]) != 1:
            names = ": " + ", ".join(map(str, chosen[t])) if chosen[t] else ""
            found.append(f"position {t} has {len(chosen[t])} states{names}")
    for t in range(1, length):
        steps = (z[t, 1:] != 0).nonzero().tolist()
        if len(steps) != 1:
            names = ": " + ", ".join(f"{i}->{j}" for i, j in steps) if steps else ""
            found.append(f"{len(steps)} transitions lead from position {t - 1} to {t}{names}")
        found += [
            f"{_transition(t, i, j)} does not fit its states"
            for i, j in steps
            if i not in chosen[t - 1] or j not in chosen[t]
        ]
    return found


def _transition(t: int, i: int, j: int) -> str:
    return f"transition {i}->{j} between positions {t - 1} and {t}" if t else f"transition {i}->{j} into position 0"
