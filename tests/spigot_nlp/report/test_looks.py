"""What is drawn of a sentence with more annotations than a tree and a graph."""

import re
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from spigot_nlp.annotations import Classes, Graphs, Tags, Trees
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.report.arcs import Drawing, drawing, svg
from spigot_nlp.report.drawings import DrawnMark, marks_of
from spigot_nlp.report.explore import _all_of_them
from spigot_nlp.report.looks import sides
from spigot_nlp.report.terminal import text
from spigot_nlp.report.tikz import tikz
from tests.spigot_nlp.report.drawings import FOUND, RIGHT

WORDS = ("Rain", "fell", "again")
SECOND = Graph.of([Arc(2, 1, "nsubj"), Arc(2, 3, "advmod")], tops=[2])
ALL = [Trees(), Graphs("second"), Tags("chunks"), Graphs(), Classes()]


def sentence(**annotations: object) -> Sentence:
    base = Sentence(WORDS, heads=(2, 0, 2), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]), label=1)
    for name, value in {"second": SECOND, "chunks": ("NP", "VP", "AP"), **annotations}.items():
        base = base.put(name, value)
    return base


def test_the_tree_and_the_graph_are_drawn_as_without_annotations():
    assert drawing(FOUND, gold=RIGHT, annotations=[Trees(), Graphs()]) == drawing(FOUND, gold=RIGHT)
    named = Sentence(WORDS, heads=(2, 0, 2), relations=("nsubj", "root", "_"))
    assert drawing(named, annotations=[Trees()]) == drawing(named)


def test_a_second_graph_stands_beneath_under_its_name():
    drawn = drawing(sentence(), annotations=ALL)
    assert drawn.sides == ("above", "below")
    assert [arc.label for arc in drawn.above] == ["ARG1", "TOP"]
    assert len(drawn.below) == 3
    assert drawn.beneath is not None
    assert drawn.beneath.sides == ("second", "")
    assert [arc.label for arc in drawn.beneath.above] == ["nsubj", "advmod", "TOP"]
    assert drawn.beneath.beneath is None
    assert sides(sentence(), ALL) == {"heads": "below", "graph": "above", "second": "second"}


def test_a_second_graph_takes_the_side_of_a_tree_that_is_not_there():
    drawn = drawing(sentence(heads=None), annotations=ALL)
    assert drawn.sides == ("above", "second")
    assert [arc.label for arc in drawn.below] == ["nsubj", "advmod", "TOP"]
    assert drawn.beneath is None


def test_every_graph_is_compared_with_its_own_kind():
    gold = sentence(second=Graph.of([Arc(2, 1, "obj")], tops=[2]))
    drawn = drawing(sentence(), gold=gold, annotations=ALL).beneath
    assert drawn is not None
    assert {(arc.label, arc.mark) for arc in drawn.above} == {
        ("nsubj", "wrong"), ("advmod", "wrong"), ("TOP", "right"), ("obj", "missed")
    }  # fmt: skip
    assert {arc.mark for arc in drawing(sentence(), gold=gold, annotations=ALL).above} == {"right"}


def test_tags_are_a_row_that_is_compared():
    gold, before = sentence(chunks=("NP", "VP", "NP")), sentence(chunks=("NP", "NP", "AP"))
    (row,) = drawing(sentence(), gold=gold, before=before, annotations=ALL).rows
    assert row == (
        DrawnMark("NP", "right"),
        DrawnMark("VP", "new", "NP before; right"),
        DrawnMark("AP", "wrong", "NP is right"),
    )
    (alone,) = drawing(sentence(), annotations=ALL).rows
    assert {each.mark for each in alone} == {"plain"}
    found = Sentence(WORDS, tags=("NN", "VBD", "RB"))
    drawn = drawing(found, gold=Sentence(WORDS, tags=("NN", "VBD", "NN")), annotations=[Tags()])
    assert drawn.tags == ()  # those that were found are the row
    assert [each.mark for each in drawn.rows[0]] == ["right", "right", "wrong"]
    assert marks_of(drawn) == ["right", "wrong"]


def test_pictures_have_all_layers_and_rows():
    drawn = drawing(sentence(), gold=sentence(chunks=("NP", "VP", "NP")), annotations=ALL)
    picture = svg(drawn, standalone=True)
    ElementTree.fromstring(picture)
    assert picture.count('data-word="1"') == 2
    assert re.findall(r'data-side="(\w+)"', picture).count("second") == 3
    assert ">second</text>" in picture
    assert "<title>NP is right</title>✗\u2009AP</text>" in picture
    source = tikz(drawn)
    assert source.count("{Rain}") == 2
    assert source.count(r"\begin{scope}") == source.count(r"\end{scope}") == 1
    assert r"$\times$\,AP" in source
    printed = text(drawn)
    assert printed.count("Rain") == 2
    assert "✗AP" in printed
    assert "\nsecond:\n" in printed


def test_a_row_has_something_for_each_word():
    with pytest.raises(ValueError, match="1 tags for 3 words"):
        Drawing(WORDS, rows=((DrawnMark("NP"),),))


def test_relations_are_compared_where_all_sides_have_them() -> None:
    words = ("Rain", "fell", "hard")
    right = Sentence(words, heads=(2, 0, 2), relations=("nsubj", "root", "advmod"))
    found = Sentence(words, heads=(2, 0, 2), relations=("nsubj", "root", "obj"))
    for annotations in (None, [Trees(relations=("nsubj", "root", "advmod", "obj"))]):
        marks = [(arc.end, arc.label, arc.mark) for arc in drawing(found, gold=right, annotations=annotations).below]
        assert marks == [(1, "nsubj", "right"), (2, "root", "right"), (3, "obj", "wrong"), (3, "advmod", "missed")]
        changed = [(arc.end, arc.mark) for arc in drawing(found, before=right, annotations=annotations).below]
        assert changed == [(1, "plain"), (2, "plain"), (3, "new"), (3, "gone")]
        bare = Sentence(words, heads=(2, 0, 2))
        for one, other in ((found, bare), (bare, found)):  # heads alone
            assert {arc.mark for arc in drawing(one, gold=other, annotations=annotations).below} == {"right"}


def test_of_two_kinds_of_trees_the_report_takes_those_with_relations() -> None:
    labelled, plain = Trees(relations=("root",)), Trees()
    for first, second in ((labelled, plain), (plain, labelled)):
        sides = [SimpleNamespace(annotations=[kind]) for kind in (first, second)]
        found = _all_of_them(sides)  # pyright: ignore[reportArgumentType] (all it looks at)
        assert [annotation for annotation in found if annotation.name == "heads"] == [labelled]
        assert [annotation.name for annotation in found] == ["heads", "graph"]
