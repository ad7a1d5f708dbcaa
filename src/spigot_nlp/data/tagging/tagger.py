"""A part-of-speech tagger: an averaged perceptron that reads from left to right."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, islice
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from spigot import kernels
from spigot_nlp.data.formats.files import written
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging import tagger as perceptron

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Features(NamedTuple):
    """The tokens of many sentences in one row, as rows of a table of weights; a negative row is absent.

    Attributes:
        plain: `(tokens, a)`: the rows that do not depend on earlier tags.
        paired: `(tokens, b)`: the rows to which the previous tag is added.
        fixed: `(tokens,)`: the tag of a word that needs no scoring, or -1.
        starts: `(sentences + 1,)`: sentence `s` is the tokens from `starts[s]` to `starts[s + 1]`.
        history: The first of the `(tags + 1)²` rows of the two previous tags.
        tags: How many tags there are. Tag number `tags` stands before the first word.
    """

    plain: Ints
    paired: Ints
    fixed: Ints
    starts: Longs
    history: int
    tags: int


def tag(features: Features, weights: Ints) -> Ints:
    """The best tag of each token, from left to right; ties go to the smaller tag.

    Args:
        features: The tokens.
        weights: `(rows, tags or more)`; columns beyond the tags only keep the rows aligned.

    Example:
        >>> plain, fixed = np.array([[0], [1]], dtype=np.int32), np.array([-1, -1], dtype=np.int32)
        >>> features = Features(plain, np.empty((2, 0), dtype=np.int32), fixed, np.array([0, 2]), 2, 2)
        >>> weights = np.zeros((11, 2), dtype=np.int32)
        >>> weights[1, 1] = 1  # the second word's row prefers the second tag
        >>> tag(features, weights).tolist()
        [0, 1]
    """
    if kernels.compiled is None:
        return tag_reference(features, weights)
    tagged = np.empty(len(features.fixed), dtype=np.int32)
    kernels.compiled.perceptron_tag(*features, weights, tagged)
    return tagged


def train(features: Features, order: Longs, gold: Ints, weights: Ints, totals: Longs, step: int) -> int:
    r"""One pass over the sentences in the order given; changes the weights and totals.

    A mistaken token adds 1 to the gold tag's weights and takes 1 from the predicted tag's. With $u_t$ the update of
    step $t$, `totals` collects $\sum_t t\,u_t$. If the next step is $T$, the weights after each step so far sum to
    $T w - \text{totals}$: averaging costs nothing while nothing changes.

    Args:
        features: The tokens.
        order: The sentences to visit.
        gold: The tag of each token.
        weights: As for `tag`.
        totals: Of the shape of the weights.
        step: The number of the first step. Only tokens that are scored take one.

    Returns:
        The number of the next step.

    References:
        Collins (2002), Discriminative training methods for hidden Markov models.
    """
    if kernels.compiled is None:
        return train_reference(features, order, gold, weights, totals, step)
    return kernels.compiled.perceptron_train(*features, order, gold, weights, totals, step)


def tag_reference(features: Features, weights: Ints) -> Ints:
    """`tag` in numpy."""
    tagged = np.empty(len(features.fixed), dtype=np.int32)
    for s in range(len(features.starts) - 1):
        _walk(features, s, weights, lambda i, guess, _: tagged.__setitem__(i, guess))
    return tagged


def train_reference(features: Features, order: Longs, gold: Ints, weights: Ints, totals: Longs, step: int) -> int:
    """`train` in numpy."""

    def learn(i: int, guess: int, rows: Longs | None) -> None:
        nonlocal step
        if rows is None:
            return
        if guess != gold[i]:
            # A row may stand for two features of the same token only by mistake of the caller; add.at counts both.
            for label, delta in ((gold[i], 1), (guess, -1)):
                np.add.at(weights[:, label], rows, delta)
                np.add.at(totals[:, label], rows, delta * step)
        step += 1

    for s in order:
        _walk(features, int(s), weights, learn)
    return step


def _walk(features: Features, sentence: int, weights: Ints, visit: Callable[[int, int, Longs | None], None]) -> None:
    """Predicts the tags of one sentence and shows each to `visit`, with the rows it was scored by, if it was."""
    plain, paired, fixed, starts, history, tags = features
    previous = before = tags
    for i in range(int(starts[sentence]), int(starts[sentence + 1])):
        guess, rows = int(fixed[i]), None
        if guess < 0:
            beside = paired[i][paired[i] >= 0].astype(np.int64) + previous
            pair = history + previous * (tags + 1) + before
            rows = np.concatenate([[pair], plain[i][plain[i] >= 0], beside])
            guess = int(weights[rows, :tags].sum(0).argmax())
        visit(i, guess, rows)
        before, previous = previous, guess


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


_KIND = "spigot tagger 1"
_CHUNK = 512  # sentences tagged in one go: enough to forget the cost of a call, few enough to stream
_LARGEST = np.iinfo(np.int16).max
_LANES = 8  # rows of weights are padded to a multiple of this


@final
@dataclass(frozen=True)
class Tagger:
    """Predicts the part-of-speech tag of each word.

    Greedy from left to right; a word is scored by its form, affixes and shape, by its neighbours within two words, and
    by the tags of the two words before it. Frequent words that nearly always carry the same tag simply get it.

    Attributes:
        features: The features training has seen, the tags among them.
        weights: `(rows, tags or more)`: the averaged weights, scaled to 16 bits. Only their proportions matter.

    Example:
        >>> text = [Sentence(("dogs", "bark"), tags=("NNS", "VBP")), Sentence(("a", "dog"), tags=("DT", "NN"))]
        >>> tagger = Tagger.train(text)
        >>> next(tagger.tag([Sentence(("a", "frog"))])).tags
        ('DT', 'NN')

    References:
        Collins (2002), Discriminative training methods for hidden Markov models.
    """

    features: TagFeatures
    weights: Ints

    def __post_init__(self) -> None:
        # The kernel trusts its arrays.
        shape = self.features.rows, _padded(len(self.features.tags))
        if self.weights.shape != shape or self.weights.dtype != np.int32 or not self.weights.flags.c_contiguous:
            raise ValueError(
                f"weights is {self.weights.dtype} of shape {self.weights.shape}; these features need contiguous int32 "
                f"of shape {shape}. Use Tagger.train or Tagger.load."
            )

    @classmethod
    def train(cls, sentences: Iterable[Sentence], *, epochs: int = 8, seed: int = 0) -> "Tagger":
        """Learns from the words and tags of sentences.

        Args:
            sentences: Tagged sentences.
            epochs: How often each is seen.
            seed: Decides the order in which they are seen; the same seed gives the same tagger.

        Example:
            >>> Tagger.train([Sentence(("Rain", "fell"), tags=("NN", "VBD"))], epochs=2).tags
            ('NN', 'VBD')
        """
        if epochs < 1:
            raise ValueError(f"epochs is {epochs}; a tagger needs at least 1.")
        texts, tags = [], []
        for position, sentence in enumerate(sentences):
            if sentence.tags is None:
                raise ValueError(
                    f"{_name(sentence, position)} has no tags; a tagger learns from sentences whose tags are known."
                )
            texts.append(sentence.forms)
            tags.append(sentence.tags)
        if not any(texts):
            raise ValueError(f"there are no words in these {len(texts)} sentences; a tagger needs some to learn from.")

        known = TagFeatures.collect(texts, tags)
        features = known.encode(texts)
        places = {tag: place for place, tag in enumerate(known.tags)}
        gold = np.array([places[tag] for sentence in tags for tag in sentence], dtype=np.int32)
        weights = np.zeros((known.rows, _padded(len(known.tags))), dtype=np.int32)
        totals = np.zeros(weights.shape, dtype=np.int64)
        generator, step = np.random.default_rng(seed), 1
        for _ in range(epochs):
            step = perceptron.train(features, generator.permutation(len(texts)), gold, weights, totals, step)
        # The average, times the number of steps: still integers.
        average = weights.astype(np.int64) * step - totals
        scale = max(1.0, float(np.abs(average).max()) / _LARGEST)
        return cls(known, np.rint(average / scale).astype(np.int32))

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags it can give, sorted."""
        return self.features.tags

    def tag(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """The sentences with predicted tags in place of whatever they had, in order, as a stream.

        Example:
            >>> tagger = Tagger.train([Sentence(("Rain", "fell"), tags=("NN", "VBD"))])
            >>> [sentence.tags for sentence in tagger.tag([Sentence(("Snow", "fell")), Sentence(())])]
            [('NN', 'VBD'), ()]
        """
        stream = iter(sentences)
        while chunk := list(islice(stream, _CHUNK)):
            features = self.features.encode([sentence.forms for sentence in chunk])
            numbers = perceptron.tag(features, self.weights).tolist()
            tags = iter([self.features.tags[number] for number in numbers])
            for sentence in chunk:
                yield sentence.put("tags", tuple(islice(tags, len(sentence.forms))))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the tagger to a safetensors file, which appears whole or not at all.

        Example:
            >>> import tempfile, pathlib
            >>> tagger = Tagger.train([Sentence(("Rain", "fell"), tags=("NN", "VBD"))])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     tagger.save(pathlib.Path(folder, "tagger.safetensors"))
            ...     Tagger.load(pathlib.Path(folder, "tagger.safetensors")).tags
            ('NN', 'VBD')
        """
        known = self.features
        strings = {
            "kind": _KIND,
            "tags": known.tags,
            "values": dict(zip(PROPERTIES, known.values, strict=True)),
            "paired": known.paired,
            "fixed": known.fixed,
        }
        # Nine weights in ten are zero, for most features are only ever seen with a few tags.
        weights = self.weights[:, : len(known.tags)].reshape(-1)
        places = np.flatnonzero(weights)
        content = {
            "strings": np.frombuffer(json.dumps(strings, separators=(",", ":")).encode(), dtype=np.uint8),
            "before": _short(known.bigrams[0]),
            "after": _short(known.bigrams[1]),
            "places": _short(places),
            "weights": weights[places].astype(np.int16),
        }
        with written(path) as file:
            file.write(safetensors.save(content))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Tagger":
        """Reads what `save` wrote. A file that is something else, or only a part of one, is a `ValueError`.

        Example:
            >>> import tempfile, pathlib
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "tagger.safetensors")
            ...     Tagger.train([Sentence(("Rain", "fell"), tags=("NN", "VBD"))]).save(path)
            ...     next(Tagger.load(path).tag([Sentence(("Rain",))])).tags
            ('NN',)
        """
        with open(path, "rb") as file:
            content = file.read()
        try:
            return cls._parse(content)
        except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, IndexError) as cause:
            raise ValueError(
                f"{os.fspath(path)} is not a whole tagger file; give one that Tagger.save wrote, or train it again."
            ) from cause

    @classmethod
    def _parse(cls, content: bytes) -> "Tagger":
        arrays = safetensors.load(content)
        strings = json.loads(arrays["strings"].tobytes())
        if strings["kind"] != _KIND:
            raise ValueError(f"kind {strings['kind']!r}")
        before, after, places = (np.ascontiguousarray(arrays[name], np.int64) for name in ("before", "after", "places"))
        values = tuple(tuple(map(str, strings["values"][name])) for name in PROPERTIES)
        known = TagFeatures(tuple(strings["tags"]), values, int(strings["paired"]), (before, after), strings["fixed"])
        # The kernel trusts rows and tags, so nothing here may point outside the table.
        if not (known.tags and 0 <= known.paired <= len(values[1]) and set(known.fixed.values()) <= set(known.tags)):
            raise ValueError("its strings contradict each other")
        dense = np.zeros((known.rows, len(known.tags)), dtype=np.int32)
        if len(places) and not 0 <= places.min() <= places.max() < dense.size:
            raise ValueError("weights outside the table")
        if arrays["weights"].shape != places.shape or arrays["weights"].dtype != np.int16:
            raise ValueError("weights of another kind")
        dense.reshape(-1)[places] = arrays["weights"]
        weights = np.zeros((known.rows, _padded(len(known.tags))), dtype=np.int32)
        weights[:, : len(known.tags)] = dense
        return cls(known, weights)


def jackknife(sentences: Iterable[Sentence], *, folds: int = 5, epochs: int = 8, seed: int = 0) -> list[Sentence]:
    """Training text tagged as badly as new text will be: each fold by a tagger trained on the others.

    A model trained on gold tags, or on those of a tagger that has seen them, trusts tags more than it may. The folds
    are blocks of consecutive sentences: a document then falls into one or two folds, and its names and habits help to
    tag it no more than they will in a new one.

    Args:
        sentences: Tagged sentences.
        folds: How many taggers are trained.
        epochs: As for `Tagger.train`.
        seed: As for `Tagger.train`.

    Returns:
        The sentences with predicted tags, in order.

    Example:
        >>> text = [Sentence(("dogs", "bark"), tags=("NNS", "VBP"))] * 3
        >>> jackknife(text, folds=3)[0].tags
        ('NNS', 'VBP')
    """
    text = list(sentences)
    if len(text) < 2:
        raise ValueError(
            f"a jackknife needs two sentences, and has {len(text)}; give more, or take the tags of the file "
            '(data.tags = "columns").'
        )
    if not 2 <= folds <= len(text):
        raise ValueError(
            f"folds is {folds} for {len(text)} sentences; give at least 2, and no more than there are sentences."
        )
    tagged: list[Sentence] = []
    for fold in range(folds):
        start, end = fold * len(text) // folds, (fold + 1) * len(text) // folds
        tagger = Tagger.train(text[:start] + text[end:], epochs=epochs, seed=seed)
        tagged.extend(tagger.tag(text[start:end]))
    return tagged


def _short(places: NDArray[np.int64]) -> NDArray[np.int64] | NDArray[np.int32]:
    """Whole numbers in half the bytes, where they fit."""
    return places.astype(np.int32) if not len(places) or places.max() < 2**31 else places


def _padded(tags: int) -> int:
    return -(-tags // _LANES) * _LANES


def _name(sentence: Sentence, position: int) -> str:
    if sentence.id:
        return f"sentence {sentence.id}"
    return f"sentence {position + 1} ({' '.join(sentence.forms[:5])}{' ...' if len(sentence) > 5 else ''})"
