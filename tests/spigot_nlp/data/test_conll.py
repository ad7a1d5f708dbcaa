"""CoNLL-X and CoNLL-U: what is read into which field, what is written from where, what is refused."""

import io
import re
from dataclasses import replace

import conllu
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.data.formats import FormatError, read, write
from spigot_nlp.data.formats.conll import ConllSource
from spigot_nlp.data.sentence import Arc, Graph, Sentence

RICH = """\
# newdoc
# sent_id = r-1
# text = Don't run and he swims.
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVBP\tMood=Imp\t3\taux\t3:aux\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t3:advmod\t_
3\trun\trun\tVERB\tVB\tVerbForm=Inf\t0\troot\t0:root\t_
3.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t3:nsubj\tAdded=Yes
4\tand\tand\tCCONJ\tCC\t_\t6\tcc\t6:cc\t_
5\the\the\tPRON\tPRP\t_\t6\tnsubj\t3.1:orphan|6:nsubj\t_
6\tswims\tswim\tVERB\tVBZ\t_\t3\tconj\t0:root|3:conj:and\tSpaceAfter=No
7\t.\t.\tPUNCT\t.\t_\t3\tpunct\t3:punct\t_

"""


def parse(text: str, format: str = "conllu") -> Sentence:
    (sentence,) = read(io.StringIO(text), format)
    return sentence


def render(sentence: Sentence, format: str = "conllu") -> str:
    out = io.StringIO()
    write([sentence], out, format)
    return out.getvalue()


def column(text: str, number: int) -> list[str]:
    return [line.split("\t")[number] for line in text.splitlines() if line and line[0] != "#"]


def test_every_field_of_a_rich_sentence() -> None:
    sentence = parse(RICH)
    assert sentence.id == "r-1"
    assert sentence.forms == ("Do", "n't", "run", "and", "he", "swims", ".")
    assert sentence.lemmas == ("do", "not", "run", "and", "he", "swim", ".")
    assert sentence.tags == ("VBP", "RB", "VB", "CC", "PRP", "VBZ", ".")
    assert sentence.heads == (3, 3, 0, 6, 6, 3, 3)
    assert sentence.relations == ("aux", "advmod", "root", "cc", "nsubj", "conj", "punct")
    assert sentence.graph == Graph(
        arcs=(
            Arc(3, 1, "aux"),
            Arc(3, 2, "advmod"),
            Arc(3, 6, "conj:and"),
            Arc(3, 7, "punct"),
            Arc(6, 4, "cc"),
            Arc(6, 5, "nsubj"),
        ),
        tops=(3, 6),
        predicates=(3, 6),
    )
    assert isinstance(sentence.source, ConllSource)
    assert render(sentence) == RICH


def test_changed_fields_are_written_and_the_rest_is_kept() -> None:
    sentence = parse(RICH)
    changed = replace(
        sentence, heads=(2, 3, 0, 3, 3, 3, 3), relations=None, tags=("X",) * 7, lemmas=None, id="new", forms=("w",) * 7
    )
    text = render(changed)
    assert text.splitlines()[:3] == ["# newdoc", "# sent_id = new", "# text = Don't run and he swims."]
    assert column(text, 0) == ["1-2", "1", "2", "3", "3.1", "4", "5", "6", "7"]
    assert column(text, 6) == ["_", "2", "3", "0", "_", "3", "3", "3", "3"]
    assert column(text, 4) == ["_", "X", "X", "X", "PRP", "X", "X", "X", "X"]
    assert column(text, 3) == column(RICH, 3)
    assert column(text, 5) == column(RICH, 5)
    assert column(text, 8) == column(RICH, 8)
    assert column(text, 9) == column(RICH, 9)
    assert parse(text) == replace(changed, source=parse(text).source)
    assert "sent_id" not in render(replace(sentence, id=""))


