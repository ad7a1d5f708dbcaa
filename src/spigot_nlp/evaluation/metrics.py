"""How good answers are: graphs by labelled and unlabelled F1, trees by attachment, classes and tags by accuracy.

Gold and predicted sentences come as two streams and are matched by position; their words must agree. The `score_`
functions give everything there is to report, as plain dataclasses that `dataclasses.asdict` makes ready for JSON; the
`_counts` functions give the counts of each sentence, which `spigot_nlp.evaluation.bootstrap` resamples.
"""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

from spigot_nlp.data.sentence import Graph, Sentence
from spigot_nlp.evaluation.counts import Counts, Score, aligned

_Value = TypeVar("_Value")

PUNCTUATION_TAGS = frozenset({"``", "''", ",", ".", ":", "-LRB-", "-RRB-", "(", ")"})
"""The tags that the Penn Treebank gives to punctuation."""


@dataclass(frozen=True)
class GraphScores:
    """How well semantic graphs were predicted.

    The counts are summed over the corpus before anything is divided. Every top word is one further, virtual arc (from
    the root), as in the scorer of the SDP tasks; the numbers without these are given too. Punctuation counts like any
    other word. A role is right only if it is spelled as in the gold data: a predicted `UNK` stands for no other role.

    Attributes:
        sentences: How many.
        words: How many.
        labelled: Arcs with their roles, and tops.
        unlabelled: Arcs without their roles, and tops.
        labelled_without_tops: Arcs with their roles.
        unlabelled_without_tops: Arcs without their roles.
        tops: Top words alone.
        exact_labelled: Share of sentences without any error in arcs, roles and tops.
        exact_unlabelled: The same, if roles do not matter.
        exact_labelled_without_tops: Share of sentences without any error in arcs and roles.
        exact_unlabelled_without_tops: The same, if roles do not matter.
        by_label: The labelled score of each role, in alphabetical order.

    Example:
        >>> from spigot_nlp.data.sentence import Arc
        >>> sentence = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")]))
        >>> scores = score_graphs([sentence], [sentence])
        >>> scores.labelled.f1, scores.tops.f1, list(scores.by_label)
        (1.0, 0.0, ['ARG1'])
    """

    sentences: int
    words: int
    labelled: Score
    unlabelled: Score
    labelled_without_tops: Score
    unlabelled_without_tops: Score
    tops: Score
    exact_labelled: float
    exact_unlabelled: float
    exact_labelled_without_tops: float
    exact_unlabelled_without_tops: float
    by_label: dict[str, Score]


@dataclass(frozen=True)
class TreeScores:
    """How well syntactic heads were predicted.

    A word is punctuation if its form consists of Unicode punctuation and symbols only (categories P and S), or if its
    gold tag is one of `PUNCTUATION_TAGS`. A sentence of nothing else has no part in the numbers without punctuation.

    Attributes:
        sentences: How many.
        words: How many.
        words_without_punctuation: How many of these are not punctuation.
        uas: Share of words with the right head.
        uas_without_punctuation: The same over words that are not punctuation.
        exact: Share of sentences in which every head is right.
        exact_without_punctuation: Share of sentences in which every word but punctuation has the right head.

    Example:
        >>> sentence = Sentence(("Rain", "fell", "!"), heads=(2, 0, 2))
        >>> score_trees([sentence], [sentence]).words_without_punctuation
        2
    """

    sentences: int
    words: int
    words_without_punctuation: int
    uas: float
    uas_without_punctuation: float
    exact: float
    exact_without_punctuation: float


@dataclass(frozen=True)
class TagScores:
    """How well the tags of words were predicted.

    Attributes:
        sentences: How many.
        words: How many.
        accuracy: Share of words with the right tag.
        exact: Share of sentences in which every tag is right.

    Example:
        >>> rain = Sentence(("Rain", "fell"), tags=("NN", "VBD"))
        >>> score_tags([rain], [rain]).accuracy
        1.0
    """

    sentences: int
    words: int
    accuracy: float
    exact: float


