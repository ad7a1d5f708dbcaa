"""Scores by hand, and against a second scorer."""

import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation import (
    Counts,
    Score,
    accuracy,
    graph_counts,
    is_punctuation,
    label_counts,
    score_graphs,
    score_trees,
    tree_counts,
    word_counts,
)
from tests.spigot_nlp.evaluation.second_scorer import attachment, graph_exact, graph_f1, role_recall

ROLES = ["ARG1", "ARG2", "UNK"]


def graph(words: str, arcs: list[tuple[int, int, str]], tops: list[int]) -> Sentence:
    return Sentence(tuple(words.split()), graph=Graph.of([Arc(*arc) for arc in arcs], tops))


@st.composite
def pairs(draw: st.DrawFn, field: str) -> tuple[list[Sentence], list[Sentence]]:
    """The same sentences with two annotations each."""
    gold, predicted = [], []
    for _ in range(draw(st.integers(0, 4))):
        n = draw(st.integers(1, 5))
        forms = tuple(draw(st.lists(st.sampled_from(["rain", "--", "$", "e.g."]), min_size=n, max_size=n)))
        word = st.integers(1, n)
        # From 0 as well: enhanced graphs may have arcs that start at the root.
        arc = st.builds(Arc, st.integers(0, n), word, st.sampled_from(ROLES))
        graphs = st.builds(
            lambda arcs, tops: Graph(tuple(arcs), tuple(sorted(tops))), st.lists(arc, max_size=8), st.sets(word)
        )
        values = graphs if field == "graph" else st.lists(st.integers(0, n), min_size=n, max_size=n).map(tuple)
        for side in (gold, predicted):
            side.append(replace(Sentence(forms), **{field: draw(values)}))
    return gold, predicted


def test_graphs_by_hand():
    """Two sentences; the arithmetic is in the comments."""
    gold = [
        graph("Kim wants to sing", [(2, 1, "ARG1"), (2, 4, "ARG2"), (4, 1, "ARG1")], [2]),
        graph("It rains .", [], [2]),
    ]
    predicted = [
        graph("Kim wants to sing", [(2, 1, "ARG1"), (2, 4, "ARG3"), (3, 4, "ARG1"), (4, 1, "ARG1")], [2, 4]),
        graph("It rains .", [], [2]),
    ]
    scores = score_graphs(gold, predicted)
    assert (scores.sentences, scores.words) == (2, 7)
    # Arcs: 3 wanted, 4 given, 2 right with roles and 3 without. Tops: 2 wanted, 3 given, 2 right.
    assert scores.labelled_without_tops == Score(2, 4, 3, 2 / 4, 2 / 3, 4 / 7)
    assert scores.unlabelled_without_tops == Score(3, 4, 3, 3 / 4, 1.0, 6 / 7)
    assert scores.tops == Score(2, 3, 2, 2 / 3, 1.0, 4 / 5)
    assert scores.labelled == Score(4, 7, 5, 4 / 7, 4 / 5, 8 / 12)
    assert scores.unlabelled == Score(5, 7, 5, 5 / 7, 1.0, 10 / 12)
    assert scores.exact_labelled == scores.exact_unlabelled == 0.5
    assert list(scores.by_label) == ["ARG1", "ARG2", "ARG3"]
    assert scores.by_label["ARG1"] == Score(2, 3, 2, 2 / 3, 1.0, 4 / 5)
    assert scores.by_label["ARG2"] == Score(0, 0, 1, 0.0, 0.0, 0.0)
    assert scores.by_label["ARG3"] == Score(0, 1, 0, 0.0, 0.0, 0.0)
    counts = graph_counts(gold, predicted)
    assert counts.correct.tolist() == [3, 1]
    assert counts.predicted.tolist() == [6, 1]
    assert counts.gold.tolist() == [4, 1]


def test_exact_match_with_and_without_tops_and_roles():
    gold = [graph("a b", [(1, 2, "X")], [1])] * 4
    answers = [
        graph("a b", [(1, 2, "X")], [1]),
        graph("a b", [(1, 2, "Y")], [1]),
        graph("a b", [(1, 2, "X")], []),
        graph("a b", [(2, 1, "X")], [1]),
    ]
    scores = score_graphs(gold, answers)
    assert scores.exact_labelled == 1 / 4
    assert scores.exact_unlabelled == 2 / 4
    assert scores.exact_labelled_without_tops == 2 / 4
    assert scores.exact_unlabelled_without_tops == 3 / 4


