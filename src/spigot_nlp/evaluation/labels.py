"""How well the classes of sentences were predicted."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation.counts import aligned


@dataclass(frozen=True)
class ClassScores:
    """One class.

    Attributes:
        precision: Of the sentences given this class, the share that have it.
        recall: Of the sentences that have it, the share that were given it.
        f1: Their harmonic mean.
        sentences: How many have it.

    Example:
        >>> ClassScores(precision=0.5, recall=1.0, f1=0.667, sentences=3).recall
        1.0
    """

    precision: float
    recall: float
    f1: float
    sentences: int


@dataclass(frozen=True)
class LabelScores:
    """All classes.

    Attributes:
        sentences: How many.
        accuracy: Share of sentences with the right class.
        classes: Each class, by its label.
        confusion: How often a sentence of the first label was given the second.

    Example:
        >>> sentence = Sentence(("Lovely",), label=1)
        >>> score_labels([sentence], [sentence]).accuracy
        1.0
    """

    sentences: int
    accuracy: float
    classes: dict[str, ClassScores]
    confusion: dict[str, dict[str, int]]


def score_labels(gold: Iterable[Sentence], predicted: Iterable[Sentence], field: str = "label") -> LabelScores:
    """Everything about predicted classes, in one pass.

    Args:
        gold: Sentences with the right class.
        predicted: The same sentences with the predicted one.
        field: The name that the classes stand under.

    Raises:
        ValueError: If a class is missing, or the sentences are not the same.

    Example:
        >>> gold = [Sentence(("Lovely",), label=1), Sentence(("Dull",), label=0)]
        >>> wrong = [Sentence(("Lovely",), label=1), Sentence(("Dull",), label=1)]
        >>> scores = score_labels(gold, wrong)
        >>> scores.accuracy, scores.classes["1"].precision, scores.confusion["0"]
        (0.5, 0.5, {'1': 1})
    """
    pairs: Counter[tuple[int, int]] = Counter()
    for name, right, given in aligned(gold, predicted):
        wanted, found = right.get(field), given.get(field)
        if wanted is None or found is None:
            side = "gold data" if wanted is None else "prediction"
            raise ValueError(f"{name} has no {field} in the {side}.")
        pairs[wanted, found] += 1
    total = pairs.total()
    labels = sorted({label for pair in pairs for label in pair})
    classes, confusion = {}, {}
    for label in labels:
        hits = pairs[label, label]
        given = sum(pairs[other, label] for other in labels)
        wanted = sum(pairs[label, other] for other in labels)
        f1 = 2 * hits / (given + wanted) if given + wanted else 0.0
        classes[str(label)] = ClassScores(hits / max(given, 1), hits / max(wanted, 1), f1, wanted)
        if wanted:
            confusion[str(label)] = {str(other): pairs[label, other] for other in labels if pairs[label, other]}
    accuracy = sum(pairs[label, label] for label in labels) / max(total, 1)
    return LabelScores(total, accuracy, classes, confusion)
