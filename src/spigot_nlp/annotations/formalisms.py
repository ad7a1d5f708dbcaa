"""Several graphs of the same sentence, each in a formalism of its own, learned and found together."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import combinations
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, cast, final

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from spigot_nlp.annotations.annotation import (
    ANNOTATIONS,
    INTERVAL,
    AbstractAnnotation,
    Bounds,
    Drawn,
    Measure,
    bounded,
    percent,
)
from spigot_nlp.annotations.graphs import LF, UF, GoldGraph, Graphs
from spigot_nlp.data.sentence import Graph, Sentence

if TYPE_CHECKING:
    from spigot_nlp.evaluation.counts import Counts, Score
    from spigot_nlp.evaluation.metrics import GraphScores
    from spigot_nlp.tables import Table

Combination = tuple[tuple[int, int], ...]
"""Labels that stand on one arc in several graphs: (task, label), tasks in rising order."""

_LARGEST = 3
MICRO = "micro"


@dataclass(frozen=True)
class FormalismScores:
    """How well several graphs were predicted.

    Attributes:
        sentences: How many have at least one of them.
        labelled: Arcs with their roles, and tops, of all graphs together.
        unlabelled: The same without roles.
        graphs: The scores of each graph, over the sentences that have it.

    Example:
        >>> rain = Sentence(("Rain", "fell"), annotations={"dm": Graph(tops=(2,))})
        >>> scores = Formalisms.of("dm", "psd").score([rain], [rain])
        >>> scores.labelled.f1, list(scores.graphs)
        (1.0, ['dm'])
    """

    sentences: int
    labelled: "Score"
    unlabelled: "Score"
    graphs: "dict[str, GraphScores]"


class GoldFormalisms(NamedTuple):
    """The right graphs of a batch.

    Attributes:
        graphs: Those of each formalism; of a sentence that lacks it, none.
        present: Which sentence has which.
    """

    graphs: tuple[GoldGraph, ...]
    present: Bool[Tensor, "batch tasks"]


@final
@ANNOTATIONS.register("formalisms")
@dataclass(frozen=True)
class Formalisms(AbstractAnnotation):
    """Several semantic graphs of a sentence, each under its own name; a sentence may lack some of them.

    Attributes:
        tasks: The graphs.
        combinations: The labels that training has seen on the same arc in two or three of them, often enough.

    Example:
        >>> from spigot_nlp.data.sentence import Arc
        >>> one, other = Graph.of([Arc(2, 1, "ARG1")], tops=[2]), Graph.of([Arc(2, 1, "ACT")])
        >>> both = Formalisms.of("dm", "psd")
        >>> both.value(Sentence(("Rain", "fell"), annotations={"dm": one, "psd": other}))["psd"] is other
        True
        >>> both.value(Sentence(("Rain", "fell"))) is None, [graphs.name for graphs in both.members]
        (True, ['dm', 'psd'])
    """

    name: str = "formalisms"
    tasks: tuple[Graphs, ...] = ()
    combinations: tuple[Combination, ...] = ()

    noun, nouns, key, suffix, dataset = "graph", "graphs", "formalisms", "sdp", "graphs"

    @classmethod
    def of(cls, *names: str) -> "Formalisms":
        """Graphs of these names, of which nothing is known yet."""
        return cls(tasks=tuple(map(Graphs, names)))

    @classmethod
    def learn(cls, name: str, sentences: Sequence[Sentence], settings: Any) -> "Formalisms":
        """The roles of each formalism, and which of them meet on an arc.

        Args:
            name: What they are called together.
            sentences: The training sentences.
            settings: Those of the stage: `graphs` has the names, `minimum` says how often labels must have met, `order`
                in how many graphs at most.
        """
        fields = tuple(settings.graphs)
        tasks = tuple(Graphs.learn(field, sentences, settings) for field in fields)
        whole = cls(name, tasks)
        if settings.order < 2:
            return whole
        seen = Counter[Combination]()
        for sentence in sentences:
            if whole.value(sentence) is not None:
                seen.update(whole.met(sentence, settings.order))
        return cls(name, tasks, tuple(sorted(pair for pair, count in seen.items() if count >= settings.minimum)))

    def met(self, sentence: Sentence, most: int = _LARGEST) -> Iterable[Combination]:
        """The labels that stand on the same arc of a sentence, in two of its graphs or more.

        Args:
            sentence: The sentence.
            most: In how many graphs at most.
        """
        places: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for task, encoded in enumerate(self.encode(self.value(sentence) or {}, sentence)):
            for head, argument, role in () if encoded is None else encoded[1].tolist():
                places.setdefault((head, argument), []).append((task, role))
        for labels in places.values():
            for size in range(2, min(most, len(labels)) + 1):
                yield from combinations(labels, size)

    @property
    def members(self) -> tuple[AbstractAnnotation, ...]:
        """The graphs, one by one."""
        return self.tasks

    def value(self, sentence: Sentence) -> dict[str, Graph] | None:
        """The graphs that a sentence has, by name; `None` if it has none of them."""
        found = {task.name: sentence.get(task.name) for task in self.tasks}
        return {name: graph for name, graph in found.items() if graph is not None} or None

    def encode(self, value: Mapping[str, Graph], sentence: Sentence) -> tuple[Any, ...]:
        """What each graph is encoded as; `None` for those that are not there."""
        graphs = ((task, value.get(task.name)) for task in self.tasks)
        return tuple(None if graph is None else task.encode(graph, sentence) for task, graph in graphs)

    def collate(self, encoded: Sequence[tuple[Any, ...]], size: int) -> GoldFormalisms:
        """The graphs of each formalism, and who has which."""
        none = np.zeros(0, dtype=bool), np.zeros((0, 3), dtype=np.int64)
        columns = zip(self.tasks, zip(*encoded, strict=True), strict=True)
        graphs = tuple(task.collate([none if g is None else g for g in column], size) for task, column in columns)
        return GoldFormalisms(graphs, torch.tensor([[graph is not None for graph in row] for row in encoded]))

    def decode(self, z: Tensor, lengths: Sequence[int]) -> list[dict[str, Graph]]:
        """The graphs of each sentence by name."""
        widths = [1 + len(task.roles) for task in self.tasks]
        parts = z[..., : sum(widths)].split(widths, -1)
        found = [task.decode(part, lengths) for task, part in zip(self.tasks, parts, strict=True)]
        return [
            {task.name: graph for task, graph in zip(self.tasks, row, strict=True)} for row in zip(*found, strict=True)
        ]

    def score(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> FormalismScores:
        """All graphs together, and each by itself."""
        pairs = list(zip(gold, predicted, strict=True))
        right, found = [one for one, _ in pairs], [other for _, other in pairs]
        graphs = {}
        for task in self.tasks:
            mine = [(one, other) for one, other in pairs if one.get(task.name) is not None]
            if mine:
                graphs[task.name] = task.score([one for one, _ in mine], [other for _, other in mine])
        labelled, unlabelled = (self._counts(right, found, labelled=labelled).total() for labelled in (True, False))
        return FormalismScores(len(pairs), labelled, unlabelled, graphs)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """LF and UF of all graphs together, and the LF of each."""
        about = "F1 of labelled (LF) and unlabelled (UF) arcs, tops included; micro: counted over all formalisms."
        each = (
            Measure(f"{task.name} {LF}", f"graphs.{task.name}.labelled", partial(_graph_counts, field=task.name), about)
            for task in self.tasks
        )
        return (
            Measure(f"{MICRO} {LF}", "labelled", partial(self._counts, labelled=True), about),
            Measure(f"{MICRO} {UF}", "unlabelled", partial(self._counts, labelled=False), about),
            *each,
        )

    def tables(self, scores: Mapping[str, Any], bounds: Bounds, *, every: bool = False) -> "list[Table]":
        """The numbers of all graphs together and of each; if asked for, everything about each."""
        from spigot_nlp.tables import plain_table

        parts = {MICRO: scores, **scores["graphs"]}
        rows = [
            bounded(
                bounds,
                "labelled" if name == MICRO else f"graphs.{name}.labelled",
                [
                    name,
                    str(part["sentences"]),
                    *(percent(part["labelled"][key]) for key in ("precision", "recall", "f1")),
                    percent(part["unlabelled"]["f1"]),
                ],
            )
            for name, part in parts.items()
        ]
        columns = ["", "sentences", "P", "R", LF, UF, *([INTERVAL] if bounds else [])]
        found = [plain_table("Formalisms, per cent", columns, rows)]
        if every:
            for task in self.tasks:
                if task.name in scores["graphs"]:
                    found += task.tables(scores["graphs"][task.name], {}, every=True)
        return found

    def draw(self, value: Mapping[str, Graph]) -> Drawn:
        """All graphs at once; each by itself is drawn by its own annotation."""
        drawn = [task.draw(value[task.name]) for task in self.tasks if task.name in value]
        bold = sorted({word for one in drawn for word in one.bold})
        return Drawn(tuple(arc for one in drawn for arc in one.arcs), above=True, bold=tuple(bold))

    def plain(self, value: Mapping[str, Graph]) -> dict[str, Any]:
        """Arcs and tops of each graph."""
        return {task.name: task.plain(value[task.name]) for task in self.tasks if task.name in value}

    def from_plain(self, plain: Mapping[str, Any]) -> dict[str, Graph]:
        """Arcs and tops of each graph."""
        return {task.name: task.from_plain(plain[task.name]) for task in self.tasks if task.name in plain}

    def places(self, value: Mapping[str, Graph]) -> dict[Any, Any]:
        """What each graph says."""
        return {
            (task.name, *pair): label
            for task in self.tasks
            if task.name in value
            for pair, label in task.places(value[task.name]).items()
        }

    @classmethod
    def restored(cls, names: Mapping[str, Any]) -> "Formalisms":
        """The annotation that `names` came from."""
        joined = tuple(tuple((task, label) for task, label in labels) for labels in names["combinations"])
        tasks = tuple(cast(Graphs, Graphs.restored(task)) for task in names["tasks"])
        return cls(names["name"], tasks, joined)

    def _counts(self, gold: Iterable[Sentence], predicted: Iterable[Sentence], *, labelled: bool) -> "Counts":
        gold, predicted = list(gold), list(predicted)
        count: Callable[..., Counts] = partial(_graph_counts, gold, predicted, labelled=labelled)
        return reduce(add, (count(field=task.name) for task in self.tasks))


def _graph_counts(
    gold: Iterable[Sentence], predicted: Iterable[Sentence], *, labelled: bool = True, field: str
) -> "Counts":
    """Counts of one formalism; a sentence that lacks it has nothing to count."""
    from spigot_nlp.evaluation.metrics import graph_counts

    lists = [], []
    for one, other in zip(gold, predicted, strict=True):
        known = one.get(field) is not None
        for side, sentence in zip(lists, (one, other), strict=True):
            side.append(sentence if known else sentence.put(field, Graph()))
    return graph_counts(*lists, labelled=labelled, field=field)