def test_an_unknown_role_stands_for_no_other():
    gold = [graph("a b", [(1, 2, "rare")], [])]
    assert score_graphs(gold, [graph("a b", [(1, 2, "UNK")], [])]).labelled.correct == 0
    surface = [graph("a b", [(1, 2, "UNK")], [])]
    assert score_graphs(surface, surface).labelled.correct == 1


def test_a_top_is_not_an_arc_from_the_root():
    gold = [graph("a b", [], [1])]
    answer = [graph("a b", [(0, 1, "root")], [])]
    assert score_graphs(gold, answer).unlabelled.correct == 0
    assert graph_counts(gold, answer, labelled=False).f1() == 0


@given(pairs("graph"))
def test_graphs_agree_with_the_second_scorer(data: tuple[list[Sentence], list[Sentence]]):
    gold, predicted = data
    scores = score_graphs(iter(gold), iter(predicted))
    for labelled in (True, False):
        for tops in (True, False):
            name = ("labelled" if labelled else "unlabelled") + ("" if tops else "_without_tops")
            score: Score = getattr(scores, name)
            expected = graph_f1(gold, predicted, labelled=labelled, tops=tops)
            assert (score.precision, score.recall, score.f1) == pytest.approx(expected, abs=1e-12)
            exact = graph_exact(gold, predicted, labelled=labelled, tops=tops)
            assert getattr(scores, f"exact_{name}") == pytest.approx(exact)
            assert graph_counts(gold, predicted, labelled=labelled, tops=tops).total() == score
    for role in ROLES:
        found = scores.by_label[role].recall if role in scores.by_label else 0.0
        assert found == pytest.approx(role_recall(gold, predicted, role))
    arcs = scores.labelled_without_tops
    for count in ("correct", "predicted", "gold"):
        assert sum(getattr(score, count) for score in scores.by_label.values()) == getattr(arcs, count)


@given(pairs("graph"))
def test_swapping_gold_and_prediction_swaps_precision_and_recall(data: tuple[list[Sentence], list[Sentence]]):
    gold, predicted = data
    there, back = score_graphs(gold, predicted).labelled, score_graphs(predicted, gold).labelled
    assert (there.precision, there.recall, there.f1) == (back.recall, back.precision, back.f1)


@given(pairs("heads"))
def test_trees_agree_with_the_second_scorer(data: tuple[list[Sentence], list[Sentence]]):
    gold, predicted = data
    scores = score_trees(iter(gold), iter(predicted))
    skip = [[form in ("--", "$") for form in sentence.forms] for sentence in gold]
    assert scores.uas == pytest.approx(attachment(gold, predicted, [[False] * len(words) for words in gold]))
    assert scores.uas_without_punctuation == pytest.approx(attachment(gold, predicted, skip))
    assert tree_counts(gold, predicted).f1() == scores.uas
    assert tree_counts(gold, predicted, punctuation=False).accuracy() == scores.uas_without_punctuation
    assert scores.words - scores.words_without_punctuation == sum(map(sum, skip))


def test_trees_by_hand():
    words, bare, mute = ("He", "ran", "."), ("Go", "!"), ("...",)
    gold = [Sentence(words, heads=(2, 0, 2)), Sentence(bare, heads=(0, 1)), Sentence(mute, heads=(0,))]
    predicted = [Sentence(words, heads=(2, 0, 1)), Sentence(bare, heads=(2, 0)), Sentence(mute, heads=(0,))]
    scores = score_trees(gold, predicted)
    assert (scores.sentences, scores.words, scores.words_without_punctuation) == (3, 6, 3)
    assert scores.uas == 3 / 6
    assert scores.uas_without_punctuation == 2 / 3
    assert scores.exact == 1 / 3
    assert scores.exact_without_punctuation == 1 / 2  # the third has nothing but punctuation


def test_punctuation_by_form_or_tag():
    forms = ("(", "-LRB-", "%", "«", "U.S.", "'s", ":)", "x")
    sentence = Sentence(forms, tags=("X", "-LRB-", "NN", "X", "NNP", "POS", "X", ":"))
    assert is_punctuation(sentence) == [True, True, True, True, False, False, True, True]
    assert is_punctuation(replace(sentence, tags=None)) == [True, False, True, True, False, False, True, False]