def test_empty_nodes_go_with_their_graph() -> None:
    sentence = parse(RICH)
    text = render(
        replace(sentence, graph=Graph.of([Arc(3, 5, "ARG1"), Arc(6, 5, "ARG1"), Arc(3, 5, "ARG2")], tops=[3]))
    )
    assert column(text, 0) == ["1-2", "1", "2", "3", "4", "5", "6", "7"]
    assert column(text, 8) == ["_", "_", "_", "0:root", "_", "3:ARG1|3:ARG2|6:ARG1", "_", "_"]
    assert column(render(sentence.without_annotation()), 8) == ["_"] * 8
    assert column(render(sentence.without_annotation()), 6) == ["_"] * 8


def test_coarse_tags_stand_in_for_fine_ones() -> None:
    text = "1\tUp\tup\tADV\t_\t_\t0\troot\t_\t_\n\n"
    for format in ("conllu", "conllx"):
        sentence = parse(text, format)
        assert sentence.tags == ("ADV",)
        assert render(sentence, format) == text
        assert render(replace(sentence, tags=("ADP",)), format) == text.replace("ADV", "ADP")
    bare = parse(text.replace("ADV", "_"))
    assert bare.tags is None
    assert render(replace(bare, tags=("RB",))) == text.replace("ADV\t_", "_\tRB")


def test_unknown_columns_are_none() -> None:
    sentence = parse("1\ta" + "\t_" * 8 + "\n\n")
    assert sentence == Sentence(("a",), source=sentence.source)
    partly = parse("1\ta\t_\t_\tX\t_\t0\t_\t_\t_\n2\tb\tb\t_\t_\t_\t1\tdep\t_\t_\n")
    assert partly.lemmas == ("_", "b")
    assert partly.tags == ("X", "_")
    assert partly.relations == ("_", "dep")


def test_graph_that_is_not_written_in_order_is_kept_as_it_is() -> None:
    text = (
        "1\ta\t_\t_\t_\t_\t2\tx\t3:y|2:x\t_\n2\tb\t_\t_\t_\t_\t0\troot\t0:top\t_\n3\tc\t_\t_\t_\t_\t2\tx\t8.1:z\t_\n\n"
    )
    sentence = parse(text)
    assert sentence.graph == Graph.of([Arc(2, 1, "x"), Arc(3, 1, "y")], tops=[2])
    assert render(sentence) == text


def test_source_of_another_length_or_format_is_left_aside() -> None:
    sentence = parse(RICH)
    assert render(
        replace(sentence, forms=("a",), lemmas=None, tags=None, upos=None, heads=None, graph=None, relations=None)
    ) == ("# sent_id = r-1\n1\ta" + "\t_" * 8 + "\n\n")
    text = render(sentence, "conllx")
    assert column(text, 0) == list("1234567")
    assert "#" not in text
    assert column(text, 8) == ["_"] * 7


def test_conllx_keeps_its_last_columns() -> None:
    text = "1\tRain\train\tN\tNN\tsg\t2\tsbj\t2\tSBJ\n2\tfell\tfall\tV\tVBD\t_\t0\troot\t0\tROOT\n\n"
    sentence = parse(text, "conllx")
    assert (sentence.tags, sentence.heads, sentence.graph) == (("NN", "VBD"), (2, 0), None)
    assert render(sentence, "conllx") == text
    assert column(render(replace(sentence, heads=(0, 1)), "conllx"), 6) == ["0", "1"]


def line(word: int, head: object = 0, deps: str = "_", form: str = "w") -> str:
    return f"{word}\t{form}\t_\t_\t_\t_\t{head}\t_\t{deps}\t_\n"


