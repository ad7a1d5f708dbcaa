"""A trained system as a function of sentences."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from spigot.config import Config
from spigot.data.batch import Batch, collate, encode
from spigot.data.lemmas import Lemmatiser
from spigot.data.sentence import Arc, Graph, Sentence
from spigot.data.tagger import Tagger
from spigot.data.vocab import Vocab
from spigot.models.joint import JointParser
from spigot.models.syntax import tree_heads

CHUNK = 2048
"""Sentences held at a time: enough to sort by length, few enough that memory stays flat."""


@dataclass(frozen=True)
class Parser:
    """A model with all it needs to read text: its configuration, vocabulary and tagger.

    Example:
        >>> from spigot.config import make_config
        >>> vocab = Vocab.of([Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))])
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> parser = Parser(config, vocab, JointParser(config, vocab))
        >>> [len(sentence.heads) for sentence in parser.parse([Sentence(("Rain", "fell")), Sentence(())])]
        [2, 0]
    """

    config: Config
    vocab: Vocab
    model: JointParser
    tagger: Tagger | None = None

    def parse(self, sentences: Iterable[Sentence], *, tokens: int = 2048, tagged: bool = False) -> Iterator[Sentence]:
        """The same sentences in the same order, with the system's tree and graph.

        Args:
            sentences: What to parse. Trees and graphs they have are not looked at; those the system gives replace them.
            tokens: Positions in a batch, padding included.
            tagged: Whether the sentences have the tags and lemmas of this system already.
        """
        sentences = iter(sentences)
        while chunk := list(itertools.islice(sentences, CHUNK)):
            yield from self._parse_chunk(chunk, tokens, tagged)

    def _parse_chunk(self, sentences: list[Sentence], tokens: int, tagged: bool) -> list[Sentence]:
        ready = sentences if tagged else self._annotated(sentences)
        encoded = [encode(sentence.without_annotation(), self.vocab) for sentence in ready]
        order = sorted(range(len(sentences)), key=lambda k: len(sentences[k]))
        parsed: dict[int, Sentence] = {}
        for group in _groups(order, [len(sentence) for sentence in sentences], tokens, len(self.vocab.roles)):
            batch = collate([encoded[k] for k in group])
            for k, (heads, graph) in zip(group, self._decode(batch), strict=True):
                parsed[k] = self._answer(sentences[k], ready[k], heads, graph)
        return [parsed[k] for k in range(len(sentences))]

    def _answer(self, given: Sentence, ready: Sentence, heads: tuple[int, ...] | None, graph: Graph) -> Sentence:
        tree = {} if heads is None else {"heads": heads, "relations": None}
        return replace(
            given,
            tags=given.tags or ready.tags,
            lemmas=given.lemmas or ready.lemmas,
            graph=graph,
            **tree,
        )

    def _decode(self, batch: Batch) -> list[tuple[tuple[int, ...] | None, Graph]]:
        """Heads and graph of each sentence of a batch."""
        tree, z, _ = self.model.parse(batch)
        heads = None if tree is None else tree_heads(tree).tolist()
        arcs = z[..., 0].clone()
        on = arcs.diagonal(dim1=1, dim2=2)
        predicates = on.tolist()
        on.zero_()
        found = arcs.nonzero()
        roles = z[found[:, 0], found[:, 1], found[:, 2], 1:].argmax(-1) if len(found) else found[:, 0]
        lists: list[list[Arc]] = [[] for _ in range(len(batch))]
        tops: list[list[int]] = [[] for _ in range(len(batch))]
        for (k, head, argument), role in zip(found.tolist(), roles.tolist(), strict=True):
            if head == 0:
                tops[k].append(argument)
            else:
                lists[k].append(Arc(head, argument, self.vocab.roles[role]))
        answers = []
        for k, length in enumerate(batch.lengths.tolist()):
            marked = [i for i in range(1, length + 1) if predicates[k][i]]
            words = None if heads is None else tuple(heads[k][1 : length + 1])
            answers.append((words, Graph.of(lists[k], tops[k], marked)))
        return answers

    def _annotated(self, sentences: list[Sentence]) -> list[Sentence]:
        if self.tagger is None:
            return sentences
        return list(Lemmatiser().lemmatise(self.tagger.tag(sentences)))


def _groups(order: Sequence[int], lengths: Sequence[int], tokens: int, roles: int) -> Iterator[list[int]]:
    """Batches of sorted sentences that keep to a number of positions, and of parts."""
    group: list[int] = []
    for k in order:
        width = lengths[k] + 2
        full = (len(group) + 1) * width > tokens or (len(group) + 1) * width * width * (roles + 1) > 16_000_000
        if group and full:
            yield group
            group = []
        group.append(k)
    if group:
        yield group
