"""One of some tags for each word."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from spigot.types import Parts
from spigot_nlp.annotations.annotation import ANNOTATIONS, AbstractAnnotation, Drawn, Measure, padded
from spigot_nlp.data.sentence import Sentence

if TYPE_CHECKING:
    from spigot_nlp.evaluation.metrics import TagScores


@final
@ANNOTATIONS.register("tags")
@dataclass(frozen=True)
class Tags(AbstractAnnotation):
    """A tag for each word.

    Attributes:
        tags: The tags of the training sentences.

    Example:
        >>> rain = Sentence(("Rain", "fell"), tags=("NN", "VBD"))
        >>> tags = Tags.learn("tags", [rain], None)
        >>> tags.tags, tags.encode(rain.tags, rain).tolist()        # 0 is the root, and a tag that is not known
        (('NN', 'VBD'), [0, 1, 2])
    """

    name: str = "tags"
    tags: tuple[str, ...] = ()

    noun, nouns, key, suffix, dataset = "tag sequence", "tags", "tags", "jsonl", "trees"

    @classmethod
    def learn(cls, name: str, sentences: Sequence[Sentence], settings: Any) -> "Tags":
        """The tags that the training sentences have."""
        return cls(name, tuple(sorted({tag for s in sentences for tag in s.get(name) or ()})))

    @cached_property
    def tag_index(self) -> dict[str, int]:
        """The number of each tag, from 1."""
        return {tag: k for k, tag in enumerate(self.tags, 1)}

    def encode(self, value: tuple[str, ...], sentence: Sentence) -> np.ndarray:
        """The number of each word's tag, from 1; 0 at the root and for one that training never saw."""
        return np.array([0, *(self.tag_index.get(tag, 0) for tag in value)], dtype=np.int64)

    def collate(self, encoded: Sequence[np.ndarray], size: int) -> Int[Tensor, "batch n"]:
        """The numbers, 0 behind the end."""
        return torch.from_numpy(padded(encoded, size))

    def decode(self, z: Parts, lengths: Sequence[int]) -> list[tuple[str, ...]]:
        """The tags of the words."""
        return [
            tuple(self.tags[k] for k in row[1 : length + 1])
            for row, length in zip(z.argmax(-1).tolist(), lengths, strict=True)
        ]

    def score(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> "TagScores":
        """Share of words with the right tag."""
        from spigot_nlp.evaluation.metrics import score_tags

        return score_tags(gold, predicted, self.name)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The share of words with the right tag."""
        from spigot_nlp.evaluation.metrics import word_counts

        about = "Tagging: share of words with the right tag."
        return (Measure("tagging", "accuracy", partial(word_counts, field=self.name), about),)

    def draw(self, value: tuple[str, ...]) -> Drawn:
        """A tag under each word."""
        return Drawn(marks=value)

    def fares(self, gold: Sentence, found: Sentence) -> str:
        """How many of them are right."""
        from spigot_nlp.evaluation.metrics import word_counts

        if not len(gold) or gold.get(self.name) is None or found.get(self.name) is None:
            return ""
        right = int(word_counts([gold], [found], field=self.name).correct[0])
        return f"{self.nouns if self.is_usual else self.name}: {right} of {len(gold)} right"
