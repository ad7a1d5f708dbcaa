"""How good labelled trees are: heads with the right relation."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation.counts import Counts, Score, aligned
from spigot_nlp.evaluation.metrics import TreeScores, counted, exact_counts, is_punctuation, known_value, score_trees


@dataclass(frozen=True)
class LabelledTreeScores(TreeScores):
    """How well heads and relations were predicted.

    Attributes:
        las: Share of words with the right head and the right relation to it.
        las_without_punctuation: The same over words that are not punctuation.
        las_without_subtypes: The same over all words, if what stands behind a colon does not count (`nsubj:pass` is
            `nsubj`), as in the shared tasks on Universal Dependencies.
        exact_labelled: Share of sentences in which every head and relation is right.
        exact_labelled_without_punctuation: The same if punctuation does not count.
        by_relation: The score of each relation, in alphabetical order; right is a word with this relation and its head.

    Example:
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj", "root"))
        >>> scores = score_labelled_trees([rain], [rain])
        >>> scores.las, scores.uas, list(scores.by_relation)
        (1.0, 1.0, ['nsubj', 'root'])
    """

    las: float
    las_without_punctuation: float
    las_without_subtypes: float
    exact_labelled: float
    exact_labelled_without_punctuation: float
    by_relation: dict[str, Score]


def score_labelled_trees(
    gold: Iterable[Sentence], predicted: Iterable[Sentence], field: str = "heads", relations: str = "relations"
) -> LabelledTreeScores:
    """Everything about predicted trees with relations.

    Args:
        gold: Sentences with the right heads and relations.
        predicted: The same sentences with the predicted ones.
        field: The name that the heads stand under.
        relations: The name that the relations stand under.

    Example:
        >>> words = ("She", "was", "seen")
        >>> gold = Sentence(words, heads=(3, 3, 0), relations=("nsubj:pass", "aux:pass", "root"))
        >>> answer = Sentence(words, heads=(3, 3, 0), relations=("nsubj", "aux:pass", "root"))
        >>> scores = score_labelled_trees([gold], [answer])
        >>> round(scores.las, 3), scores.las_without_subtypes, scores.uas
        (0.667, 1.0, 1.0)
    """
    gold, predicted = list(gold), list(predicted)
    every, without, coarse = (
        relation_counts(gold, predicted, punctuation=punctuation, subtypes=subtypes, field=field, relations=relations)
        for punctuation, subtypes in ((True, True), (False, True), (True, False))
    )
    right, given, wanted = Counter[str](), Counter[str](), Counter[str]()
    for name, gold_sentence, predicted_sentence in aligned(gold, predicted):
        hits, names, answers = _hits(name, gold_sentence, predicted_sentence, field, relations)
        wanted.update(names)
        given.update(answers)
        right.update(relation for relation, hit in zip(names, hits, strict=True) if hit)
    judged = [row for row in zip(without.correct, without.predicted, without.gold, strict=True) if row[2]]
    return LabelledTreeScores(
        **asdict(score_trees(gold, predicted, field)),
        las=every.accuracy(),
        las_without_punctuation=without.accuracy(),
        las_without_subtypes=coarse.accuracy(),
        exact_labelled=exact_counts(every).f1(),
        exact_labelled_without_punctuation=exact_counts(counted(judged)).f1(),
        by_relation={name: Score.of(right[name], given[name], wanted[name]) for name in sorted(given.keys() | wanted)},
    )


def relation_counts(
    gold: Iterable[Sentence],
    predicted: Iterable[Sentence],
    *,
    punctuation: bool = True,
    subtypes: bool = True,
    field: str = "heads",
    relations: str = "relations",
) -> Counts:
    """Words with the right head and relation, and all words, of each sentence; their F1 is the LAS.

    Args:
        gold: Sentences with the right heads and relations.
        predicted: The same sentences with the predicted ones.
        punctuation: Whether punctuation counts, see `TreeScores`.
        subtypes: Whether what stands behind a colon in a relation counts.
        field: The name that the heads stand under.
        relations: The name that the relations stand under.

    Example:
        >>> words = ("She", "sings")
        >>> gold = [Sentence(words, heads=(2, 0), relations=("nsubj", "root"))]
        >>> answer = [Sentence(words, heads=(2, 0), relations=("obj", "root"))]
        >>> relation_counts(gold, answer).accuracy()
        0.5
    """
    rows = []
    for name, gold_sentence, predicted_sentence in aligned(gold, predicted):
        hits = _hits(name, gold_sentence, predicted_sentence, field, relations, subtypes=subtypes)[0]
        if not punctuation:
            hits = [hit for hit, skip in zip(hits, is_punctuation(gold_sentence), strict=True) if not skip]
        rows.append((sum(hits), len(hits), len(hits)))
    return counted(rows)


def _hits(
    name: str, gold: Sentence, predicted: Sentence, field: str, relations: str, *, subtypes: bool = True
) -> tuple[list[bool], tuple[str, ...], tuple[str, ...]]:
    """Which words have the right head and relation; and the right and given relations."""
    sides = []
    for sentence, side in ((gold, "gold data"), (predicted, "prediction")):
        heads = known_value(sentence.get(field), name, side, field)
        named = known_value(sentence.get(relations), name, side, relations)
        sides.append((heads, named if subtypes else tuple(relation.partition(":")[0] for relation in named)))
    (heads, names), (other_heads, others) = sides
    pairs = zip(heads, names, other_heads, others, strict=True)
    return [head == other and mine == theirs for head, mine, other, theirs in pairs], names, others
