"""Sentiment trees: sentences, phrases, two classes or five, escapes, and what is refused."""

import io
import re
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.data.formats import FormatError, read, write
from spigot_nlp.data.formats.files import Block, Malformed
from spigot_nlp.data.formats.sst import SentimentTree, parse_sst
from spigot_nlp.data.sentence import Sentence

GOOD = "(4 (2 We) (3 (4 (4 adored) (2 (2 this) (2 kettle))) (2 .)))"
PLAIN = "(2 (2 It) (2 (2 boils) (2 water)))"
BAD = "(1 (2 (2 -LRB-) (2 (1 leaks) (2 and\\/or))) (0 (1 drips) (2 -RRB-)))"
CORPUS = f"{GOOD}\n{PLAIN}\n{BAD}\n"


def load(text: str, format: str = "sst") -> list[Sentence]:
    return list(read(io.StringIO(text), format))


def render(sentences: list[Sentence], format: str = "sst") -> str:
    out = io.StringIO()
    write(sentences, out, format)
    return out.getvalue()


def reason(text: str, format: str = "sst") -> str:
    with pytest.raises(FormatError) as caught:
        load(text, format)
    return str(caught.value)


def test_five_classes() -> None:
    good, plain, bad = load(CORPUS)
    assert good.forms == ("We", "adored", "this", "kettle", ".")
    assert [sentence.label for sentence in (good, plain, bad)] == [4, 2, 1]
    assert [sentence.id for sentence in (good, plain, bad)] == ["1", "2", "3"]
    assert (good.tags, good.heads, good.graph) == (None, None, None)


def test_two_classes_without_the_neutral() -> None:
    sentences = load(CORPUS, "sst-binary")
    assert [(sentence.id, sentence.label) for sentence in sentences] == [("1", 1), ("3", 0)]
    everything = "".join(f"({label} (2 so) (2 so))\n" for label in range(5))
    assert [(s.id, s.label) for s in load(everything, "sst-binary")] == [("1", 0), ("2", 0), ("4", 1), ("5", 1)]


def test_escapes_become_characters() -> None:
    (sentence,) = load("(2 (2 -LRB-) (2 (2 and\\/or) (2 (2 b\\*\\*d) (2 (2 -RRB-) (2 (2 2\u00a01\\/2) (2 -up-))))))")
    assert sentence.forms == ("(", "and/or", "b**d", ")", "2\u00a01/2", "-up-")
    assert load("(2 (2 -LSB-) (2 -RCB-))")[0].forms == ("[", "}")


def test_every_phrase_once_for_each_time_it_occurs() -> None:
    text = "(3 (3 (2 so) (3 good)) (3 (2 so) (3 good)))\n(1 bad)\n"
    phrases = load(text, "sst-phrases")
    assert [(phrase.id, phrase.label, " ".join(phrase.forms)) for phrase in phrases] == [
        ("1.1", 3, "so good so good"),
        ("1.2", 3, "so good"),
        ("1.3", 2, "so"),
        ("1.4", 3, "good"),
        ("1.5", 3, "so good"),
        ("1.6", 2, "so"),
        ("1.7", 3, "good"),
        ("2.1", 1, "bad"),
    ]
    binary = load(text, "sst-binary-phrases")
    assert [(phrase.id, phrase.label) for phrase in binary] == [
        (phrase.id, int(phrase.label == 3)) for phrase in phrases if phrase.label != 2
    ]
    whole, *parts = phrases[:7]
    tree = whole.source
    assert isinstance(tree, SentimentTree)
    assert all(part.source is tree for part in parts)
    for phrase, constituent in zip(phrases[:7], tree.constituents, strict=True):
        assert phrase.forms == whole.forms[constituent.first - 1 : constituent.last]
        assert phrase.label == constituent.label


def test_a_neutral_sentence_still_has_phrases() -> None:
    text = "(2 (2 It) (3 (3 shines) (1 badly)))\n"
    assert load(text, "sst-binary") == []
    assert [(s.id, s.label) for s in load(text, "sst-binary-phrases")] == [("1.3", 1), ("1.4", 1), ("1.5", 0)]


