"""Gold data and two systems, side by side in one layout."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation.changes import arcs_changed
from spigot_nlp.evaluation.columns import Arcs, Bools, Columns, Ints, arc_counts, exact, relation_numbers, role_numbers
from spigot_nlp.evaluation.counts import Counts, aligned

Judge = Callable[[Sequence[Sentence], Sequence[Sentence]], Counts]
"""Counts what is right in an answer, sentence by sentence."""

NO_JUDGES: Mapping[str, Judge] = {}

Measures = dict[str, tuple[Counts, Counts, Bools]]
"""By name: the counts of both systems, and which sentences can be judged."""

_KINDS = {"heads": "trees", "graph": "graphs", "label": "classes"}


class Sides:
    """What is known about the same sentences, as arrays; see `spigot_nlp.evaluation.analysis.analyse`.

    Attributes:
        gold: The sentences with what is right.
        a: As the first system sees them.
        b: As the second one does.
        columns: How they are laid out.
        kept: Which words count in trees.
        has_heads: Whether both systems have trees.
        has_relations: Whether the trees of both have relations, in every sentence.
        has_graphs: Whether both have graphs.
        has_labels: Whether both have classes.
        roles: The number of each role.
        more: Judges of annotations that are neither trees nor graphs nor classes under their usual names.

    Example:
        >>> words = ("Rain", "fell", ".")
        >>> side = [Sentence(words, heads=(2, 0, 2))]
        >>> sides = Sides(side, side, [Sentence(words, heads=(2, 0, 1))], punctuation=True)
        >>> sides.has_heads, sides.heads_changed.tolist(), sorted(sides.measures())
        (True, [1], ['UAS', 'exact trees'])
    """

    def __init__(
        self,
        gold: Sequence[Sentence],
        a: Sequence[Sentence],
        b: Sequence[Sentence],
        *,
        punctuation: bool,
        more: Mapping[str, Judge] = NO_JUDGES,
    ) -> None:
        if not gold:
            raise ValueError("there are no sentences to analyse; give at least one.")
        for name, side in (("first", a), ("second", b)):
            try:
                for _ in aligned(gold, side):
                    pass
            except ValueError as error:
                raise ValueError(f"the {name} system: {error}") from None
        self.gold, self.a, self.b, self.more = gold, a, b, more
        self.columns: Columns = Columns(gold)
        ignored = self.columns.punctuation(gold) if not punctuation else np.zeros(1, dtype=np.bool_)
        self.kept: Bools = ~np.broadcast_to(ignored, self.columns.word.shape)
        self.has_heads, self.has_graphs, self.has_labels = (
            _complete(a, field, "first") & _complete(b, field, "second") for field in _KINDS
        )
        if not (self.has_heads or self.has_graphs or self.has_labels or more):
            raise ValueError(
                f"the first system has {_kinds(a)}, the second {_kinds(b)}: there is nothing to compare; give systems "
                "that both have trees, graphs or classes."
            )
        self.roles: dict[str, int] = role_numbers(gold, a, b)
        if self.has_heads:
            self.heads: tuple[Ints, Ints, Ints] = (
                self.columns.heads(gold),
                self.columns.heads(a),
                self.columns.heads(b),
            )
            self.heads_changed: Ints = self.columns.sums(self.kept & (self.heads[1] != self.heads[2]))
            self.words_changed: Ints = self.heads_changed  # words with another head or relation
        self.has_relations: bool = self.has_heads and all(s.relations is not None for side in (a, b) for s in side)
        self.relation_names: dict[str, int] = relation_numbers(gold, a, b) if self.has_relations else {}
        if self.has_relations:
            self.relations: tuple[Ints, Ints, Ints] = (
                self.columns.relations(gold, self.relation_names),
                self.columns.relations(a, self.relation_names),
                self.columns.relations(b, self.relation_names),
            )
            renamed = self.relations[1] != self.relations[2]
            self.relations_changed: Ints = self.columns.sums(self.kept & renamed)
            self.words_changed = self.columns.sums(self.kept & (renamed | (self.heads[1] != self.heads[2])))
        if self.has_graphs:
            self.arcs_a, self.arcs_b = (self.columns.arcs(side, self.roles) for side in (a, b))
            self.arcs_changed: Ints = arcs_changed(self.arcs_a, self.arcs_b)
        self.gold_arcs: Arcs = self.columns.arcs(gold, self.roles)
        if self.has_labels:
            self.labels: tuple[Ints, Ints, Ints] = (_labels(gold), _labels(a), _labels(b))

    @property
    def structure(self) -> Literal["trees", "graphs"] | None:
        """The intermediate structures: graphs or trees of classifiers, trees of parsers."""
        if self.has_labels and self.has_graphs:
            return "graphs"
        return "trees" if self.has_heads else None

    @property
    def changed(self) -> Bools | None:
        """Which sentences have different intermediate structures; `None` if there are none."""
        if self.structure is None:
            return None
        return (self.arcs_changed if self.structure == "graphs" else self.words_changed) > 0

    @property
    def relabelled(self) -> Bools | None:
        """Which of them have different relations and the same heads; `None` if these are no trees with relations."""
        if self.structure != "trees" or not self.has_relations:
            return None
        return (self.words_changed > 0) & (self.heads_changed == 0)

    @property
    def judged_relations(self) -> Bools:
        """Which words can be judged by head and relation; without relations on both sides none."""
        if not self.has_relations:
            return np.zeros_like(self.kept)
        return self.kept & (self.heads[0] >= 0) & (self.relations[0] >= 0)

    def known(self, field: Literal["heads", "relations", "graph", "label"]) -> Bools:
        """Which sentences have gold annotation."""
        return np.array([getattr(sentence, field) is not None for sentence in self.gold], dtype=np.bool_)

    def measures(self) -> Measures:
        """Every score that gold and both systems have the annotation for."""
        found: Measures = {}
        if self.has_heads and self.known("heads").any():
            known = self.known("heads")
            trees = self._tree_counts(self.heads[1]), self._tree_counts(self.heads[2])
            found["UAS"] = *trees, known
            judged = known & ((self.columns.sums(self.kept) > 0) | (self.columns.lengths == 0))
            found["exact trees"] = exact(trees[0], judged), exact(trees[1], judged), judged
            if self.judged_relations.any():
                labelled = self.labelled_counts(1), self.labelled_counts(2)
                found["LAS"] = *labelled, known & self.known("relations")
        if self.has_graphs and self.gold_arcs.known.any():
            known = self.gold_arcs.known
            graphs = [arc_counts(self.gold_arcs, arcs) for arcs in (self.arcs_a, self.arcs_b)]
            bare = [arc_counts(self.gold_arcs.without_roles(), x.without_roles()) for x in (self.arcs_a, self.arcs_b)]
            found["LF"] = graphs[0], graphs[1], known
            found["UF"] = bare[0], bare[1], known
            found["exact graphs"] = exact(graphs[0], known), exact(graphs[1], known), known
        if self.has_labels and self.known("label").any():
            known = self.known("label")
            right, first, second = self.labels
            found["accuracy"] = (
                Counts((first == right) & known, known, known),
                Counts((second == right) & known, known, known),
                known,
            )
        everyone = np.ones(len(self.gold), dtype=np.bool_)
        others = {name: judge for name, judge in self.more.items() if name not in found}
        for name, judge in others.items():
            found[name] = judge(self.gold, self.a), judge(self.gold, self.b), everyone
        return found

    def _tree_counts(self, heads: Ints) -> Counts:
        judged = self.kept & (self.heads[0] >= 0)
        words = self.columns.sums(judged)
        return Counts(self.columns.sums(judged & (heads == self.heads[0])), words, words)

    def labelled_counts(self, side: Literal[1, 2]) -> Counts:
        """Words with the right head and relation, and all that are judged, of each sentence; of system A or of B."""
        judged = self.judged_relations
        right = (self.heads[side] == self.heads[0]) & (self.relations[side] == self.relations[0])
        words = self.columns.sums(judged)
        return Counts(self.columns.sums(judged & right), words, words)


def _kinds(side: Sequence[Sentence]) -> str:
    names = [name for field, name in _KINDS.items() if getattr(side[0], field) is not None]
    return " and ".join(names) or "no annotation"


def _complete(side: Sequence[Sentence], field: str, name: str) -> bool:
    missing = [k for k, sentence in enumerate(side) if getattr(sentence, field) is None]
    if missing and len(missing) < len(side):
        what = {"heads": "tree", "graph": "graph", "label": "class"}[field]
        raise ValueError(
            f"the {name} system has no {what} for sentence {missing[0] + 1}, and has one for others; give its answer "
            "to all sentences or to none."
        )
    return not missing


def _labels(side: Sequence[Sentence]) -> Ints:
    return np.array([sentence.label or 0 for sentence in side], dtype=np.int64)
