"""What changed in labelled trees: by hand on tiny trees, and by a second, slower way."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given, settings

from spigot_nlp.annotations import further_judges
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation import is_punctuation, relation_counts, score_labelled_trees
from spigot_nlp.evaluation.analysis_tables import analysis_tables
from spigot_nlp.evaluation.relation_changes import Outcome, Renamed
from spigot_nlp.tables import Table
from tests.spigot_nlp.evaluation.test_analysis import SEEDS, answers, group, quick

#        1      2      3     4       5
WORDS = ("she", "saw", "us", "with", "tea")
GOLD = Sentence(WORDS, heads=(2, 0, 2, 5, 2), relations=("nsubj", "root", "obj", "case", "obl"), id="s")


def tables(*sides: Sequence[Sentence], **settings: Any) -> dict[str, Table]:
    return {table.title: table for table in analysis_tables(quick(*sides, **settings), "one", "two")}


def texts(table: Table) -> dict[str, list[str]]:
    return {row.name: [cell.text for cell in row.cells] for row in table.rows}


def test_changes_of_an_example_counted_by_hand():
    a = replace(GOLD, heads=(2, 0, 2, 5, 3), relations=("nsubj", "root", "obl", "mark", "nmod"))
    b = replace(GOLD, heads=(2, 0, 4, 5, 2), relations=("obj", "root", "obl", "case", "obl"))
    only = replace(GOLD, relations=("nsubj", "root", "obl", "case", "obl"))
    analysis = quick([GOLD] * 3, [a, GOLD, GOLD], [b, only, GOLD])
    names = ("same", "relabelled", "different")
    assert [group(analysis, name).sentences for name in names] == [1, 1, 1]
    changes = analysis.relations
    assert (changes.words, changes.sentences, changes.differing, changes.relabelled) == (15, 3, 2, 1)
    # Heads: word 3 moves away from the right one, word 5 to it.
    assert changes.heads == Outcome(2, 1, 1, 0)
    # Relations: 1 made wrong, 4 and 5 put right; in the second sentence 3 made wrong.
    assert changes.relations == Outcome(4, 2, 2, 0)
    # Either: 1 made wrong, 3 wrong in both, 4 and 5 put right; and 3 made wrong.
    assert changes.either == Outcome(5, 2, 2, 1)
    assert changes.by_pair == (
        Renamed("mark", "case", 1, same_head=1, right_a=0, right_b=1),
        Renamed("nmod", "obl", 1, same_head=0, right_a=0, right_b=1),
        Renamed("nsubj", "obj", 1, same_head=1, right_a=1, right_b=0),
        Renamed("obj", "obl", 1, same_head=1, right_a=1, right_b=0),
    )
    las = group(analysis, "all").scores["LAS"]
    assert (las.items, las.a, las.b) == (15, 12 / 15, 12 / 15)
    told = [
        (one.index, one.gain, one.relations_changed) for one in (*analysis.labelled_gains, *analysis.labelled_losses)
    ]
    assert told == [(0, 1, 3), (1, -1, 1)]
    assert (analysis.gains, analysis.losses) == ((), ())  # of heads


def test_what_differs_in_relations_alone_is_shown():
    other = replace(GOLD, relations=("nsubj", "root", "nmod", "case", "nmod"))
    shown = tables([GOLD] * 2, [GOLD, other], [other, other])
    split = shown["Sentences by whether their trees are the same, per cent"]
    assert list(texts(split)) == [
        f"{part} · {side}" for part in ("all", "same", "relabelled") for side in ("one", "two")
    ]
    assert "relabelled: the same heads and other relations" in split.note
    assert texts(shown["Trees: 1 of 2 sentences differ, 1 of them in relations alone"]) == {
        "heads": ["0", "0", "0", "0"],
        "relations": ["2", "0", "2", "0"],
        "either": ["2", "0", "2", "0"],
    }
    assert texts(shown["Relations of one that are others in two"]) == {
        "obj → nmod": ["1", "1", "1", "0"],
        "obl → nmod": ["1", "1", "1", "0"],
    }
    # nsubj, root and case are right on both sides, obj and obl once in one; nmod is given and not wanted.
    assert texts(shown["LAS by relation, per cent"])["obj"] == ["2", "66.7", "0.0", "−66.7"]
    assert texts(shown["LAS by relation, per cent"])["nmod"] == ["0", "0.0", "0.0", "0.0"]
    assert texts(shown["UAS by relation, per cent"])["obj"] == ["2", "100.0", "100.0", "0.0"]
    lost = shown["Sentences that gained and lost most, in words with the right head and relation"]
    assert texts(lost) == {"1: she saw us with tea": ["−2", "5", "3", "0", "2"]}
    assert "Head changes" not in shown


def test_frequent_relations_come_first_and_rare_ones_are_left_out():
    words, names = ("a",) * 40, [f"r{k % 15:02}" for k in range(40)]
    gold = Sentence(words, heads=(0, *range(1, 40)), relations=tuple(names))
    other = replace(gold, relations=tuple(f"x{name}" for name in names))
    analysis = quick([gold], [gold], [other])
    (rows,) = (part.rows for part in analysis.breakdowns if (part.measure, part.by) == ("LAS", "relation"))
    assert [row.items for row in rows] == [3] * 10 + [2] * 5 + [0] * 15
    shown = tables([gold], [gold], [other])
    for title, said in (("LAS by relation, per cent", "30"), ("Relations of one that are others in two", "15")):
        assert len(shown[title].rows) == 12
        assert f"The 12 most frequent of {said}." in shown[title].note
    assert len(analysis.relations.by_pair) == 15


def test_trees_without_relations_are_shown_as_before():
    a, b = replace(GOLD, heads=(2, 0, 5, 5, 2)), replace(GOLD, relations=("nsubj", "root", "nmod", "case", "nmod"))
    bare_gold, bare_a, bare_b = (replace(sentence, relations=None) for sentence in (GOLD, a, b))
    wanted = tables([bare_gold], [bare_a], [bare_b])
    assert not [title for title in wanted if "elation" in title]
    assert "Head changes" in wanted
    assert tables([GOLD], [bare_a], [b]) == tables([GOLD], [a], [bare_b]) == wanted  # one side has none
    analysis = quick([GOLD], [bare_a], [b])
    assert analysis.relations is None
    assert [one.name for one in analysis.groups] == ["all", "same", "different"]
    assert "LAS" not in analysis.groups[0].scores


def test_differences_are_told_where_nothing_is_known_to_be_right():
    bare = Sentence(WORDS)
    analysis = quick([bare], [GOLD], [replace(GOLD, relations=("obj", *(GOLD.relations or ())[1:]))])
    assert group(analysis, "relabelled").sentences == 1
    assert analysis.relations.relations == Outcome(1, None, None, None)
    assert analysis.relations.by_pair == (Renamed("nsubj", "obj", 1, 1, None, None),)
    assert (analysis.breakdowns, analysis.labelled_losses) == ((), ())
    shown = list(analysis_tables(analysis, "one", "two"))
    assert texts(shown[1])["relations"] == ["1", "–", "–", "–"]


def test_inside_a_classifier_other_relations_are_another_tree():
    other = replace(GOLD, relations=("obj", *(GOLD.relations or ())[1:]))
    sides = [[replace(one, label=label)] for one, label in ((GOLD, 1), (GOLD, 0), (other, 1))]
    analysis = quick(*sides)
    assert [cell.sentences for cell in analysis.labels.table if cell.changed and cell.flipped] == [1]
    assert [one.relations_changed for one in analysis.most_changed] == [1]
    graphs = [[replace(one, graph=Graph.of([Arc(1, 2, "x")]))] for (one,) in sides]
    assert [one.name for one in quick(*graphs).groups] == ["all", "same", "different"]  # of graphs


@given(SEEDS)
@settings(max_examples=20)
def test_everything_is_what_loops_count(seed):
    dice = random.Random(seed)

    def named(sentence: Sentence) -> Sentence:
        return replace(sentence, graph=None, relations=tuple(dice.choice("xyz") for _ in sentence.forms))

    gold, a, b = sides = [[named(sentence) for sentence in side] for side in answers(seed)]
    for punctuation in (True, False):
        more = further_judges(*sides)
        analysis = quick(*sides, punctuation=punctuation, more=more)
        outcomes = {"heads": Counter(), "relations": Counter(), "either": Counter()}
        pairs = Counter()
        for right, one, other in zip(*sides, strict=True):
            ignored = is_punctuation(right) if not punctuation else [False] * len(right)
            words = [list(zip(x.heads or (), x.relations or (), strict=True)) for x in (right, one, other)]
            for skip, wanted, before, after in zip(ignored, *words, strict=True):
                if skip:
                    continue
                if before[1] != after[1]:
                    pairs[before[1], after[1]] += 1
                parts = {"heads": 0, "relations": 1}
                for name, counter in outcomes.items():
                    x, y, z = (each[parts[name]] if name in parts else each for each in (wanted, before, after))
                    if y != z:
                        counter[y == x, z == x] += 1
        changes = analysis.relations
        for name, counter in outcomes.items():
            numbers = (counter[False, True], counter[True, False], counter[False, False])
            assert getattr(changes, name) == Outcome(counter.total(), *numbers)
        assert {(pair.before, pair.after): pair.words for pair in changes.by_pair} == pairs
        assert [pair.words for pair in changes.by_pair] == sorted(pairs.values(), reverse=True)
        scores = group(analysis, "all").scores
        counts = [relation_counts(gold, side, punctuation=punctuation) for side in (a, b)]
        if counts[0].gold.any():
            assert (scores["LAS"].a, scores["LAS"].b) == tuple(one.accuracy() for one in counts)
        assert json.loads(json.dumps(asdict(analysis)))["relations"]["words"] == changes.words
    found = {(part.measure, part.by): part for part in quick(*sides).breakdowns}
    by_relation = [score_labelled_trees(gold, side).by_relation for side in (a, b)]
    for row in found["LAS", "relation"].rows:
        f1 = [scores[row.name].f1 if row.name in scores else 0.0 for scores in by_relation]
        assert (row.a, row.b) == pytest.approx(tuple(f1))
    wanted = Counter(name for sentence in gold for name in sentence.relations or ())
    assert {row.name: row.items for row in found["UAS", "relation"].rows} == wanted