def test_the_tree_stays_reachable() -> None:
    tree = load("(3 (2 (1 It)) (4 (2 was) (4 fun)))")[0].source
    assert isinstance(tree, SentimentTree)
    assert [tuple(constituent) for constituent in tree.constituents] == [
        (3, 1, 3),
        (2, 1, 1),
        (1, 1, 1),
        (4, 2, 3),
        (2, 2, 2),
        (4, 3, 3),
    ]


@pytest.mark.parametrize(
    "text",
    [
        CORPUS,
        CORPUS[:-1],
        "",
        "\n\n" + CORPUS,
        CORPUS.replace("\n", "\n\n"),
        CORPUS.replace("\n", "\n  \n"),
        "\ufeff" + CORPUS,
        "\ufeff\n" + CORPUS,
        CORPUS.replace("(2 ", "( 2\t ").replace(")", " ) "),
        CORPUS.replace(") (", ")("),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_round_trip(text: str, newline: str) -> None:
    data = text.replace("\n", newline).encode()
    out = io.BytesIO()
    write(read(io.BytesIO(data), "sst"), out, "sst")
    assert out.getvalue() == data


def test_what_is_left_of_two_classes_is_written_as_it_was() -> None:
    assert render(load(CORPUS, "sst-binary"), "sst-binary") == f"{GOOD}\n{BAD}\n"
    assert render(load(CORPUS, "sst-binary"), "sst") == f"{GOOD}\n{BAD}\n"
    wholes = [phrase for phrase in load(CORPUS, "sst-phrases") if phrase.id.endswith(".1")]
    assert render(wholes) == CORPUS


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("(3 (2 It) (4 rained)", "1 bracket is not closed, the last of them at column 1; add"),
        ("(3 (2 It) (4 (2 ", "3 brackets are not closed, the last of them at column 14; add"),
        ("(3 (2 It) (4 rained)))", "a closing bracket too many at column 22; take it out"),
        ("(3 (It) (4 rained))", "the label 'It' at column 5; every bracket opens with a label from 0 to 4"),
        ("((2 It) (4 rained))", "a bracket without a label at column 2; every"),
        ("(3 () (4 rained))", "a bracket without a label at column 5; every"),
        ("(3 (5 It) (4 rained))", "the label '5' at column 5; every"),
        ("(3 (-1 It) (4 rained))", "the label '-1' at column 5; every"),
        ("(3 (2.0 It) (4 rained))", "the label '2.0' at column 5; every"),
        ("(3 (\u0662 It) (4 rained))", "the label '\u0662' at column 5; every"),
        ("(3 (2 It) (4 rained)) (2 hard)", "a second tree begins at column 23; put each tree on a line of its own"),
        ("(3 (2 It) (4 ))", "an empty node ends at column 14; give it a word or parts, or take it out"),
        ("(3)", "an empty node ends at column 3; give"),
        ("(3 It rained)", "the word 'rained' beside a word at column 7; each word has a bracket and a label"),
        ("(3 It (4 rained))", "a part beside a word at column 7; each"),
        ("(3 (2 It) rained)", "'rained' at column 11 has no bracket of its own; a tree looks like"),
        ("(3 (2 It)) .", "'.' at column 12 has no bracket of its own; a tree looks like"),
        ("It rained", "'It' where a tree begins; a tree looks like (3 (2 Good) (2 film))."),
        ("1\tIt rained", "'1' where a tree begins; a tree looks like (3 (2 Good) (2 film)); for LABEL<TAB>TEXT give"),
        (")", "')' where a tree begins"),
        ("(", "1 bracket is not closed"),
        ("(3 (2 " + "x" * 100 + " y) (2 z))", "the word 'y' beside a word"),
    ],
)
@pytest.mark.parametrize("format", ["sst", "sst-binary", "sst-phrases", "sst-binary-phrases"])
def test_malformed_lines(line: str, what: str, format: str) -> None:
    assert reason(f"{GOOD}\n\n{line}\n{PLAIN}\n", format).startswith(f"<stream>:3: {what}")
    seen: list[FormatError] = []
    text = io.StringIO(f"{line}\n{GOOD}\n{line}\n")
    kept = list(read(text, format, skip_bad=seen.append))
    assert {sentence.id.split(".")[0] for sentence in kept} == {"2"}
    assert [error.line for error in seen] == [1, 3]