def test_punctuation_is_what_the_gold_tags_say():
    gold = Sentence(("x", "y"), tags=(":", "NN"), heads=(2, 0))
    answer = Sentence(("x", "y"), tags=("NN", ":"), heads=(0, 0))
    assert score_trees([gold], [answer]).uas_without_punctuation == 1.0


def test_classes_and_words():
    forms = ("so", "so")
    gold = [Sentence(forms, label=k, tags=("RB", "RB"), lemmas=("so", "so")) for k in (0, 1, 1)]
    answer = [Sentence(forms, label=1, tags=("RB", "UH"), lemmas=("so", "so"))] * 3
    assert label_counts(gold, answer).correct.tolist() == [0, 1, 1]
    assert accuracy(gold, answer) == 2 / 3
    assert accuracy(gold, answer, "tags") == 1 / 2
    assert accuracy(gold, answer, "lemmas") == 1.0
    assert word_counts(gold, answer, "tags").gold.tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="sentence 1 has no heads in the gold data"):
        word_counts(gold, answer, "heads")


def test_nothing_at_all_scores_zero():
    empty = [graph("a b", [], [])]
    assert score_graphs(empty, empty).labelled == Score(0, 0, 0, 0.0, 0.0, 0.0)
    assert score_graphs(empty, empty).exact_labelled == 1.0  # yet no error was made
    assert score_graphs([], []).labelled.f1 == score_graphs([], []).exact_labelled == 0.0
    assert score_trees([], []).uas == 0.0
    assert accuracy([], []) == 0.0
    assert graph_counts([], []).f1() == 0.0


def test_scores_go_through_json():
    sentence = replace(graph("a b", [(1, 2, "X")], [1]), heads=(0, 1))
    for scores in (score_graphs([sentence], [sentence]), score_trees([sentence], [sentence])):
        assert json.loads(json.dumps(asdict(scores))) == asdict(scores)


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([("a", "b")], [("a", "c")], "sentence 1, word 2 is 'b' in the gold data and 'c' in the prediction"),
        ([("a",), ("b",)], [("a",)], "the prediction ends after sentence 1, the gold data goes on"),
        ([], [("a",)], "the gold data ends after sentence 0, the prediction goes on"),
        ([("a", "b")], [("a",)], "word 2 exists on one side only: the gold data has 2 words, the prediction 1"),
    ],
)
@pytest.mark.parametrize("score", [score_graphs, score_trees, graph_counts, tree_counts, label_counts, word_counts])
def test_other_text_is_refused(score, gold, predicted, message):
    def annotated(forms):
        numbers = (0,) * len(forms)
        return Sentence(forms, heads=numbers, tags=("X",) * len(forms), graph=Graph(), label=0)

    with pytest.raises(ValueError, match=message):
        score([annotated(forms) for forms in gold], [annotated(forms) for forms in predicted])


def test_a_missing_annotation_is_named():
    bare, full = Sentence(("a",), id="s7"), Sentence(("a",), heads=(0,), graph=Graph(), label=1, tags=("X",))
    named = replace(full, id="s7")
    with pytest.raises(ValueError, match=r"sentence 1 \(s7\) has no graph in the gold data"):
        score_graphs([bare], [full])
    with pytest.raises(ValueError, match=r"sentence 2 \(s7\) has no heads in the prediction"):
        score_trees([full, named], [full, bare])
    with pytest.raises(ValueError, match="no label in the prediction"):
        accuracy([named], [bare])
    with pytest.raises(ValueError, match="no tags in the prediction"):
        accuracy([named], [bare], "tags")


def test_counts_must_make_sense():
    with pytest.raises(ValueError, match=r"shapes \(2,\), \(1,\) and \(2,\)"):
        Counts([1, 1], [1], [1, 1])
    with pytest.raises(ValueError, match="sentence 2 has 3 correct answers of 2 given and 4 wanted"):
        Counts([1, 3], [2, 2], [1, 4])
    with pytest.raises(ValueError, match="whole numbers"):
        Counts([0.5], [1], [1])
    with pytest.raises(ValueError, match="Use f1"):
        Counts([1], [1], [2]).accuracy()
    with pytest.raises(ValueError, match="cannot be added"):
        _ = Counts([1], [1], [1]) + Counts([1, 1], [1, 1], [1, 1])
    with pytest.raises(ValueError, match="read-only"):
        Counts([1], [1], [1]).correct[0] = 0
