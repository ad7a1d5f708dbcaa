"""How text is told to a system: in the words, signs and letters of its training data."""

import pytest

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.data.text.raw import detokenise, sentences
from spigot_nlp.data.vocab import Vocab


def test_text_is_told_in_the_manner_of_the_training_data() -> None:
    told = Conventions.of(Vocab.of([Sentence(("“", "n’t", "’s", "”", "—", "…", "cannot", "-"))]))
    assert (told.hyphens, told.cannot) == (True, False)
    (sentence,) = sentences('He said "it\'s-- "so" and "do not" don\'t..."', lines=True)
    assert " ".join(told.respell(sentence).forms) == "He said “ it ’s — “ so ” and “ do not ” do n’t … ”"
    (spaced,) = sentences('a " b " c', lines=True)
    assert told.respell(spaced).forms == ("a", "“", "b", "”", "c")
    straight = Conventions.of(Vocab.of([Sentence(('"', "n't", "--", "can", "not"))]))
    assert straight.respell(Sentence(("“", "N’T", "”", "—"))).forms == ('"', "N'T", '"', "--")
    assert straight.cannot


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("The \ufb01rst of\ufb01ce", "The first office"),
        ("in\u00adter\u00adna\u00adtion\u00adal", "international"),
        ("Nai\u0308ve re\u0301sume\u0301s", "Na\u00efve r\u00e9sum\u00e9s"),
        ("\uff28\uff45\uff4c\uff4c\uff4f", "Hello"),
        ("\u2026 \u00bd \u2122", "\u2026 \u00bd \u2122"),  # signs and numbers
        (
            "km\u00b2 said\u00b9 Go\u2122 b\u00bd 20\u00baC \u0e01\u0e33",
            "km\u00b2 said\u00b9 Go \u2122 b\u00bd 20\u00baC \u0e01\u0e33",
        ),
        ("Wanna go? Gonna! Wan Na", "wan na go ? gon na ! Wan Na"),
    ],
)
def test_words_are_told_in_letters_that_are_known(text: str, told: str) -> None:
    conventions = Conventions.of(Vocab.of([Sentence(("the", "first", "office"))]))
    (sentence,) = sentences(text, lines=True)
    assert " ".join(conventions.respell(sentence).forms) == told
    assert detokenise(sentence) == text
    strange = Conventions.of(Vocab.of([Sentence(("\ufb01rst", "\ufb02ight"))]))  # which has such letters itself
    assert strange.respell(Sentence(("\ufb01rst",))).forms == ("\ufb01rst",)


def test_hyphens_are_cut_as_in_the_training_data() -> None:
    compounds = [Sentence(("well-made", "half-baked", "e-mail"))] * 20
    assert not Conventions.of(Vocab.of(compounds)).hyphens
    assert Conventions.of(Vocab.of([*compounds, Sentence(("-",) * 200)])).hyphens
    assert Conventions.of(Vocab.of([Sentence(("e-mail", "anti-war"))] * 50)).hyphens
