"""Constraints that no sentence can meet, whatever its scores are, are refused in words."""

from typing import Any, cast

import pytest

from spigot_nlp.data.sentence import Arc
from spigot_nlp.stages.constraints import Constraints

ROLES = ("TOP", "ARG1", "ARG2")


@pytest.mark.parametrize(
    ("demands", "message"),
    [
        (Constraints(heads=((4, 1),)), "word 4 has head 1: there is no word 4 in a sentence of 3 words; words count"),
        (Constraints(heads=((0, 1),)), "word 0 has head 1: there is no word 0 in a sentence of 3 words"),
        (Constraints(not_heads=((1, -1),)), "word 1 does not have head -1: there is no word -1"),
        (Constraints(heads=((1, cast(int, 1.5)),)), "word 1 has head 1.5: 1.5 is no place of a word; words count 1, 2"),
        (Constraints(arcs=(Arc(1, cast(int, "2"), ""),)), "an arc 1 -> 2: '2' is no place of a word"),
        (Constraints(heads=((True, 0),)), "word True has head 0: True is no place of a word"),
        (Constraints(heads=((2, 2),)), "word 2 has head 2: no word is its own head; choose another"),
        (Constraints(arcs=(Arc(2, 2, ""),)), "an arc 2 -> 2: no word is its own argument"),
        (Constraints(not_arcs=(Arc(2, 9, "ARG1"),)), "no arc 2 -> 9 with role ARG1: there is no word 9"),
        (Constraints(arcs=(Arc(2, 0, "ARG1"),)), "there is no word 0"),
        (
            Constraints(arcs=(Arc(2, 1, "XX"),)),
            "role XX: the roles of arcs are ARG1, ARG2; choose one of them, or leave",
        ),
        (Constraints(arcs=(Arc(2, 1, "TOP"),)), "role TOP: the roles of arcs are ARG1, ARG2"),
        (Constraints(arcs=(Arc(0, 1, "ARG1"),)), "role ARG1: the roles of tops are TOP"),
        (Constraints(heads=((1, 2), (1, 3))), "word 1 has head 2 and word 1 has head 3 contradict .*: a word has one"),
        (Constraints(heads=((1, 2),), not_heads=((1, 2),)), "has head 2 and word 1 does not have head 2 contradict"),
        (Constraints(arcs=(Arc(2, 1, "ARG1"), Arc(2, 1, "ARG2"))), "contradict each other: an arc has one role; drop"),
        (Constraints(arcs=(Arc(2, 1, "ARG1"),), not_arcs=(Arc(2, 1, ""),)), "with role ARG1 and no arc 2 -> 1 contr"),
        (Constraints(arcs=(Arc(2, 1, ""),), not_arcs=(Arc(2, 1, ""),)), "an arc 2 -> 1 and no arc 2 -> 1 contradict"),
        (
            Constraints(arcs=(Arc(0, 1, ""),), not_arcs=(Arc(0, 1, "TOP"),)),
            "word 1 is a top and word 1 is no top contr",
        ),
    ],
)
def test_what_fits_no_sentence_is_refused_in_words(demands: Constraints, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        demands.check(3, ROLES)


def test_lists_will_do() -> None:
    listed: Any = {"heads": [[1, 2]], "not_heads": [[2, 1]], "arcs": [[2, 1, "ARG1"]], "not_arcs": [[1, 2, ""]]}
    assert Constraints(**listed) == Constraints(((1, 2),), ((2, 1),), (Arc(2, 1, "ARG1"),), (Arc(1, 2, ""),))


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ({"heads": [1]}, r"heads has 1; each of its rows is \(word, head\)"),
        ({"not_heads": [[1, 2, 3]]}, r"not_heads has \[1, 2, 3\]; each of its rows is \(word, head\)"),
        ({"arcs": [[1, 2]]}, r"arcs has \[1, 2\]; each of its rows is \(predicate, argument, role\)"),
        ({"not_arcs": ["abc"]}, r"not_arcs has 'abc'; each of its rows"),
    ],
)
def test_rows_of_another_shape_are_refused(listed: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Constraints(**listed)


def test_what_may_be_said_together_is_not_refused() -> None:
    Constraints(
        heads=((1, 2), (1, 2), (2, 0)),
        not_heads=((1, 3), (2, 3)),
        arcs=(Arc(2, 1, ""), Arc(2, 1, "ARG1"), Arc(0, 3, "")),
        not_arcs=(Arc(2, 1, "ARG2"), Arc(1, 2, ""), Arc(0, 1, "TOP")),
    ).check(3, ROLES)