@pytest.mark.parametrize(
    ("text", "number", "what"),
    [
        ("1\tw\t_\n", 1, "3 columns where 10, separated by tabs, are expected."),
        ("# c\n" + line(1) + "2 w _ _ _ _ 1 _ _ _\n", 3, "1 column where 10"),
        (line(1) + line(3, 1), 2, "the word is numbered '3' where 2 is expected."),
        (line(1) + "# c\n" + line(2, 1), 2, "a comment inside a sentence"),
        (line(1) + "# c" + "\t_" * 9 + "\n" + line(2, 1), 2, "a comment inside a sentence"),
        (line(1) + "  \n" + line(1), 2, "a line of white space only"),
        (line(1, form=""), 1, "column 2 is empty; an unknown value is written as `_`."),
        ("01" + line(1)[1:], 1, "the word is numbered '01' where 1 is expected."),
        ("one" + line(1)[1:], 1, "'one' is no number of a word"),
        (line(1, "x"), 1, "the head of word 1 is 'x'; it must be a number from 0 to 1, or `_` for every word."),
        (line(1) + line(2, 3), 2, "the head of word 2 is '3'; it must be a number from 0 to 2"),
        (line(1) + line(2, -1), 2, "the head of word 2 is '-1'"),
        (line(1) + line(2, "+1"), 2, "the head of word 2 is '+1'"),
        (line(1) + line(2, "_"), 2, "the head of word 2 is '_'"),
        (line(1) + line(2, 2), 2, "word 2 is its own head."),
        (
            line(1) + line(2, 4) + line(3, 2) + line(4, 3),
            2,
            "word 2 is its own ancestor (2 -> 4 -> 3 -> 2), so the heads",
        ),
        (line(1, 2) + line(2, 1), 1, "word 1 is its own ancestor (1 -> 2 -> 1)"),
        (line(1, deps="1"), 1, "the enhanced dependency '1' is not of the form HEAD:RELATION, as in 4:nsubj."),
        (line(1, deps="x:nsubj"), 1, "the enhanced dependency 'x:nsubj' is not"),
        (line(1, deps="0:root|"), 1, "the enhanced dependency '' is not"),
        (line(1, deps="2:x"), 1, "an enhanced head of word 1 is 2; it must be a number from 0 to 1"),
        (line(1, deps="1:x"), 1, "word 1 is its own head in the enhanced dependencies '1:x'."),
        (line(1) + line(2, 1, deps="1:x|1:x"), 2, "the enhanced dependencies '1:x|1:x' name one arc twice."),
        ("2-3" + line(1)[1:] + line(1), 1, "the multiword range '2-3' where a range that begins at 1"),
        ("1-2" + line(1)[1:] + line(1) + "2-3" + line(1)[1:] + line(2, 1), 3, "the multiword range '2-3' where"),
        ("1-3" + line(1)[1:] + line(1), 1, "the multiword range ends at 3 but the sentence has 1 words."),
        (line(1) + "1.2" + line(1)[1:], 2, "the empty node is numbered '1.2' where 1.1 is expected."),
        ("0.1" + line(1)[1:], 1, "the sentence has no words."),
    ],
)
def test_malformed_lines(text: str, number: int, what: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse("\n" + text)
    assert str(caught.value).startswith(f"<stream>:{number + 1}: {what}")


def test_ranges_are_not_for_conllx() -> None:
    with pytest.raises(FormatError, match="the word is numbered '1-2' where 1 is expected"):
        parse("1-2" + line(1)[1:] + line(1), "conllx")


def test_several_roots_and_long_sentences_are_fine() -> None:
    assert parse(line(1) + line(2)).heads == (0, 0)
    size = 1500
    text = "".join(line(word, word - 1) for word in range(1, size + 1)) + "\n"
    assert parse(text).heads == tuple(range(size))
    assert render(parse(text)) == text


@pytest.mark.parametrize(
    ("sentence", "what"),
    [
        (
            Sentence(("a", "b"), heads=(0, 3)),
            "sentence 'a b': the head of word 2 is 3; it must be a number from 0 to 2.",
        ),
        (Sentence(("a", "b"), heads=(2, 1), id="s"), "sentence 's': word 1 is its own ancestor"),
        (Sentence(("a",), graph=Graph.of([Arc(1, 1, "x")])), "must join two different words from 1 to 1"),
        (Sentence(("a",), graph=Graph.of([Arc(0, 1, "x")])), "the arc 0 -x-> 1 must join"),
        (Sentence(("a",), graph=Graph(tops=(2,))), "top or predicate 2 must be a word from 1 to 1"),
        (Sentence(("a", "b"), graph=Graph.of([Arc(1, 2, "x|y")])), "the role 'x|y' of word 2 is empty or holds a `|`"),
    ],
)
def test_what_cannot_be_written(sentence: Sentence, what: str) -> None:
    with pytest.raises(ValueError, match=re.escape(what)):
        render(sentence)


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0"), min_size=1, max_size=6)
ROLES = st.text("abC-_:.", min_size=1, max_size=4)


@st.composite
def sentences(draw: st.DrawFn) -> Sentence:
    """Any sentence that CoNLL-U can hold."""
    size = draw(st.integers(1, 6))
    words = st.lists(CELLS, min_size=size, max_size=size).map(tuple)
    annotated = words.filter(lambda column: column.count("_") < size)
    order = draw(st.permutations(range(1, size + 1)))
    heads = [0] * size
    for place, word in enumerate(order):
        heads[word - 1] = draw(st.sampled_from([0, *order[:place]]))
    pairs = st.builds(Arc, st.integers(1, size), st.integers(1, size), ROLES).filter(lambda arc: arc[0] != arc[1])
    arcs = draw(st.sets(pairs, max_size=8)) if size > 1 else set()
    tops = draw(st.sets(st.integers(1, size)))
    graph = Graph.of(arcs, tops) if arcs or tops else None
    return Sentence(
        forms=draw(words),
        lemmas=draw(st.none() | annotated),
        tags=draw(st.none() | annotated),
        heads=draw(st.sampled_from([None, tuple(heads)])),
        relations=draw(st.none() | annotated),
        graph=draw(st.sampled_from([None, graph])),
        id=draw(st.text("abc-01", max_size=5)),
    )


@given(st.lists(sentences(), max_size=4))
def test_conllu_holds_any_sentence(given_sentences: list[Sentence]) -> None:
    out = io.StringIO()
    write(given_sentences, out, "conllu")
    back = list(read(io.BytesIO(out.getvalue().encode()), "conllu"))
    assert [replace(sentence, source=None) for sentence in back] == given_sentences
    again = io.StringIO()
    write(back, again, "conllu")
    assert again.getvalue() == out.getvalue()


@given(st.lists(sentences(), max_size=4))
def test_conllx_holds_any_tree(given_sentences: list[Sentence]) -> None:
    out = io.StringIO()
    write(given_sentences, out, "conllx")
    back = [replace(sentence, source=None) for sentence in read(io.BytesIO(out.getvalue().encode()), "conllx")]
    assert back == [replace(sentence, graph=None, id="") for sentence in given_sentences]


@given(sentences(), sentences())
def test_a_changed_sentence_is_read_back_as_changed(first: Sentence, second: Sentence) -> None:
    source = parse(render(first)).source
    mixed = replace(second, source=source)
    assert replace(parse(render(mixed)), source=source) == mixed


def check_against_oracle(text: str) -> None:
    """The `conllu` package reads the same words, trees and enhanced arcs."""
    ours, theirs = list(read(io.StringIO(text), "conllu")), conllu.parse(text)
    assert len(ours) == len(theirs)
    for sentence, tokens in zip(ours, theirs, strict=True):
        words = [token for token in tokens if isinstance(token["id"], int)]
        assert sentence.forms == tuple(token["form"] for token in words)
        assert sentence.heads == tuple(token["head"] for token in words)
        assert sentence.relations == tuple(token["deprel"] for token in words)
        assert sentence.tags == tuple(token["xpos"] for token in words)
        assert sentence.lemmas == tuple(token["lemma"] for token in words)
        assert sentence.id == tokens.metadata.get("sent_id", "")
        arcs = [
            Arc(head, token["id"], role)
            for token in words
            for role, head in token["deps"] or []
            if isinstance(head, int) and head
        ]
        assert sentence.graph is not None
        assert sentence.graph.arcs == tuple(sorted(arcs))
        tops = [token["id"] for token in words if any(head == 0 for _, head in token["deps"] or [])]
        assert sentence.graph.tops == tuple(tops)


def test_the_conllu_package_reads_the_same() -> None:
    check_against_oracle(RICH)
