"""Strings as indices: words, lemmas and tags, and the pretrained vectors of the words."""

import gzip
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from spigot_nlp.data.formats.files import FormatError
from spigot_nlp.data.sentence import Sentence

SPECIAL = ("<unk>", "<root>", "<end>")


@dataclass(frozen=True)
class Vocab:
    """The indices of an experiment. Words and lemmas are lower-cased; index 0 is the unknown one.

    What else has names, the roles of graphs and the classes of sentences, belongs to the annotation it names.

    Attributes:
        words: Words of the training data, then those that only have a vector.
        counts: How often each word occurs in the training data.
        lemmas: Lemmas.
        tags: Part-of-speech tags.

    Example:
        >>> vocab = Vocab.of([Sentence(("Rain", "fell"), lemmas=("rain", "fall"), tags=("NN", "VBD"))])
        >>> vocab.words
        ('<unk>', '<root>', '<end>', 'fell', 'rain')
        >>> vocab.word_index.get("snow", 0)
        0
    """

    words: tuple[str, ...]
    counts: tuple[int, ...]
    lemmas: tuple[str, ...]
    tags: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Iterable[Sentence], *, also: Iterable[str] = ()) -> "Vocab":
        """Collect a vocabulary.

        Args:
            sentences: The training data of all stages. A text annotated twice should be given once for each.
            also: Further words to give an index: those with pretrained vectors.
        """
        words: Counter[str] = Counter()
        lemmas: Counter[str] = Counter()
        tags: Counter[str] = Counter()
        for sentence in sentences:
            words.update(form.lower() for form in sentence.forms)
            lemmas.update(lemma.lower() for lemma in sentence.lemmas or sentence.forms)
            tags.update(sentence.tags or ())
        extra = sorted({word for word in also if word not in words})
        known = (*sorted(words), *extra)
        return cls(
            words=SPECIAL + known,
            counts=(0,) * len(SPECIAL) + tuple(words[word] for word in known),
            lemmas=SPECIAL + tuple(sorted(lemmas)),
            tags=SPECIAL + tuple(sorted(tags)),
        )

    @cached_property
    def word_index(self) -> dict[str, int]:
        """The index of each word."""
        return {word: k for k, word in enumerate(self.words)}

    @cached_property
    def lemma_index(self) -> dict[str, int]:
        """The index of each lemma."""
        return {lemma: k for k, lemma in enumerate(self.lemmas)}

    @cached_property
    def tag_index(self) -> dict[str, int]:
        """The index of each tag."""
        return {tag: k for k, tag in enumerate(self.tags)}

    def plain(self) -> dict[str, Any]:
        """All of it as plain values; `from_plain` takes them back.

        Example:
            >>> vocab = Vocab.of([Sentence(("Rain",))])
            >>> Vocab.from_plain(vocab.plain()) == vocab
            True
        """
        return asdict(self)

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> "Vocab":
        """The vocabulary that `plain` gave."""
        vocab = cls(**{name: tuple(items) for name, items in values.items()})
        if len(vocab.counts) != len(vocab.words) or not all(isinstance(count, int) for count in vocab.counts):
            raise ValueError("its counts are not whole numbers, one for each word")
        return vocab


@dataclass(frozen=True)
class Vectors:
    """Pretrained word vectors.

    Attributes:
        words: The words.
        values: A row for each.

    Example:
        >>> Vectors(("rain",), np.ones((1, 2), np.float32)).table(["rain", "hail"]).tolist()
        [[1.0, 1.0], [0.0, 0.0]]
    """

    words: tuple[str, ...]
    values: Float[np.ndarray, "words d"]

    def table(self, words: Sequence[str]) -> Float[Tensor, "words d"]:
        """A row for each of the words, zero where there is no vector."""
        place = {word: k for k, word in enumerate(self.words)}
        rows = np.array([place.get(word, -1) for word in words])
        return torch.from_numpy(np.where(rows[:, None] >= 0, self.values[rows], np.float32(0)))


def read_vectors(path: str | Path) -> Vectors:
    """Read GloVe text: a word and its numbers on each line, plain or gzip.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "tiny.txt"
        >>> _ = file.write_text("rain 0.5 1\\nsnow -1 2\\n")
        >>> read_vectors(file).table(["snow", "hail"]).tolist()
        [[-1.0, 2.0], [0.0, 0.0]]
    """
    path = Path(path)
    opener = gzip.open if path.suffix == ".gz" else open
    words, rows, number = [], [], 0
    try:
        with opener(path, "rt", encoding="utf-8") as lines, warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # how numpy says that it could not read on
            for number, line in enumerate(lines, 1):
                word, _, numbers = line.rstrip("\n").partition(" ")
                row = _numbers(numbers)
                dim = len(rows[0]) if rows else len(row)
                if len(row) != dim or dim == 0 or not np.isfinite(row).all():
                    wanted = f"a word and {dim or 'some'} finite numbers"
                    raise FormatError(str(path), number, f"expected {wanted}, got {line.strip()[:60]!r}.")
                words.append(word)
                rows.append(row)
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FormatError(str(path), number + 1, f"the file is damaged or no text in UTF-8 ({error}).") from None
    if not words:
        raise FormatError(str(path), 1, "there are no vectors; each line should have a word and its numbers.")
    return Vectors(tuple(words), np.stack(rows))


def _numbers(text: str) -> np.ndarray:
    """The numbers of a line; none if there is anything else in it."""
    try:
        return np.fromstring(text, dtype=np.float32, sep=" ") if text.strip() else np.zeros(0, np.float32)
    except (DeprecationWarning, ValueError):
        return np.zeros(0, np.float32)


_SHARE, _LEAST = 0.15, 5  # of new words, and how many there must be


@dataclass(frozen=True)
class OutOfVocabulary:
    """How many words of a text a model has never seen. What has no letter in it is no word here.

    Attributes:
        words: How many words there are.
        new: How many of them are new.

    Example:
        >>> some = OutOfVocabulary(60, 30) + OutOfVocabulary(40, 31)
        >>> some.is_notable, f"{some:}"
        (True, '61 % of these words are new to this model (61 of 100): expect more errors than its scores promise.')
        >>> print(OutOfVocabulary(100, 3))
        3 % of these words are new to this model (3 of 100).
    """

    words: int = 0
    new: int = 0

    @property
    def share(self) -> float:
        """Which part of the words is new; 0 if there are none."""
        return self.new / max(self.words, 1)

    @property
    def is_notable(self) -> bool:
        """Whether so many are new, and there are so many, that a reader should be told."""
        return self.words >= _LEAST and self.share >= _SHARE

    def __add__(self, other: "OutOfVocabulary") -> "OutOfVocabulary":
        return OutOfVocabulary(self.words + other.words, self.new + other.new)

    def __str__(self) -> str:
        share = f"{self.share:.0%}".replace("%", " %")
        beware = ": expect more errors than its scores promise" if self.is_notable else ""
        return f"{share} of these words are new to this model ({self.new} of {self.words}){beware}."
