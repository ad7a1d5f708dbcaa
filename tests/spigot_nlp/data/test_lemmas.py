"""Lemmas, and tags and lemmas together."""

from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging import lemmas
from spigot_nlp.data.tagging.lemmas import Lemmatiser, annotate
from spigot_nlp.data.tagging.tagger import Tagger

lemmatiser = Lemmatiser()


def lemma(form: str, tag: str | None = None) -> str:
    found = next(lemmatiser.lemmatise([Sentence((form,), tags=None if tag is None else (tag,))])).lemmas
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("form", "tag", "expected"),
    [
        ("Geese", "NNS", "goose"),
        ("went", "VBD", "go"),
        ("ARE", "VBP", "be"),
        ("meeting", "NN", "meeting"),
        ("meeting", "VBG", "meet"),
        ("meeting", None, "meet"),
        ("Rivers", "NNP", "Rivers"),
        ("rivers", "NNS", "river"),
        ("interested", "JJ", "interested"),
        ("'s", "VBZ", "be"),
        ("'s", "POS", "'s"),
        ("'d", "MD", "would"),
        ("n't", "RB", "not"),
        ("Blorptang", "NNP", "Blorptang"),
        ("Rivers", "NNPS", "River"),
        (".", ".", "."),
        ("1,200", "CD", "1,200"),
        ("", "NN", ""),
        ("", None, ""),
    ],
)
def test_lemma(form: str, tag: str | None, expected: str) -> None:
    assert lemma(form, tag) == expected


def test_replaces_lemmas_and_keeps_the_rest() -> None:
    sentence = Sentence(("Otters", "swam"), lemmas=("x", "y"), tags=("NNS", "VBD"), heads=(2, 0), id="k")
    found = next(lemmatiser.lemmatise([sentence]))
    assert (found.lemmas, found.tags, found.heads, found.id) == (("otter", "swim"), ("NNS", "VBD"), (2, 0), "k")


@given(texts=st.lists(st.lists(st.tuples(st.text(max_size=8), st.sampled_from(["NN", "VBZ", "?"])), max_size=6)))
def test_any_text(texts: list[list[tuple[str, str]]]) -> None:
    sentences = [Sentence(tuple(form for form, _ in text), tags=tuple(tag for _, tag in text)) for text in texts]
    found = list(lemmatiser.lemmatise(sentences))
    assert [sentence.forms for sentence in found] == [sentence.forms for sentence in sentences]
    assert all(each == each.lower() for sentence in found for each in sentence.lemmas or ())
    # What is remembered is what would be found anew.
    assert list(Lemmatiser().lemmatise(sentences)) == found


def test_forgets_words_rather_than_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lemmas, "REMEMBERED", 5)
    fresh = Lemmatiser()
    text = [Sentence((f"word{n}", "geese")) for n in range(50)]
    assert [sentence.lemmas for sentence in fresh.lemmatise(text)] == [(f"word{n}", "goose") for n in range(50)]
    assert len(fresh._cache) <= 7


def test_refuses_a_language_without_a_dictionary() -> None:
    with pytest.raises(ValueError, match="language is 'tlh'"):
        Lemmatiser("tlh")


def test_annotates_a_stream() -> None:
    tagger = Tagger.train([Sentence(("Otters", "swam"), tags=("NNS", "VBD"))])

    def endless() -> Iterator[Sentence]:
        number = 0
        while True:
            yield Sentence(("Geese", "swam"), tags=("X", "X"), id=str(number))
            number += 1

    found = list(islice(annotate(endless(), tagger), 600))
    assert [sentence.id for sentence in found] == [str(number) for number in range(600)]
    assert {(sentence.tags, sentence.lemmas) for sentence in found} == {(("NNS", "VBD"), ("goose", "swim"))}
