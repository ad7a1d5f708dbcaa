"""The only place where strings become integers and lists become padded tensors."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import pad

from spigot_nlp.annotations.annotation import AbstractAnnotation
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.nn.encoder import END, ROOT, UNKNOWN

LETTERS = 259
"""The bytes, from 1; before them nothing, behind them the beginning and the end of a word."""
LONGEST = 24
"""Bytes of a word that are looked at; of a longer one, as many of its beginning as of its end."""
_BEGIN, _END = LETTERS - 2, LETTERS - 1


class Spelling(NamedTuple):
    """The distinct words of a batch.

    Attributes:
        letters: The bytes of each, between a sign for its beginning and one for its end; the first row is no word.
        place: Which of them stands at each position; 0 for the root, the end, and what is behind it.

    Example:
        >>> Spelling(torch.zeros(1, 3, dtype=torch.int64), torch.zeros(1, 2, dtype=torch.int64)).place.shape
        torch.Size([1, 2])
    """

    letters: Int[Tensor, "words k"]
    place: Int[Tensor, "batch n"]


def spelt(sentences: Sequence[Sequence[str]], width: int) -> Spelling:
    """The distinct words of some sentences, in the order in which they occur.

    Args:
        sentences: The words of each.
        width: Positions of the batch, with those of the root and the end symbol.

    Example:
        >>> spelling = spelt([("a", "b"), ("b",)], 4)
        >>> spelling.place.tolist(), spelling.letters.tolist()
        ([[0, 1, 2, 0], [0, 2, 0, 0]], [[0, 0, 0], [257, 98, 258], [257, 99, 258]])
    """
    known: dict[str, int] = {}
    place = np.zeros((len(sentences), width), dtype=np.int64)
    for k, forms in enumerate(sentences):
        place[k, 1 : len(forms) + 1] = [known.setdefault(form, len(known) + 1) for form in forms]
    return Spelling(pad(letters_of(list(known)), (0, 0, 1, 0)), torch.from_numpy(place))


def letters_of(forms: Sequence[str]) -> Int[Tensor, "words k"]:
    """The bytes of some words, between a sign for the beginning of each and one for its end.

    Example:
        >>> letters_of(["a", "bc"]).tolist()
        [[257, 98, 258, 0], [257, 99, 100, 258]]
    """
    words = [_shortened(form.encode()) for form in forms]
    letters = np.zeros((len(words), 2 + max(map(len, words), default=1)), dtype=np.int64)
    for k, word in enumerate(words):
        letters[k, 0], letters[k, len(word) + 1] = _BEGIN, _END
        letters[k, 1 : len(word) + 1] = np.frombuffer(word, dtype=np.uint8)
        letters[k, 1 : len(word) + 1] += 1
    return torch.from_numpy(letters)


def _shortened(word: bytes) -> bytes:
    return word if len(word) <= LONGEST else word[: LONGEST // 2] + word[-LONGEST // 2 :]


Annotations = Mapping[str, AbstractAnnotation]
"""What the stages of a system learn and find, by the name of the stage."""
_NONE: Annotations = {}


@dataclass(frozen=True)
class Batch:
    """What a model sees of some sentences: n words at most, the root before them, the end symbol behind.

    Attributes:
        words: Indices, unknown (0) behind the end of a sentence.
        lemmas: The same.
        tags: The same.
        lengths: Words of each sentence.
        seeds: One for each sentence, for dropout; `None` where nothing is to be random.
        gold: What is right, as each stage's annotation makes tensors of it; stages whose annotation some of the
            sentences lack are left out.
        read: Structures to read in place of those that a stage finds, by stage, where nothing goes back to it.
        forms: The words themselves, for encoders that look into them.
        kept: What encoders have made of it so far; `None` where they are not to keep it. See `keeping`.

    Example:
        >>> from spigot_nlp.annotations import Trees
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> batch = collate([encode(rain, Vocab.of([rain]), {"syntax": Trees()})], {"syntax": Trees()})
        >>> len(batch), batch.size, batch.lengths.tolist(), batch.gold["syntax"].tolist()
        (1, 3, [2], [[0, 2, 0]])
    """

    words: Int[Tensor, "batch n+2"]
    lemmas: Int[Tensor, "batch n+2"]
    tags: Int[Tensor, "batch n+2"]
    lengths: Int[Tensor, " batch"]
    seeds: Int[Tensor, " batch"] | None = None
    gold: Mapping[str, Any] = field(default_factory=dict)
    read: Mapping[str, Tensor] = field(default_factory=dict)
    forms: tuple[tuple[str, ...], ...] = ()
    kept: dict[Hashable, Any] | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def size(self) -> int:
        """Positions with the root: the side of the arc matrices."""
        return self.words.shape[1] - 1

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.words.device

    @cached_property
    def spelling(self) -> Spelling:
        """The bytes of each distinct word, made when they are first asked for.

        Example:
            >>> rain = Sentence(("Rain", "rain", "Rain"))
            >>> spelling = collate([encode(rain, Vocab.of([rain]))]).spelling
            >>> spelling.place.tolist(), spelling.letters.shape            # the root, three words, the end
            ([[0, 1, 2, 1, 0]], torch.Size([3, 6]))
        """
        return Spelling(*(part.to(self.device) for part in spelt(self.forms, self.words.shape[1])))

    def keeping(self) -> "Batch":
        """The same, with room for what encoders make of it, so that stages which share an encoder ask it once.

        It is for one question to a system, a parse or a loss: what is kept is not looked at again when parameters have
        changed.

        Example:
            >>> rain = Sentence(("Rain", "fell"))
            >>> batch = collate([encode(rain, Vocab.of([rain]))])
            >>> batch.kept, batch.keeping().kept
            (None, {})
        """
        return replace(self, kept={})

    def to(self, device: torch.device | str) -> "Batch":
        """The same on another device.

        Example:
            >>> rain = Sentence(("Rain", "fell"))
            >>> collate([encode(rain, Vocab.of([rain]))]).to("meta").device.type
            'meta'
        """
        if self.device == torch.device(device):
            return self
        tensors = {name: getattr(self, name).to(device) for name in ("words", "lemmas", "tags", "lengths")}
        seeds = None if self.seeds is None else self.seeds.to(device)
        gold = {name: _moved(gold, device) for name, gold in self.gold.items()}
        read = {name: z.to(device) for name, z in self.read.items()}
        return replace(self, **tensors, seeds=seeds, gold=gold, read=read, kept=None)


def _moved(gold: Any, device: torch.device | str) -> Any:
    """A tensor, or a tuple of such things, on another device."""
    if isinstance(gold, Tensor):
        return gold.to(device)
    parts = [_moved(part, device) for part in gold]
    return type(gold)(*parts) if hasattr(gold, "_fields") else tuple(parts)


class Encoded(NamedTuple):
    """A sentence as integers: its tokens, and what each stage learns from, where the sentence has it.

    Attributes:
        tokens: Words, lemmas and tags, a row each, between the root and end symbols.
        gold: What is right, by stage.
        forms: The words themselves.

    Example:
        >>> rain = Sentence(("Rain", "fell"))
        >>> encode(rain, Vocab.of([rain])).length
        2
    """

    tokens: np.ndarray
    gold: Mapping[str, Any]
    forms: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """Words, without the root and end symbols."""
        return self.tokens.shape[1] - 2


def encode(sentence: Sentence, vocab: Vocab, annotations: Annotations = _NONE) -> Encoded:
    """Look a sentence up in the vocabulary, framed by the root and end symbols.

    Args:
        sentence: The sentence.
        vocab: The indices.
        annotations: What to look up beside its words, by stage.

    Example:
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> encode(rain, Vocab.of([rain])).tokens.tolist()
        [[1, 4, 3, 2], [1, 4, 3, 2], [1, 0, 0, 2]]
    """
    forms = list(map(str.lower, sentence.forms))
    lemmas = forms if sentence.lemmas is None else list(map(str.lower, sentence.lemmas))
    tags = sentence.tags or ("",) * len(forms)
    tokens = np.array(
        [
            [ROOT, *map(index.get, values, repeat(UNKNOWN)), END]
            for index, values in (
                (vocab.word_index, forms),
                (vocab.lemma_index, lemmas),
                (vocab.tag_index, tags),
            )
        ],
        dtype=np.int64,
    )
    gold = {}
    for stage, annotation in annotations.items():
        value = annotation.value(sentence)
        if value is not None and (encoded := annotation.encode(value, sentence)) is not None:
            gold[stage] = encoded
    return Encoded(tokens, gold, sentence.forms)


def collate(
    sentences: Sequence[Encoded], annotations: Annotations = _NONE, seeds: Sequence[int] | None = None
) -> Batch:
    """Pad sentences to one batch. Annotation that some of them lack is left out of all.

    Args:
        sentences: The sentences.
        annotations: What the batch is to have beside words, by stage.
        seeds: One for each sentence, where dropout is to apply.

    Example:
        >>> from spigot_nlp.annotations import Trees
        >>> rain, fell = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("It", "fell", "hard"), heads=(2, 0, 2))
        >>> vocab, trees = Vocab.of([rain, fell]), {"syntax": Trees()}
        >>> collate([encode(rain, vocab, trees), encode(fell, vocab, trees)], trees).gold["syntax"].tolist()
        [[0, 2, 0, 0], [0, 2, 0, 2]]
    """
    lengths = np.array([sentence.length for sentence in sentences], dtype=np.int64)
    width = int(lengths.max(initial=0)) + 2
    tokens = np.full((3, len(sentences), width), UNKNOWN, dtype=np.int64)
    for k, sentence in enumerate(sentences):
        tokens[:, k, : sentence.tokens.shape[1]] = sentence.tokens
    gold = {
        stage: annotation.collate([sentence.gold[stage] for sentence in sentences], width - 1)
        for stage, annotation in annotations.items()
        if all(stage in sentence.gold for sentence in sentences)
    }
    words, lemmas, tags = torch.from_numpy(tokens).unbind()
    return Batch(
        words,
        lemmas,
        tags,
        torch.from_numpy(lengths),
        None if seeds is None else torch.tensor(list(seeds), dtype=torch.int64),
        gold,
        forms=tuple(sentence.forms for sentence in sentences),
    )


def bucketed(lengths: Sequence[int], size: int, seed: Sequence[int]) -> list[list[int]]:
    """Batches of sentences of nearly the same length, both shuffled by the seed; every sentence once.

    Args:
        lengths: Words of each sentence.
        size: Sentences in a batch.
        seed: Whole numbers; the same ones give the same batches.

    Example:
        >>> sorted(map(sorted, bucketed([9, 1, 8, 2], 2, (0, 1))))
        [[0, 2], [1, 3]]
    """
    random = np.random.default_rng(list(seed))
    jitter = random.uniform(0.95, 1.05, len(lengths)) * np.asarray(lengths)
    order = np.lexsort((random.random(len(lengths)), jitter))
    batches = [order[start : start + size].tolist() for start in range(0, len(order), size)]
    return [batches[k] for k in random.permutation(len(batches))]


def task_order(sizes: Mapping[str, int], batches: Mapping[str, int], seed: Sequence[int]) -> Iterator[str]:
    """Which task each step of an epoch belongs to.

    A step draws a task with probability proportional to the number of its sentences that are still to come. Seen from
    the start of the epoch that is its share of all sentences at every step. (Drawing by the full sizes until one task
    runs out, as the published program did, ends an epoch with dozens of steps of the other task; when that is the end
    task, nothing holds the intermediate parser in place meanwhile.)

    Args:
        sizes: Sentences of each task.
        batches: Steps of each task.
        seed: Whole numbers.

    Example:
        >>> sorted(task_order({"syntax": 30, "semantics": 10}, {"syntax": 3, "semantics": 1}, (0,)))
        ['semantics', 'syntax', 'syntax', 'syntax']
    """
    random = np.random.default_rng(list(seed))
    left = dict(batches)
    while any(left.values()):
        open_tasks = [task for task, count in left.items() if count]
        weights = np.array([sizes[task] * left[task] / batches[task] for task in open_tasks])
        task = open_tasks[int(random.choice(len(open_tasks), p=weights / weights.sum()))]
        left[task] -= 1
        yield task
