"""What is drawn, and the picture of it."""

import re
from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.report.arcs import STYLE, Drawing, DrawnArc, Mark, caption, drawing, legend, svg
from spigot_nlp.report.glyphs import columns, visible
from spigot_nlp.report.layout import LONGEST
from spigot_nlp.report.marks import MEANINGS, SIGNS
from spigot_nlp.report.terminal import text
from tests.spigot_nlp.report.drawings import FOUND, RIGHT, WORDS, drawings, long_sentence, sentence


def marks(arcs: tuple[DrawnArc, ...]) -> dict[tuple[int, int, str], Mark]:
    assert len({(arc.start, arc.end, arc.label) for arc in arcs}) == len(arcs)
    return {(arc.start, arc.end, arc.label): arc.mark for arc in arcs}


def test_alone():
    drawn = drawing(FOUND, notes={("above", 2, 3, "ARG2"): "score 1.5"})
    assert set(marks(drawn.above).values()) | set(marks(drawn.below).values()) == {"plain"}
    assert [arc.note for arc in drawn.above] == ["", "score 1.5", ""]
    assert drawn.predicates == (2,)
    assert (0, 2, "TOP") in marks(drawn.above)
    assert drawing(Sentence(WORDS)) == Drawing(WORDS)


def test_beside_gold():
    drawn = drawing(FOUND, gold=RIGHT)
    assert marks(drawn.above) == {
        (2, 1, "ARG1"): "right",
        (2, 3, "ARG2"): "wrong",
        (2, 3, "MANNER"): "missed",
        (0, 2, "TOP"): "wrong",
        (0, 3, "TOP"): "missed",
    }
    assert marks(drawn.below) == {
        (2, 1, ""): "right",
        (0, 2, ""): "right",
        (2, 3, ""): "right",
        (2, 4, ""): "wrong",
        (4, 5, ""): "wrong",
        (5, 4, ""): "missed",
        (2, 5, ""): "missed",
    }


def test_a_side_that_gold_lacks_is_plain_and_one_that_only_gold_has_is_left_out():
    trees, graphs = Sentence(WORDS, heads=FOUND.heads), Sentence(WORDS, graph=FOUND.graph)
    assert set(marks(drawing(FOUND, gold=trees).above).values()) == {"plain"}
    assert drawing(graphs, gold=trees).below == ()


def test_labels_of_trees_are_not_compared():
    named = Sentence(WORDS, heads=FOUND.heads, relations=("a", "b", "c", "d", "_"))
    drawn = drawing(Sentence(WORDS, heads=FOUND.heads), gold=named)
    assert set(marks(drawn.below).values()) == {"right"}
    assert [arc.label for arc in drawing(named).below] == ["a", "b", "c", "d", ""]


def test_before_and_after():
    before = sentence((2, 0, 2, 5, 4), Arc(2, 1, "ARG1"), Arc(2, 3, "MANNER"))
    drawn = drawing(FOUND, before=before)
    assert marks(drawn.below)[2, 4, ""] == "new"
    assert marks(drawn.below)[5, 4, ""] == "gone"
    assert marks(drawn.below)[4, 5, ""] == "plain"
    both = {(arc.start, arc.end): (arc.mark, arc.note) for arc in drawing(FOUND, before=before, gold=RIGHT).below}
    assert both[2, 4] == ("new", "wrong")
    assert both[5, 4] == ("gone", "was right")
    assert both[4, 5] == ("wrong", "")
    assert both[2, 5] == ("missed", "")


def test_errors():
    with pytest.raises(ValueError, match="gold is 'Go' but the sentence is 'Rain fell"):
        drawing(FOUND, gold=Sentence(("Go",)))
    for start, end in ((1, 1), (1, 6), (6, 1), (-1, 1), (1, 0)):
        with pytest.raises(ValueError, match=f"from {start} to {end}; it must join two different ones of the 5 words"):
            Drawing(WORDS, above=(DrawnArc(start, end),))
    with pytest.raises(ValueError, match="1 tags for 5 words"):
        Drawing(WORDS, tags=("NN",))
    with pytest.raises(ValueError, match="mark is 'odd'; it must be one of plain"):
        Drawing(WORDS, above=(DrawnArc(1, 2, mark="odd"),))  # pyright: ignore[reportArgumentType]  # that is the test
    with pytest.raises(ValueError, match="width is 0"):
        text(Drawing(WORDS), width=0)


