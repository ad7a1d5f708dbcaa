"""LAS against counts by hand."""

from dataclasses import asdict

import pytest

from spigot_nlp.annotations import Trees
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation import relation_counts, score_labelled_trees

GOLD = [
    Sentence(("She", "was", "seen", "."), heads=(3, 3, 0, 3), relations=("nsubj:pass", "aux:pass", "root", "punct")),
    Sentence(("?", "!"), heads=(2, 0), relations=("punct", "root")),
]
FOUND = [
    Sentence(("She", "was", "seen", "."), heads=(3, 3, 0, 2), relations=("nsubj", "aux:pass", "root", "punct")),
    Sentence(("?", "!"), heads=(2, 0), relations=("punct", "root")),
]


def test_las_by_hand() -> None:
    scores = score_labelled_trees(GOLD, FOUND)
    assert (scores.las, scores.uas) == (pytest.approx(4 / 6), pytest.approx(5 / 6))
    assert scores.las_without_punctuation == pytest.approx(2 / 3)
    assert scores.las_without_subtypes == pytest.approx(5 / 6)
    assert (scores.exact_labelled, scores.exact_labelled_without_punctuation) == (0.5, 0.0)
    punct = scores.by_relation["punct"]
    assert (punct.correct, punct.predicted, punct.gold) == (1, 2, 2)
    assert scores.by_relation["nsubj"].precision == 0


def test_counts_are_by_sentence() -> None:
    counts = relation_counts(GOLD, FOUND, punctuation=False)
    assert (counts.correct.tolist(), counts.gold.tolist()) == ([2, 0], [3, 0])


def test_missing_relations_are_named() -> None:
    with pytest.raises(ValueError, match="has no relations in the prediction"):
        relation_counts(GOLD, [sentence.put("relations", None) for sentence in FOUND])


def test_tables_have_both_measures() -> None:
    trees = Trees(relations=("nsubj",))
    scores = asdict(trees.score(GOLD, FOUND))
    table, relations = trees.tables(scores, {"las": (0.5, 0.75)}, every=True)
    assert len(table.rows) == 4
    assert len(relations.rows) == 5
    assert [measure.value(scores) for measure in (*trees.measures, *trees.further_measures)]
    bare = Trees().score(GOLD, FOUND)
    assert not hasattr(bare, "las")


def test_relations_of_other_trees_stand_under_their_name() -> None:
    second = Trees("second", ("nsubj",))
    sentence = Sentence(("Go",), annotations={"second": (0,), "second relations": ("root",)})
    written = second.written(sentence)
    assert (written.heads, written.relations) == ((0,), ("root",))
    bare = Sentence(("Go",), heads=(0,), relations=("root",))
    assert second.reread(bare).get("second relations") == ("root",)
    drawn = second.drawn(sentence)
    assert drawn is not None
    assert drawn.arcs[0].label == "root"
    assert drawn.labelled
