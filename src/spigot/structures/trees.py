"""Dependency trees: every word has one head, and following heads leads to the root at position 0."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from spigot._algorithms.arc_mask import TreeKind, tree_arcs
from spigot._algorithms.dependency_trees import (
    k_best_trees,
    project_tree_hull,
    sample_trees,
    tree_argmax,
    tree_log_partition,
    tree_marginals,
)
from spigot._runtime import native
from spigot._runtime.checks import check_arcs, check_rank
from spigot.interface import AbstractRankedStructure, AbstractSamplingStructure
from spigot.interface.records import Preview
from spigot.polytopes.blocks import HeadSimplex
from spigot.structures.describe import arc_mask, tree_violations
from spigot.types import HullResult, Mask, Members, MemberValues, Parts, Values


@dataclass(frozen=True)
class AbstractTrees(AbstractRankedStructure, AbstractSamplingStructure):
    """What projective and non-projective trees share: everything but whether arcs may cross."""

    single_root: bool = True

    event_ndim: ClassVar[int] = 2
    projective: ClassVar[bool]
    """Whether arcs must not cross."""

    @property
    def kind(self) -> TreeKind:
        """The kind of trees, for the algorithms."""
        return TreeKind(self.projective, self.single_root)

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return tree_argmax(scores.detach(), check_arcs(scores, mask), *self.kind)

    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        return tree_log_partition(scores, check_arcs(scores, mask), self.kind)

    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return tree_marginals(scores, check_arcs(scores, mask), self.kind)

    def sample_from_seeds(self, scores: Parts, seeds: Tensor, mask: Mask | None = None) -> Members:
        mask = check_arcs(scores, mask)
        return sample_trees(scores.detach(), mask, seeds.movedim(0, -1), *self.kind).movedim(-3, 0)

    def k_best(self, scores: Parts, k: int, mask: Mask | None = None) -> tuple[Members, MemberValues]:
        z, found = k_best_trees(scores.detach(), check_arcs(scores, mask), check_rank(k), *self.kind)
        z, found = z.movedim(-3, 0), found.movedim(-1, 0)
        return z, torch.where(z != 0, scores, 0).sum((-2, -1)).masked_fill(~found, -torch.inf)

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        mask = check_arcs(z, mask, "z")
        return tree_violations(z, mask, single_root=self.single_root, projective=self.projective)

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        return arc_mask(lengths, size)

    def full_mask(self, parts: Parts) -> Mask:
        return tree_arcs(check_arcs(parts, None))

    def latex_constraints(self) -> str:
        return r"\sum_m z_{0m} = 1" if self.single_root else ""

    def preview(self, z: Parts) -> Preview:
        return Preview(z.shape[-1] - 1, tuple((h, m, "") for h, m in z.nonzero().tolist()))

    def project_hull(
        self, point: Tensor, mask: Tensor, start: Tensor | None, *, support: bool = True
    ) -> HullResult | None:
        if not native.available or not point.numel():
            return None
        return project_tree_hull(point, mask, start, self.kind, support=support)

    @property
    def relaxation(self) -> HeadSimplex:
        r"""$\mathcal P_{\text{DEP}}$ (Eq. 5)."""
        return HeadSimplex()


@final
@dataclass(frozen=True)
class ProjectiveTrees(AbstractTrees):
    r"""Dependency trees without crossing arcs, over `(*batch, n, n)` arcs indexed `[head, modifier]`.

    $$\mathcal Z = \{z \in \{0, 1\}^{n \times n} \mid \sum_h z_{hm} = 1 \text{ for every word } m,
      \text{ no arcs make a cycle, none cross}\}$$

    Position 0 is the root. The best tree by Eisner's algorithm in $O(n^3)$, sums over all trees by inside-outside, and
    draws from the sums over spans downwards. Ties go to the leftmost split of each span. An unmasked score of `-inf` is
    worse than any finite sum, and still better than an arc that does not exist.

    Attributes:
        single_root: Whether exactly one word hangs on the root, or any number of them.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 5.0], [0.0, 1.0, 0.0]])
        >>> ProjectiveTrees().argmax(scores)                    # root -> 1 -> 2
        tensor([[0., 1., 0.],
                [0., 0., 1.],
                [0., 0., 0.]])
        >>> round(ProjectiveTrees().log_partition(torch.zeros(4, 4)).exp().item())         # over three words
        7
        >>> ProjectiveTrees().k_best(scores, 3)[1]              # there are two trees
        tensor([6., 3., -inf])

    References:
        Eisner (1996), Three new probabilistic models for dependency parsing: An exploration.
    """

    projective: ClassVar[bool] = True


@final
@dataclass(frozen=True)
class NonProjectiveTrees(AbstractTrees):
    r"""All dependency trees, arcs may cross, over `(*batch, n, n)` arcs indexed `[head, modifier]`.

    $$\mathcal Z = \{z \in \{0, 1\}^{n \times n} \mid \sum_h z_{hm} = 1 \text{ for every word } m,
      \text{ no arcs make a cycle}\}$$

    Position 0 is the root. The best tree is a maximum spanning arborescence, found exactly in $O(n^2)$ with one root
    or many; sums over all trees by the matrix-tree theorem in $O(n^3)$, right at any scale of scores. Ties go to the
    first head.

    Draws are Wilson's loop-erased walks rather than head after head from the determinant: about two steps a word where
    the determinant costs $O(n^2)$ a word. With a single root, the word under it is drawn first, from its marginal
    given that it is the only one; the rest is then a tree over the words that ends there. Where words insist on each
    other a walk would loop for long. Loops, and so the number of steps, are independent of the tree that they leave:
    after some dozens of steps a word a draw gives up, draws the head of the busiest word from its exact marginal by an
    elimination, and walks again with that head given, without any bias.

    Attributes:
        single_root: Whether exactly one word hangs on the root, or any number of them.

    Example:
        >>> import torch
        >>> round(NonProjectiveTrees().log_partition(torch.zeros(4, 4)).exp().item())      # over three words: 3^2
        9
        >>> z = torch.zeros(4, 4)
        >>> z[1, 2] = z[2, 1] = z[0, 3] = 1
        >>> NonProjectiveTrees().violations(z)
        [['cycle 1 -> 2 -> 1']]
        >>> NonProjectiveTrees().sample(torch.zeros(2, 4, 4), samples=5).shape
        torch.Size([5, 2, 4, 4])

    References:
        Chu, Liu (1965); Edmonds (1967), Optimum branchings. Gabow, Tarjan (1984), Efficient algorithms for a family of
        matroid intersection problems. Koo et al. (2007), Structured prediction models via the matrix-tree theorem.
        Wilson (1996), Generating random spanning trees more quickly than the cover time. Zmigrod, Vieira, Cotterell
        (2021), Efficient sampling of dependency structures.
    """

    projective: ClassVar[bool] = False
