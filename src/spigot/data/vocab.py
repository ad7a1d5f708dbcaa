"""Strings as indices: words, lemmas, tags and roles, and the pretrained vectors of the words."""

import gzip
import json
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from spigot.data.files import FormatError
from spigot.data.sentence import Sentence

SPECIAL = ("<unk>", "<root>", "<end>")
TOP, RARE = "TOP", "UNK"
"""The role of arcs from the root, and the one that rare roles share."""


@dataclass(frozen=True)
class Vocab:
    """The indices of an experiment. Words and lemmas are lower-cased; index 0 is the unknown one.

    Attributes:
        words: Words of the training data, then those that only have a vector.
        counts: How often each word occurs in the training data.
        lemmas: Lemmas.
        tags: Part-of-speech tags.
        roles: Roles of the graphs: TOP, the frequent ones, and one for the rest if there are rare ones.
        deterministic: Those of them (as indices) that no training predicate uses twice.
        classes: The labels of sentences.

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
    roles: tuple[str, ...] = ()
    deterministic: tuple[int, ...] = ()
    classes: tuple[int, ...] = ()

    @classmethod
    def of(cls, sentences: Iterable[Sentence], *, rare_role: int = 0, also: Iterable[str] = ()) -> "Vocab":
        """Collect a vocabulary.

        Args:
            sentences: The training data of all tasks. A text annotated twice should be given once for each.
            rare_role: Roles that occur less often than this share one index.
            also: Further words to give an index: those with pretrained vectors.
        """
        words: Counter[str] = Counter()
        lemmas: Counter[str] = Counter()
        tags: Counter[str] = Counter()
        roles: Counter[str] = Counter()
        uses: list[Counter[tuple[int, str]]] = []
        classes: set[int] = set()
        for sentence in sentences:
            words.update(form.lower() for form in sentence.forms)
            lemmas.update(lemma.lower() for lemma in sentence.lemmas or sentence.forms)
            tags.update(sentence.tags or ())
            if sentence.label is not None:
                classes.add(sentence.label)
            if sentence.graph is not None:
                arcs = [(arc.predicate, arc.role) for arc in sentence.graph.arcs]
                arcs += [(0, TOP) for _ in sentence.graph.tops]
                roles.update(role for _, role in arcs)
                uses.append(Counter(arcs))
        # A role that bears the name of the rare ones joins them.
        frequent = sorted(role for role, count in roles.items() if count >= rare_role and role not in (TOP, RARE))
        names = ((TOP, *frequent) if roles else ()) + ((RARE,) if len(frequent) + (TOP in roles) < len(roles) else ())
        index = {role: k for k, role in enumerate(names)}
        repeated = set()
        for counter in uses:
            mapped: Counter[tuple[int, str]] = Counter()
            for (predicate, role), count in counter.items():
                mapped[predicate, role if role in index else RARE] += count
            repeated.update(role for (_, role), count in mapped.items() if count > 1)
        extra = sorted({word for word in also if word not in words})
        known = (*sorted(words), *extra)
        return cls(
            words=SPECIAL + known,
            counts=(0,) * len(SPECIAL) + tuple(words[word] for word in known),
            lemmas=SPECIAL + tuple(sorted(lemmas)),
            tags=SPECIAL + tuple(sorted(tags)),
            roles=names,
            deterministic=tuple(k for role, k in index.items() if role not in repeated),
            classes=tuple(sorted(classes)),
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

    @cached_property
    def role_index(self) -> dict[str, int]:
        """The index of each role."""
        return {role: k for k, role in enumerate(self.roles)}

    @cached_property
    def class_index(self) -> dict[int, int]:
        """The index of each label."""
        return {label: k for k, label in enumerate(self.classes)}

    def to_json(self) -> str:
        """All of it as text; `from_json` reads it back."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Vocab":
        """The vocabulary that `to_json` wrote.

        Example:
            >>> vocab = Vocab.of([Sentence(("Rain",))])
            >>> Vocab.from_json(vocab.to_json()) == vocab
            True
        """
        return cls(**{name: tuple(values) for name, values in json.loads(text).items()})


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
