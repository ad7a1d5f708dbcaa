"""Semantic dependency graphs."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spigot._algorithms.k_best import with_values
from spigot._algorithms.kernel_calls import flatten
from spigot._algorithms.semantic_graphs import (
    draw_graphs,
    graph_argmax,
    graph_log_partition,
    graph_marginals,
    graph_parts,
    rank_graphs,
    summing_limit,
)
from spigot._runtime.checks import check_parts, check_rank, zero_one
from spigot._runtime.reduce import checked
from spigot.interface import AbstractRankedStructure, AbstractSamplingStructure, AbstractStructure
from spigot.interface.records import Preview
from spigot.polytopes.blocks import ArcLabel
from spigot.structures.lengths import padded_size
from spigot.types import Flags, Mask, Members, MemberValues, Parts, Values


@dataclass(frozen=True)
class SemanticGraphs(AbstractStructure):
    r"""Labelled graphs over words: predicates, arcs and labelled arcs (§3, first-order semantic dependency parsing).

    $$\mathcal Z = \{z \mid z_{i \to j} \le z_i,\ \sum_\ell z_{i \to j, \ell} = z_{i \to j},\
      \sum_j z_{i \to j, \ell} \le 1 \text{ for deterministic } \ell\}$$

    An arc needs its predicate; an arc has exactly one label and a label its arc; a deterministic role is used at most
    once by each predicate. Words may have any number of heads. Position 0 is the root: a predicate whose arguments are
    the tops of the graph, and never an argument itself.

    Parts are `(*batch, n, n, 1 + labels)`: arcs i -> j in channel 0, labelled arcs in channels 1.., predicate i at
    `[i, i, 0]`. `pack` and `unpack` go between this layout and three tensors.

    Decoding is exact: local where no deterministic role is repeated, by assignment where one is. A part that gains
    nothing is left out; ties go to the first label. Sums over all graphs are tractable if no role is deterministic:
    `SemanticGraphs(labels)` then is an `IndependentGraphs`, which has marginals, samples and the k best.

    Attributes:
        labels: How many roles there are.
        deterministic: The roles, counted from 0, that a predicate may use once.

    Example:
        >>> graphs = SemanticGraphs(labels=2, deterministic=(0,))
        >>> scores = graphs.pack(torch.ones(3), torch.zeros(3, 3), torch.ones(3, 3, 2) * torch.tensor([2.0, 1.0]))
        >>> predicates, arcs, labelled = graphs.unpack(graphs.argmax(scores))
        >>> labelled[0, 1:]                                     # role 0 once, role 1 for the other argument
        tensor([[1., 0.],
                [0., 1.]])

    References:
        Oepen et al. (2014), SemEval 2014 task 8: Broad-coverage semantic dependency parsing.
        Peng, Thomson, Smith (2017), Deep multitask learning for semantic dependency parsing.
    """

    labels: int
    deterministic: tuple[int, ...] = ()

    event_ndim: ClassVar[int] = 3

    def __new__(cls, labels: int = 0, deterministic: tuple[int, ...] = ()) -> "SemanticGraphs":
        """Graphs of which sums are tractable say so by their type."""
        return object.__new__(IndependentGraphs if cls is SemanticGraphs and not tuple(deterministic) else cls)

    def __getnewargs__(self) -> tuple[int, tuple[int, ...]]:
        return self.labels, self.deterministic

    def __post_init__(self) -> None:
        if self.labels < 0:
            raise ValueError(f"labels is {self.labels}; it counts roles and cannot be negative.")
        object.__setattr__(self, "deterministic", tuple(self.deterministic))
        outside = [role for role in self.deterministic if not 0 <= role < self.labels]
        if outside:
            raise ValueError(f"deterministic names role {outside[0]}, but roles go from 0 to {self.labels - 1}.")

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return graph_argmax(scores.detach(), self._check(scores, mask), self.deterministic)

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        parts = graph_parts(self._check(z, mask, "z"))
        predicates, arcs, labelled = (part != 0 for part in self.unpack(z))
        fine = zero_one(z, parts, 3) & ~(arcs & ~predicates.unsqueeze(-1)).flatten(-2).any(-1)
        fine = fine & (labelled.sum(-1) == arcs).flatten(-2).all(-1)
        uses = labelled[..., list(self.deterministic)].sum(-2)
        return fine & (uses <= 1).flatten(-2).all(-1)

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        mask = graph_parts(self._check(z, mask, "z"))
        pairs = zip(flatten(z.detach(), 3), flatten(mask, 3), strict=True)
        return [self._violations(values, exists) for values, exists in pairs]

    def preview(self, z: Parts) -> Preview:
        _, _, labelled = self.unpack(z)
        found = labelled.nonzero().tolist()
        return Preview(z.shape[-2] - 1, tuple((i, j, f"role {role}") for i, j, role in found))

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        n = padded_size(lengths, size)
        inside = (torch.arange(n, device=lengths.device) <= lengths.unsqueeze(-1)) & (lengths > 0).unsqueeze(-1)
        pairs = (inside.unsqueeze(-1) & inside.unsqueeze(-2)).unsqueeze(-1)
        return graph_parts(pairs.expand(*pairs.shape[:-1], 1 + self.labels))

    def full_mask(self, parts: Parts) -> Mask:
        self._check_shape(parts, "scores")
        one = torch.ones(parts.shape[-3:], dtype=torch.bool, device=parts.device)  # the same for every instance
        return graph_parts(one).expand_as(parts)

    @property
    def relaxation(self) -> ArcLabel:
        r"""$\mathcal P_{\text{SDP}}$ (Eq. 6): determinism is dropped."""
        return ArcLabel()

    def pack(
        self,
        predicates: Float[Tensor, "*batch n"] | Bool[Tensor, "*batch n"],
        arcs: Float[Tensor, "*batch n n"] | Bool[Tensor, "*batch n n"],
        labelled: Float[Tensor, "*batch n n l"] | Bool[Tensor, "*batch n n l"],
    ) -> Tensor:
        """One tensor of parts from three; scores, masks and z alike. Predicates take the diagonal of the arcs."""
        if (
            labelled.shape[-1] != self.labels
            or arcs.shape != labelled.shape[:-1]
            or arcs.shape[-2:-1] != arcs.shape[-1:]
            or predicates.shape != arcs.shape[:-1]
        ):
            raise ValueError(
                f"predicates {tuple(predicates.shape)}, arcs {tuple(arcs.shape)} and labelled {tuple(labelled.shape)} "
                f"do not fit (*batch, n), (*batch, n, n) and (*batch, n, n, {self.labels})."
            )
        diagonal = torch.eye(arcs.shape[-1], dtype=torch.bool, device=arcs.device)
        first = torch.where(diagonal, predicates.unsqueeze(-1), arcs)
        return torch.cat((first.unsqueeze(-1), labelled), -1)

    def unpack(self, parts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Predicates `(*batch, n)`, arcs `(*batch, n, n)` and labelled arcs `(*batch, n, n, l)`."""
        self._check_shape(parts, "parts")
        diagonal = torch.eye(parts.shape[-2], dtype=torch.bool, device=parts.device)
        return parts[..., 0].diagonal(dim1=-2, dim2=-1), parts[..., 0].masked_fill(diagonal, 0), parts[..., 1:]

    def _why_intractable(self) -> str:
        return "sums over graphs are intractable with deterministic roles"

    def _check(self, parts: Parts, mask: Mask | None, what: str = "scores") -> Mask:
        mask = check_parts(parts, mask, 3, what)
        self._check_shape(parts, what)
        return mask

    def _check_shape(self, parts: Tensor, what: str) -> None:
        shape = parts.shape[-3:]
        if len(shape) < 3 or shape[0] != shape[1] or shape[0] == 0 or shape[2] != 1 + self.labels:
            raise ValueError(
                f"{what} has shape {tuple(parts.shape)}; it must be (*batch, n, n, {1 + self.labels}), n >= 1."
            )

    def _violations(self, z: Tensor, exists: Tensor) -> list[str]:
        found = []
        for i, j, c in ((z != 0) & ((z != 1) | ~exists)).nonzero().tolist():
            name = (
                f"predicate {i}" if i == j and c == 0 else f"arc {i}->{j}" if c == 0 else f"label {c - 1} of {i}->{j}"
            )
            value = float(z[i, j, c])
            found.append(f"{name} is not in the mask" if not exists[i, j, c] else f"{name} is {value:g}, not 0 or 1")
        predicates, arcs, labelled = (part != 0 for part in self.unpack(z))
        count = labelled.sum(-1)
        for i, j in (arcs | (count > 0)).nonzero().tolist():
            if arcs[i, j] and not predicates[i]:
                found.append(f"arc {i}->{j} is on, but {i} is no predicate")
            if not arcs[i, j]:
                found.append(f"{i}->{j} has a label, but no arc")
            elif count[i, j] != 1:
                found.append(f"arc {i}->{j} has {int(count[i, j])} labels")
        uses = labelled.sum(-2)
        for role in self.deterministic:
            for i in (uses[:, role] > 1).nonzero().flatten().tolist():
                found.append(f"predicate {i} uses role {role} {int(uses[i, role])} times")
        return found


