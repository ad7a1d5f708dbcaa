"""A part-of-speech tagger: an averaged perceptron that reads from left to right."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from spigot_nlp.data.formats.files import written
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging import perceptron
from spigot_nlp.data.tagging.perceptron import Ints
from spigot_nlp.data.tagging.tag_features import PROPERTIES, TagFeatures

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
