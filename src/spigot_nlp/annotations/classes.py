"""One class for the whole sentence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final

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
    Measure,
    bounded,
    percent,
)
from spigot_nlp.data.sentence import Sentence

if TYPE_CHECKING:
    from spigot_nlp.evaluation.labels import LabelScores
    from spigot_nlp.tables import Table

ACCURACY = "accuracy"


@final
@ANNOTATIONS.register("label")
@dataclass(frozen=True)
class Classes(AbstractAnnotation):
    """The class of a sentence.

    Attributes:
        classes: The classes of the training sentences.

    Example:
        >>> labels = Classes.learn("label", [Sentence(("Rain",), label=3), Sentence(("Sun",), label=7)], None)
        >>> labels.classes, labels.decode(torch.tensor([[0.0, 1.0]]), [1])
        ((3, 7), [7])
    """

    name: str = "label"
    classes: tuple[int, ...] = ()

    noun, nouns, key, suffix, dataset = "class", "classes", "labels", "jsonl", "labels"

    @classmethod
    def learn(cls, name: str, sentences: Sequence[Sentence], settings: Any) -> "Classes":
        """The classes that the training sentences have."""
        return cls(name, tuple(sorted({s.get(name) for s in sentences if s.get(name) is not None})))

    @cached_property
    def class_index(self) -> dict[int, int]:
        """The index of each class."""
        return {label: k for k, label in enumerate(self.classes)}

    def encode(self, value: int, sentence: Sentence) -> int | None:
        """The index of the class; nothing if training has none of it."""
        return self.class_index.get(value)

    def collate(self, encoded: Sequence[int], size: int) -> Int[Tensor, " batch"]:
        """One index a sentence."""
        return torch.tensor(encoded)

    def decode(self, z: Parts, lengths: Sequence[int]) -> list[int]:
        """The classes."""
        return [self.classes[k] for k in z.argmax(-1).tolist()]

    def score(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> "LabelScores":
        """Accuracy, each class, and what was taken for what."""
        from spigot_nlp.evaluation.labels import score_labels

        return score_labels(gold, predicted, self.name)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Accuracy."""
        from spigot_nlp.evaluation.metrics import label_counts

        about = "Accuracy: share of sentences with the right class."
        return (Measure(ACCURACY, "accuracy", partial(label_counts, field=self.name), about),)

    def tables(self, scores: Mapping[str, Any], bounds: Bounds, *, every: bool = False) -> "list[Table]":
        """Accuracy, and if asked for every class and what was taken for what."""
        from spigot_nlp.tables import plain_table

        rows = [bounded(bounds, "accuracy", ["all sentences", percent(scores["accuracy"])])]
        title = f"Classes: {scores['sentences']} sentences, per cent"
        found = [plain_table(title, ["", ACCURACY, *([INTERVAL] if bounds else [])], rows)]
        if not every:
            return found
        classes, confusion = scores["classes"], scores["confusion"]
        given = {label: sum(row.get(label, 0) for row in confusion.values()) for label in classes}
        rows = [
            [
                label,
                str(one["sentences"]),
                str(given[label]),
                *(percent(one[key]) for key in ("precision", "recall", "f1")),
            ]
            for label, one in classes.items()
        ]
        found.append(plain_table("Each class, per cent", ["class", "gold", "predicted", "P", "R", "F1"], rows))
        title = "Sentences of a class (row) by what they were taken for (column)"
        rows = [[label, *(str(confusion.get(label, {}).get(other, 0)) for other in classes)] for label in classes]
        return [*found, plain_table(title, ["", *classes], rows)]

    def draw(self, value: int) -> Drawn:
        """The class in words."""
        return Drawn(note=f"{self.called} {value}")

    @property
    def shares(self) -> str:
        """Beside the class."""
        return "probabilities" if self.is_usual else f"{self.name}.probabilities"

    @property
    def options(self) -> tuple[int, ...]:
        """The classes."""
        return self.classes

    def fares(self, gold: Sentence, found: Sentence) -> str:
        """Which class, how sure, and whether it is right."""
        mine, right = found.get(self.name), gold.get(self.name)
        if mine is None:
            return ""
        shares = found.get(self.shares)
        sure = f" ({max(shares):.2f})" if shares else ""
        judged = "" if right is None else ", right" if right == mine else f", but {right} is right"
        return f"{self.draw(mine).note}{sure}{judged}"

    def known(self) -> str:
        """The classes."""
        return f"; those of the training sentences are {', '.join(map(str, self.classes))}"

    def advice(self, values: Iterable[Any], file_format: str | None) -> str:
        """Sentiment trees can be read with two classes or with five."""
        if file_format in ("sst", "sst-phrases") and self.classes == (0, 1):
            return f"read it with --format {file_format.replace('sst', 'sst-binary')}"
        return super().advice(values, file_format)