def score_tags(gold: Iterable[Sentence], predicted: Iterable[Sentence], field: str = "tags") -> TagScores:
    """Everything about predicted tags.

    Args:
        gold: Sentences with the right tags.
        predicted: The same sentences with the predicted ones.
        field: The name that the tags stand under.

    Example:
        >>> gold, answer = Sentence(("Rain", "fell"), tags=("NN", "VBD")), Sentence(("Rain", "fell"), tags=("NN", "NN"))
        >>> score_tags([gold], [answer])
        TagScores(sentences=1, words=2, accuracy=0.5, exact=0.0)
    """
    counts = word_counts(gold, predicted, field)
    return TagScores(len(counts), int(counts.gold.sum()), counts.accuracy(), exact_counts(counts).f1())


def score_graphs(gold: Iterable[Sentence], predicted: Iterable[Sentence], field: str = "graph") -> GraphScores:
    """Everything about predicted graphs, in one pass.

    Args:
        gold: Sentences with the right graphs.
        predicted: The same sentences with the predicted ones.
        field: The name that the graphs stand under.

    Example:
        >>> from spigot_nlp.data.sentence import Arc
        >>> words = ("She", "wants", "tea")
        >>> gold = Sentence(words, graph=Graph.of([Arc(2, 1, "ARG0"), Arc(2, 3, "ARG1")], tops=[2]))
        >>> answer = Sentence(words, graph=Graph.of([Arc(2, 1, "ARG1"), Arc(2, 3, "ARG1")], tops=[2]))
        >>> scores = score_graphs([gold], [answer])
        >>> round(scores.labelled.f1, 3), scores.labelled_without_tops.f1, scores.unlabelled.f1
        (0.667, 0.5, 1.0)
    """
    tally: dict[str, list[tuple[int, int, int]]] = {"labelled": [], "unlabelled": [], "tops": []}
    right, given, wanted = Counter[str](), Counter[str](), Counter[str]()
    words = 0
    for name, gold_sentence, predicted_sentence in aligned(gold, predicted):
        words += len(gold_sentence)
        gold_graph = _graph(gold_sentence, name, "gold data", field)
        predicted_graph = _graph(predicted_sentence, name, "prediction", field)
        gold_arcs, predicted_arcs = set(gold_graph.arcs), set(predicted_graph.arcs)
        tally["labelled"].append(_compare(gold_arcs, predicted_arcs))
        tally["unlabelled"].append(_compare(_pairs(gold_graph), _pairs(predicted_graph)))
        tally["tops"].append(_compare(set(gold_graph.tops), set(predicted_graph.tops)))
        for roles, arcs in ((right, gold_arcs & predicted_arcs), (given, predicted_arcs), (wanted, gold_arcs)):
            roles.update(arc.role for arc in arcs)
    labelled, unlabelled, tops = (counted(rows) for rows in tally.values())
    return GraphScores(
        sentences=len(labelled),
        words=words,
        labelled=(labelled + tops).total(),
        unlabelled=(unlabelled + tops).total(),
        labelled_without_tops=labelled.total(),
        unlabelled_without_tops=unlabelled.total(),
        tops=tops.total(),
        exact_labelled=exact_counts(labelled + tops).f1(),
        exact_unlabelled=exact_counts(unlabelled + tops).f1(),
        exact_labelled_without_tops=exact_counts(labelled).f1(),
        exact_unlabelled_without_tops=exact_counts(unlabelled).f1(),
        by_label={role: Score.of(right[role], given[role], wanted[role]) for role in sorted(given.keys() | wanted)},
    )