def parsed(drawn: Drawing, *, standalone: bool = False) -> ElementTree.Element:
    source = svg(drawn, standalone=standalone)
    return ElementTree.fromstring(source.replace(' xmlns="http://www.w3.org/2000/svg"', ""))


@settings(max_examples=40, deadline=None)
@given(drawings())
def test_svg_has_every_arc_once_and_every_word(drawn):
    root = parsed(drawn)
    groups = [group for group in root.iter("g") if group.get("class", "").startswith("arc ")]
    keys = ("data-side", "data-start", "data-end", "data-label", "class")
    wanted = Counter(
        (side, str(arc.start), str(arc.end), visible(arc.label) if arc.label else "", f"arc {arc.mark}")
        for side in ("above", "below")
        for arc in getattr(drawn, side)
    )
    assert Counter(tuple(group.get(key) for key in keys) for group in groups) == wanted
    for group in groups:
        assert group.get("tabindex") == "0"
        assert group.findtext("title")
        assert [path.get("class") for path in group.iter("path")] == ["x", None, "h"]
    words = [node for node in root.iter("text") if node.get("class", "").startswith("word")]
    assert [node.text for node in words] == [visible(word) for word in drawn.words]
    assert [node.get("data-word") for node in words] == [str(i + 1) for i in range(len(words))]
    left, top, width, height = map(float, (root.get("viewBox") or "").split())
    for node in root.iter("text"):
        assert left <= float(node.get("x", "")) <= left + width
        assert top <= float(node.get("y", "")) <= top + height


@settings(max_examples=25, deadline=None)
@given(drawings())
def test_a_file_of_its_own_is_complete(drawn):
    source = svg(drawn, standalone=True)
    root = ElementTree.fromstring(source)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme:dark" in source
    found = {arc.mark for arc in (*drawn.above, *drawn.below)}
    keys = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text") if node.get("class") == "key"]
    assert keys == ([MEANINGS[mark] for mark in SIGNS if mark in found] if found - {"plain"} else [])


def test_titles_say_what_an_arc_is_and_notes_are_escaped():
    drawn = Drawing(WORDS, above=(DrawnArc(2, 1, "A<1", "wrong", "score <b>1.5</b>\nmarginal 0.2"),))
    title = next(parsed(drawn).iter("title")).text
    assert title == "fell → Rain: A<1 (found, but wrong)\nscore <b>1.5</b>\nmarginal 0.2"
    assert "<b>" not in svg(drawn)


def test_marks_differ_by_more_than_colour():
    drawn = {mark: parsed(Drawing(WORDS, above=(DrawnArc(1, 2, "L", mark),))) for mark in SIGNS}
    signs = {
        mark: next(node.text for node in root.iter("text") if not node.get("class")) for mark, root in drawn.items()
    }
    assert len({sign for mark, sign in signs.items() if mark not in ("plain", "right")}) == 4
    rules = dict(re.findall(r"\.arcs \.(\w+) path\{(stroke-[^}]*)\}", STYLE))
    assert set(rules) == {"wrong", "missed", "new", "gone"}
    assert len(set(rules.values())) == 4
    assert set(MEANINGS.values()) == set(re.findall(r"</svg>([^<]+)</span>", legend()))


def test_hundreds_of_words():
    drawn = long_sentence()
    source = svg(drawn)
    root = ElementTree.fromstring(source)
    arcs = len(drawn.above) + len(drawn.below)
    assert float(root.get("height", "")) < 500
    assert len(source) / arcs < 450
    nested = Drawing(WORDS * 100, above=tuple(DrawnArc(i, 501 - i, "x") for i in range(1, 251)))
    assert float(parsed(nested).get("height", "")) < 700


def test_labels_that_are_very_long_are_cut_but_kept():
    drawn = Drawing(WORDS, above=(DrawnArc(1, 2, "x" * 300),))
    assert columns(caption(drawn.above[0])) == LONGEST
    assert float(parsed(drawn).get("width", "")) < 700
    assert "x" * 300 in svg(drawn)
