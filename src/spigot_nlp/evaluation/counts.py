"""What every score is made of: how many answers were right, given and wanted, sentence by sentence."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spigot_nlp.data.sentence import Sentence

Measure = Literal["f1", "precision", "recall"]


@dataclass(frozen=True)
class Score:
    r"""Precision, recall and $F_1$ of a corpus, with the counts they come from.

    A ratio without a denominator is 0: nothing was there to be right about. So a corpus without a single arc, in the
    gold data or in the answer, has $F_1 = 0$ and not an undefined value.

    Attributes:
        correct: Answers that were wanted.
        predicted: Answers given.
        gold: Answers wanted.
        precision: `correct / predicted`.
        recall: `correct / gold`.
        f1: `2 correct / (predicted + gold)`, the harmonic mean of the two.

    Example:
        >>> score = Score.of(correct=3, predicted=4, gold=6)
        >>> score.precision, score.recall, score.f1
        (0.75, 0.5, 0.6)
    """

    correct: int
    predicted: int
    gold: int
    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, correct: int, predicted: int, gold: int) -> "Score":
        """The score that these totals give."""
        totals = (correct, predicted, gold)
        return cls(*totals, *(float(ratio(measure, *totals)) for measure in ("precision", "recall", "f1")))


@dataclass(frozen=True, eq=False)
class Counts:
    """Right, given and wanted answers of each sentence: what a score needs, and what the bootstrap resamples.

    Where every item has one answer (heads of words, tags, classes) `predicted` equals `gold`, and precision, recall
    and F1 are all the accuracy.

    Attributes:
        correct: Answers that were wanted, for each sentence.
        predicted: Answers given.
        gold: Answers wanted.

    Example:
        >>> counts = Counts([1, 2], [2, 2], [2, 4])
        >>> round(counts.f1(), 3), counts.total().recall
        (0.6, 0.5)
        >>> len(counts)
        2
    """

    correct: NDArray[np.int64]
    predicted: NDArray[np.int64]
    gold: NDArray[np.int64]

    def __init__(self, correct: ArrayLike, predicted: ArrayLike, gold: ArrayLike) -> None:
        for name, values in (("correct", correct), ("predicted", predicted), ("gold", gold)):
            object.__setattr__(self, name, _whole_numbers(name, values))
        shapes = {self.correct.shape, self.predicted.shape, self.gold.shape}
        if len(shapes) > 1 or self.correct.ndim != 1:
            raise ValueError(
                f"correct, predicted and gold have shapes {self.correct.shape}, {self.predicted.shape} and "
                f"{self.gold.shape}; give one number of each for every sentence."
            )
        wrong = (self.correct < 0) | (self.correct > self.predicted) | (self.correct > self.gold)
        if wrong.any():
            i = int(wrong.argmax())
            raise ValueError(
                f"sentence {i + 1} has {self.correct[i]} correct answers of {self.predicted[i]} given and "
                f"{self.gold[i]} wanted; there can be neither fewer than 0 nor more than either."
            )

    def __len__(self) -> int:
        return len(self.correct)

    def total(self) -> Score:
        """The score of the corpus: counts are summed before anything is divided (micro average)."""
        return Score.of(int(self.correct.sum()), int(self.predicted.sum()), int(self.gold.sum()))

    def f1(self) -> float:
        """F1 of the corpus, 0 if there is nothing to count."""
        return self.total().f1

    def precision(self) -> float:
        """Precision of the corpus, 0 if nothing was predicted."""
        return self.total().precision

    def recall(self) -> float:
        """Recall of the corpus, 0 if nothing was wanted."""
        return self.total().recall

    def accuracy(self) -> float:
        """Share of right answers, where each item has exactly one.

        Raises:
            ValueError: If the numbers of given and wanted answers differ somewhere; these counts have an F1 only.
        """
        if not np.array_equal(self.predicted, self.gold):
            raise ValueError("accuracy needs one answer for each item, and here predicted and gold differ. Use f1().")
        return self.f1()

    def __add__(self, other: "Counts") -> "Counts":
        """Counts of two kinds of answer in the same sentences, taken together."""
        if len(self) != len(other):
            raise ValueError(
                f"counts of {len(self)} and of {len(other)} sentences cannot be added; count the same ones."
            )
        return Counts(self.correct + other.correct, self.predicted + other.predicted, self.gold + other.gold)


def ratio(measure: Measure, correct: ArrayLike, predicted: ArrayLike, gold: ArrayLike) -> NDArray[np.float64]:
    """A measure from totals, element by element; 0 where there is nothing to divide by.

    Example:
        >>> ratio("f1", [3, 0], [4, 0], [6, 0]).tolist()
        [0.6, 0.0]
    """
    right, given, wanted = (np.asarray(x, dtype=np.float64) for x in (correct, predicted, gold))
    if measure == "precision":
        above, below = right, given
    elif measure == "recall":
        above, below = right, wanted
    elif measure == "f1":
        above, below = 2 * right, given + wanted
    else:
        raise ValueError(f"measure is {measure!r}; it must be 'f1', 'precision' or 'recall'.")
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0)


def aligned(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> Iterator[tuple[str, Sentence, Sentence]]:
    """Name, gold and predicted record of each sentence, side by side.

    Raises:
        ValueError: If one side has more sentences than the other, or other words.

    Example:
        >>> [name for name, _, _ in aligned([Sentence(("Rain",), id="a")], [Sentence(("Rain",))])]
        ['sentence 1 (a)']
        >>> list(aligned([Sentence(("Rain",))], [Sentence(("Snow",))]))
        Traceback (most recent call last):
        ValueError: sentence 1, word 1 is 'Rain' in the gold data and 'Snow' in the prediction; score the same text.
    """
    for i, (wanted, given) in enumerate(zip_longest(gold, predicted), 1):
        if wanted is None or given is None:
            short, long = ("gold data", "prediction") if wanted is None else ("prediction", "gold data")
            raise ValueError(f"the {short} ends after sentence {i - 1}, the {long} goes on; score the same sentences.")
        name = f"sentence {i}" + (f" ({wanted.id})" if wanted.id else "")
        if wanted.forms != given.forms:
            raise ValueError(f"{name}, {_first_difference(wanted.forms, given.forms)}; score the same text.")
        yield name, wanted, given


def _first_difference(gold: tuple[str, ...], predicted: tuple[str, ...]) -> str:
    for i, (wanted, given) in enumerate(zip(gold, predicted, strict=False), 1):
        if wanted != given:
            return f"word {i} is {wanted!r} in the gold data and {given!r} in the prediction"
    last = min(len(gold), len(predicted))
    return (
        f"word {last + 1} exists on one side only: the gold data has {len(gold)} words, the prediction {len(predicted)}"
    )


def _whole_numbers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    given = np.asarray(values)
    whole = given.astype(np.int64)
    if not np.array_equal(whole, given):
        raise ValueError(f"{name} is {given!r}; counts are whole numbers.")
    whole.setflags(write=False)
    return whole
