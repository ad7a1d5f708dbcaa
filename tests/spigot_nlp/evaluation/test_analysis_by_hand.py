"""Analyses of a few sentences, against what is counted by hand."""

import json
from dataclasses import asdict, replace

import pytest

from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation import (
    tree_counts,
)
from spigot_nlp.evaluation.analysis import analyse
from spigot_nlp.evaluation.analysis_tables import analysis_tables
from tests.spigot_nlp.evaluation.test_analysis import group, quick


def test_the_kinds_of_an_example_counted_by_hand():
    #          1      2        3     4       5      6
    words = ("Mary", "wants", "to", "read", "old", "books")
    graph = Graph.of([Arc(2, 1, "ARG1"), Arc(2, 4, "ARG2"), Arc(4, 1, "ARG1"), Arc(4, 6, "ARG2"), Arc(5, 6, "ARG1")])
    gold = Sentence(words, heads=(2, 0, 4, 2, 6, 4), graph=graph, id="by hand")
    a = replace(gold, heads=(2, 0, 4, 6, 6, 4))  # read <- books: "books" is a semantic modifier of "read"
    b = replace(gold, heads=(4, 0, 2, 2, 4, 5))
    analysis = quick([gold], [a], [b])
    result = analysis.heads
    assert (result.words, result.changed, result.sentences) == (6, 5, 1)
    # 1: wants -> read, (a), right to wrong.        3: read -> wants, none, right to wrong.
    # 4: books -> wants, (a) and (c), to right.     5: books -> read, but books modifies old: (c), right to wrong.
    # 6: read -> old, (a), right to wrong.
    assert result.to_semantic_head.count == 3
    assert result.to_semantic_modifier.count == 0
    assert result.from_semantic_modifier.count == 2
    assert result.any.count == 4
    assert result.any.share == 0.8
    assert (result.right_to_wrong, result.wrong_to_right, result.wrong_to_wrong) == (4, 1, 0)
    turned = quick([gold], [b], [a]).heads
    assert turned.to_semantic_modifier.count == 2
    assert turned.any.share == result.any.reverse


def test_gains_are_right_minus_wrong_arcs():
    words = ("she", "wants", "tea")
    right = [Arc(2, 1, "ARG1"), Arc(2, 3, "ARG2")]
    gold = Sentence(words, heads=(2, 0, 2), graph=Graph.of(right, [2]))
    wrong = replace(gold, graph=Graph.of([Arc(2, 1, "ARG2"), Arc(1, 3, "ARG2")], [2]))
    half = replace(gold, heads=(2, 0, 1), graph=Graph.of(right[:1], [2]))
    analysis = quick([gold] * 4, [wrong, gold, half, gold], [gold, half, gold, gold], sample=1)
    assert analysis.gained == "arcs"
    (gain,), (loss,) = analysis.gains, analysis.losses
    # 3 right, against 1 right and 2 wrong: +4. 2 right against 3: -1.
    assert (gain.index, gain.gain, loss.index, loss.gain) == (0, 4, 1, -1)
    assert (gain.a.correct, gain.a.wrong, gain.a.missed, gain.b.correct) == (1, 2, 2, 3)
    assert (loss.heads_changed, loss.arcs_changed, loss.b.heads_right, loss.words) == (1, 1, 2, words)
    assert quick([gold] * 2, [wrong] * 2, [gold] * 2, sample=0).gains == ()


def test_examples_count_the_words_that_the_scores_count():
    gold = Sentence(("Rain", "fell", "."), heads=(2, 0, 2))
    a, b = replace(gold, heads=(0, 1, 2)), replace(gold, heads=(2, 0, 1))
    for punctuation, right, changed in ((True, (1, 2), 3), (False, (0, 2), 2)):
        (example,) = quick([gold], [a], [b], punctuation=punctuation).gains
        assert (example.a.heads_right, example.b.heads_right) == right
        assert (example.gain, example.heads_changed) == (right[1] - right[0], changed)


def test_a_word_is_no_neighbour_of_itself():
    gold = Sentence(("Rain", "fell"), graph=Graph.of([Arc(1, 1, "ARG1")]))
    kinds = quick([gold], [replace(gold, heads=(2, 0))], [replace(gold, heads=(0, 1))]).heads
    assert (kinds.any.count, kinds.any.chance) == (0, 0.0)


