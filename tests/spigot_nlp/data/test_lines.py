"""Plain text and labelled text: a sentence on each line."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.data.formats import FormatError, guess, read, write
from spigot_nlp.data.formats.lines import LineSource
from spigot_nlp.data.sentence import Sentence

TEXT = "The kettle sings .\nWe like it !\n"
LABELLED = "1\tThe kettle sings .\n0\tIt leaks\n12\tHm .\n"


def load(text: str, format: str) -> list[Sentence]:
    return list(read(io.StringIO(text), format))


def render(sentences: list[Sentence], format: str) -> str:
    out = io.StringIO()
    write(sentences, out, format)
    return out.getvalue()


def reason(text: str, format: str) -> str:
    with pytest.raises(FormatError) as caught:
        load(text, format)
    return str(caught.value)


def test_names() -> None:
    assert guess("reviews.tsv") == guess("reviews.tsv.gz") == "labelled"
    assert guess("notes.txt") == "text"


def test_text() -> None:
    assert load(TEXT, "text") == [Sentence(("The", "kettle", "sings", ".")), Sentence(("We", "like", "it", "!"))]


def test_labelled() -> None:
    sentences = load(LABELLED, "labelled")
    assert [(sentence.label, len(sentence)) for sentence in sentences] == [(1, 4), (0, 2), (12, 2)]
    assert sentences[0] == Sentence(("The", "kettle", "sings", "."), label=1)


def test_white_space_separates_but_for_no_break_spaces_inside() -> None:
    assert load("a \t b\u3000c\u2028d\x0be\n", "text")[0].forms == ("a", "b", "c", "d", "e")
    assert load("8\u00a01/2 men\u00a0 , 5\u202fkm\n", "text")[0].forms == ("8\u00a01/2", "men", ",", "5\u202fkm")
    assert load("2\ta\t b\tc \n", "labelled")[0] == Sentence(
        ("a", "b", "c"), label=2, source=LineSource("2\ta\t b\tc ")
    )
    assert load("a\n\ufeffb c\n", "text")[1].forms == ("b", "c")  # two files joined


@pytest.mark.parametrize("format", ["text", "labelled"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text",
    [
        "1\tgood kettle\n0\tbad\n",
        "1\tgood kettle\n0\tbad",
        "\n\n1\tgood  kettle \n\n\n0\t\tbad\n\n",
        "\ufeff1\tgood\n \t\n0\tbad\n   ",
        "\ufeff\n1\tgood\n",
        "007\t good\n",
        "",
    ],
)
def test_round_trip(text: str, newline: str, format: str) -> None:
    data = text.replace("\n", newline).encode()
    out = io.BytesIO()
    assert write(read(io.BytesIO(data), format), out, format) == text.count("\t") - text.count(" \t\n") - text.count(
        "\t\t"
    )
    assert out.getvalue() == data


def test_a_changed_sentence_is_written_anew_in_its_place() -> None:
    first, second = load("1\tgood  kettle\n\n0\tbad  one\n", "labelled")
    assert render([replace(first, label=0), second], "labelled") == "0\tgood kettle\n\n0\tbad  one\n"
    assert render([first, replace(second, forms=("fine",))], "labelled") == "1\tgood  kettle\n\n0\tfine\n"
    assert render([first, second], "text") == "good kettle\n\nbad one\n"
    (plain,) = load("1  kettle\n", "text")
    assert render([replace(plain, label=1)], "labelled") == "1\t1 kettle\n"
    (plain,) = load("1\tkettle\n", "text")
    assert render([replace(plain, label=1)], "labelled") == "1\t1 kettle\n"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("good kettle", "no tab; a line is LABEL<TAB>TEXT"),
        ("1 good kettle", "no tab"),
        ("label\ttext", "the label is 'label'; it must be a whole number from 0"),
        ("good kettle\t1", "the label is 'good kettle'; it must be"),
        ("-1\tgood", "the label is '-1'"),
        ("1.0\tgood", "the label is '1.0'"),
        ("\u0661\tgood", "the label is '\u0661'"),
        ("1" * 5000 + "\tgood", "the label is '111111"),
        (" 1\tgood", "the label is ' 1'"),
        ("\tgood", "the label is ''"),
        ("1\t", "no words after the label 1"),
        ("1\t \u00a0 ", "no words after the label 1"),
    ],
)
def test_malformed_labelled_lines(line: str, what: str) -> None:
    assert reason(f"0\tfine\n\n{line}\n", "labelled").startswith(f"<stream>:3: {what}")
    seen: list[FormatError] = []
    kept = list(read(io.StringIO(f"{line}\n0\tfine\n"), "labelled", skip_bad=seen.append))
    assert [sentence.forms for sentence in kept] == [("fine",)]
    assert len(seen) == 1


def test_a_tree_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("(3 (2 It) (4 sings))\n")
    with pytest.raises(FormatError, match=r"train\.txt:1: a tree of the Stanford.*'sst-binary'.*--format sst-binary"):
        list(read(path))
    path.write_text("( 3 stars ) It sings\n(3 stars)\n")
    assert [len(sentence) for sentence in read(path)] == [6, 2]
    assert reason("fine\n\u00a0\n", "text").startswith("<stream>:2: a line without a word")


@pytest.mark.parametrize("form", ["", "a b", "a\tb", "a\nb", "a\r", "\u00a0", "a\u00a0", "\ufeffa", "a\0", "a\u2028b"])
@pytest.mark.parametrize("format", ["text", "labelled"])
def test_words_that_no_line_can_hold(form: str, format: str) -> None:
    with pytest.raises(ValueError, match=r"'no .*, word 2: .* cannot be written on a line of words.*'jsonl'"):
        render([Sentence(("no", form), label=1)], format)


def test_sentences_that_no_line_can_hold() -> None:
    with pytest.raises(ValueError, match="sentence 'Hm' has the label None; it can be written as 'text' or 'jsonl'"):
        render([Sentence(("Hm",))], "labelled")
    with pytest.raises(ValueError, match="has the label -1; classes are numbered from 0"):
        render([Sentence(("Hm",), label=-1)], "labelled")
    with pytest.raises(ValueError, match="has no words"):
        render([Sentence(())], "text")
    with pytest.raises(ValueError, match="would be taken for a tree"):
        render([Sentence(("(3", "(2", "It)", ")"))], "text")


WORD = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=5).filter(
    lambda word: "\ufeff" not in word
)
SENTENCES = st.builds(
    lambda forms, label: Sentence(tuple(forms), label=label), st.lists(WORD, min_size=1, max_size=5), st.integers(0, 99)
)


@given(st.lists(SENTENCES, max_size=4))
def test_lines_hold_any_words(sentences: list[Sentence]) -> None:
    assert load(render(sentences, "labelled"), "labelled") == sentences
    assert load(render(sentences, "text"), "text") == [replace(sentence, label=None) for sentence in sentences]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0")), max_size=4))
def test_any_text_comes_back(lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines if line.encode().strip()).encode()
    kept: list[FormatError] = []
    out = io.BytesIO()
    write(read(io.BytesIO(data), "text", skip_bad=kept.append), out, "text")
    assert kept or out.getvalue() == data
