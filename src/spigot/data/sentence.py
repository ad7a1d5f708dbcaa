"""The one record that every format is read into and every model's answer is written from."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple


class Arc(NamedTuple):
    """One labelled dependency of a graph: `predicate -role-> argument`. Words count from 1.

    Example:
        >>> Arc(2, 1, "ARG1").role
        'ARG1'
    """

    predicate: int
    argument: int
    role: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A semantic dependency graph over the words of a sentence.

    Attributes:
        arcs: The dependencies, ordered by predicate, then argument, then role.
        tops: The top words, ascending.
        predicates: The words marked as predicates, ascending; they may have no arguments.
        frames: The sense or frame of each word, `_` where it has none; empty if the source has no such column.

    Example:
        >>> Graph.of([Arc(2, 3, "ARG1"), Arc(2, 1, "ARG0")], tops=[2])
        Graph(arcs=(Arc(predicate=2, argument=1, role='ARG0'), Arc(predicate=2, argument=3, role='ARG1')), \
tops=(2,), predicates=(2,), frames=())
    """

    arcs: tuple[Arc, ...] = ()
    tops: tuple[int, ...] = ()
    predicates: tuple[int, ...] = ()
    frames: tuple[str, ...] = ()

    @classmethod
    def of(cls, arcs: Iterable[Arc], tops: Iterable[int] = (), predicates: Iterable[int] = ()) -> "Graph":
        """A graph from arcs in any order; every word with an argument is a predicate, beside those named."""
        ordered = tuple(sorted(arcs))
        heads = {arc.predicate for arc in ordered}.union(predicates)
        return cls(ordered, tuple(sorted(set(tops))), tuple(sorted(heads)))


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and whatever is known about it; `None` is "not annotated".

    Attributes:
        forms: The words.
        lemmas: Their lemmas.
        tags: Their part-of-speech tags (the fine-grained column where a format has two).
        heads: The syntactic head of each word, 0 for the root: `heads[0]` is the head of word 1.
        relations: The label of each of these arcs.
        graph: The semantic graph.
        label: The class of the whole sentence.
        probabilities: What a model gives each class.
        id: What the source calls it.
        source: What only the format it came from needs to write it back unchanged.

    Example:
        >>> sentence = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> len(sentence)
        2
        >>> sentence.without_annotation().heads is None
        True
    """

    forms: tuple[str, ...]
    lemmas: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    heads: tuple[int, ...] | None = None
    relations: tuple[str, ...] | None = None
    graph: Graph | None = None
    label: int | None = None
    probabilities: tuple[float, ...] | None = None
    id: str = ""
    source: object = None

    def __post_init__(self) -> None:
        for name in ("lemmas", "tags", "heads", "relations"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.forms):
                who = self.id or " ".join(self.forms[:8])
                raise ValueError(f"sentence {who} has {len(self.forms)} words but {len(values)} {name}.")

    def __len__(self) -> int:
        return len(self.forms)

    def without_annotation(self) -> "Sentence":
        """The same words, tags and lemmas, without tree, graph and label."""
        return replace(self, heads=None, relations=None, graph=None, label=None, probabilities=None)
