"""The classes of training sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spigot_nlp.annotations import Classes
from spigot_nlp.data.sentence import Sentence


@given(st.lists(st.one_of(st.none(), st.integers(-3, 9)), max_size=6))
def test_classes_are_the_labels_in_ascending_order(labels: list[int | None]) -> None:
    found = Classes.learn("label", [Sentence(("rain",), label=label) for label in labels], None)
    assert found.classes == tuple(sorted({label for label in labels if label is not None}))
    assert [found.class_index[label] for label in found.classes] == list(range(len(found.classes)))


def test_a_class_that_training_never_saw_cannot_be_learned_from() -> None:
    assert Classes("label", (0, 2)).encode(1, Sentence(("rain",), label=1)) is None


@pytest.mark.parametrize("name", ["label", "mood"])
def test_classes_stand_under_a_name(name: str) -> None:
    text = [Sentence(("rain",), annotations={name: 3}), Sentence(("sun",), annotations={name: 1})]
    assert Classes.learn(name, text, None) == Classes(name, (1, 3))
    assert Classes.learn("other", text, None).classes == ()


def test_it_says_which_classes_there_are() -> None:
    assert Classes("label", (0, 2)).known() == "; those of the training sentences are 0, 2"
