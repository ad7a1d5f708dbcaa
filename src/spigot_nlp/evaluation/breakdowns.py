"""Where two systems differ: by distance, by relation, by role and by length of sentence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from spigot_nlp.evaluation.columns import Arcs, Bools, Columns, Ints
from spigot_nlp.evaluation.counts import Counts, ratio

DISTANCES = (1, 2, 3, 6, 11)
"""Where the groups of arcs by distance begin."""

LENGTHS = (1, 11, 21, 31, 41)
"""Where the groups of sentences by length begin."""

_Counts = tuple[Ints, Ints, Ints]  # right, given and wanted, of each part


@dataclass(frozen=True)
class Row:
    """Both systems on a part of what there is.

    Attributes:
        name: The part: `3-5`, or a relation or role.
        items: What is wanted there: words, arcs or sentences.
        a: The score of system A.
        b: The score of system B.
        difference: `b - a`.

    Example:
        >>> Row("3-5", items=40, a=0.8, b=0.85, difference=0.05).name
        '3-5'
    """

    name: str
    items: int
    a: float
    b: float
    difference: float


@dataclass(frozen=True)
class Breakdown:
    """A score in parts.

    Attributes:
        measure: `UAS` or `LAS` of trees, `LF` of graphs or `accuracy` of classes.
        by: What tells the parts apart. `distance`: how many words lie from the head to the word, or from predicate to
            argument, with the root and tops apart; `relation`; `role`; `length`: how many words the sentence has.
        items: What `Row.items` counts: `words`, `arcs` or `sentences`.
        rows: The parts that have anything in them; distances and lengths ascend, frequent relations and roles come
            first.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> from spigot_nlp.evaluation.analysis import analyse
        >>> gold, other = Sentence(("Rain", "fell"), heads=(2, 0)), Sentence(("Rain", "fell"), heads=(0, 1))
        >>> breakdown = analyse([gold], [gold], [other]).breakdowns[0]
        >>> breakdown.measure, breakdown.by, [(row.name, row.a, row.b) for row in breakdown.rows]
        ('UAS', 'distance', [('root', 1.0, 0.0), ('1', 1.0, 0.0)])
    """

    measure: Literal["UAS", "LAS", "LF", "accuracy"]
    by: Literal["distance", "relation", "role", "length"]
    items: Literal["words", "arcs", "sentences"]
    rows: tuple[Row, ...]


def head_distances(columns: Columns, kept: Bools, gold: Ints, a: Ints, b: Ints) -> Breakdown:
    """UAS by the distance of the right head.

    Args:
        columns: The layout of the sentences.
        kept: Which words count.
        gold: The right head of every word, -1 where it is not known.
        a: The heads of system A.
        b: The heads of system B.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> columns = Columns([Sentence(("Rain", "fell"))])
        >>> breakdown = head_distances(columns, columns.word > 0, *(np.array(h) for h in ([2, 0], [2, 0], [0, 0])))
        >>> [(row.name, row.difference) for row in breakdown.rows]
        [('root', 0.0), ('1', -1.0)]
    """
    judged = kept & (gold >= 0)
    distance = np.abs(gold - columns.word)[judged]
    group = np.where(gold[judged] == 0, 0, np.digitize(distance, DISTANCES))
    size = len(DISTANCES) + 1
    wanted = np.bincount(group, minlength=size)
    right = [np.bincount(group[(heads == gold)[judged]], minlength=size) for heads in (a, b)]
    rows = _rows(["root", *_ranges(DISTANCES)], [(hits, wanted, wanted) for hits in right])
    return Breakdown("UAS", "distance", "words", rows)


def tree_relations(
    judged: Bools, heads: tuple[Ints, Ints, Ints], relations: tuple[Ints, Ints, Ints], names: dict[str, int]
) -> tuple[Breakdown, Breakdown]:
    """F1 of each relation, right if the head is too; and the share of words with it whose head is right.

    Args:
        judged: Which words count, and have a right head and relation.
        heads: The right heads, those of system A and those of system B.
        relations: The numbers of the relations of the three.
        names: The number of each relation, from 0.

    Example:
        >>> heads, root, dep = np.array([2, 0]), np.array([1, 0]), np.array([0, 0])
        >>> labelled, bare = tree_relations(heads >= 0, (heads,) * 3, (root, root, dep), {"root": 0, "dep": 1})
        >>> [(row.name, row.a, round(row.b, 3)) for row in labelled.rows]
        [('root', 1.0, 0.667), ('dep', 1.0, 0.0)]
        >>> [(row.name, row.difference) for row in bare.rows]
        [('root', 0.0), ('dep', 0.0)]
    """
    gold, size = relations[0], len(names)
    wanted = np.bincount(gold[judged], minlength=size)
    labelled: list[_Counts] = []
    bare: list[_Counts] = []
    for found, named in zip(heads[1:], relations[1:], strict=True):
        attached = judged & (found == heads[0])
        right = np.bincount(gold[attached & (named == gold)], minlength=size)
        labelled.append((right, np.bincount(named[judged], minlength=size), wanted))
        bare.append((np.bincount(gold[attached], minlength=size), wanted, wanted))

    def frequent(counts: list[_Counts]) -> tuple[Row, ...]:
        return tuple(sorted(_rows(list(names), counts), key=lambda row: -row.items))

    return (
        Breakdown("LAS", "relation", "words", frequent(labelled)),
        Breakdown("UAS", "relation", "words", frequent(bare)),
    )


def arc_distances(gold: Arcs, a: Arcs, b: Arcs) -> Breakdown:
    """LF by the distance of predicate and argument: an arc counts as given at its own distance.

    Args:
        gold: The right arcs.
        a: Those of system A.
        b: Those of system B.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> rain = [Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))]
        >>> arcs = Columns(rain).arcs(rain, {"ARG1": 1})
        >>> [(row.name, row.items) for row in arc_distances(arcs, arcs, arcs).rows]
        [('top', 1), ('1', 1)]
    """

    def group(arcs: Arcs) -> Ints:
        return np.where(arcs.is_top, 0, np.digitize(np.abs(arcs.predicate - arcs.argument), DISTANCES))

    counts = _arc_counts(gold, a, b, group, len(DISTANCES) + 1)
    return Breakdown("LF", "distance", "arcs", _rows(["top", *_ranges(DISTANCES)], counts))


def arc_roles(gold: Arcs, a: Arcs, b: Arcs, roles: dict[str, int]) -> Breakdown:
    """F1 of each role, and of tops under the name `top`.

    Args:
        gold: The right arcs.
        a: Those of system A.
        b: Those of system B.
        roles: The number of each role, from 1.

    Example:
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> rain = [Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))]
        >>> arcs = Columns(rain).arcs(rain, {"ARG1": 1})
        >>> [(row.name, row.a) for row in arc_roles(arcs, arcs, arcs, {"ARG1": 1}).rows]
        [('top', 1.0), ('ARG1', 1.0)]
    """
    counts = _arc_counts(gold, a, b, lambda arcs: arcs.role, len(roles) + 1)
    rows = _rows(["top", *roles], counts)
    return Breakdown("LF", "role", "arcs", tuple(sorted(rows, key=lambda row: -row.items)))


def sentence_lengths(
    columns: Columns, measure: Literal["UAS", "LF", "accuracy"], known: Bools, counts_a: Counts, counts_b: Counts
) -> Breakdown:
    """A score by length of sentence.

    Args:
        columns: The layout of the sentences.
        measure: What the score is.
        known: Which sentences can be judged.
        counts_a: Right, given and wanted answers of system A in each sentence.
        counts_b: Those of system B.

    Example:
        >>> from spigot_nlp.data.sentence import Sentence
        >>> columns = Columns([Sentence(("Rain", "fell"))])
        >>> right, wrong = Counts([2], [2], [2]), Counts([0], [2], [2])
        >>> sentence_lengths(columns, "UAS", np.array([True]), wrong, right).rows
        (Row(name='1-10', items=1, a=0.0, b=1.0, difference=1.0),)
    """
    group = np.digitize(columns.lengths, LENGTHS) - 1  # a sentence without words has no group
    here = known & (group >= 0)
    size = len(LENGTHS)

    def sums(numbers: Ints) -> Ints:
        return np.bincount(group[here], weights=numbers[here], minlength=size).astype(np.int64)

    counts = [(sums(one.correct), sums(one.predicted), sums(one.gold)) for one in (counts_a, counts_b)]
    sentences = np.bincount(group[here], minlength=size)
    rows = _rows(_ranges(LENGTHS), counts, items=sentences)
    return Breakdown(measure, "length", "sentences", rows)


def _arc_counts(gold: Arcs, a: Arcs, b: Arcs, group: Callable[[Arcs], Ints], size: int) -> list[_Counts]:
    wanted = np.bincount(group(gold), minlength=size)
    counts = []
    for arcs in (a.within(gold.known), b.within(gold.known)):
        groups = group(arcs)
        right, given = np.bincount(groups[arcs.have(gold)], minlength=size), np.bincount(groups, minlength=size)
        counts.append((right, given, wanted))
    return counts


def _rows(names: Sequence[str], counts: Sequence[_Counts], *, items: Ints | None = None) -> tuple[Row, ...]:
    first, second = (ratio("f1", *three) for three in counts)
    wanted = counts[0][2] if items is None else items
    there = wanted + counts[0][1] + counts[1][1] if items is None else items
    return tuple(
        Row(name, int(wanted[k]), float(first[k]), float(second[k]), float(second[k] - first[k]))
        for k, name in enumerate(names)
        if there[k]
    )


def _ranges(starts: Sequence[int]) -> list[str]:
    """What groups that begin at these numbers are called."""
    ends = [start - 1 for start in starts[1:]]
    names = [str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=False)]
    return [*names, f"{starts[-1]} or more"]