def test_what_is_not_known_is_left_out():
    words = ("Rain", "fell", ".")
    tree, other = Sentence(words, heads=(2, 0, 2)), Sentence(words, heads=(2, 0, 1))
    both = replace(tree, graph=Graph.of([Arc(2, 1, "ARG1")]))
    # No graphs at all.
    analysis = quick([tree], [tree], [other])
    assert analysis.graphs is None
    assert analysis.labels is None
    assert group(analysis, "different").scores.keys() == {"UAS", "exact trees"}
    assert (analysis.heads.judged, analysis.heads.any.share) == (0, 0.0)
    (shown,) = [table for table in analysis_tables(analysis, "A", "B") if table.title == "Head changes"]
    assert [cell.text for cell in shown.rows[0].cells] == ["1", "3", "1", "0", "1", "0"]  # made wrong, one of three
    assert analysis.gained == "heads"
    assert [example.gain for example in analysis.losses] == [-1]
    # Without punctuation the trees are the same.
    assert group(quick([tree], [tree], [other], punctuation=False), "same").sentences == 1
    # No gold trees, and no gold graph for one of two sentences.
    bare = Sentence(words)
    analysis = quick([bare, replace(both, heads=None)], [both, both], [replace(both, heads=other.heads)] * 2)
    assert analysis.heads.right_to_wrong is None
    assert (analysis.heads.changed, analysis.heads.judged) == (2, 1)
    assert group(analysis, "all").scores.keys() == {"LF", "UF", "exact graphs"}
    assert group(analysis, "all").scores["LF"].items == 1
    assert {one.measure for one in analysis.breakdowns} == {"LF"}
    # Nothing but answers: they can be compared, but not judged.
    analysis = quick([bare], [replace(bare, label=0)], [replace(bare, label=1)])
    assert (analysis.labels.flipped, analysis.labels.wrong_to_wrong, analysis.labels.table) == (1, 0, ())
    assert (analysis.split, analysis.groups[0].scores, analysis.gained) == (None, {}, None)


def test_an_empty_sentence_and_one_word():
    empty, one = Sentence((), heads=(), graph=Graph()), Sentence(("Go",), heads=(0,), graph=Graph.of([], [1]))
    analysis = quick([empty, one], [empty, one], [empty, one])
    assert group(analysis, "same").sentences == 2
    assert group(analysis, "same").scores["LF"].b == 1.0
    assert group(analysis, "different").scores == {}


def test_is_ready_for_json():
    gold = [replace(sentence, label=None) for sentence in splits(train=5).train]
    analysis = quick(gold, gold, [replace(s, heads=(0, *range(1, len(s)))) for s in gold])
    record = json.loads(json.dumps(asdict(analysis)))
    (different,) = (one for one in record["groups"] if one["name"] == "different")
    assert different["scores"]["UAS"]["b"] == group(analysis, "different").scores["UAS"].b
    assert record["heads"]["any"]["count"] == analysis.heads.any.count > 0


def test_thousands_of_sentences_take_little_time():
    gold = [replace(sentence, label=None) for sentence in splits(train=20).train]
    other = [replace(s, heads=(0, *range(1, len(s)))) for s in gold]
    # Not timed; but a loop over all pairs of sentences would take so long that the suite would be ended.
    analysis = analyse(gold * 250, gold * 250, other * 250, samples=10)
    assert group(analysis, "all").scores["UAS"].b == pytest.approx(tree_counts(gold, other).f1())


def test_what_is_neither_tree_nor_graph_nor_class_is_scored_too() -> None:
    """Under names of its own, by whoever can judge it; alone it is enough to compare two systems."""
    from spigot_nlp.annotations import further_judges

    words = ("Rain", "fell")
    right, wrong = Graph.of([Arc(2, 1, "ARG1")]), Graph.of([Arc(2, 1, "ARG2")])
    gold, good, bad = (Sentence(words).put("second", graph) for graph in (right, right, wrong))
    judges = further_judges([gold], [bad], [good])
    scores = analyse([gold], [bad], [good], more=judges).groups[0].scores
    assert {name: (score.a, score.b) for name, score in scores.items()} == {
        "second LF": (0.0, 1.0),
        "second UF": (1.0, 1.0),
    }
    assert further_judges([gold], [bad], [Sentence(words)]) == {}  # one of them lacks it
    with pytest.raises(ValueError, match="nothing to compare"):
        analyse([gold], [bad], [good])