def test_deep_trees() -> None:
    depth = 10_000
    assert depth > sys.getrecursionlimit()
    chain = "(3 " * depth + "deep" + ")" * depth
    assert load(chain)[0].forms == ("deep",)
    assert sum(phrase.forms == ("deep",) for phrase in read(io.StringIO(chain), "sst-binary-phrases")) == depth
    branch = "(3 (2 w) " * depth + "(2 w)" + ")" * depth
    assert len(load(branch)[0]) == depth + 1
    phrases = read(io.StringIO(branch), "sst-phrases")
    assert [len(next(phrases)) for _ in range(3)] == [depth + 1, 1, depth]
    assert "9999 brackets are not closed" in reason("(3 " * depth + "deep)")


def test_only_what_was_read_can_be_written() -> None:
    good = load(GOOD)[0]
    with pytest.raises(ValueError, match=r"'We adored this kettle' .* has no tree.*'labelled' or 'jsonl'"):
        render([Sentence(good.forms, label=4)])
    with pytest.raises(ValueError, match=r"label 3 is not that of the tree it was read from, '.4 .2 We.*'labelled'"):
        render([replace(good, label=3)])
    with pytest.raises(ValueError, match="label None is not that"):
        render([good.without_annotation()])
    with pytest.raises(ValueError, match="sentence '1': its words are not those of the tree"):
        render([replace(good, forms=("You", *good.forms[1:]))])
    with pytest.raises(ValueError, match="label 4 is not that"):
        render([replace(load(GOOD, "sst-binary")[0], label=4)])
    with pytest.raises(ValueError, match="phrases are read off trees; write them as 'labelled' or 'jsonl'"):
        render(load(GOOD, "sst-phrases"), "sst-phrases")
    with pytest.raises(ValueError, match=re.escape("sentence '1.2'")):
        render(load(GOOD, "sst-phrases"))


def test_phrases_become_labelled_lines() -> None:
    assert render(load(BAD, "sst-binary-phrases"), "labelled") == (
        "0\t( leaks and/or drips )\n0\tleaks\n0\tdrips )\n0\tdrips\n"
    )


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="() \\-"), min_size=1, max_size=4)
LABELS = st.integers(0, 4)
LEAVES = st.tuples(LABELS, WORDS)
TREES = st.recursive(LEAVES, lambda parts: st.tuples(LABELS, st.lists(parts, min_size=1, max_size=3)), max_leaves=8)


def written(tree: tuple) -> str:
    label, content = tree
    return f"({label} {content if isinstance(content, str) else ' '.join(map(written, content))})"


def phrases(tree: tuple) -> list[tuple[int, tuple[str, ...]]]:
    label, content = tree
    if isinstance(content, str):
        return [(label, (content,))]
    below = [phrases(part) for part in content]
    whole = tuple(word for part in below for word in part[0][1])
    return [(label, whole), *(phrase for part in below for phrase in part)]


@given(st.lists(TREES, min_size=1, max_size=3))
def test_any_tree_is_read_and_written(trees: list[tuple]) -> None:
    text = "".join(f"{written(tree)}\n" for tree in trees)
    expected = [phrases(tree) for tree in trees]
    assert [(s.label, s.forms) for s in load(text)] == [tree[0] for tree in expected]
    found = load(text, "sst-phrases")
    assert [(s.label, s.forms) for s in found] == [phrase for tree in expected for phrase in tree]
    assert render(load(text)) == text


@given(st.text("()04 5a\t", min_size=1, max_size=14).filter(str.strip))
def test_any_line_is_read_or_explained(line: str) -> None:
    problem = ""
    try:
        tree = parse_sst(Block([line])).source
        assert isinstance(tree, SentimentTree)
        assert line.count("(") == line.count(")") == len(tree.constituents)
    except Malformed as error:
        problem = error.reason
    assert not problem or re.search(r"column \d|where a tree begins", problem)
