"""The record that everything is read into: annotations by name, and the short names of the common ones."""

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.data.sentence import Arc, Graph, Sentence

GRAPH = Graph.of([Arc(2, 1, "ARG1")], tops=[2])
SHORT: dict[str, Any] = {
    "heads": (2, 0),
    "relations": ("nsubj", "root"),
    "graph": GRAPH,
    "label": 1,
    "probabilities": (0.25, 0.75),
}
FULL = Sentence(("Rain", "fell"), ("rain", "fall"), ("NN", "VBD"), **SHORT, id="s1", source="kept")
NAMES = st.sampled_from([*SHORT, "mood", "enhanced", "tags", "lemmas"])
VALUES = {**SHORT, "mood": "sad", "enhanced": GRAPH, "tags": ("A", "B"), "lemmas": ("c", "d")}


def test_short_names_are_annotations() -> None:
    assert dict(FULL.annotations) == SHORT
    for name, value in SHORT.items():
        assert FULL.get(name) == getattr(FULL, name) == value
        assert Sentence(FULL.forms, annotations={name: value}) == Sentence(FULL.forms, **{name: value})
        assert getattr(Sentence(FULL.forms), name) is None
    assert (FULL.get("tags"), FULL.get("lemmas")) == (FULL.tags, FULL.lemmas)
    assert FULL.get("mood") is None


def test_what_is_none_is_not_there() -> None:
    plain = Sentence(("Rain", "fell"))
    assert plain == Sentence(("Rain", "fell"), heads=None, graph=None, annotations={"mood": None})
    assert not plain.annotations
    assert plain.put("mood", None) == plain


def test_short_names_stand_above_annotations() -> None:
    both = {"label": 3, "mood": "sad"}
    assert dict(Sentence(("Rain",), annotations=both).annotations) == both
    assert dict(Sentence(("Rain",), label=4, annotations=both).annotations) == {"label": 4, "mood": "sad"}
    assert dict(Sentence(("Rain",), label=None, annotations=both).annotations) == {"mood": "sad"}


@given(st.lists(st.tuples(NAMES, st.booleans()), max_size=8))
def test_put_and_get_are_those_of_a_dictionary(changes: list[tuple[str, bool]]) -> None:
    sentence, expected = Sentence(("Rain", "fell"), id="x"), dict[str, Any]()
    for name, some in changes:
        before = copy.copy(expected), sentence
        expected[name] = VALUES[name] if some else None
        sentence = sentence.put(name, expected[name])
        assert all(before[1].get(name) == before[0].get(name) for name in VALUES)  # the old one is as it was
    assert all(sentence.get(name) == expected.get(name) for name in VALUES)
    assert set(sentence.annotations) == {n for n, v in expected.items() if v is not None} - {"tags", "lemmas"}
    assert (sentence.forms, sentence.id) == (("Rain", "fell"), "x")


def test_replace_takes_fields_and_short_names() -> None:
    bare = replace(FULL, graph=None, label=0, tags=None)
    assert (bare.graph, bare.label, bare.tags) == (None, 0, None)
    assert (bare.heads, bare.relations, bare.lemmas, bare.source) == (FULL.heads, FULL.relations, FULL.lemmas, "kept")
    mood = FULL.put("mood", "sad")
    assert replace(mood, heads=(0, 1)).get("mood") == "sad"
    assert dict(replace(mood, annotations={"mood": "glad"}).annotations) == {"mood": "glad"}
    assert {field.name for field in fields(FULL)} == {"forms", "lemmas", "tags", "upos", "annotations", "id", "source"}


def test_without_annotation_words_tags_and_lemmas_are_left() -> None:
    bare = FULL.put("mood", "sad").without_annotation()
    assert bare == Sentence(FULL.forms, FULL.lemmas, FULL.tags, id="s1", source="kept")


def test_equal_sentences_hash_alike() -> None:
    again = Sentence(
        FULL.forms, FULL.lemmas, FULL.tags, id="s1", source="kept", annotations=dict(reversed(SHORT.items()))
    )
    assert again == FULL
    assert len({FULL, again}) == 1
    for other in (replace(FULL, label=0), FULL.put("mood", "sad"), replace(FULL, id="s2"), replace(FULL, tags=None)):
        assert other != FULL
        assert len({FULL, other}) == 2
    assert {FULL: 1}[again] == 1


@pytest.mark.parametrize("clone", [lambda s: pickle.loads(pickle.dumps(s)), copy.copy, copy.deepcopy])
def test_it_survives_a_process_border(clone: Any) -> None:
    for sentence in (FULL, FULL.put("enhanced", GRAPH), Sentence(())):
        again = clone(sentence)
        assert again == sentence
        assert hash(again) == hash(sentence)
        assert (again.heads, again.graph, again.source) == (sentence.heads, sentence.graph, sentence.source)


def test_nothing_can_be_changed_in_place() -> None:
    for name in ("forms", "annotations", "heads", "new"):
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            setattr(FULL, name, None)
    given = {"mood": "sad"}
    sentence = Sentence(("Rain",), annotations=given)
    given["mood"] = "glad"
    assert sentence.get("mood") == "sad"


@pytest.mark.parametrize("name", ["lemmas", "tags", "heads", "relations"])
def test_every_word_has_one(name: str) -> None:
    with pytest.raises(ValueError, match=rf"sentence Rain fell has 2 words but 1 {name}"):
        Sentence(("Rain", "fell")).put(name, ("x",))
    with pytest.raises(ValueError, match=rf"sentence s1 has 2 words but 3 {name}"):
        FULL.put(name, (0, 1, 1))


@pytest.mark.parametrize("name", ["forms", "lemmas", "tags", "id", "source", "annotations"])
def test_no_annotation_is_called_like_a_part_of_every_sentence(name: str) -> None:
    with pytest.raises(ValueError, match=f"no annotation can be called '{name}'.*rename it"):
        Sentence(("Rain",), annotations={name: ("x",)})
    if name not in ("lemmas", "tags"):
        with pytest.raises(ValueError, match=f"called '{name}'"):
            FULL.put(name, "x")
