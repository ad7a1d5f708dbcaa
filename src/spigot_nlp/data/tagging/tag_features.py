"""What the tagger looks at: properties of a word and of its neighbours, as rows of a table of weights.

The properties of a word type (its form, affixes and shape) are found once and become integers; the features of running
text are then gathered by numpy, without touching a string.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain

import numpy as np

from spigot_nlp.data.tagging.perceptron import Features, Ints, Longs

PROPERTIES = ("form", "lower", "first", "prefix2", "prefix3", "suffix1", "suffix2", "suffix3", "suffix4", "shape")
_LOWER, _SUFFIX3, _SHAPE = (PROPERTIES.index(name) for name in ("lower", "suffix3", "shape"))

# Which word, counted from the one being tagged, and which of its properties.
_TEMPLATES = (
    *((0, column) for column in range(len(PROPERTIES))),
    *((offset, _LOWER) for offset in (-2, -1, 1, 2)),
    *((offset, _SUFFIX3) for offset in (-1, 1)),
    *((offset, _SHAPE) for offset in (-1, 1)),
)
# Two neighbours together, lower-cased, and how often training must have seen them.
_BIGRAMS = (-1, 0), (0, 1)
_BIGRAM_COUNT = 2
# A lower-cased word this frequent is also looked at together with the previous tag.
_PAIRED_COUNT = 20
# A word this frequent that has one tag this often always gets it.
_FIXED_COUNT, _FIXED_SHARE = 20, 0.995

_REACH = 2
_BOUNDARY = 0  # the number of every property of the place before the first or after the last word
_REMEMBERED = 200_000  # word types kept between calls: a stream may hold any number of them


def properties(form: str) -> tuple[str, ...]:
    """The properties of a word, in the order of `PROPERTIES`.

    Example:
        >>> dict(zip(PROPERTIES, properties("Mid-1990s")))["shape"]
        'Xxx-ddx'
    """
    low = form.lower()
    shape = re.sub(r"\d", "d", re.sub(r"[^\W\d_]", lambda letter: "X" if letter[0].isupper() else "x", form))
    shape = re.sub(r"(.)\1+", r"\1\1", shape)
    return form, low, form[:1], low[:2], low[:3], low[-1:], low[-2:], low[-3:], low[-4:], shape


@dataclass(frozen=True)
class TagFeatures:
    """The features that training has seen. Anything else is simply absent from a token.

    Attributes:
        tags: The tags, sorted.
        values: For each property, its known values, the most frequent first; the number of a value is its place,
            counted from 1.
        paired: The first so many lower-cased words are also looked at together with the previous tag.
        bigrams: For the word and the one before it, and for the word and the one after it: the known pairs, as
            `left * (words + 1) + right`, ascending.
        fixed: The tag of each word that needs no scoring.

    Example:
        >>> features = TagFeatures.collect([("Rain", "fell")], [("NN", "VBD")])
        >>> features.tags, features.values[1]
        (('NN', 'VBD'), ('rain', 'fell'))
        >>> int((features.encode([("Snow", "fell")]).plain[0] >= 0).sum())  # what this "Snow" shares with that "Rain"
        9
    """

    tags: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    paired: int
    bigrams: tuple[Longs, Longs]
    fixed: dict[str, str]

    @classmethod
    def collect(cls, texts: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> "TagFeatures":
        """The features of training text: its sentences and their tags."""
        counts = Counter(zip(chain.from_iterable(texts), chain.from_iterable(tags), strict=True))
        forms: Counter[str] = Counter()
        best: dict[str, tuple[int, str]] = {}
        for (form, tag), count in counts.items():
            forms[form] += count
            best[form] = max(best.get(form, (0, "")), (count, tag))
        values: tuple[Counter[str], ...] = tuple(Counter() for _ in PROPERTIES)
        for form, count in forms.items():
            for counter, value in zip(values, properties(form), strict=True):
                counter[value] += count
        known = cls(
            tags=tuple(sorted({tag for _, tag in counts})),
            values=tuple(tuple(value for value, _ in counter.most_common()) for counter in values),
            paired=sum(count >= _PAIRED_COUNT for count in values[_LOWER].values()),
            bigrams=(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)),
            fixed={
                form: tag
                for form, (count, tag) in best.items()
                if forms[form] >= _FIXED_COUNT and count >= _FIXED_SHARE * forms[form]
            },
        )
        around = known._around(texts)[0]
        found = [np.unique(known._bigram(around, pair), return_counts=True) for pair in _BIGRAMS]
        left, right = (keys[seen >= _BIGRAM_COUNT] for keys, seen in found)
        return cls(known.tags, known.values, known.paired, (left, right), known.fixed)

    @property
    def rows(self) -> int:
        """How many rows the table of weights has."""
        return self._starts[-1] + (len(self.tags) + 1) ** 2

    def encode(self, texts: Sequence[Sequence[str]]) -> Features:
        """The features of sentences, all in one row."""
        around, starts = self._around(texts)
        tokens, (first, *others) = len(around), self._starts
        plain = np.empty((tokens, len(_TEMPLATES) + len(_BIGRAMS)), dtype=np.int32)
        for column, ((offset, name), row) in enumerate(zip(_TEMPLATES, (first, *others), strict=False)):
            numbers = self._types.table[around[:, _REACH + offset], name]
            plain[:, column] = np.where(numbers >= 0, numbers + row, -1)
        bigram_rows = others[len(_TEMPLATES) - 1 :]
        for column, (pair, known, row) in enumerate(zip(_BIGRAMS, self.bigrams, bigram_rows, strict=False)):
            keys = self._bigram(around, pair)
            places = np.searchsorted(known, keys)
            found = np.take(known, places, mode="clip") == keys if len(known) else np.zeros(tokens, dtype=bool)
            plain[:, len(_TEMPLATES) + column] = np.where(found, places + row, -1)

        one, each, history = self._starts[-3:]
        words = self._types.table[around[:, _REACH], _LOWER]
        paired = np.full((tokens, 2), one, dtype=np.int32)
        frequent = (words > _BOUNDARY) & (words <= self.paired)
        paired[:, 1] = np.where(frequent, each + (words - 1) * (len(self.tags) + 1), -1)
        fixed = np.ascontiguousarray(self._types.table[around[:, _REACH], -1])
        return Features(plain, paired, fixed, starts, history, len(self.tags))

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        """The first row of each template, of each bigram, of the previous tag, of its pairs and of the history."""
        sizes = [len(self.values[name]) + 1 for _, name in _TEMPLATES]
        sizes += [len(known) for known in self.bigrams]
        sizes += [len(self.tags) + 1, self.paired * (len(self.tags) + 1)]
        return (0, *accumulate(sizes))

    @cached_property
    def _types(self) -> "_WordTypes":
        return _WordTypes(self)

    def _around(self, texts: Sequence[Sequence[str]]) -> tuple[Longs, Longs]:
        """The types of each word and its neighbours, `(tokens, 2 * _REACH + 1)`, and where the sentences start."""
        self._types.meet(chain.from_iterable(texts))
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        # Sentences stand in one row with places between them that belong to none.
        places = np.arange(starts[-1]) + _REACH * np.repeat(np.arange(1, len(texts) + 1), lengths)
        row = np.full(starts[-1] + _REACH * (len(texts) + 1), _BOUNDARY, dtype=np.int64)
        row[places] = np.fromiter(self._types.numbers(chain.from_iterable(texts)), np.int64, int(starts[-1]))
        return row[places[:, None] + np.arange(-_REACH, _REACH + 1)], starts

    def _bigram(self, around: Longs, pair: tuple[int, int]) -> Longs:
        """Each token's key of a pair of neighbours; -1 where one of them is unknown."""
        left, right = (self._types.table[around[:, _REACH + offset], _LOWER].astype(np.int64) for offset in pair)
        return np.where((left < 0) | (right < 0), -1, left * (len(self.values[_LOWER]) + 1) + right)


