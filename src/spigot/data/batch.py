"""The only place where strings become integers and lists become padded tensors; and the order they come in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from spigot.data.sentence import Sentence
from spigot.data.vocab import RARE, TOP, Vocab
from spigot.nn.encoder import END, ROOT, UNKNOWN


@dataclass(frozen=True)
class Batch:
    """What a model sees of some sentences: n words at most, the root before them, the end symbol behind.

    Attributes:
        words: Indices, unknown (0) behind the end of a sentence.
        lemmas: The same.
        tags: The same.
        lengths: Words of each sentence.
        seeds: One for each sentence, for dropout; `None` where nothing is to be random.
        heads: The gold head of each position; 0 at the root and behind the end.
        predicates: Gold predicates; the root is one if there is a top.
        arcs: Gold arcs as (sentence, predicate, argument, role); tops are arcs of the root.
        labels: The gold class of each sentence, as an index.

    Example:
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> batch = collate([encode(rain, Vocab.of([rain]))])
        >>> len(batch), batch.size, batch.lengths.tolist(), batch.arcs is None
        (1, 3, [2], True)
    """

    words: Int[Tensor, "batch n+2"]
    lemmas: Int[Tensor, "batch n+2"]
    tags: Int[Tensor, "batch n+2"]
    lengths: Int[Tensor, " batch"]
    seeds: Int[Tensor, " batch"] | None = None
    heads: Int[Tensor, "batch n+1"] | None = None
    predicates: Bool[Tensor, "batch n+1"] | None = None
    arcs: Int[Tensor, "arcs 4"] | None = None
    labels: Int[Tensor, " batch"] | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def size(self) -> int:
        """Positions with the root: the side of the arc matrices."""
        return self.words.shape[1] - 1


class Encoded(NamedTuple):
    """A sentence as integers."""

    tokens: np.ndarray
    heads: np.ndarray | None
    predicates: np.ndarray | None
    arcs: np.ndarray | None
    label: int | None = None

    @property
    def length(self) -> int:
        """Words, without the root and end symbols."""
        return self.tokens.shape[1] - 2


def encode(sentence: Sentence, vocab: Vocab) -> Encoded:
    """Look a sentence up in the vocabulary, framed by the root and end symbols.

    Example:
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> encode(rain, Vocab.of([rain])).tokens.tolist()
        [[1, 4, 3, 2], [1, 4, 3, 2], [1, 0, 0, 2]]
    """
    forms = [form.lower() for form in sentence.forms]
    lemmas = forms if sentence.lemmas is None else [lemma.lower() for lemma in sentence.lemmas]
    tags = sentence.tags or ("",) * len(forms)
    tokens = np.array(
        [
            [ROOT, *(index.get(value, UNKNOWN) for value in values), END]
            for index, values in (
                (vocab.word_index, forms),
                (vocab.lemma_index, lemmas),
                (vocab.tag_index, tags),
            )
        ],
        dtype=np.int64,
    )
    heads = None if sentence.heads is None else np.array((0, *sentence.heads), dtype=np.int64)
    label = None if sentence.label is None else vocab.class_index.get(sentence.label)
    if sentence.graph is None or not vocab.roles:
        return Encoded(tokens, heads, None, None, label)
    roles, graph = vocab.role_index, sentence.graph
    rare = roles.get(RARE, -1)
    arcs = [(0, top, roles.get(TOP, rare)) for top in graph.tops]
    # The models' graphs have one role for a pair of words, and no word is its own argument.
    pairs = {arc[:2]: arc for arc in reversed(graph.arcs) if arc.predicate != arc.argument}
    arcs += [(arc.predicate, arc.argument, roles.get(arc.role, rare)) for arc in reversed(pairs.values())]
    known = [arc for arc in arcs if arc[2] >= 0]  # a role that training never saw cannot be learned or found
    predicates = np.zeros(len(forms) + 1, dtype=bool)
    predicates[[*graph.predicates, *(arc[0] for arc in known)]] = True
    return Encoded(tokens, heads, predicates, np.array(known, dtype=np.int64).reshape(-1, 3), label)


def collate(sentences: Sequence[Encoded], seeds: Sequence[int] | None = None) -> Batch:
    """Pad sentences to one batch. Annotation that some of them lack is left out of all.

    Example:
        >>> rain, fell = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("It", "fell", "hard"), heads=(2, 0, 2))
        >>> vocab = Vocab.of([rain, fell])
        >>> collate([encode(rain, vocab), encode(fell, vocab)]).heads.tolist()
        [[0, 2, 0, 0], [0, 2, 0, 2]]
    """
    lengths = np.array([sentence.length for sentence in sentences], dtype=np.int64)
    width = int(lengths.max(initial=0)) + 2
    tokens = np.full((3, len(sentences), width), UNKNOWN, dtype=np.int64)
    heads = np.zeros((len(sentences), width - 1), dtype=np.int64)
    predicates = np.zeros((len(sentences), width - 1), dtype=bool)
    arcs = []
    for k, sentence in enumerate(sentences):
        tokens[:, k, : sentence.tokens.shape[1]] = sentence.tokens
        if sentence.heads is not None:
            heads[k, : len(sentence.heads)] = sentence.heads
        if sentence.arcs is not None and sentence.predicates is not None:
            predicates[k, : len(sentence.predicates)] = sentence.predicates
            arcs.append(np.column_stack((np.full(len(sentence.arcs), k), sentence.arcs)))
    trees = all(sentence.heads is not None for sentence in sentences)
    graphs = all(sentence.arcs is not None for sentence in sentences)
    labels = [sentence.label for sentence in sentences if sentence.label is not None]
    words, lemmas, tags = torch.from_numpy(tokens).unbind()
    return Batch(
        words,
        lemmas,
        tags,
        torch.from_numpy(lengths),
        None if seeds is None else torch.tensor(list(seeds), dtype=torch.int64),
        torch.from_numpy(heads) if trees else None,
        torch.from_numpy(predicates) if graphs else None,
        torch.from_numpy(np.concatenate(arcs or [np.zeros((0, 4), np.int64)])) if graphs else None,
        torch.tensor(labels) if labels and len(labels) == len(sentences) else None,
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
