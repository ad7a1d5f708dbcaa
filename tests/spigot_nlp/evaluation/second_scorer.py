"""Scores written a second time, from the definitions: lists and loops, fractions, nothing shared with the library."""

from collections.abc import Sequence
from fractions import Fraction

from spigot_nlp.data.sentence import Sentence


def triples(sentence: Sentence, *, labelled: bool, tops: bool) -> list[tuple[object, ...]]:
    """The distinct dependencies of a graph; a top is one from a node that no word can be."""
    found: list[tuple[object, ...]] = []
    assert sentence.graph is not None
    for predicate, argument, role in sentence.graph.arcs:
        triple = (predicate, role, argument) if labelled else (predicate, argument)
        if triple not in found:
            found.append(triple)
    if tops:
        for top in sentence.graph.tops:
            found.append(("virtual", "top", top))
    return found


def graph_f1(
    gold: Sequence[Sentence], predicted: Sequence[Sentence], *, labelled: bool, tops: bool
) -> tuple[float, float, float]:
    """Precision, recall and their harmonic mean."""
    right = given = wanted = 0
    for k in range(len(gold)):
        answer = triples(predicted[k], labelled=labelled, tops=tops)
        target = triples(gold[k], labelled=labelled, tops=tops)
        for triple in answer:
            right += triple in target
        given += len(answer)
        wanted += len(target)
    precision = Fraction(right, given) if given else Fraction(0)
    recall = Fraction(right, wanted) if wanted else Fraction(0)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else Fraction(0)
    return float(precision), float(recall), float(f1)


def graph_exact(gold: Sequence[Sentence], predicted: Sequence[Sentence], *, labelled: bool, tops: bool) -> float:
    """Share of sentences whose two lists are the same but for their order."""
    hits = 0
    for target, answer in zip(gold, predicted, strict=True):
        a, b = (triples(side, labelled=labelled, tops=tops) for side in (target, answer))
        hits += all(x in b for x in a) and all(x in a for x in b)
    return hits / len(gold) if gold else 0.0


def role_recall(gold: Sequence[Sentence], predicted: Sequence[Sentence], role: str) -> float:
    """Share of the gold arcs with this role that were found."""
    arcs = [(k, arc) for k, sentence in enumerate(gold) if sentence.graph for arc in set(sentence.graph.arcs)]
    wanted = [(k, arc) for k, arc in arcs if arc.role == role]
    found = [(k, arc) for k, arc in wanted if (graph := predicted[k].graph) and arc in graph.arcs]
    return len(found) / len(wanted) if wanted else 0.0


def attachment(gold: Sequence[Sentence], predicted: Sequence[Sentence], skip: Sequence[Sequence[bool]]) -> float:
    """Share of the words that are not skipped whose head is right."""
    right = every = 0
    for k, sentence in enumerate(gold):
        for j in range(len(sentence.forms)):
            if skip[k][j]:
                continue
            target, answer = sentence.heads, predicted[k].heads
            assert target is not None
            assert answer is not None
            every += 1
            right += target[j] == answer[j]
    return right / every if every else 0.0
