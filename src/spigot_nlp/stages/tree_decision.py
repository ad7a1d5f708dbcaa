"""Labelled trees, decided for without a place in memory for the scores of all relations of all arcs."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

from jaxtyping import Int
from torch import Tensor

from spigot.types import Parts
from spigot_nlp.annotations.trees import Trees, tree_heads
from spigot_nlp.stages.evidence import AbstractDecision
from spigot_nlp.wires.readers import ChosenHeads


@final
class TreeDecision(AbstractDecision):
    """Trees, and the best relation of each arc.

    Args:
        annotation: What they are called.
        trees: The trees, without relations.
        best: The best relation of every arc, -1 where there is none.

    Example:
        >>> import torch
        >>> trees = torch.tensor([[[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])       # 0 -> 2 -> 1
        >>> best = torch.tensor([[[-1, 1, 1], [-1, -1, 0], [-1, 0, -1]]], dtype=torch.int32)
        >>> decision = TreeDecision(Trees(relations=("nsubj", "root")), trees, best)
        >>> decision.found([2])
        [{'heads': (2, 0), 'relations': ('nsubj', 'root')}]
        >>> decision.parts().nonzero().tolist()
        [[0, 0, 2, 1], [0, 2, 1, 0]]
    """

    def __init__(self, annotation: Trees, trees: Parts, best: Int[Tensor, "batch n n"]) -> None:
        self._annotation, self._trees, self._best = annotation, trees, best

    def parts(self) -> Parts:
        """The trees with their relations."""
        return self._parts

    @cached_property
    def _parts(self) -> Parts:
        z = self._trees.new_zeros(*self._trees.shape, len(self._annotation.relations or ()))
        return z.scatter_(-1, self._best.clamp(min=0).long().unsqueeze(-1), self._trees.unsqueeze(-1))

    def heads(self) -> ChosenHeads:
        """The head of each word, and its relation to it."""
        return ChosenHeads(*self._chosen)

    @cached_property
    def _chosen(self) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n"]]:
        heads = tree_heads(self._trees)
        relations = self._best.gather(1, heads.unsqueeze(1)).squeeze(1)
        return heads.masked_fill(relations < 0, -1), relations  # what has no relation is no word

    def found(self, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """The heads of each sentence, and the relations."""
        heads, relations = self._chosen
        names = self._annotation.relations or ()
        return [
            {
                self._annotation.name: tuple(row[1 : length + 1]),
                self._annotation.relation_field: tuple([names[k] for k in some[1 : length + 1]]),
            }
            for row, some, length in zip(heads.tolist(), relations.tolist(), lengths, strict=True)
        ]
