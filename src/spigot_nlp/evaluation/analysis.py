"""What the end task did to the structures inside: two systems on the same sentences (§5, Table 3).

System A is the one compared against, usually the pipeline, whose parser never felt the end task; system B is another.
Everything is a plain number, so that `dataclasses.asdict` makes it ready for JSON.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation import breakdowns, changes, heads
from spigot_nlp.evaluation.breakdowns import Breakdown
from spigot_nlp.evaluation.changes import GraphChanges, LabelChanges
from spigot_nlp.evaluation.columns import Bools
from spigot_nlp.evaluation.counts import Counts
from spigot_nlp.evaluation.examples import Example, Gained, pick
from spigot_nlp.evaluation.heads import Against, HeadChanges
from spigot_nlp.evaluation.relation_changes import RelationChanges, relation_changes
from spigot_nlp.evaluation.sides import NO_JUDGES, Judge, Measures, Sides
from spigot_nlp.evaluation.significance import bootstrap

GroupName = Literal["all", "same", "relabelled", "different"]


@dataclass(frozen=True)
class Paired:
    """One score of both systems on the same sentences.

    Attributes:
        items: What is wanted: words, arcs or sentences. Without any, there is no score.
        a: Of system A.
        b: Of system B.
        difference: `b - a`: positive if system B is better.
        low: Where the 95 % confidence interval of the difference begins, by the paired bootstrap.
        high: Where it ends.
        p: How easily a difference of this sign comes about by the choice of sentences alone; two-sided.

    Example:
        >>> Paired(items=120, a=0.88, b=0.89, difference=0.01, low=-0.01, high=0.03, p=0.4).difference
        0.01
    """

    items: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Group:
    """Some of the sentences, and how both systems fare on them.

    Attributes:
        name: `all`; `same`, those for which both systems have the same intermediate structure; `relabelled`, those
            whose trees have the same heads and other relations; or `different`, the others.
        sentences: How many.
        words: How many; without punctuation, if that was left out.
        scores: `UAS`, `exact trees` and, if there are relations, `LAS`; `LF`, `UF` (both with tops) and `exact
            graphs`; `accuracy`: those that gold and both systems have the annotation for.

    Example:
        >>> Group("same", sentences=0, words=0, scores={}).scores
        {}
    """

    name: GroupName
    sentences: int
    words: int
    scores: dict[str, Paired]


@dataclass(frozen=True)
class Analysis:
    """Two systems on the same sentences. What does not apply is `None` or empty.

    Attributes:
        sentences: How many.
        words: How many.
        punctuation: Whether punctuation counts in everything about trees.
        split: The intermediate structures by which the sentences are divided: trees of parsers, graphs or trees of
            classifiers; `None` if a system has none.
        groups: `all`, and if there is a split `same` and `different` (Table 3); `relabelled` between these two, if
            the split is by trees that have relations in both systems.
        heads: How the trees differ; needs the trees of both systems.
        relations: How trees with relations differ; needs them in both systems.
        graphs: How the graphs differ; needs the graphs of both systems.
        labels: How the classes differ; needs the classes of both systems.
        breakdowns: Scores by distance, relation, role and length of sentence.
        gained: What `gains` and `losses` count: `arcs`, right minus wrong labelled arcs and tops, or, without gold
            graphs, `heads`, words with the right head. `None` for classes, see `flips`.
        gains: Sentences that gained most from A to B, the largest gain first.
        losses: Sentences that lost most, the largest loss first.
        labelled_gains: Sentences that gained most words with the right head and relation, if there are relations.
        labelled_losses: Sentences that lost most of them.
        flips: Sentences whose class flipped: those put right, then those spoilt, then the rest, each with the most
            changed structures first.
        most_changed: Sentences of classifiers whose structures changed most.

    Example:
        >>> words = ("Rain", "fell", "again")
        >>> gold = Sentence(words, heads=(2, 0, 2))
        >>> a, b = Sentence(words, heads=(2, 0, 1)), Sentence(words, heads=(2, 0, 2))
        >>> analysis = analyse([gold, gold], [a, b], [b, b])
        >>> [(group.name, group.sentences) for group in analysis.groups]
        [('all', 2), ('same', 1), ('different', 1)]
        >>> analysis.gained, [example.index for example in analysis.gains], analysis.losses
        ('heads', [0], ())
    """

    sentences: int
    words: int
    punctuation: bool
    split: Literal["trees", "graphs"] | None
    groups: tuple[Group, ...]
    heads: HeadChanges | None
    relations: RelationChanges | None
    graphs: GraphChanges | None
    labels: LabelChanges | None
    breakdowns: tuple[Breakdown, ...]
    gained: Gained | None
    gains: tuple[Example, ...]
    losses: tuple[Example, ...]
    labelled_gains: tuple[Example, ...]
    labelled_losses: tuple[Example, ...]
    flips: tuple[Example, ...]
    most_changed: tuple[Example, ...]


def analyse(
    gold: Sequence[Sentence],
    a: Sequence[Sentence],
    b: Sequence[Sentence],
    *,
    against: Against = "gold",
    sample: int = 10,
    punctuation: bool = True,
    samples: int = 2000,
    seed: int = 0,
    more: Mapping[str, Judge] = NO_JUDGES,
) -> Analysis:
    """Find out what differs between two systems, and whether it helped.

    What there is to say depends on what there is: without gold trees there is no UAS, without gold graphs no LF; some
    of the sentences may lack them. A system has trees (graphs, classes) for all sentences or for none.

    Args:
        gold: Sentences with whatever is known to be right.
        a: The same sentences as the first system sees them.
        b: The same as the second one does.
        against: Whether kinds of head change are about the right graphs or those of system B.
        sample: How many sentences of each sort to pick out.
        punctuation: Whether punctuation counts in everything about trees.
        samples: How often the bootstrap draws the sentences anew.
        seed: Where its random numbers start.
        more: Further scores by name, each with what counts it; `spigot_nlp.annotations.further_judges` finds them.

    Raises:
        ValueError: If there are no sentences, if they are not the same on all sides, if a system has the annotation of
            some of them only, or if the systems have none in common.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph
        >>> words = ("she", "wants", "tea")
        >>> right = Graph.of([Arc(2, 1, "ARG1"), Arc(2, 3, "ARG2")], tops=[2])
        >>> gold = Sentence(words, heads=(2, 0, 2), graph=right)
        >>> a = Sentence(words, heads=(2, 0, 2), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> b = Sentence(words, heads=(2, 0, 1), graph=right)
        >>> everything, _, different = analyse([gold], [a], [b]).groups
        >>> round(different.scores["UAS"].difference, 3), round(different.scores["LF"].difference, 3)
        (-0.333, 0.2)

    References:
        Peng, Thomson and Smith (2018), Backpropagating through Structured Argmax using a SPIGOT, section 5 and Table 3.
    """
    if sample < 0:
        raise ValueError(f"sample is {sample}; it must be 0 or more.")
    sides = Sides(gold, a, b, punctuation=punctuation, more=more)
    if against == "predicted" and sides.has_heads and not sides.has_graphs:
        raise ValueError("against is 'predicted', and a system has no graphs to judge by; use 'gold'.")
    measures = sides.measures()
    picked = pick(sides, sample)
    return Analysis(
        sentences=len(gold),
        words=int(sides.columns.lengths.sum()),
        punctuation=punctuation,
        split=sides.structure,
        groups=_groups(sides, measures, samples, seed),
        heads=_head_changes(sides, against),
        relations=_relation_changes(sides),
        graphs=changes.graph_changes(sides.arcs_a, sides.arcs_b, sides.roles) if sides.has_graphs else None,
        labels=_label_changes(sides),
        breakdowns=tuple(_breakdowns(sides, measures)),
        gained=picked.gained,
        gains=picked.gains,
        losses=picked.losses,
        labelled_gains=picked.labelled_gains,
        labelled_losses=picked.labelled_losses,
        flips=picked.flips,
        most_changed=picked.most_changed,
    )


def _groups(sides: Sides, measures: Measures, samples: int, seed: int) -> tuple[Group, ...]:
    changed, relabelled = sides.changed, sides.relabelled
    members: dict[GroupName, Bools] = {"all": np.ones(len(sides.gold), dtype=np.bool_)}
    if changed is not None:
        members["same"] = ~changed
        if relabelled is not None:
            members["relabelled"], changed = relabelled, changed & ~relabelled
        members["different"] = changed
    words = sides.columns.sums(sides.kept)
    groups = []
    for name, chosen in members.items():
        scores = {
            key: _paired(first, second, chosen & known, samples, seed)
            for key, (first, second, known) in measures.items()
            if first.gold[chosen & known].any()
        }
        groups.append(Group(name, int(chosen.sum()), int(words[chosen].sum()), scores))
    return tuple(groups)


def _paired(a: Counts, b: Counts, chosen: Bools, samples: int, seed: int) -> Paired:
    first, second = (Counts(x.correct[chosen], x.predicted[chosen], x.gold[chosen]) for x in (a, b))
    result = bootstrap(second, first, samples=samples, seed=seed)
    items = int(first.gold.sum())
    return Paired(items, result.second, result.first, result.difference, result.low, result.high, result.p)


def _head_changes(sides: Sides, against: Against) -> HeadChanges | None:
    if not sides.has_heads:
        return None
    graphs = sides.arcs_b if against == "predicted" else sides.gold_arcs
    return heads.head_changes(sides.columns, sides.kept, *sides.heads, graphs, against)


def _relation_changes(sides: Sides) -> RelationChanges | None:
    if not sides.has_relations:
        return None
    return relation_changes(sides.columns, sides.kept, sides.heads, sides.relations, list(sides.relation_names))


def _label_changes(sides: Sides) -> LabelChanges | None:
    if not sides.has_labels:
        return None
    return changes.label_changes(*sides.labels, sides.known("label"), sides.changed, sides.structure)


def _breakdowns(sides: Sides, measures: Measures) -> Iterator[Breakdown]:
    if "UAS" in measures:
        yield breakdowns.head_distances(sides.columns, sides.kept, *sides.heads)
    if sides.judged_relations.any():
        yield from breakdowns.tree_relations(sides.judged_relations, sides.heads, sides.relations, sides.relation_names)
    if "LF" in measures:
        yield breakdowns.arc_distances(sides.gold_arcs, sides.arcs_a, sides.arcs_b)
        yield breakdowns.arc_roles(sides.gold_arcs, sides.arcs_a, sides.arcs_b, sides.roles)
    for name in ("UAS", "LF", "accuracy"):
        if name in measures:
            first, second, known = measures[name]
            yield breakdowns.sentence_lengths(sides.columns, name, known, first, second)
