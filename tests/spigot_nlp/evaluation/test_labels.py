"""Scores of predicted classes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation.labels import score_labels
from spigot_nlp.evaluation.metrics import accuracy

PAIRS = st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4)), max_size=20)


def sides(pairs: list[tuple[int, int]]) -> tuple[list[Sentence], list[Sentence]]:
    gold = [Sentence((f"word{k}",), label=right) for k, (right, _) in enumerate(pairs)]
    predicted = [Sentence((f"word{k}",), label=given) for k, (_, given) in enumerate(pairs)]
    return gold, predicted


@given(PAIRS)
def test_scores_follow_their_definitions(pairs: list[tuple[int, int]]) -> None:
    scores = score_labels(*sides(pairs))
    assert scores.sentences == len(pairs)
    right = sum(one == other for one, other in pairs)
    assert scores.accuracy == pytest.approx(right / len(pairs) if pairs else 0)
    assert scores.accuracy == pytest.approx(accuracy(*sides(pairs)))
    assert set(scores.classes) == {str(label) for pair in pairs for label in pair}
    for name, found in scores.classes.items():
        label = int(name)
        given_it = [one for one, other in pairs if other == label]
        have_it = [other for one, other in pairs if one == label]
        precision = given_it.count(label) / len(given_it) if given_it else 0
        recall = have_it.count(label) / len(have_it) if have_it else 0
        assert found.precision == pytest.approx(precision)
        assert found.recall == pytest.approx(recall)
        mean = 2 * precision * recall / (precision + recall) if precision + recall else 0
        assert found.f1 == pytest.approx(mean)
        assert found.sentences == len(have_it)


@given(PAIRS)
def test_the_confusion_counts_every_sentence_once(pairs: list[tuple[int, int]]) -> None:
    confusion = score_labels(*sides(pairs)).confusion
    assert {(int(right), int(given)): count for right, row in confusion.items() for given, count in row.items()} == {
        pair: pairs.count(pair) for pair in pairs
    }


def test_a_class_that_training_never_saw_counts_as_wrong() -> None:
    scores = score_labels(*sides([(0, 0), (9, 0), (1, 1)]))
    assert scores.accuracy == pytest.approx(2 / 3)
    assert (scores.classes["9"].recall, scores.classes["9"].precision, scores.classes["9"].f1) == (0, 0, 0)
    assert scores.classes["0"].precision == 0.5
    assert scores.confusion["9"] == {"0": 1}


def test_nothing_scores_zero() -> None:
    scores = score_labels([], [])
    assert (scores.sentences, scores.accuracy, scores.classes, scores.confusion) == (0, 0.0, {}, {})


def test_a_missing_class_is_named() -> None:
    labelled, bare = Sentence(("Fine",), label=1, id="s3"), Sentence(("Fine",), id="s3")
    with pytest.raises(ValueError, match=r"s3.* has no label in the gold data"):
        score_labels([bare], [labelled])
    with pytest.raises(ValueError, match=r"s3.* has no label in the prediction"):
        score_labels([labelled], [bare])
    with pytest.raises(ValueError, match="sentence"):
        score_labels([labelled], [])
    with pytest.raises(ValueError, match="Dull"):
        score_labels([labelled], [Sentence(("Dull",), label=1)])