@final
@dataclass(frozen=True)
class IndependentGraphs(SemanticGraphs, AbstractRankedStructure, AbstractSamplingStructure):
    """Semantic graphs without deterministic roles: predicates do not compete, so that sums have a closed form.

    Made by `SemanticGraphs(labels)`.

    Example:
        >>> graphs = SemanticGraphs(labels=2)
        >>> graphs
        SemanticGraphs(labels=2, deterministic=())
        >>> round(graphs.log_count(graphs.mask(torch.tensor([1]))).exp().item())    # root and word, predicates or not
        8
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deterministic:
            raise ValueError("IndependentGraphs have no deterministic roles; use SemanticGraphs.")

    def __repr__(self) -> str:
        return f"SemanticGraphs(labels={self.labels}, deterministic=())"  # as it is asked for

    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        exists = graph_parts(self._check(scores, mask))
        return graph_log_partition(checked(scores, exists, 3, summing_limit(scores)), exists)

    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        exists = graph_parts(self._check(scores, mask))
        return graph_marginals(checked(scores, exists, 3, summing_limit(scores)), exists)

    def k_best(self, scores: Parts, k: int, mask: Mask | None = None) -> tuple[Members, MemberValues]:
        check_rank(k)
        z, found = rank_graphs(scores.detach(), self._check(scores, mask), k)
        return with_values(scores, z, found, 3)

    def sample_from_seeds(self, scores: Parts, seeds: Tensor, mask: Mask | None = None) -> Members:
        mask = self._check(scores, mask)
        return draw_graphs(scores.detach(), mask, seeds.movedim(0, -1)).movedim(-4, 0)
