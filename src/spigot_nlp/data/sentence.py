"""The one record that every format is read into and every model's answer is written from."""

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from typing import Any, NamedTuple

_NONE: Mapping[str, Any] = {}
COLUMNS = ("lemmas", "tags", "upos")
"""What stands beside each word, and is no analysis of the sentence."""
CLASS_NAME = "label.class"
"""Where a sentence has the name of its class on its way into a file; no annotation is called so."""
_TAKEN = frozenset((*COLUMNS, "forms", "annotations", "id", "source"))
"""What no annotation can be called."""
_SHORT = ("heads", "relations", "graph", "label", "probabilities")
"""The annotations that can be written, and read, by short names."""
_ALONGSIDE = (*COLUMNS, "heads", "relations")
"""What has a value for each word."""


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


_GIVEN: Any = object()
"""Tells an annotation that was not mentioned from one that is `None`."""


@dataclass(frozen=True, slots=True, init=False)
class Sentence:
    """A sentence and whatever is known about it; `None` is "not annotated".

    Annotations stand under names of their own, so that a sentence may have any number of them: two graphs are no
    different from a tree and a graph. The common ones can be written, and read, by their short names.

    Attributes:
        forms: The words.
        lemmas: Their lemmas.
        tags: Their part-of-speech tags (the fine-grained column where a format has two).
        upos: Their coarse tags beside those (the universal ones of CoNLL-U), where a format has two columns.
        annotations: What is known beside that, by name; nothing in it is `None`.
        id: What the source calls it.
        source: What only the format it came from needs to write it back unchanged.

    Example:
        >>> sentence = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> len(sentence), sentence.heads, sentence.get("heads")
        (2, (2, 0), (2, 0))
        >>> sentence.put("mood", "sad").get("mood")
        'sad'
        >>> sentence.without_annotation().heads is None
        True
    """

    forms: tuple[str, ...]
    lemmas: tuple[str, ...] | None
    tags: tuple[str, ...] | None
    upos: tuple[str, ...] | None
    annotations: Mapping[str, Any]
    id: str
    source: object

    def __init__(
        self,
        forms: tuple[str, ...],
        lemmas: tuple[str, ...] | None = None,
        tags: tuple[str, ...] | None = None,
        heads: tuple[int, ...] | None = _GIVEN,
        relations: tuple[str, ...] | None = _GIVEN,
        graph: Graph | None = _GIVEN,
        label: int | None = _GIVEN,
        probabilities: tuple[float, ...] | None = _GIVEN,
        id: str = "",
        source: object = None,
        *,
        upos: tuple[str, ...] | None = None,
        annotations: Mapping[str, Any] = _NONE,
    ) -> None:
        """Short names stand above `annotations`, so that `dataclasses.replace` takes them too.

        Args:
            forms: The words.
            lemmas: Their lemmas.
            tags: Their tags.
            heads: The syntactic head of each word, 0 for the root: `heads[0]` is the head of word 1.
            relations: The label of each of these arcs.
            graph: The semantic graph.
            label: The class of the whole sentence.
            probabilities: What a model gives each class.
            id: What the source calls it.
            source: What only its format needs.
            upos: Their coarse tags.
            annotations: Annotations by name.
        """
        merged = dict(annotations) if annotations else {}
        for name, value in zip(_SHORT, (heads, relations, graph, label, probabilities), strict=True):
            if value is not _GIVEN:
                merged[name] = value
        if merged:
            if not _TAKEN.isdisjoint(merged):
                raise _taken(min(_TAKEN.intersection(merged)))
            merged = {name: value for name, value in merged.items() if value is not None}
        put = object.__setattr__
        put(self, "forms", forms)
        put(self, "lemmas", lemmas)
        put(self, "tags", tags)
        put(self, "upos", upos)
        put(self, "annotations", merged)
        put(self, "id", id)
        put(self, "source", source)
        count = len(forms)
        for name, values in zip(
            _ALONGSIDE, (lemmas, tags, upos, merged.get("heads"), merged.get("relations")), strict=True
        ):
            if values is not None and len(values) != count:
                raise _mismatch(forms, id, name, values)

    def __len__(self) -> int:
        return len(self.forms)

    def __hash__(self) -> int:
        return hash((self.forms, self.id))

    def get(self, name: str) -> Any:
        """The annotation of this name, a column of words (`tags`, say) included; `None` if there is none."""
        return getattr(self, name) if name in COLUMNS else self.annotations.get(name)

    def put(self, name: str, value: Any) -> "Sentence":
        """The same sentence with another annotation of this name, or with none if the value is `None`."""
        return self.put_all({name: value})

    def put_all(self, values: Mapping[str, Any]) -> "Sentence":
        """The same sentence with several other annotations, by name, each as `put` would have it."""
        return self._with(values, self.annotations)

    def with_only(self, values: Mapping[str, Any]) -> "Sentence":
        """The same words, tags and lemmas, but for those among the values, and no other annotation than these."""
        return self._with(values, _NONE)

    def _with(self, values: Mapping[str, Any], kept: Mapping[str, Any]) -> "Sentence":
        """A copy, of which no more is looked at than what is new: parsing makes several of every sentence."""
        parts = [self.lemmas, self.tags, self.upos]
        annotations, count = dict(kept), len(self.forms)
        for name, value in values.items():
            if name in _ALONGSIDE and value is not None and len(value) != count:
                raise _mismatch(self.forms, self.id, name, value)
            if name in COLUMNS:
                parts[COLUMNS.index(name)] = value
            elif name in _TAKEN:
                raise _taken(name)
            elif value is not None:
                annotations[name] = value
            elif name in annotations:
                del annotations[name]
        copy, put = object.__new__(Sentence), object.__setattr__
        put(copy, "forms", self.forms)
        put(copy, "lemmas", parts[0])
        put(copy, "tags", parts[1])
        put(copy, "upos", parts[2])
        put(copy, "annotations", annotations)
        put(copy, "id", self.id)
        put(copy, "source", self.source)
        return copy

    @property
    def heads(self) -> tuple[int, ...] | None:
        """The syntactic head of each word, 0 for the root: `heads[0]` is the head of word 1."""
        return self.annotations.get("heads")

    @property
    def relations(self) -> tuple[str, ...] | None:
        """The label of each of these arcs."""
        return self.annotations.get("relations")

    @property
    def graph(self) -> Graph | None:
        """The semantic graph."""
        return self.annotations.get("graph")

    @property
    def label(self) -> int | None:
        """The class of the whole sentence."""
        return self.annotations.get("label")

    @property
    def probabilities(self) -> tuple[float, ...] | None:
        """What a model gives each class."""
        return self.annotations.get("probabilities")

    def without_annotation(self) -> "Sentence":
        """The same words, tags and lemmas, and nothing else that is known about them."""
        return Sentence(self.forms, self.lemmas, self.tags, id=self.id, source=self.source, upos=self.upos)


def _mismatch(forms: tuple[str, ...], id: str, name: str, values: Sized) -> ValueError:
    return ValueError(f"sentence {id or ' '.join(forms[:8])} has {len(forms)} words but {len(values)} {name}.")


def _taken(name: str) -> ValueError:
    return ValueError(f"no annotation can be called {name!r}, as a part of every sentence is; rename it.")