def graph_counts(
    gold: Iterable[Sentence],
    predicted: Iterable[Sentence],
    *,
    labelled: bool = True,
    tops: bool = True,
    field: str = "graph",
) -> Counts:
    """The counts behind the F1 of graphs, sentence by sentence.

    Args:
        gold: Sentences with the right graphs.
        predicted: The same sentences with the predicted ones.
        labelled: Whether the role matters.
        tops: Whether every top is one further arc.
        field: The name that the graphs stand under.

    Example:
        >>> from spigot_nlp.data.sentence import Arc
        >>> gold = [Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))]
        >>> answer = [Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG2")], tops=[2]))]
        >>> graph_counts(gold, answer).f1(), graph_counts(gold, answer, labelled=False).f1()
        (0.5, 1.0)
    """
    rows = []
    for name, gold_sentence, predicted_sentence in aligned(gold, predicted):
        sides = []
        for sentence, side in ((gold_sentence, "gold data"), (predicted_sentence, "prediction")):
            graph = _graph(sentence, name, side, field)
            parts: set[object] = set(graph.arcs if labelled else _pairs(graph))
            # A bare number cannot be mistaken for an arc, not even for one that starts at the root.
            sides.append(parts.union(graph.tops) if tops else parts)
        rows.append(_compare(*sides))
    return counted(rows)


def score_trees(gold: Iterable[Sentence], predicted: Iterable[Sentence], field: str = "heads") -> TreeScores:
    """Everything about predicted trees, in one pass.

    Args:
        gold: Sentences with the right heads.
        predicted: The same sentences with the predicted ones.
        field: The name that the heads stand under.

    Example:
        >>> words = ("She", "sings", ".")
        >>> scores = score_trees([Sentence(words, heads=(2, 0, 2))], [Sentence(words, heads=(2, 0, 1))])
        >>> round(scores.uas, 3), scores.uas_without_punctuation, scores.exact
        (0.667, 1.0, 0.0)
    """
    rows, rows_without = [], []
    for name, gold_sentence, predicted_sentence in aligned(gold, predicted):
        hits = _head_hits(name, gold_sentence, predicted_sentence, field)
        rows.append((sum(hits), len(hits), len(hits)))
        kept = [hit for hit, skip in zip(hits, is_punctuation(gold_sentence), strict=True) if not skip]
        rows_without.append((sum(kept), len(kept), len(kept)))
    every, without = counted(rows), counted(rows_without)
    # Nothing but punctuation: neither exact nor wrong.
    scored = counted([row for row in rows_without if row[2]])
    return TreeScores(
        sentences=len(every),
        words=int(every.gold.sum()),
        words_without_punctuation=int(without.gold.sum()),
        uas=every.accuracy(),
        uas_without_punctuation=without.accuracy(),
        exact=exact_counts(every).f1(),
        exact_without_punctuation=exact_counts(scored).f1(),
    )


def tree_counts(
    gold: Iterable[Sentence], predicted: Iterable[Sentence], *, punctuation: bool = True, field: str = "heads"
) -> Counts:
    """Right heads and words of each sentence; their F1 is the UAS.

    Args:
        gold: Sentences with the right heads.
        predicted: The same sentences with the predicted ones.
        punctuation: Whether punctuation counts, see `TreeScores`.
        field: The name that the heads stand under.

    Example:
        >>> words = ("She", "sings", ".")
        >>> gold, answer = [Sentence(words, heads=(2, 0, 2))], [Sentence(words, heads=(3, 0, 2))]
        >>> tree_counts(gold, answer, punctuation=False).accuracy()
        0.5
    """
    rows = []
    for name, gold_sentence, predicted_sentence in aligned(gold, predicted):
        hits = _head_hits(name, gold_sentence, predicted_sentence, field)
        if not punctuation:
            hits = [hit for hit, skip in zip(hits, is_punctuation(gold_sentence), strict=True) if not skip]
        rows.append((sum(hits), len(hits), len(hits)))
    return counted(rows)


