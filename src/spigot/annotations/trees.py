"""Dependency trees: the syntactic head of each word."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from spigot.annotations.annotation import (
    ANNOTATIONS,
    INTERVAL,
    AbstractAnnotation,
    Bounds,
    Drawn,
    DrawnArc,
    Measure,
    bounded,
    padded,
    percent,
)
from spigot.data.sentence import Sentence
from spigot.evaluation.metrics import TreeScores, score_trees, tree_counts
from spigot.tables import Table, plain_table
from spigot.types import Parts

UAS = "UAS"


@final
@ANNOTATIONS.register("trees")
@dataclass(frozen=True)
class Trees(AbstractAnnotation):
    """The head of each word, 0 for the root.

    Example:
        >>> trees = Trees()
        >>> gold = trees.collate([trees.encode((2, 0), Sentence(("Rain", "fell")))], 3)
        >>> trees.decode(tree_parts(gold, torch.tensor([2]), torch.float32), [2])
        [(2, 0)]
    """

    name: str = "heads"

    noun, nouns, key, suffix, dataset = "tree", "trees", "trees", "conllu", "trees"

    @classmethod
    def learn(cls, name: str, sentences: Sequence[Sentence], settings: Any) -> "Trees":
        """Nothing: trees have no names."""
        return cls(name)

    def encode(self, value: tuple[int, ...], sentence: Sentence) -> np.ndarray:
        """The head of every position; that of the root is 0."""
        return np.array((0, *value), dtype=np.int64)

    def collate(self, encoded: Sequence[np.ndarray], size: int) -> Int[Tensor, "batch n"]:
        """The head of every position, 0 at the root and behind the end."""
        return torch.from_numpy(padded(encoded, size))

    def decode(self, z: Parts, lengths: Sequence[int]) -> list[tuple[int, ...]]:
        """The heads of the words."""
        return [tuple(heads[1 : length + 1]) for heads, length in zip(tree_heads(z).tolist(), lengths, strict=True)]

    def score(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> TreeScores:
        """Attachment, with and without punctuation."""
        return score_trees(gold, predicted, self.name)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """UAS."""
        about = "UAS: share of words with the right head, punctuation included."
        return (Measure(UAS, "uas", partial(tree_counts, field=self.name), about),)

    @property
    def further_measures(self) -> tuple[Measure, ...]:
        """UAS without punctuation."""
        counts = partial(tree_counts, punctuation=False, field=self.name)
        return (Measure(f"{UAS} without punctuation", "uas_without_punctuation", counts),)

    def tables(self, scores: Mapping[str, Any], bounds: Bounds, *, every: bool = False) -> list[Table]:
        """All words, and those that are not punctuation."""
        rows = [
            bounded(bounds, f"uas{key}", [name, str(scores[f"words{key}"]), *shares])
            for name, key in (("all words", ""), ("without punctuation", "_without_punctuation"))
            for shares in [[percent(scores[f"exact{key}"]), percent(scores[f"uas{key}"])]]
        ]
        columns = ["", "words", "exact", UAS, *([INTERVAL] if bounds else [])]
        return [plain_table(f"Trees: {scores['sentences']} sentences, per cent", columns, rows)]

    def summary(self, parts: Mapping[str, Mapping[str, Any]]) -> Table:
        """UAS with and without punctuation, and whole trees."""
        keys = ("uas", "uas_without_punctuation", "exact")
        rows = [[name, str(part["sentences"]), *(percent(part[key]) for key in keys)] for name, part in parts.items()]
        return plain_table("Trees, per cent", ["", "sentences", UAS, "no punctuation", "exact"], rows)

    def places(self, value: tuple[int, ...]) -> dict[int, int]:
        """The head of each word."""
        return dict(enumerate(value, 1))

    def draw(self, value: tuple[int, ...]) -> Drawn:
        """Arcs from heads, below the words."""
        return Drawn(tuple(DrawnArc(head, word) for word, head in enumerate(value, 1)), labelled=False)

    def drawn(self, sentence: Sentence) -> Drawn | None:
        """The same, with the relations that files have; they are not compared, since the parsers here find none."""
        bare = super().drawn(sentence)
        if bare is None or not self.is_usual or sentence.relations is None:
            return bare
        named = zip(bare.arcs, sentence.relations, strict=True)
        return replace(bare, arcs=tuple(arc._replace(label="" if name == "_" else name) for arc, name in named))

    def fares(self, gold: Sentence, found: Sentence) -> str:
        """How many heads are right."""
        if not len(gold) or gold.get(self.name) is None or found.get(self.name) is None:
            return ""
        right = int(tree_counts([gold], [found], field=self.name).correct[0])
        return f"{self.called}: {right} of {len(gold)} heads right"


def tree_parts(heads: Int[Tensor, "batch n"], lengths: Int[Tensor, " batch"], dtype: torch.dtype) -> Parts:
    """Heads as arcs i -> j.

    Example:
        >>> tree_parts(torch.tensor([[0, 2, 0]]), torch.tensor([2]), torch.float32)[0]
        tensor([[0., 0., 1.],
                [0., 0., 0.],
                [0., 1., 0.]])
    """
    n = heads.shape[1]
    place = torch.arange(n, device=heads.device)
    words = (place > 0) & (place <= lengths.unsqueeze(-1))
    return ((heads.unsqueeze(1) == place.unsqueeze(-1)) & words.unsqueeze(1)).to(dtype)


def tree_heads(z: Parts) -> Int[Tensor, "batch n"]:
    """The head of each position; 0 for the root and where there is none.

    Example:
        >>> tree_heads(tree_parts(torch.tensor([[0, 2, 0]]), torch.tensor([2]), torch.float32)).tolist()
        [[0, 2, 0]]
    """
    return z.argmax(-2)


def is_projective(heads: Sequence[int]) -> bool:
    """Whether no two arcs of a tree cross.

    Example:
        >>> is_projective((3, 4, 0, 3)), is_projective((2, 0, 2))
        (False, True)
    """
    arcs = ((min(head, word), max(head, word)) for word, head in enumerate(heads, 1))
    spans = sorted(arcs, key=lambda span: (span[0], -span[1]))  # of those that begin together, the outer one first
    open_ends: list[int] = []
    for left, right in spans:
        while open_ends and open_ends[-1] <= left:
            open_ends.pop()
        if open_ends and right > open_ends[-1]:
            return False
        open_ends.append(right)
    return True
