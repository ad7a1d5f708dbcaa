"""Dependency trees: every word has one head, and following heads leads to the root at position 0."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from spigot._algorithms.arc_mask import TreeKind, tree_arcs, word_mask
from spigot._algorithms.dependency_trees import (
    k_best_trees,
    project_tree_hull,
    sample_trees,
    tree_argmax,
    tree_log_partition,
    tree_marginals,
)
from spigot._runtime import native
from spigot._runtime.checks import check_arcs, check_rank, zero_one
from spigot.interface import AbstractRankedStructure, AbstractSamplingStructure
from spigot.interface.records import Preview
from spigot.polytopes.blocks import HeadSimplex
from spigot.structures.lengths import arc_mask
from spigot.types import Flags, HullResult, Mask, Members, MemberValues, Parts, Values


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

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        return are_trees(z, tree_arcs(check_arcs(z, mask, "z")), self.kind)

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        return tree_violations(z, check_arcs(z, mask, "z"), self.kind)

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        return arc_mask(lengths, size)

    def full_mask(self, parts: Parts) -> Mask:
        check_arcs(parts, None)
        one = torch.ones(parts.shape[-2:], dtype=torch.bool, device=parts.device)  # the same for every instance
        return tree_arcs(one).expand_as(parts)

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


def are_trees(z: Parts, arcs: Mask, kind: TreeKind) -> Flags:
    """Which instances are trees over the arcs that exist."""
    words = word_mask(arcs)
    place = torch.arange(z.shape[-1], dtype=z.dtype, device=z.device)
    fine = zero_one(z, arcs, 2) & (z.sum(-2) == words).all(-1)
    heads = (
        (place.unsqueeze(-1) * z).sum(-2).nan_to_num(0, 0, 0).clamp(0, z.shape[-1] - 1).long()
    )  # where there are zeros and a one
    above = heads
    for _ in range(heads.shape[-1].bit_length()):  # twice as far up each time: to the root, if there is no cycle
        above = above.gather(-1, above)
    fine = fine & (above == 0).all(-1)
    if kind.single_root:
        fine = fine & (z[..., 0, :].sum(-1) <= 1)
    if kind.projective:
        word = place.to(torch.int16)
        head = torch.where(words, heads.to(torch.int16), word)
        left, right = torch.minimum(head, word), torch.maximum(head, word)
        start, end = left.unsqueeze(-1), right.unsqueeze(-1)
        cross = (start < left.unsqueeze(-2)) & (left.unsqueeze(-2) < end) & (end < right.unsqueeze(-2))
        fine = fine & ~cross.flatten(-2).any(-1)
    return fine


def tree_violations(z: Parts, mask: Mask, kind: TreeKind) -> list[list[str]]:
    """For each instance, each broken constraint of dependency trees in words."""
    n = z.shape[-1]
    arcs = tree_arcs(mask).reshape(-1, n, n)
    words = word_mask(arcs)
    return [
        _tree_violations(values, exists, [w for w in range(1, n) if is_word[w]], kind.single_root, kind.projective)
        for values, exists, is_word in zip(z.reshape(-1, n, n).tolist(), arcs.tolist(), words.tolist(), strict=True)
    ]


def _tree_violations(
    z: list[list[float]], arcs: list[list[bool]], words: list[int], single_root: bool, projective: bool
) -> list[str]:
    n = len(z)
    found = []
    on = [(h, m) for m in range(n) for h in range(n) if z[h][m]]
    found += [f"arc {h}->{m} is {z[h][m]:g}, not 0 or 1" for h, m in on if z[h][m] != 1]
    found += [f"arc {h}->{m} is not in the mask" for h, m in on if not arcs[h][m]]
    heads: dict[int, list[int]] = {m: [] for m in words}
    for h, m in on:
        heads.setdefault(m, []).append(h)
    for m in words:
        if len(heads[m]) != 1:
            names = f" ({', '.join(map(str, heads[m]))})" if heads[m] else ""
            found.append(f"modifier {m} has {len(heads[m])} heads{names}")
    roots = [m for m in words if 0 in heads[m]]
    if single_root and len(roots) > 1:
        found.append(f"{len(roots)} words hang on the root: {', '.join(map(str, roots))}")
    if words and not roots:
        found.append("no word hangs on the root")
    found += _cycles({m: h[0] for m, h in heads.items() if h})
    if projective:
        spans = sorted({(min(arc), max(arc)) for arc in on})
        name = {(min(h, m), max(h, m)): f"{h}->{m}" for h, m in on}
        for i, (a, b) in enumerate(spans):
            found += [f"arcs {name[a, b]} and {name[c, d]} cross" for c, d in spans[i + 1 :] if a < c < b < d]
    return found


def _cycles(head: dict[int, int]) -> list[str]:
    """Each cycle once, as `cycle 3 -> 5 -> 3` in the direction from head to modifier."""
    state: dict[int, int] = {}
    found = []
    for start in sorted(head):
        node, path = start, []
        while node in head and node not in state:
            state[node] = start
            path.append(node)
            node = head[node]
        if node in head and state.get(node) == start and node in path:
            loop = path[path.index(node) :][::-1]
            first = loop.index(min(loop))
            loop = loop[first:] + loop[:first]
            found.append("cycle " + " -> ".join(map(str, [*loop, loop[0]])))
    return found
