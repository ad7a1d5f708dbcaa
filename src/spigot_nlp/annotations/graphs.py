"""Semantic graphs: predicates, arcs, roles, tops."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from spigot import SemanticGraphs
from spigot.types import Parts
from spigot_nlp.annotations.annotation import (
    ANNOTATIONS,
    INTERVAL,
    AbstractAnnotation,
    Bounds,
    Drawn,
    DrawnArc,
    Measure,
    bounded,
    percent,
)
from spigot_nlp.data.sentence import Arc, Graph, Sentence

if TYPE_CHECKING:
    from spigot_nlp.evaluation.metrics import GraphScores
    from spigot_nlp.tables import Table

LF, UF = "LF", "UF"
TOP, RARE = "TOP", "UNK"
"""The role of arcs from the root, and the one that rare roles share."""


_ROWS = {
    "labelled": "labelled",
    "unlabelled": "unlabelled",
    "labelled_without_tops": "labelled, no tops",
    "unlabelled_without_tops": "unlabelled, no tops",
    "tops": "tops",
}


class GoldGraph(NamedTuple):
    """The right graphs of a batch.

    Attributes:
        predicates: Which positions are predicates; the root is one if there is a top.
        arcs: Arcs as (sentence, predicate, argument, role); tops are arcs of the root.
    """

    predicates: Bool[Tensor, "batch n"]
    arcs: Int[Tensor, "arcs 4"]


@final
@ANNOTATIONS.register("graphs")
@dataclass(frozen=True)
class Graphs(AbstractAnnotation):
    """Semantic dependency graphs.

    Attributes:
        roles: TOP, the frequent roles, and one for the rest if there are rare ones.
        deterministic: Those of them (as indices) that no training predicate uses twice.

    Example:
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> graphs = Graphs.learn("graph", [rain], None)
        >>> graphs.roles, graphs.deterministic
        (('TOP', 'ARG1'), (0, 1))
        >>> graphs.encode(rain.graph, rain)[1].tolist()
        [[0, 2, 0], [2, 1, 1]]
    """

    name: str = "graph"
    roles: tuple[str, ...] = ()
    deterministic: tuple[int, ...] = ()

    noun, nouns, key, suffix, dataset = "graph", "graphs", "graphs", "sdp", "graphs"

    @classmethod
    def learn(cls, name: str, sentences: Sequence[Sentence], settings: Any) -> "Graphs":
        """The roles of the training graphs, and which of them a predicate has once at most.

        Args:
            name: Where the graphs stand in a sentence.
            sentences: The training sentences.
            settings: Those of the stage; roles that occur less often than `pruning.rare_role` share one index. Latent
                graphs have as many roles as it says.
        """
        if settings is not None and settings.latent:  # whatever graphs the sentences happen to have
            return cls(name, (TOP, *(f"role {k + 1}" for k in range(settings.roles))))
        rare = 0 if settings is None else settings.pruning.rare_role
        return cls(name, *collect_roles((s.get(name) for s in sentences if s.get(name) is not None), rare))

    @cached_property
    def role_index(self) -> dict[str, int]:
        """The index of each role."""
        return {role: k for k, role in enumerate(self.roles)}

    def encode(self, value: Graph, sentence: Sentence) -> tuple[np.ndarray, np.ndarray] | None:
        """Predicates, and arcs as (predicate, argument, role); nothing if there are no roles to look up."""
        if not self.roles:
            return None
        roles = self.role_index
        rare = roles.get(RARE, -1)
        arcs = [(0, top, roles.get(TOP, rare)) for top in value.tops]
        # The models' graphs have one role for a pair of words, and no word is its own argument.
        pairs = {arc[:2]: arc for arc in reversed(value.arcs) if arc.predicate != arc.argument}
        arcs += [(arc.predicate, arc.argument, roles.get(arc.role, rare)) for arc in reversed(pairs.values())]
        known = [arc for arc in arcs if arc[2] >= 0]  # a role that training never saw cannot be learned or found
        predicates = np.zeros(len(sentence) + 1, dtype=bool)
        predicates[[*value.predicates, *(arc[0] for arc in known)]] = True
        return predicates, np.array(known, dtype=np.int64).reshape(-1, 3)

    def collate(self, encoded: Sequence[tuple[np.ndarray, np.ndarray]], size: int) -> GoldGraph:
        """Predicates padded, arcs of all sentences in one list."""
        predicates = np.zeros((len(encoded), size), dtype=bool)
        arcs = [np.zeros((0, 4), np.int64)]
        for k, (marked, found) in enumerate(encoded):
            predicates[k, : len(marked)] = marked
            arcs.append(np.column_stack((np.full(len(found), k), found)))
        return GoldGraph(torch.from_numpy(predicates), torch.from_numpy(np.concatenate(arcs)))

    def decode(self, z: Parts, lengths: Sequence[int]) -> list[Graph]:
        """The graphs."""
        on, arcs, labelled = SemanticGraphs(len(self.roles)).unpack(z)
        predicates, found = on.tolist(), arcs.nonzero()
        roles = labelled[found.unbind(-1)].argmax(-1) if len(found) else found[:, 0]
        marked = [[i for i in range(1, n + 1) if predicates[k][i]] for k, n in enumerate(lengths)]
        return self.graphs_of(found.tolist(), roles.tolist(), len(lengths), marked)

    def graphs_of(
        self,
        places: Iterable[Sequence[int]],
        roles: Iterable[int],
        count: int,
        predicates: Sequence[Iterable[int]] | None = None,
    ) -> list[Graph]:
        """Graphs from a list of the arcs of several sentences.

        Args:
            places: Sentence, predicate and argument of each arc; the root's arguments are tops.
            roles: The role of each.
            count: How many sentences there are.
            predicates: The predicates of each sentence, where some may have no arc.

        Example:
            >>> Graphs("graph", ("TOP", "ARG1")).graphs_of([(0, 0, 2), (0, 2, 1)], [0, 1], 1)[0].tops
            (2,)
        """
        lists: list[list[Arc]] = [[] for _ in range(count)]
        tops: list[list[int]] = [[] for _ in range(count)]
        for (k, head, argument), role in zip(places, roles, strict=True):
            if head == 0:
                tops[k].append(argument)
            else:
                lists[k].append(Arc(head, argument, self.roles[role]))
        marked = predicates or [()] * count
        return [Graph.of(*parts) for parts in zip(lists, tops, marked, strict=True)]

    def score(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> "GraphScores":
        """Labelled and unlabelled F1, with and without tops, and by role."""
        from spigot_nlp.evaluation.metrics import score_graphs

        return score_graphs(gold, predicted, self.name)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """LF and UF."""
        from spigot_nlp.evaluation.metrics import graph_counts

        about = "UF and LF: F1 of unlabelled and of labelled arcs, tops included."
        unlabelled = partial(graph_counts, labelled=False, field=self.name)
        return (
            Measure(LF, "labelled", partial(graph_counts, field=self.name), about),
            Measure(UF, "unlabelled", unlabelled, about),
        )

    @property
    def further_measures(self) -> tuple[Measure, ...]:
        """The same without tops."""
        from spigot_nlp.evaluation.metrics import graph_counts

        labelled = partial(graph_counts, tops=False, field=self.name)
        unlabelled = partial(graph_counts, labelled=False, tops=False, field=self.name)
        return (
            Measure(f"{LF} without tops", "labelled_without_tops", labelled),
            Measure(f"{UF} without tops", "unlabelled_without_tops", unlabelled),
        )

    def tables(self, scores: Mapping[str, Any], bounds: Bounds, *, every: bool = False) -> "list[Table]":
        """Precision, recall and F1, and if asked for those of every role."""
        from spigot_nlp.tables import plain_table

        rows = [
            bounded(bounds, key, [name, *_counted(scores[key], scores.get(f"exact_{key}"))])
            for key, name in _ROWS.items()
        ]
        columns = ["", "gold", "predicted", "exact", "P", "R", "F1", *([INTERVAL] if bounds else [])]
        found = [plain_table(f"Graphs: {scores['sentences']} sentences, per cent", columns, rows)]
        if every:
            roles = sorted(scores["by_label"].items(), key=lambda item: (-item[1]["gold"], item[0]))
            rows = [[role, *(cell for cell in _counted(numbers, None) if cell)] for role, numbers in roles]
            found.append(plain_table("Roles, per cent", ["", "gold", "predicted", "P", "R", "F1"], rows))
        return found

    def summary(self, parts: Mapping[str, Mapping[str, Any]]) -> "Table":
        """LF and UF with and without tops."""
        from spigot_nlp.tables import plain_table

        rows = [
            [
                name,
                str(part["sentences"]),
                *(percent(part["labelled"][key]) for key in ("precision", "recall", "f1")),
                *(
                    percent(part[key]["f1"])
                    for key in ("unlabelled", "labelled_without_tops", "unlabelled_without_tops")
                ),
                percent(part["exact_labelled"]),
            ]
            for name, part in parts.items()
        ]
        columns = ["", "sentences", "P", "R", LF, UF, f"{LF}, no tops", f"{UF}, no tops", "exact"]
        return plain_table("Graphs, per cent", columns, rows)

    def draw(self, value: Graph) -> Drawn:
        """Arcs above the words; tops come from nowhere."""
        tops = (DrawnArc(0, top, TOP) for top in value.tops)
        return Drawn((*(DrawnArc(*arc) for arc in value.arcs), *tops), above=True, bold=value.predicates)

    def same(self, one: Graph, other: Graph) -> bool:
        """Whether they have the same arcs and tops."""
        return one.arcs == other.arcs and one.tops == other.tops

    def plain(self, value: Graph) -> list[Any]:
        """Arcs and tops."""
        return [*value.arcs, *((0, top, TOP) for top in value.tops)]

    def from_plain(self, plain: list[Any]) -> Graph:
        """Arcs and tops."""
        arcs = [Arc(*arc) for arc in plain]
        tops = [arc.argument for arc in arcs if arc.predicate == 0]
        return Graph.of([arc for arc in arcs if arc.predicate], tops)


def collect_roles(graphs: Iterable[Graph], rare_role: int = 0) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The roles of graphs, and which of them (as indices) no predicate uses twice.

    Args:
        graphs: The training graphs.
        rare_role: Roles that occur less often than this share one index.

    Example:
        >>> collect_roles([Graph.of([Arc(2, 1, "ARG1"), Arc(2, 3, "ARG1")], tops=[2])])
        (('TOP', 'ARG1'), (0,))
    """
    roles: Counter[str] = Counter()
    uses: list[Counter[tuple[int, str]]] = []
    for graph in graphs:
        arcs = [(arc.predicate, arc.role) for arc in graph.arcs] + [(0, TOP) for _ in graph.tops]
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
    return names, tuple(k for role, k in index.items() if role not in repeated)


def graph_parts(gold: GoldGraph, structure: SemanticGraphs, dtype: torch.dtype) -> Parts:
    """The right graphs in the layout of a structure.

    Example:
        >>> gold = GoldGraph(torch.tensor([[False, True, False]]), torch.tensor([[0, 1, 2, 0]]))
        >>> graph_parts(gold, SemanticGraphs(1), torch.float32).nonzero().tolist()
        [[0, 1, 1, 0], [0, 1, 2, 0], [0, 1, 2, 1]]
    """
    batch, size = gold.predicates.shape
    labelled = torch.zeros(batch, size, size, structure.labels, dtype=dtype, device=gold.arcs.device)
    labelled[gold.arcs.unbind(-1)] = 1
    arcs = torch.zeros(batch, size, size, dtype=dtype, device=gold.arcs.device)
    arcs[gold.arcs[:, :3].unbind(-1)] = 1
    return structure.pack(gold.predicates.to(dtype), arcs, labelled)


def _counted(score: Mapping[str, Any], exact: float | None) -> list[str]:
    shares = [percent(score[key]) for key in ("precision", "recall", "f1")]
    return [str(score["gold"]), str(score["predicted"]), "" if exact is None else percent(exact), *shares]
