"""Tags that are mended by universal ones, and what comes of their lemmas."""

import json
from pathlib import Path

import pytest

from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.lemmas import LemmaTable, Lemmatiser, TagTable, agreed


def seen(*words: str) -> list[Sentence]:
    """Each word as a sentence: `form/tag/upos`."""
    triples = [word.split("/") for word in words]
    return [Sentence((form,), tags=(tag,), upos=(upos,)) for form, tag, upos in triples]


LEARNED = TagTable.learn(
    seen(
        *["walks/VBZ/VERB", "talks/VBZ/VERB", "barks/VBZ/VERB"] * 3,
        *["walk/VB/VERB"] * 11,
        *["was/VBD/AUX"] * 4,
        *["dogs/NNS/NOUN", "frogs/NNS/NOUN", "logs/NNS/NOUN", "dog/NN/NOUN", "Bens/NNS/NOUN"] * 3,
        *["series/NN/NOUN"] * 4,
        *["oddity/VBZ/NOUN"] * 2,
        *["Ben/NNP/PROPN"] * 3,
    )
)


@pytest.mark.parametrize(
    ("form", "upos", "tag", "mended"),
    [
        ("walks", "VERB", "NNS", "VBZ"),  # what it was seen with
        ("balks", "VERB", "NNS", "VBZ"),  # by its ending
        ("Balks", "VERB", "NNS", "VB"),  # which no word with a capital has: as most
        ("jump", "VERB", "NN", "VB"),
        ("walks", "NOUN", "VBZ", "NNS"),  # seen together twice only
        ("series", "NOUN", "VBZ", "NN"),  # and not as most
        ("hogs", "NOUN", "VBZ", "NNS"),
        ("miseries", "NOUN", "VBZ", "NNS"),  # of one word an ending learns nothing: as most
        ("walks", "VERB", "VB", "VB"),  # may be, if not for this word
        ("so", "ADV", "NN", "NN"),  # of this universal tag nothing is known
        ("", "VERB", "NN", "VB"),
    ],
)
def test_tags_that_cannot_be_are_replaced(form: str, upos: str, tag: str, mended: str) -> None:
    assert LEARNED.agreed(("Ben", form), ("PROPN", upos), ("NNP", tag)) == ("NNP", mended)


def test_tags_that_agree_stay_as_they_are() -> None:
    tags = ("NNP", "VBZ")
    assert LEARNED.agreed(("Ben", "walks"), ("PROPN", "VERB"), tags) is tags
    assert TagTable().agreed(("Ben", "walks"), ("VERB", "VERB"), tags) == tags


def test_every_word_gets_the_tag_it_was_mostly_seen_with() -> None:
    """Whether it is in the table of words, or left out of it since its ending says the same."""
    for form, upos, tag in (("dogs", "NOUN", "NNS"), ("Bens", "NOUN", "NNS"), ("series", "NOUN", "NN")):
        assert LEARNED.agreed((form,), (upos,), ("?",)) == (tag,)


def test_it_is_kept_in_the_file_of_lemmas(tmp_path: Path) -> None:
    text = [Sentence(("It", "fell"), ("it", "fall"), ("PRP", "VBD"), upos=("PRON", "VERB"))] * 3
    table, path = LemmaTable.learn(text, {"fall"}), tmp_path / "lemmas.json"
    assert table.tags.agreed(("Fell",), ("VERB",), ("NN",)) == ("VBD",)
    table.save(path)
    assert LemmaTable.load(path, {"fall"}) == table
    plain = json.loads(path.read_text(encoding="utf-8"))
    del plain["tags"], plain["capitals"]
    path.write_text(json.dumps(plain), encoding="utf-8")  # of an earlier version
    assert LemmaTable.load(path, {"fall"}).tags == TagTable()
    for wrong in ({"pairs": {}}, {"pairs": {}, "words": {}, "endings": {"VERB": {"ed": "VBD"}}}, 5):
        path.write_text(json.dumps({**plain, "tags": wrong}), encoding="utf-8")
        with pytest.raises(ValueError, match="not a whole table of lemmas"):
            LemmaTable.load(path, {"fall"})


@pytest.mark.parametrize(
    ("text", "tag", "lemma"),
    [
        ("She 'd/AUX/MD left/VERB/VBD", "VBD", "have"),
        ("She 'd/AUX/MD never/ADV/RB seen/VERB/VBN", "VBD", "have"),
        ("You \u2019d/AUX/MD better/ADV/RBR go/VERB/VB", "VBD", "have"),
        ("She 'd/AUX/MD not/PART/RB go/VERB/VB", "MD", "would"),
        ("She 's/AUX/VBZ been/AUX/VBN", "VBZ", "have"),
        ("She 's/AUX/VBZ already/ADV/RB gone/VERB/VBN", "VBZ", "have"),
        ("She 's/AUX/VBZ loved/VERB/VBN", "VBZ", "be"),
        ("Ben 's/PART/POS had/VERB/VBN", "POS", "'s"),
        ("She 'd/AUX/MD", "MD", "would"),
        ("She 'd/AUX/MD never/ADV/RB", "MD", "would"),
    ],
)
def test_have_is_told_from_what_it_is_written_like(text: str, tag: str, lemma: str) -> None:
    first, *rest = text.split()
    words = [[first, "PRON", "PRP"], *(word.split("/") for word in rest)]
    forms, upos, tags = (tuple(column) for column in zip(*words, strict=True))
    read = next(Lemmatiser().lemmatise([Sentence(forms, tags=tags, upos=upos)]))
    found = agreed(read, LemmaTable.learn([], ()), Lemmatiser())
    assert found.lemmas is not None
    assert found.tags is not None
    assert (found.tags[1], found.lemmas[1]) == (tag, lemma)
    assert found.tags[2:] == tags[2:]


def test_what_has_no_universal_tags_is_left_alone() -> None:
    sentence = Sentence(("She", "'d", "gone"), ("she", "would", "go"), ("PRP", "MD", "VBN"))
    assert agreed(sentence, LemmaTable.learn([], ()), Lemmatiser()) is sentence
