"""Thousands of annotated sentences as a few long arrays, so that they can be compared without a loop over words."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation.counts import Counts
from spigot_nlp.evaluation.metrics import is_punctuation

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

TOP = 0
"""The number that tops have among the roles; names follow from 1."""


@dataclass(frozen=True, eq=False)
class Arcs:
    """The arcs of many graphs, each once, tops among them as arcs from one position behind the longest sentence.

    Attributes:
        known: Whether each sentence has a graph.
        keys: One number for each arc, by which equal ones are found; ascending.
        width: How many positions are told apart.
        roles: How many roles are told apart.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> table = Columns([Sentence(("Rain", "fell"))])
        >>> arcs = table.arcs([Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], [2]))], {"ARG1": 1})
        >>> arcs.predicate.tolist(), arcs.argument.tolist(), arcs.is_top.tolist()
        ([2, 3], [1, 2], [False, True])
    """

    known: Bools
    keys: Ints
    width: int
    roles: int

    @cached_property
    def role(self) -> Ints:
        """The number of each arc's role."""
        return self.keys % self.roles

    @cached_property
    def argument(self) -> Ints:
        """The word that each arc points to."""
        return self.keys // self.roles % self.width

    @cached_property
    def predicate(self) -> Ints:
        """The word that each arc comes from."""
        return self.keys // (self.roles * self.width) % self.width

    @cached_property
    def sentence(self) -> Ints:
        """The place of each arc's sentence."""
        return self.keys // (self.roles * self.width * self.width)

    @cached_property
    def is_top(self) -> Bools:
        """Which of them stand for tops."""
        return self.predicate == self.width - 1

    @cached_property
    def pairs(self) -> Ints:
        """One number for each two words that are joined, whatever the roles, tops not among them; ascending."""
        return np.unique(self.keys[~self.is_top] // self.roles)

    def without_roles(self) -> "Arcs":
        """The same with all roles alike."""
        return Arcs(self.known, np.unique(self.keys // self.roles), self.width, 1)

    def within(self, known: Bools) -> "Arcs":
        """Those of some sentences only."""
        return Arcs(self.known & known, self.keys[known[self.sentence]], self.width, self.roles)

    def have(self, other: "Arcs") -> Bools:
        """Which of these arcs the other graphs have too."""
        return member(self.keys, other.keys)

    def count(self, chosen: Bools | None = None) -> Ints:
        """How many arcs each sentence has, or how many of the chosen ones."""
        where = self.sentence if chosen is None else self.sentence[chosen]
        return np.bincount(where, minlength=len(self.known)).astype(np.int64)


class Columns:
    """How sentences are laid out: all words in one row.

    Attributes:
        lengths: Words of each sentence.
        starts: Where the words of each sentence begin.
        sentence: The place of the sentence of each word.
        word: The place of each word in its sentence, from 1.
        width: One more than the longest sentence with a root has, see `Arcs`.

    Example:
        >>> columns = Columns([Sentence(("Rain", "fell")), Sentence(("Go",))])
        >>> columns.sentence.tolist(), columns.word.tolist()
        ([0, 0, 1], [1, 2, 1])
        >>> columns.heads([Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Go",))]).tolist()
        [2, 0, -1]
    """

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self.lengths: Ints = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        self.starts: Ints = np.cumsum(self.lengths) - self.lengths
        self.sentence: Ints = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self.word: Ints = np.arange(len(self.sentence)) - self.starts[self.sentence] + 1
        self.width: int = int(self.lengths.max(initial=0)) + 2

    def heads(self, sentences: Sequence[Sentence]) -> Ints:
        """The head of every word; -1 in sentences without a tree."""
        known = np.array([sentence.heads is not None for sentence in sentences], dtype=np.bool_)[self.sentence]
        heads = np.full(len(known), -1)
        heads[known] = [head for sentence in sentences for head in sentence.heads or ()]
        self._check(self.sentence[known], heads[known], 0, self.lengths[self.sentence[known]], "head")
        return heads

    def relations(self, sentences: Sequence[Sentence], numbers: dict[str, int]) -> Ints:
        """The number of every word's relation to its head; -1 in sentences without relations."""
        known = np.array([sentence.relations is not None for sentence in sentences], dtype=np.bool_)[self.sentence]
        relations = np.full(len(known), -1)
        relations[known] = [numbers[name] for sentence in sentences for name in sentence.relations or ()]
        return relations

    def arcs(self, sentences: Sequence[Sentence], roles: dict[str, int]) -> Arcs:
        """All graphs.

        Args:
            sentences: The sentences that are laid out here.
            roles: The number of every role, from 1.
        """
        graphs = [(place, sentence.graph) for place, sentence in enumerate(sentences) if sentence.graph is not None]
        width, count, top = self.width, len(roles) + 1, self.width - 1
        rows = [(place, *arc[:2], roles[arc.role]) for place, graph in graphs for arc in graph.arcs]
        rows += [(place, top, word, TOP) for place, graph in graphs for word in graph.tops]
        place, predicate, argument, role = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        last = self.lengths[place]
        self._check(place, np.where(role == TOP, 1, predicate), 1, last, "predicate")
        self._check(place, argument, 1, last, "argument")
        known = np.zeros(len(sentences), dtype=np.bool_)
        known[[place for place, _ in graphs]] = True
        keys = ((place * width + predicate) * width + argument) * count + role
        return Arcs(known, np.unique(keys), width, count)

    def _check(self, place: Ints, values: Ints, least: int, last: Ints, what: str) -> None:
        """Complain about words that do not exist: their numbers would be taken for those of others."""
        outside = (values < least) | (values > last)
        if outside.any():
            k = int(outside.argmax())
            raise ValueError(
                f"sentence {place[k] + 1} has the {what} {values[k]}; it must be a number from {least} to {last[k]}."
            )

    def sums(self, values: Bools) -> Ints:
        """How many words of each sentence a statement is true of."""
        return np.bincount(self.sentence[values], minlength=len(self.lengths)).astype(np.int64)

    def punctuation(self, sentences: Sequence[Sentence]) -> Bools:
        """Which words are punctuation."""
        return np.array([skip for sentence in sentences for skip in is_punctuation(sentence)], dtype=np.bool_)

    def joined(self, sentence: Ints, first: Ints, second: Ints) -> Ints:
        """The numbers that `Arcs.pairs` has for two words of a sentence."""
        return (sentence * self.width + first) * self.width + second


def member(values: Ints, known: Ints) -> Bools:
    """Which values are among known ones that ascend.

    Example:
        >>> member(np.array([3, 4]), np.array([1, 3, 7])).tolist()
        [True, False]
    """
    if not len(known):
        return np.zeros(len(values), dtype=np.bool_)
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return known[place] == values


def role_numbers(*sides: Sequence[Sentence]) -> dict[str, int]:
    """Numbers for all roles in alphabetical order, from 1.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> role_numbers([Sentence(("Go", "on"), graph=Graph.of([Arc(1, 2, "ARG1")]))], [Sentence(("Go", "on"))])
        {'ARG1': 1}
    """
    names = {arc.role for side in sides for sentence in side if sentence.graph for arc in sentence.graph.arcs}
    return {name: number for number, name in enumerate(sorted(names), 1)}


def relation_numbers(*sides: Sequence[Sentence]) -> dict[str, int]:
    """Numbers for all relations in alphabetical order, from 0.

    Example:
        >>> relation_numbers([Sentence(("Go", "on"), relations=("root", "advmod"))], [Sentence(("Go", "on"))])
        {'advmod': 0, 'root': 1}
    """
    names = {name for side in sides for sentence in side for name in sentence.relations or ()}
    return {name: number for number, name in enumerate(sorted(names))}


def arc_counts(gold: Arcs, answer: Arcs) -> Counts:
    """Right, given and wanted arcs of each sentence, as `spigot_nlp.evaluation.graph_counts` counts them.

    Sentences without a gold graph have none of any.

    Args:
        gold: The right arcs.
        answer: Those of a system.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> rain = [Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))]
        >>> bare = [Sentence(("Rain", "fell"), graph=Graph.of([], tops=[2]))]
        >>> columns = Columns(rain)
        >>> counts = arc_counts(columns.arcs(rain, {"ARG1": 1}), columns.arcs(bare, {"ARG1": 1}))
        >>> counts.correct.tolist(), counts.predicted.tolist(), counts.gold.tolist()
        ([1], [1], [2])
    """
    answer = answer.within(gold.known)
    return Counts(answer.count(answer.have(gold)), answer.count(), gold.count())


def exact(counts: Counts, known: Bools) -> Counts:
    """Whether the whole sentence is right, for those that can be judged.

    Example:
        >>> exact(Counts([2, 1], [2, 1], [2, 2]), np.array([True, True])).f1()
        0.5
    """
    hits = (counts.correct == counts.predicted) & (counts.correct == counts.gold) & known
    return Counts(hits, known, known)
