"""Dependency trees whose arcs carry labels."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spigot._algorithms.arc_mask import labelled_arcs
from spigot._algorithms.kernel_calls import flatten
from spigot._algorithms.labelled_trees import k_best_labelled, label_sums, labelled_argmax, sample_labelled
from spigot._runtime.checks import check_labelled_arcs, check_rank, zero_one
from spigot._runtime.precision import upcast_half
from spigot.interface import AbstractRankedStructure, AbstractSamplingStructure
from spigot.interface.records import Preview
from spigot.polytopes.blocks import LabelledHeadSimplex
from spigot.structures.trees import NonProjectiveTrees, ProjectiveTrees, are_trees, tree_violations
from spigot.types import Flags, Mask, Members, MemberValues, Parts, Values


@final
@dataclass(frozen=True)
class LabelledTrees(AbstractRankedStructure, AbstractSamplingStructure):
    r"""Dependency trees with one label on each arc, over `(*batch, n, n, labels)` indexed `[head, modifier, label]`.

    $$\mathcal Z = \{z \in \{0, 1\}^{n \times n \times k} \mid \sum_\ell z_{hm\ell} \text{ is a tree}\}$$

    Position 0 is the root. Every verb reduces to the trees: the argmax by the best label of each arc, sums by the
    logarithm of the sum over labels, draws by a draw of the tree and then of its labels. A label of an arc may be
    masked by itself; an arc without any label does not exist. Ties go to the first label, then as in the trees.

    Its convex hull is all $p \ge 0$ whose sums over labels, $\sum_\ell p_{h \to m, \ell}$, lie in the hull of the
    trees: a mixture of trees, the labels of each arc mixed independently of the rest. Yet projecting onto it does not
    reduce to projecting onto the hull of the trees: what it costs to give an arc the weight $a$ is the squared distance
    of its labels to a simplex of size $a$, and $k$ labels that share a change $\delta$ of $a$ pay $\delta^2 / k$ where
    a bare arc pays $\delta^2$; how many share it differs from arc to arc and with $a$. So `ConvexHull` goes through
    this argmax, round by round, exact up to its duality gap.

    Attributes:
        trees: Which trees.
        labels: How many labels there are.

    Example:
        >>> trees = LabelledTrees(ProjectiveTrees(), labels=2)
        >>> scores = torch.zeros(3, 3, 2)
        >>> scores[0, 1, 1] = scores[1, 2, 0] = 1.0             # root -> 1 with label 1, 1 -> 2 with label 0
        >>> heads, labels = trees.to_indices(trees.argmax(scores))
        >>> heads, labels
        (tensor([-1,  0,  1]), tensor([-1,  1,  0]))
        >>> round(trees.log_partition(torch.zeros(4, 4, 2)).exp().item())        # seven trees, three arcs, two labels
        56
        >>> trees.violations(torch.zeros(3, 3, 2))
        [['modifier 1 has 0 heads', 'modifier 2 has 0 heads', 'no word hangs on the root']]
    """

    trees: ProjectiveTrees | NonProjectiveTrees
    labels: int

    event_ndim: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if not isinstance(self.trees, ProjectiveTrees | NonProjectiveTrees):
            raise TypeError(f"trees is {self.trees!r}; it must be ProjectiveTrees(...) or NonProjectiveTrees(...).")
        if not isinstance(self.labels, int) or self.labels < 1:
            raise ValueError(f"labels is {self.labels!r}; it must be a whole number, one or more.")

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return labelled_argmax(scores.detach(), self._check(scores, mask), *self.trees.kind)

    def k_best(self, scores: Parts, k: int, mask: Mask | None = None) -> tuple[Members, MemberValues]:
        z, found = k_best_labelled(scores.detach(), self._check(scores, mask), check_rank(k), *self.trees.kind)
        z, found = z.movedim(-4, 0), found.movedim(-1, 0)
        return z, torch.where(z != 0, scores, 0).sum((-3, -2, -1)).masked_fill(~found, -torch.inf)

    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        return self.trees.log_partition(*self.arc_scores(scores, mask))

    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        mask = self._check(scores, mask)
        logs, shares, arcs = label_sums(scores, mask, True)
        return torch.where(mask, self.trees.marginals(logs, arcs).unsqueeze(-1) * shares, 0)

    def sample_from_seeds(self, scores: Parts, seeds: Tensor, mask: Mask | None = None) -> Members:
        mask = self._check(scores, mask)
        return sample_labelled(scores.detach(), mask, seeds.movedim(0, -1), *self.trees.kind).movedim(-4, 0)

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        parts = labelled_arcs(self._check(z, mask, "z"))
        on = z != 0
        single = (on.sum(-1) <= 1).flatten(-2).all(-1)
        return zero_one(z, parts, 3) & single & are_trees(on.any(-1).to(z.dtype), parts.any(-1), self.trees.kind)

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        parts = labelled_arcs(self._check(z, mask, "z"))
        flat, exists = flatten(z, 3), flatten(parts, 3)
        rest = tree_violations((flat != 0).any(-1).to(z.dtype), exists.any(-1), self.trees.kind)
        return [_label_violations(*pair) + found for *pair, found in zip(flat, exists, rest, strict=True)]

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        arcs = self.trees.mask(lengths, size)
        return arcs.unsqueeze(-1).expand(*arcs.shape, self.labels).contiguous()

    def full_mask(self, parts: Parts) -> Mask:
        self._check(parts, None)
        one = torch.ones(parts.shape[-3:], dtype=torch.bool, device=parts.device)  # the same for every instance
        return labelled_arcs(one).expand_as(parts)

    @property
    def relaxation(self) -> LabelledHeadSimplex:
        r"""Eq. 5 with labels: the heads of each word with their labels are one simplex."""
        return LabelledHeadSimplex()

    def preview(self, z: Parts) -> Preview:
        return Preview(z.shape[-2] - 1, tuple((h, m, f"label {label}") for h, m, label in z.nonzero().tolist()))

    @upcast_half
    def arc_scores(
        self, scores: Parts, mask: Mask | None = None
    ) -> tuple[Float[Tensor, "*batch n n"], Bool[Tensor, "*batch n n"]]:
        r"""Labelled trees as trees: $\log \sum_\ell \exp s_{hm\ell}$ of each arc, and which arcs exist.

        `self.trees` has with these scores the marginals of arcs that these trees have, summed over labels, and the same
        partition function.

        Args:
            scores: The part scores, `(*batch, n, n, labels)`.
            mask: Parts that exist.

        Returns:
            Scores `(*batch, n, n)`, differentiable, $-\infty$ where no label has mass; and the mask of arcs.

        Example:
            >>> scores, mask = LabelledTrees(ProjectiveTrees(), labels=2).arc_scores(torch.zeros(3, 3, 2))
            >>> round(scores[0, 1].exp().item()), mask[0].tolist()                         # no arcs into the root
            (2, [False, True, True])
        """
        logs, _, arcs = label_sums(scores, self._check(scores, mask), torch.is_grad_enabled() and scores.requires_grad)
        return logs, arcs

    def to_indices(self, z: Parts) -> tuple[Tensor, Tensor]:
        """The head of each word and the label of its arc, `(*batch, n)`, -1 where z has none, as for the root.

        Args:
            z: Labelled trees, such as `argmax` gives.
        """
        self._check(z, None, "z")
        chosen = z.movedim(-2, -3).flatten(-2)  # (*batch, words, heads and labels)
        some, index = (chosen != 0).any(-1), (chosen != 0).to(torch.uint8).argmax(-1)
        return torch.where(some, index // self.labels, -1), torch.where(some, index % self.labels, -1)

    def from_indices(self, heads: Tensor, labels: Tensor, dtype: torch.dtype = torch.float32) -> Parts:
        """The way back from `to_indices`: `(*batch, n)` heads and labels, -1 for none, to a 0/1 tensor of parts.

        Example:
            >>> trees = LabelledTrees(NonProjectiveTrees(), labels=2)
            >>> z = trees.from_indices(torch.tensor([-1, 2, 0]), torch.tensor([-1, 0, 1]))
            >>> z.nonzero().tolist(), trees.contains(z).item()
            ([[0, 2, 1], [2, 1, 0]], True)
        """
        if heads.shape != labels.shape:
            raise ValueError(
                f"heads has shape {tuple(heads.shape)} and labels {tuple(labels.shape)}; they must be equal."
            )
        n = heads.shape[-1]
        for name, values, end in (("heads", heads, n), ("labels", labels, self.labels)):
            if values.numel() and not -1 <= int(values.min()) <= int(values.max()) < end:
                raise ValueError(
                    f"{name} go from {int(values.min())} to {int(values.max())}; they must be 0 to {end - 1}, "
                    "or be -1 for none."
                )
        some = (heads >= 0) & (labels >= 0)
        index = torch.where(some, heads * self.labels + labels, 0).unsqueeze(-1)
        z = torch.zeros(*heads.shape, n * self.labels, dtype=dtype, device=heads.device)
        z = z.scatter(-1, index, some.to(dtype).unsqueeze(-1))
        return z.unflatten(-1, (n, self.labels)).movedim(-3, -2).contiguous()

    def _check(self, parts: Parts, mask: Mask | None, what: str = "scores") -> Mask:
        return check_labelled_arcs(parts, mask, self.labels, what)


def _label_violations(z: Parts, exists: Mask) -> list[str]:
    found: list[str] = []
    chosen: dict[tuple[int, int], list[int]] = {}
    for h, m, label in z.nonzero().tolist():
        chosen.setdefault((h, m), []).append(label)
        value = float(z[h, m, label])
        if value != 1:
            found.append(f"arc {h}->{m} with label {label} is {value:g}, not 0 or 1")
        if not exists[h, m, label] and exists[h, m].any():  # an arc without any label is reported as an arc
            found.append(f"label {label} of arc {h}->{m} is not in the mask")
    several = ((arc, labels) for arc, labels in chosen.items() if len(labels) > 1)
    return found + [f"arc {h}->{m} has {len(ls)} labels: {', '.join(map(str, ls))}" for (h, m), ls in several]
