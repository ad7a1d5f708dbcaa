"""Constituency trees: a sentence is halved until words are left, and every span has a label."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from spigot._algorithms.cky import BINARY_TREES, span_parts
from spigot._algorithms.kernel_calls import flatten
from spigot._runtime.checks import check_rank, check_spans, zero_one
from spigot.interface import AbstractRankedStructure, AbstractSamplingStructure
from spigot.interface.records import Preview
from spigot.polytopes.spans import SpanSimplex
from spigot.structures.lengths import check_lengths
from spigot.types import Flags, Mask, Members, MemberValues, Parts, Values


@final
@dataclass(frozen=True)
class ConstituencyTrees(AbstractSamplingStructure, AbstractRankedStructure):
    r"""Binary trees over words, as labelled spans `(*batch, n, n, labels)` indexed `[first, last, label]`.

    $$\mathcal Z = \{z \in \{0, 1\}^{n \times n \times k} \mid \text{the spans of } z \text{ are a binary tree, with one
      label each}\}$$

    A tree has the sentence, each word alone, and two halves of every longer span that it has: $2n - 1$ spans, each with
    exactly one label. There is no root position: word 0 is the first word. Parts with `last < first` do not exist; nor
    do words behind the last that may have a label, so that padding is masked at the end. A span that a grammar forbids
    is masked with all of its labels; without labels, `labels=1`.

    The best tree by CKY in $O(n^3)$, sums over all trees by inside-outside. Ties go to the first label and the leftmost
    split. An unmasked score of `-inf` is worse than any finite sum, and still better than a part that does not exist.

    Attributes:
        labels: How many labels a span can have.

    Example:
        >>> trees = ConstituencyTrees(labels=1)
        >>> scores = torch.zeros(3, 3, 1)
        >>> scores[1, 2] = 1.0                                  # the last two words belong together
        >>> trees.argmax(scores).squeeze(-1)
        tensor([[1., 0., 1.],
                [0., 1., 1.],
                [0., 0., 1.]])
        >>> round(trees.log_count(trees.mask(torch.tensor(5))).exp().item())                  # the Catalan number C(4)
        14

    References:
        Younger (1967), Recognition and parsing of context-free languages in time n³. Baker (1979), Trainable grammars
        for speech recognition. Huang, Chiang (2005), Better k-best parsing.
    """

    labels: int = 1

    event_ndim: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if not isinstance(self.labels, int) or self.labels < 1:
            raise ValueError(f"labels is {self.labels}; a span has one label out of at least one.")

    def argmax(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return BINARY_TREES.argmax(scores.detach(), self._parts(scores, mask))

    def log_partition(self, scores: Parts, mask: Mask | None = None) -> Values:
        return BINARY_TREES.log_partition(scores, self._parts(scores, mask))

    def marginals(self, scores: Parts, mask: Mask | None = None) -> Parts:
        return BINARY_TREES.marginals(scores, self._parts(scores, mask))

    def sample_from_seeds(self, scores: Parts, seeds: Tensor, mask: Mask | None = None) -> Members:
        parts = self._parts(scores, mask)
        return BINARY_TREES.sample(scores.detach(), parts, seeds.movedim(0, -1)).movedim(scores.ndim - 3, 0)

    def k_best(self, scores: Parts, k: int, mask: Mask | None = None) -> tuple[Members, MemberValues]:
        parts = self._parts(scores, mask)
        z, found = (x.movedim(scores.ndim - 3, 0) for x in BINARY_TREES.k_best(scores.detach(), parts, check_rank(k)))
        values = torch.where(z != 0, scores, 0).sum((-3, -2, -1))
        return z, values.masked_fill(~found, -torch.inf)

    def contains(self, z: Parts, mask: Mask | None = None) -> Flags:
        """Spans that do not cross, the words and the sentence among them, are a binary tree if there are 2n - 1."""
        parts = self._parts(z, mask, "z")
        spans = (z != 0).sum(-1)
        words = parts.any(-1).diagonal(dim1=-2, dim2=-1).sum(-1)
        place = torch.arange(z.shape[-2], device=z.device)
        fine = zero_one(z, parts, 3) & (spans <= 1).flatten(-2).all(-1)
        fine = fine & (spans.flatten(-2).sum(-1) == (2 * words - 1).clamp(min=0))
        fine = fine & (spans.diagonal(dim1=-2, dim2=-1) == (place < words.unsqueeze(-1))).all(-1)
        sentence = (spans[..., 0, :] * (place == words.unsqueeze(-1) - 1)).sum(-1) if len(place) else words
        fine = fine & ((sentence > 0) | (words == 0))
        beyond = spans.sum(-1, keepdim=True) - spans.cumsum(-1)  # of those that start at i, how many end after j
        starts = beyond.cumsum(-2)  # summed over starts up to i
        inside = starts.diagonal(dim1=-2, dim2=-1).unsqueeze(-2) - starts  # those that start after i and up to j
        return fine & ~((inside > 0) & (spans > 0) & (place.unsqueeze(-1) <= place)).flatten(-2).any(-1)

    def violations(self, z: Parts, mask: Mask | None = None) -> list[list[str]]:
        parts = self._parts(z, mask, "z")
        pairs = zip(flatten(z.detach(), 3), flatten(parts, 3), strict=True)
        return [_violations(values, exists) for values, exists in pairs]

    def preview(self, z: Parts) -> Preview:
        found = z.nonzero().tolist()
        return Preview(z.shape[-2], spans=tuple((i, j, f"{k}" if self.labels > 1 else "") for i, j, k in found))

    def mask(self, lengths: Tensor, size: int | None = None) -> Mask:
        """The parts of sentences of these lengths, in words."""
        check_lengths(lengths)
        if size is None or not torch.compiler.is_compiling():  # a compiled graph cannot look at values
            longest = int(lengths.max()) if lengths.numel() else 0
            size = longest if size is None else size
            if size < longest:
                raise ValueError(f"size is {size}, but a sentence has {longest} words.")
        inside = torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1)
        pairs = (inside.unsqueeze(-1) & inside.unsqueeze(-2)).unsqueeze(-1)
        return span_parts(pairs.expand(*pairs.shape[:-1], self.labels))

    def full_mask(self, parts: Parts) -> Mask:
        check_spans(parts, None, "scores", self.labels)
        one = torch.ones(parts.shape[-3:], dtype=torch.bool, device=parts.device)  # the same for every instance
        return span_parts(one).expand_as(parts)

    @property
    def relaxation(self) -> SpanSimplex:
        """The labels of each span on their own; `ConvexHull` is exact."""
        return SpanSimplex()

    def _parts(self, parts: Parts, mask: Mask | None, what: str = "scores") -> Mask:
        return span_parts(check_spans(parts, mask, what, self.labels))


def _violations(z: Tensor, exists: Tensor) -> list[str]:
    words = int(exists.any(-1).diagonal().sum())
    found = []
    for i, j, l in ((z != 0) & ((z != 1) | ~exists)).nonzero().tolist():
        value = float(z[i, j, l])
        name = f"label {l} of {_span(i, j)}"
        found.append(f"{name} is not in the mask" if not exists[i, j, l] else f"{name} is {value:g}, not 0 or 1")
    counts = (z != 0).sum(-1)
    spans = [(i, j) for i, j in counts.nonzero().tolist() if i <= j]
    found += [f"{_span(i, j)} has {int(counts[i, j])} labels" for i, j in spans if counts[i, j] > 1]
    there = set(spans)
    needed = [(i, i) for i in range(words)] + ([(0, words - 1)] if words > 1 else [])
    found += [f"{_span(i, j)} is missing" for i, j in needed if (i, j) not in there]
    found += [
        f"{_span(a, b)} and {_span(c, d)} cross"
        for at, (a, b) in enumerate(spans)
        for c, d in spans[at + 1 :]
        if a < c <= b < d or c < a <= d < b
    ]
    if not found:
        for i, j in spans:
            if i < j and not any((i, k) in there and (k + 1, j) in there for k in range(i, j)):
                found.append(f"{_span(i, j)} is not made of two halves")
    return found


def _span(first: int, last: int) -> str:
    return f"word {first}" if first == last else f"span {first}-{last}"
