"""SDP of 2014 and 2015: graphs in columns, headers, what is refused."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.data.formats import FormatError, read, write
from spigot_nlp.data.formats.files import Block
from spigot_nlp.data.formats.sdp import variant
from spigot_nlp.data.sentence import Arc, Graph, Sentence

NEWER = """\
#SDP 2015
#x-1
1\tAda\tada\tNNP\t-\t-\tnamed\tARG1\tARG1
2\twants\twant\tVBZ\t+\t+\tv_1\t_\t_
3\tto\tto\tTO\t-\t-\t_\t_\t_
4\tread\tread\tVB\t-\t+\t_\tARG2\t_

#x-2
1\tHello\thello\tUH\t-\t-\t_

#x-3
1\tPlease\tplease\tUH\t-\t+\tplease.01\t_
2\tgo\tgo\tVB\t+\t-\t_\t_

"""
OLDER = """\
#20001001
1\tAda\tada\tNNP\t-\t-\tARG1
2\treads\tread\tVBZ\t+\t+\t_

#20001002
1\tHello\thello\tUH\t-\t-

"""


def load(text: str, format: str = "sdp") -> list[Sentence]:
    return list(read(io.StringIO(text), format))


def render(sentences: list[Sentence], format: str = "sdp") -> str:
    out = io.StringIO()
    write(sentences, out, format)
    return out.getvalue()


def test_every_field_of_2015() -> None:
    first, second, third = load(NEWER)
    assert (first.id, second.id, third.id) == ("x-1", "x-2", "x-3")
    assert first.forms == ("Ada", "wants", "to", "read")
    assert first.lemmas == ("ada", "want", "to", "read")
    assert first.tags == ("NNP", "VBZ", "TO", "VB")
    assert first.heads is None
    assert first.graph == Graph(
        arcs=(Arc(2, 1, "ARG1"), Arc(2, 4, "ARG2"), Arc(4, 1, "ARG1")),
        tops=(2,),
        predicates=(2, 4),
        frames=("named", "v_1", "_", "_"),
    )
    assert second.graph == Graph(frames=("_",))
    assert third.graph == Graph(tops=(2,), predicates=(1,), frames=("please.01", "_"))
    assert render([first, second, third]) == NEWER


def test_every_field_of_2014() -> None:
    first, second = load(OLDER, "sdp2014")
    assert first.graph == Graph((Arc(2, 1, "ARG1"),), (2,), (2,))
    assert second.graph == Graph()
    assert render([first, second], "sdp2014") == OLDER


def test_the_year_is_told_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.sdp"
    for text, frames in ((OLDER, 0), (NEWER, 4), (NEWER.removeprefix("#SDP 2015\n"), 4), ("#SDP 2014\n" + OLDER, 0)):
        path.write_text(text)
        sentence = next(iter(read(path)))
        assert sentence.graph is not None
        assert len(sentence.graph.frames) == frames
    path.write_text("#SDP 2015\n\n" + OLDER)
    with pytest.raises(FormatError, match=r"a\.sdp:4: 7 columns|word 1 has 0 argument columns"):
        list(read(path))
    with pytest.raises(
        FormatError, match=r"<stream>:2: word 1 has 0 argument columns but the sentence has 1 predicate\."
    ):
        load(OLDER)


@pytest.mark.parametrize(
    "text",
    [
        NEWER,
        NEWER.replace("\n", "\r\n"),
        NEWER.rstrip("\n"),
        NEWER.removeprefix("#SDP 2015\n"),
        NEWER.replace("#SDP 2015\n", "#SDP 2015\n\n"),
        NEWER.replace("#x-2\n", ""),
        NEWER.replace("#x-2\n", "# a remark\n#x-2\n"),
        NEWER + NEWER,
        "#SDP 2015\n",
    ],
)
def test_layout_is_kept(text: str) -> None:
    assert render(load(text)) == text


def test_header_stands_once_and_first() -> None:
    sentences = load(NEWER)
    assert render(sentences[1:]).startswith("#SDP 2015\n#x-2\n")
    assert render(sentences[::-1]).count("#SDP 2015") == 1
    assert render(sentences + load(NEWER.replace("#SDP 2015\n", "#SDP 2015\n\n"))).count("#SDP 2015") == 1
    assert render([]) == "#SDP 2015\n"
    assert "#SDP" not in render(sentences, "sdp2014")


def test_new_graph_is_written_consistently() -> None:
    first = load(NEWER)[0]
    graph = Graph((Arc(1, 3, "A"), Arc(3, 1, "B"), Arc(3, 4, "C")), tops=(4,), predicates=(2,))
    text = render([replace(first, graph=graph, id="new")])
    assert text == (
        "#SDP 2015\n#new\n"
        "1\tAda\tada\tNNP\t-\t+\t_\t_\t_\tB\n"
        "2\twants\twant\tVBZ\t-\t+\t_\t_\t_\t_\n"
        "3\tto\tto\tTO\t-\t+\t_\tA\t_\t_\n"
        "4\tread\tread\tVB\t+\t-\t_\t_\t_\tC\n\n"
    )
    assert load(text)[0].graph == Graph(graph.arcs, (4,), (1, 2, 3), ("_",) * 4)
    assert render([replace(first, graph=None)]).count("+") == 0
    frames = ("n", "v", "_", "_")
    assert load(render([replace(first, graph=replace(graph, frames=frames))]))[0].graph == Graph(
        graph.arcs, (4,), (1, 2, 3), frames
    )


def row(word: int, top: str = "-", pred: str = "-", *roles: str, form: str = "w") -> str:
    return "\t".join([str(word), form, "_", "_", top, pred, "_", *roles]) + "\n"


@pytest.mark.parametrize(
    ("text", "number", "what"),
    [
        ("1\tw\t_\t_\t-\t-\n", 1, "6 columns where SDP 2015 has at least 7, separated by tabs."),
        ("one\n", 1, "1 column where SDP 2015 has at least 7"),
        (row(1, "-", "+", "_") + row(2), 2, "word 2 has 0 argument columns but the sentence has 1 predicate."),
        (row(1) + row(2, "-", "-", "_", "_"), 2, "word 2 has 2 argument columns but the sentence has 0 predicates."),
        (row(1, "x"), 1, "the top column of word 1 has 'x'; it must be + or -."),
        (row(1) + row(2, "-", "*"), 2, "the predicate column of word 2 has '*'; it must be + or -."),
        (row(1) + row(1), 2, "the word is numbered '1' where 2 is expected."),
        (row(0), 1, "the word is numbered '0' where 1 is expected."),
        (row(1, form=""), 1, "column 2 is empty"),
        (row(1, "-", "+", "ARG1"), 1, "word 1 is an argument of itself."),
        (row(1) + "#late\n" + row(2), 2, "a comment inside a sentence"),
        (row(1, "-", "+", "_") + row(2, "-", "-", ""), 2, "column 8 is empty"),
    ],
)
def test_malformed_lines(text: str, number: int, what: str) -> None:
    with pytest.raises(FormatError) as caught:
        load("#SDP 2015\n#1\n" + text)
    assert str(caught.value).startswith(f"<stream>:{number + 2}: {what}")


def test_bad_sentences_are_skipped_whole_even_the_first(tmp_path: Path) -> None:
    path = tmp_path / "a.sdp"
    path.write_text(NEWER.replace("VBZ\t+", "VBZ\t?"))
    seen: list[FormatError] = []
    assert [sentence.id for sentence in read(path, skip_bad=seen.append)] == ["x-2", "x-3"]
    assert [error.line for error in seen] == [4]


@pytest.mark.parametrize(
    ("graph", "what"),
    [
        (Graph.of([Arc(1, 2, "A"), Arc(1, 2, "B")]), "SDP has one cell for the pair, which holds 'A'"),
        (Graph.of([Arc(1, 2, "_")]), "the arc 1 -_-> 2 cannot be written"),
        (Graph.of([Arc(1, 3, "A")]), "must join two different words from 1 to 2"),
        (Graph.of([Arc(1, 2, "")]), "word 2: '' cannot be written in a column"),
        (Graph(tops=(3,)), "top or predicate 3 must be a word"),
        (Graph(frames=("_",)), "1 frames for 2 words"),
    ],
)
def test_what_cannot_be_written(graph: Graph, what: str) -> None:
    with pytest.raises(ValueError, match=re.escape(what)):
        render([Sentence(("a", "b"), graph=graph)])


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0"), min_size=1, max_size=6)


@st.composite
def sentences(draw: st.DrawFn, frames: bool) -> Sentence:
    """Any sentence that an SDP file can hold."""
    size = draw(st.integers(1, 6))
    words = st.lists(CELLS, min_size=size, max_size=size).map(tuple)
    annotated = words.filter(lambda column: column.count("_") < size)
    pairs = st.tuples(st.integers(1, size), st.integers(1, size)).filter(lambda pair: pair[0] != pair[1])
    role = CELLS.filter(lambda cell: cell != "_")
    arcs = draw(st.dictionaries(pairs, role, max_size=8)) if size > 1 else {}
    some = st.sets(st.integers(1, size))
    graph = Graph.of([Arc(*pair, role) for pair, role in arcs.items()], draw(some), draw(some))
    return Sentence(
        forms=draw(words),
        lemmas=draw(st.none() | annotated),
        tags=draw(st.none() | annotated),
        graph=replace(graph, frames=draw(words)) if frames else graph,
        id=draw(st.text("abc-01", max_size=5)),
    )


@pytest.mark.parametrize("format", ["sdp", "sdp2014"])
@given(data=st.data())
def test_sdp_holds_any_sentence(format: str, data: st.DataObject) -> None:
    given_sentences = data.draw(st.lists(sentences(frames=format == "sdp"), max_size=4))
    text = render(given_sentences, format)
    back = list(read(io.BytesIO(text.encode()), format))
    assert [replace(sentence, source=None) for sentence in back] == given_sentences
    assert render(back, format) == text


@given(st.booleans().flatmap(lambda frames: st.tuples(st.just(frames), sentences(frames=frames))))
def test_any_file_shows_its_year(drawn: tuple[bool, Sentence]) -> None:
    frames, sentence = drawn
    text = render([sentence], "sdp" if frames else "sdp2014").removeprefix("#SDP 2015\n")
    assert variant(Block(text.rstrip("\n").split("\n"), opens=True)) == ("sdp" if frames else "sdp2014")
