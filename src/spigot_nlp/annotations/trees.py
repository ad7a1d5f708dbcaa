"""Dependency trees: the syntactic head of each word, and how it belongs to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from spigot.types import Parts
from spigot_nlp.annotations.annotation import (
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
from spigot_nlp.data.sentence import Sentence

if TYPE_CHECKING:
    from spigot_nlp.evaluation.metrics import TreeScores
    from spigot_nlp.tables import Table

UAS, LAS = "UAS", "LAS"
RELATIONS = "relations"
"""Where the relations of the usual trees stand in a sentence."""


class GoldTrees(NamedTuple):
    """The right labelled trees of a batch.

    Attributes:
        heads: The head of every position, 0 at the root and behind the end.
        relations: The number of the relation of each of these arcs.

    Example:
        >>> GoldTrees(torch.tensor([[0, 2, 0]]), torch.tensor([[0, 1, 0]])).heads.shape
        torch.Size([1, 3])
    """

    heads: Int[Tensor, "batch n"]
    relations: Int[Tensor, "batch n"]


@final
@ANNOTATIONS.register("trees")
@dataclass(frozen=True)
class Trees(AbstractAnnotation):
    """The head of each word, 0 for the root, and if they are labelled the relation of the word to it.

    The value is the heads; the relations stand beside them in a sentence, as they do in files.

    Attributes:
        relations: The relations of the training sentences; `None` if the trees are not labelled.
        root: The relation of all words that hang on the root, and of no others; empty if there is no such one.

    Example:
        >>> trees = Trees()
        >>> gold = trees.collate([trees.encode((2, 0), Sentence(("Rain", "fell")))], 3)
        >>> trees.decode(tree_parts(gold, torch.tensor([2]), torch.float32), [2])
        [(2, 0)]
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj", "root"))
        >>> labelled = Trees(relations=("nsubj", "root"))
        >>> labelled.encode(rain.heads, rain).tolist()
        [[0, 2, 0], [0, 0, 1]]
        >>> [measure.name for measure in labelled.measures]
        ['LAS', 'UAS']
    """

    name: str = "heads"
    relations: tuple[str, ...] | None = None
    root: str = ""

    noun, nouns, key, suffix, dataset = "tree", "trees", "trees", "conllu", "trees"

    @classmethod
    def learn(cls, name: str, sentences: Sequence[Sentence], settings: Any) -> "Trees":
        """The relations that the training sentences have, if the stage finds any."""
        if not getattr(settings, "labelled", False):
            return cls(name)
        bare = cls(name, ())
        on_root, elsewhere = set[str](), set[str]()
        for sentence in sentences:
            relations = sentence.get(bare.relation_field) or ()
            for head, relation in zip(sentence.get(name) or (-1,) * len(relations), relations, strict=False):
                (elsewhere if head else on_root).add(relation)
        found = tuple(sorted((on_root | elsewhere) - {"_"}))
        is_apart = len(on_root) == 1 and elsewhere and on_root.isdisjoint(elsewhere | {"_"})
        return cls(name, found, on_root.pop() if is_apart else "")

    @property
    def root_index(self) -> int | None:
        """The number of the relation that is for words on the root alone."""
        return self.relation_index.get(self.root)

    @property
    def is_labelled(self) -> bool:
        """Whether arcs have relations."""
        return self.relations is not None

    @property
    def relation_field(self) -> str:
        """Where the relations stand in a sentence."""
        return RELATIONS if self.is_usual else f"{self.name} {RELATIONS}"

    @property
    def beside(self) -> tuple[str, ...]:
        """The relations."""
        return (self.relation_field,)

    @cached_property
    def relation_index(self) -> dict[str, int]:
        """The number of each relation."""
        return {relation: k for k, relation in enumerate(self.relations or ())}

    def encode(self, value: tuple[int, ...], sentence: Sentence) -> np.ndarray | None:
        """The head of every position, 0 for the root; if they are labelled, a row of relations, -1 for new ones."""
        heads = (0, *value)
        if not self.is_labelled:
            return np.array(heads, dtype=np.int64)
        relations = sentence.get(self.relation_field)
        if relations is None:
            return None
        return np.array((heads, (0, *(self.relation_index.get(name, -1) for name in relations))), dtype=np.int64)

    def collate(self, encoded: Sequence[np.ndarray], size: int) -> Int[Tensor, "batch n"] | GoldTrees:
        """The head of every position, 0 at the root and behind the end; and its relation, if there are any."""
        if not self.is_labelled:
            return torch.from_numpy(padded(encoded, size))
        return GoldTrees(*(torch.from_numpy(padded([rows[k] for rows in encoded], size)) for k in (0, 1)))

    def decode(self, z: Parts, lengths: Sequence[int]) -> list[tuple[int, ...]]:
        """The heads of the words."""
        heads = tree_heads(z.sum(-1) if self.is_labelled else z).tolist()
        return [tuple(row[1 : length + 1]) for row, length in zip(heads, lengths, strict=True)]

    def decode_relations(self, z: Parts, lengths: Sequence[int]) -> list[tuple[str, ...]]:
        """The relations of the words to their heads, where trees are labelled."""
        names = list[str](self.relations or ())
        chosen: list[list[int]] = z.sum(-3).argmax(-1).tolist()
        return [tuple(names[k] for k in row[1 : length + 1]) for row, length in zip(chosen, lengths, strict=True)]

    def score(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> "TreeScores":
        """Attachment, with and without punctuation; labelled too, if the trees are and all gold ones say how."""
        from spigot_nlp.evaluation.metrics import score_trees
        from spigot_nlp.evaluation.relations import score_labelled_trees

        if not self.is_labelled:
            return score_trees(gold, predicted, self.name)
        gold = list(gold)
        if any(sentence.get(self.relation_field) is None for sentence in gold):
            return score_trees(gold, predicted, self.name)
        return score_labelled_trees(gold, predicted, self.name, self.relation_field)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """LAS, if the trees are labelled, and UAS."""
        from spigot_nlp.evaluation.metrics import tree_counts
        from spigot_nlp.evaluation.relations import relation_counts

        about = "UAS: share of words with the right head, punctuation included."
        bare = Measure(UAS, "uas", partial(tree_counts, field=self.name), about)
        if not self.is_labelled:
            return (bare,)
        about = "LAS: share of words with the right head and the right relation to it, punctuation included."
        counts = partial(relation_counts, field=self.name, relations=self.relation_field)
        return (Measure(LAS, "las", counts, about), bare)

    @property
    def further_measures(self) -> tuple[Measure, ...]:
        """The same without punctuation, and LAS without what stands behind a colon."""
        from spigot_nlp.evaluation.metrics import tree_counts
        from spigot_nlp.evaluation.relations import relation_counts

        counts = partial(tree_counts, punctuation=False, field=self.name)
        bare = Measure(f"{UAS} without punctuation", "uas_without_punctuation", counts)
        if not self.is_labelled:
            return (bare,)
        labelled = partial(relation_counts, field=self.name, relations=self.relation_field)
        without, coarse = partial(labelled, punctuation=False), partial(labelled, subtypes=False)
        return (
            Measure(f"{LAS} without punctuation", "las_without_punctuation", without),
            bare,
            Measure(f"{LAS} without subtypes", "las_without_subtypes", coarse),
        )

    def tables(self, scores: Mapping[str, Any], bounds: Bounds, *, every: bool = False) -> "list[Table]":
        """All words, and those that are not punctuation."""
        from spigot_nlp.tables import plain_table

        kinds = (("uas", UAS), ("las", LAS)) if "las" in scores else (("uas", UAS),)
        rows = [
            bounded(bounds, f"{key}{part}", [*title, str(scores[f"words{part}"]), *shares])
            for key, kind in kinds
            for name, part in (("all words", ""), ("without punctuation", "_without_punctuation"))
            for title in [[name] if len(kinds) == 1 else [f"{kind}, {name}"]]
            for exact in ["exact" if key == "uas" else "exact_labelled"]
            for shares in [[percent(scores[f"{exact}{part}"]), percent(scores[f"{key}{part}"])]]
        ]
        measure = UAS if len(kinds) == 1 else "per cent"
        columns = ["", "words", "exact", measure, *([INTERVAL] if bounds else [])]
        tables = [plain_table(f"Trees: {scores['sentences']} sentences, per cent", columns, rows)]
        if every and scores.get("by_relation"):
            tables.append(_relation_table(scores["by_relation"]))
        return tables

    def summary(self, parts: Mapping[str, Mapping[str, Any]]) -> "Table":
        """UAS with and without punctuation, and whole trees; LAS before them, if the trees are labelled."""
        from spigot_nlp.tables import plain_table

        keys = {UAS: "uas", "no punctuation": "uas_without_punctuation", "exact": "exact"}
        if all("las" in part for part in parts.values()):
            keys = {LAS: "las", f"{LAS}, no punctuation": "las_without_punctuation", **keys}
        rows = [
            [name, str(part["sentences"]), *(percent(part[key]) for key in keys.values())]
            for name, part in parts.items()
        ]
        return plain_table("Trees, per cent", ["", "sentences", *keys], rows)

    def places(self, value: tuple[int, ...]) -> dict[int, int]:
        """The head of each word."""
        return dict(enumerate(value, 1))

    def draw(self, value: tuple[int, ...]) -> Drawn:
        """Arcs from heads, below the words."""
        return Drawn(tuple(DrawnArc(head, word) for word, head in enumerate(value, 1)), labelled=False)

    def drawn(self, sentence: Sentence) -> Drawn | None:
        """The same, with the relations; those of files are not compared with trees that have none."""
        bare, relations = super().drawn(sentence), sentence.get(self.relation_field)
        if bare is None or relations is None:
            return bare
        named = zip(bare.arcs, relations, strict=True)
        arcs = tuple(arc._replace(label="" if name == "_" else name) for arc, name in named)
        return replace(bare, arcs=arcs, labelled=self.is_labelled)

    def fares(self, gold: Sentence, found: Sentence) -> str:
        """How many heads are right, and how many with their relation."""
        from spigot_nlp.evaluation.metrics import tree_counts

        if not len(gold) or gold.get(self.name) is None or found.get(self.name) is None:
            return ""
        right = int(tree_counts([gold], [found], field=self.name).correct[0])
        said = f"{self.called}: {right} of {len(gold)} heads right"
        if gold.get(self.relation_field) is None or found.get(self.relation_field) is None or not self.is_labelled:
            return said
        labelled = int(self.measures[0].counts([gold], [found]).correct[0])
        return f"{said}, {labelled} with their relation"

    @property
    def is_nameless(self) -> bool:
        """Whether the trees have no relations."""
        return not self.is_labelled

    def written(self, sentence: Sentence) -> Sentence:
        """A sentence as formats write it, relations too."""
        if self.is_usual:
            return sentence
        return super().written(sentence).put(RELATIONS, sentence.get(self.relation_field))

    def reread(self, sentence: Sentence) -> Sentence:
        """A sentence that was `written`, read again, relations too."""
        known = super().reread(sentence)
        if self.is_usual or known is sentence or sentence.get(RELATIONS) is None:
            return known
        return known.put(self.relation_field, sentence.get(RELATIONS))

    def names(self) -> dict[str, Any]:
        """The name, and the relations if there are any."""
        return super().names() if self.is_labelled else {"name": self.name}


def _relation_table(relations: Mapping[str, Mapping[str, Any]]) -> "Table":
    """Precision, recall and F1 of each relation with its head, the frequent ones first."""
    from spigot_nlp.tables import plain_table

    order = sorted(relations, key=lambda relation: (-relations[relation]["gold"], relation))
    keys = ("precision", "recall", "f1")
    rows = [[name, str(relations[name]["gold"]), *(percent(relations[name][key]) for key in keys)] for name in order]
    return plain_table("Relations, per cent", ["", "words", *keys[:2], "F1"], rows)


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