class _WordTypes:
    """The word types met so far, numbered.

    Attributes:
        table: For the type of each number, the numbers of its properties, -1 where unknown, and its fixed tag or -1.
    """

    table: Ints

    def __init__(self, known: TagFeatures) -> None:
        self._values = [{value: number for number, value in enumerate(values, 1)} for values in known.values]
        places = {tag: place for place, tag in enumerate(known.tags)}
        self._fixed = {form: places[tag] for form, tag in known.fixed.items()}
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[str, int] = {}
        self.table = np.array([[_BOUNDARY] * len(PROPERTIES) + [-1]], dtype=np.int32)

    def meet(self, forms: Iterable[str]) -> None:
        """Makes sure that these words have numbers."""
        if len(self._numbers) > _REMEMBERED:
            self._forget()
        new = list(set(forms) - self._numbers.keys())
        if not new:
            return
        rows = [[*map(_number, self._values, properties(form)), self._fixed.get(form, -1)] for form in new]
        self._numbers.update(zip(new, range(len(self.table), len(self.table) + len(new)), strict=True))
        self.table = np.concatenate([self.table, np.array(rows, dtype=np.int32)])

    def numbers(self, forms: Iterable[str]) -> Iterator[int]:
        """The numbers of words met before."""
        return map(self._numbers.__getitem__, forms)


def _number(numbers: dict[str, int], value: str) -> int:
    return numbers.get(value, -1)
