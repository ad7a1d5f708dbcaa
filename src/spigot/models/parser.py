"""A trained system as a function of sentences."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from spigot.config import Config
from spigot.data.batch import collate, encode
from spigot.data.conventions import Conventions
from spigot.data.lemmas import Lemmatiser
from spigot.data.sentence import Arc, Graph, Sentence
from spigot.data.tagger import Tagger
from spigot.data.vocab import SPECIAL, Vocab
from spigot.models.answers import Answer
from spigot.models.joint import AbstractJoint
from spigot.models.syntax import tree_heads
from spigot.types import Parts

CHUNK = 2048
"""Sentences held at a time: enough to sort by length, few enough that memory stays flat."""


@dataclass(frozen=True)
class Parser:
    """A model with all it needs to read text: its configuration, vocabulary and tagger.

    Example:
        >>> from spigot.config import make_config
        >>> from spigot.models.joint import JointParser
        >>> vocab = Vocab.of([Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))])
        >>> config = make_config({"data": {"tags": "columns"}})
        >>> parser = Parser(config, vocab, JointParser(config, vocab))
        >>> [len(sentence.heads) for sentence in parser.parse([Sentence(("Rain", "fell")), Sentence(())])]
        [2, 0]
        >>> [len(sentence.heads) for sentence in parser.parse_text("Rain fell. It didn't stop.")]
        [3, 5]
        >>> parser.finds, parser.misses_tags
        (('heads', 'graph'), False)
    """

    config: Config
    vocab: Vocab
    model: AbstractJoint
    tagger: Tagger | None = None

    @property
    def classifies(self) -> bool:
        """Whether it gives sentences a class."""
        return self.config.task == "classification"

    @property
    def reads_gold(self) -> bool:
        """Whether it is built to read the right trees of sentences."""
        return self.classifies and self.config.classifier.structure == "gold"

    @property
    def misses_tags(self) -> bool:
        """Whether it was trained on tags, and has no tagger to find those of plain text."""
        return self.tagger is None and len(self.vocab.tags) > len(SPECIAL)

    @property
    def finds(self) -> tuple[str, ...]:
        """What it finds by itself, and can be judged by: `heads`, `graph`, `label`.

        A tree that nobody predicted, as that of a classifier which reads chains, is none of it.
        """
        model = self.model
        found = {"heads": model.syntax is not None, "graph": model.semantics is not None, "label": self.classifies}
        return tuple(field for field, is_found in found.items() if is_found)

    @property
    def gives(self) -> tuple[str, ...]:
        """What its answers have: all that it finds, and the chains or random trees that it makes for a classifier.

        The right trees that a classifier of `classifier.structure = "gold"` reads came with the sentences, and are no
        answer of its own.
        """
        makes_trees = self.classifies and self.config.classifier.structure in ("left", "right", "random")
        return ("heads", *self.finds) if makes_trees and self.config.system != "bilstm" else self.finds

    @cached_property
    def conventions(self) -> Conventions:
        """How the data it was trained on are tokenised and spelt."""
        return Conventions.of(self.vocab)

    def parse_text(
        self, text: str | Iterable[str], *, lines: bool = False, tokenised: bool = False
    ) -> Iterator[Sentence]:
        """The sentences of plain text, with the system's trees, graphs and classes.

        The text is cut into sentences and words as the training data are, and read in their spelling; the answers have
        the words as the text spells them. `spigot parse` and `spigot serve` give the same answers.

        Args:
            text: The text, or its pieces one after another: the lines of a file, say. Of any size: only some two
                thousand sentences are held at a time.
            lines: Whether each line is a sentence.
            tokenised: Whether there is a space between all tokens already.

        Raises:
            ValueError: If the system reads the right trees, which plain text has none of.
        """
        if self.reads_gold:
            raise ValueError("This system reads the right trees of sentences, and plain text has none; use parse.")
        return self.parse(self.conventions.sentences(text, lines=lines, tokenised=tokenised), plain=True)

    def parse(
        self, sentences: Iterable[Sentence], *, tokens: int = 2048, tagged: bool = False, plain: bool = False
    ) -> Iterator[Sentence]:
        """The same sentences in the same order, with the system's trees, graphs and classes: what it `gives`.

        Words, tags, lemmas, the id and what the format keeps for itself are those of the sentences. A tree, graph or
        class that they come with is not in the answer, whether the system finds one of its own or not. Nor is the tree
        that a classifier of `classifier.structure = "gold"` reads: it needs it, but has not found it.

        Args:
            sentences: What to parse. Annotation they have is not looked at, but for trees if gold ones are read.
            tokens: Positions in a batch, padding included.
            tagged: Whether the sentences have the tags and lemmas of this system already.
            plain: Whether the words are as people write them, to be read in the spelling of the training data.
        """
        sentences = iter(sentences)
        while chunk := list(itertools.islice(sentences, CHUNK)):
            yield from self._parse_chunk(chunk, self.read(chunk, tagged=tagged, plain=plain), tokens)

    def _parse_chunk(self, sentences: list[Sentence], ready: list[Sentence], tokens: int) -> list[Sentence]:
        encoded = [encode(self.visible(sentence), self.vocab) for sentence in ready]
        order = sorted(range(len(sentences)), key=lambda k: len(sentences[k]))
        parsed: dict[int, Sentence] = {}
        for group in self.groups(order, [len(sentence) for sentence in sentences], tokens):
            batch = collate([encoded[k] for k in group])
            for k, found in zip(group, self.found(self.model.parse(batch), batch.lengths.tolist()), strict=True):
                parsed[k] = replace(with_tags(sentences[k], ready[k]).without_annotation(), **found)
        return [parsed[k] for k in range(len(sentences))]

    def visible(self, sentence: Sentence) -> Sentence:
        """What the system may look at: no annotation, but for gold trees if it is built to read them."""
        return replace(sentence.without_annotation(), heads=sentence.heads if self.reads_gold else None)

    def found(self, answer: Answer, lengths: list[int]) -> list[dict[str, Any]]:
        """What an answer says about each sentence of a batch, by the name of the field it belongs to."""
        found: list[dict[str, Any]] = [{} for _ in lengths]
        if answer.tree is not None and not self.reads_gold:
            for fields, heads, length in zip(found, tree_heads(answer.tree).tolist(), lengths, strict=True):
                fields.update(heads=tuple(heads[1 : length + 1]), relations=None)
        if answer.graph is not None:
            for fields, graph in zip(found, self._graphs(answer.graph, lengths), strict=True):
                fields.update(graph=graph)
        if answer.probabilities is not None:
            best = answer.probabilities.argmax(-1).tolist()
            for fields, row, k in zip(found, answer.probabilities.tolist(), best, strict=True):
                fields.update(label=self.vocab.classes[k], probabilities=tuple(row))
        return found

    def _graphs(self, z: Parts, lengths: list[int]) -> list[Graph]:
        arcs = z[..., 0].clone()
        on = arcs.diagonal(dim1=1, dim2=2)
        predicates = on.tolist()
        on.zero_()
        found = arcs.nonzero()
        roles = z[found[:, 0], found[:, 1], found[:, 2], 1:].argmax(-1) if len(found) else found[:, 0]
        lists: list[list[Arc]] = [[] for _ in lengths]
        tops: list[list[int]] = [[] for _ in lengths]
        for (k, head, argument), role in zip(found.tolist(), roles.tolist(), strict=True):
            if head == 0:
                tops[k].append(argument)
            else:
                lists[k].append(Arc(head, argument, self.vocab.roles[role]))
        marked = ([i for i in range(1, n + 1) if predicates[k][i]] for k, n in enumerate(lengths))
        return [Graph.of(*parts) for parts in zip(lists, tops, marked, strict=True)]

    def read(self, sentences: Iterable[Sentence], *, tagged: bool = False, plain: bool = False) -> list[Sentence]:
        """The sentences as the system reads them: with its own tags and lemmas, and if they are plain in its spelling.

        Args:
            sentences: What to read.
            tagged: Whether the sentences have the tags and lemmas of this system already.
            plain: Whether the words are as people write them.
        """
        if plain:
            sentences = map(self.conventions.respell, sentences)
        if self.tagger is None or tagged:
            return list(sentences)
        return list(Lemmatiser().lemmatise(self.tagger.tag(sentences)))

    def groups(self, order: Sequence[int], lengths: Sequence[int], tokens: int = 2048) -> Iterator[list[int]]:
        """Batches of sorted sentences that keep to a number of positions, and of parts."""
        group: list[int] = []
        parts = len(self.vocab.roles) + 1
        for k in order:
            width = lengths[k] + 2
            full = (len(group) + 1) * width > tokens or (len(group) + 1) * width * width * parts > 16_000_000
            if group and full:
                yield group
                group = []
            group.append(k)
        if group:
            yield group


def with_tags(given: Sentence, read: Sentence) -> Sentence:
    """A sentence with its own words, tags and lemmas, or where it has none of the last two with those that were read.

    Args:
        given: The sentence.
        read: The same, with other tags and lemmas, and perhaps in another spelling. A lemma that only repeats that
            spelling is written as the sentence writes the word.

    Example:
        >>> with_tags(Sentence(("Rain",)), Sentence(("Rain",), tags=("NN",))).tags
        ('NN',)
        >>> with_tags(Sentence(("Is", "n't")), Sentence(("Is", "n’t"), lemmas=("be", "n’t"))).lemmas
        ('be', "n't")
    """
    lemmas = given.lemmas or read.lemmas
    if lemmas is read.lemmas and lemmas is not None and read.forms != given.forms:
        words = zip(given.forms, read.forms, lemmas, strict=True)
        lemmas = tuple(own.lower() if lemma == said.lower() else lemma for own, said, lemma in words)
    return replace(given, tags=given.tags or read.tags, lemmas=lemmas)