def label_counts(gold: Iterable[Sentence], predicted: Iterable[Sentence], *, field: str = "label") -> Counts:
    """Whether the class of each sentence is right.

    Example:
        >>> words = ("Good", "film")
        >>> label_counts([Sentence(words, label=1)] * 2, [Sentence(words, label=k) for k in (0, 1)]).accuracy()
        0.5
    """
    rows = []
    for name, gold_sentence, predicted_sentence in aligned(gold, predicted):
        wanted = known_value(gold_sentence.get(field), name, "gold data", field)
        rows.append((int(wanted == known_value(predicted_sentence.get(field), name, "prediction", field)), 1, 1))
    return counted(rows)


def word_counts(gold: Iterable[Sentence], predicted: Iterable[Sentence], field: str = "tags") -> Counts:
    """Words of each sentence whose tag, or lemma, or whatever else stands beside each word, is right.

    Example:
        >>> gold, answer = Sentence(("Rain", "fell"), tags=("NN", "VBD")), Sentence(("Rain", "fell"), tags=("NN", "NN"))
        >>> word_counts([gold], [answer]).accuracy()
        0.5
    """
    rows = []
    for name, gold_sentence, predicted_sentence in aligned(gold, predicted):
        wanted = known_value(gold_sentence.get(field), name, "gold data", field)
        given = known_value(predicted_sentence.get(field), name, "prediction", field)
        right = sum(a == b for a, b in zip(wanted, given, strict=True))
        rows.append((right, len(wanted), len(wanted)))
    return counted(rows)


def accuracy(
    gold: Iterable[Sentence], predicted: Iterable[Sentence], field: Literal["label", "tags", "lemmas"] = "label"
) -> float:
    """Share of sentences with the right class, or of words with the right tag or lemma; 0 if there are none.

    Example:
        >>> accuracy([Sentence(("Good",), label=1)], [Sentence(("Good",), label=1)])
        1.0
    """
    counts = label_counts(gold, predicted) if field == "label" else word_counts(gold, predicted, field)
    return counts.accuracy()


def is_punctuation(sentence: Sentence) -> list[bool]:
    """Which words are punctuation, by their form or by their tag; see `TreeScores`.

    Example:
        >>> is_punctuation(Sentence(("Well", ",", "e.g.", "...", "3"), tags=("UH", ",", "FW", ":", "CD")))
        [False, True, False, True, False]
    """
    tags = sentence.tags or ("",) * len(sentence)
    return [
        tag in PUNCTUATION_TAGS or all(unicodedata.category(character)[0] in "PS" for character in form)
        for form, tag in zip(sentence.forms, tags, strict=True)
    ]


def _compare(gold: Collection[object], predicted: Collection[object]) -> tuple[int, int, int]:
    """Right, given and wanted, of two sets."""
    return len(set(gold).intersection(predicted)), len(predicted), len(gold)


def counted(rows: list[tuple[int, int, int]]) -> Counts:
    """Right, given and wanted answers, a row for each sentence, as counts."""
    return Counts(*zip(*rows, strict=True)) if rows else Counts([], [], [])


def exact_counts(counts: Counts) -> Counts:
    """Whether a whole sentence is right: as many answers as wanted, and all of them."""
    hits = (counts.correct == counts.predicted) & (counts.correct == counts.gold)
    return Counts(hits, [1] * len(counts), [1] * len(counts))


def _pairs(graph: Graph) -> set[tuple[int, int]]:
    return {(arc.predicate, arc.argument) for arc in graph.arcs}


def _head_hits(name: str, gold: Sentence, predicted: Sentence, field: str) -> list[bool]:
    wanted = known_value(gold.get(field), name, "gold data", field)
    given = known_value(predicted.get(field), name, "prediction", field)
    return [a == b for a, b in zip(wanted, given, strict=True)]


def _graph(sentence: Sentence, name: str, side: str, field: str) -> Graph:
    return known_value(sentence.get(field), name, side, field)


def known_value(value: _Value | None, name: str, side: str, field: str) -> _Value:
    """A value that must be there."""
    if value is None:
        raise ValueError(f"{name} has no {field} in the {side}; give sentences in which all of them are annotated.")
    return value
