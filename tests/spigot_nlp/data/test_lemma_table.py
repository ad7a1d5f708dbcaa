"""Lemmas by word and tag: what a treebank teaches, and what it is kept in."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.lemmas import Change, LemmaTable, Lemmatiser

PAST = ["walked walk", "talked talk", "rained rain", "asked ask", "looked look", "liked like", "hoped hope", "used use"]
TEXT = [
    *(Sentence((form, "it"), (lemma, "it"), ("VBD", "PRP")) for form, lemma in map(str.split, PAST)),
    Sentence(("I", "saw", "the", "saw"), ("I", "see", "the", "saw"), ("PRP", "VBD", "DT", "NN")),
    Sentence(("Her", "Otters"), ("she", "Otters"), ("PRP", "NNP")),
    Sentence(("Her", "otter"), ("her", "otter"), ("PRP$", "NN")),
    Sentence(("goes", "with"), ("_", "with"), ("GW", "IN")),
]
KNOWN = {form.lower() for sentence in TEXT for form in sentence.forms} | {"vote", "bomb", "flee"}


@pytest.fixture(scope="module")
def table() -> LemmaTable:
    return LemmaTable.learn(TEXT, KNOWN)


@pytest.mark.parametrize(
    ("form", "tag", "expected"),
    [
        ("saw", "VBD", "see"),  # the tag tells
        ("saw", "NN", "saw"),
        ("her", "PRP", "she"),
        ("Her", "PRP$", "her"),
        ("I", "PRP", "I"),
        ("Otters", "NNP", "Otters"),
        ("Voted", "VBD", "vote"),  # seen never, but one of its changes leads to a known word
        ("bombed", "VBD", "bomb"),
        ("fled", "VBD", "flee"),  # as the dictionary says
        ("blorped", "VBD", "blorp"),  # by the ending alone
        ("#blorped", "VBD", "#blorped"),  # no word, whatever its ending
        ("goes", "GW", "go"),  # with a tag that nothing was learned of
        ("", "VBD", ""),
    ],
)
def test_lemma(table: LemmaTable, form: str, tag: str, expected: str) -> None:
    assert table.lemma(form, tag, Lemmatiser().lemma(form, tag)) == expected


def test_every_word_of_the_treebank_has_its_lemma(table: LemmaTable) -> None:
    read = list(Lemmatiser(asked=table.known, answers=table.dictionary).lemmatise(TEXT[:-1]))
    assert [table.lemmas(sentence) for sentence in read] == [sentence.lemmas for sentence in TEXT[:-1]]
    assert table.lemmas(TEXT[0].put("tags", None)) == TEXT[0].lemmas


@given(form=st.text(max_size=8), lemma=st.text(min_size=1, max_size=8))
def test_a_change_makes_the_lemma(form: str, lemma: str) -> None:
    form = form.lower()
    if form.lower() == form:  # not so of every letter
        assert Change.between(form, lemma).made(form) == lemma


def test_the_dictionary_is_not_asked_about_what_it_has_said(table: LemmaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    lemmatiser = Lemmatiser(asked=table.known, answers=table.dictionary)
    plain = {word: Lemmatiser().dictionary(word) for word in KNOWN}
    monkeypatch.setattr("simplemma.lemmatize", None)
    assert {word: lemmatiser.dictionary(word) for word in KNOWN} == plain


def test_the_same_text_teaches_the_same(table: LemmaTable, tmp_path: Path) -> None:
    for name, text in (("one", TEXT), ("two", TEXT[::-1])):
        LemmaTable.learn(text, sorted(KNOWN)).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert LemmaTable.load(tmp_path / "one", KNOWN) == table


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"kind": "another"}', '{"kind": "spigot lemmas 1", "words": {"NN": {"x": "y"}}}', "\ufeff"],
)
def test_refuses_what_is_no_table(content: str, tmp_path: Path) -> None:
    (tmp_path / "lemmas.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"lemmas\.json is not a whole table of lemmas; restore it"):
        LemmaTable.load(tmp_path / "lemmas.json", ())


@pytest.mark.parametrize("part", ["words", "endings", "dictionary", "cased"])
def test_refuses_a_damaged_part(table: LemmaTable, part: str, tmp_path: Path) -> None:
    path = tmp_path / "lemmas.json"
    table.save(path)
    for wrong in (7, {"VBD": {"x": [[1, 2]]}}, {"VBD": {"x": ["a"]}}):
        path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), part: wrong}), encoding="utf-8")
        if part != "cased" or wrong == 7:
            with pytest.raises(ValueError, match="not a whole table"):
                LemmaTable.load(path, ())


def test_numbers_lose_all_commas_where_those_of_the_treebank_do() -> None:
    forms = ("1,000", "2,500", "3,750", "60", "x,y")
    lemmas = tuple(form.replace(",", "") if form[0].isdigit() else form for form in forms)
    table = LemmaTable.learn([Sentence(forms, lemmas, ("CD",) * 5)], ())
    asked = ("1,000,000", "12,345,678", "1,234.56", "$9,999", "1,2", "x,y", "1234,567")
    assert [table.lemma(form, "CD", form) for form in asked] == [
        *("1000000", "12345678", "1234.56", "$9999", "1,2", "x,y", "1234,567")
    ]
    kept = LemmaTable.learn([Sentence(forms, forms, ("CD",) * 5)], ())
    assert [kept.lemma(form, "CD", form) for form in asked] == list(asked)


def test_words_of_nations_keep_their_capital_where_those_seen_did() -> None:
    nations = ("Italian", "Persian", "Norwegian", "Belgian", "Indian", "Russian", "Asian")
    text = [Sentence(("A", word, "custodian"), ("a", word, "custodian"), ("DT", "JJ", "JJ")) for word in nations]
    text += [Sentence(("Big", "Old"), ("big", "old"), ("JJ", "JJ"))] * 9  # as most are
    table = LemmaTable.learn(text, {"custodian"})
    assert table.capitals == {"JJ": ["ian"]}
    assert table.lemma("Serbian", "JJ", "serbian") == "Serbian"
    assert table.lemma("Custodian", "JJ", "custodian") == "custodian"  # which was seen without
    assert table.lemma("SERBIAN", "JJ", "serbian") == "serbian"
    assert table.lemma("Serbian", "NN", "serbian") == "serbian"


def test_short_words_and_unknown_ones_are_not_cut_by_endings() -> None:
    pairs = [("walked", "walk"), ("talked", "talk"), ("jumped", "jump"), ("loved", "love"), ("moved", "move")]
    pairs += [("men", "man"), ("women", "woman"), ("firemen", "fireman")]
    text = [Sentence((form,), (lemma,), ("VBD" if form.endswith("d") else "NNS",)) for form, lemma in pairs]
    table = LemmaTable.learn(text, {"walk", "talk", "jump", "love", "r", "yan", "w", "seaman"})
    assert table.lemma("red", "VBD", "red") == "red"
    assert table.lemma("wed", "VBD", "wed") == "wed"
    assert table.lemma("yen", "NNS", "yen") == "yen"
    assert table.lemma("seamen", "NNS", "seamen") == "seaman"
    assert table.lemma("tumbled", "VBD", "tumble") == "tumble"  # of two that are new, what the dictionary has
    assert table.lemma("blogged", "VBD", "blogged") == "blogg"
