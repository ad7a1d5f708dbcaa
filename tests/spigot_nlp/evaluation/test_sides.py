"""Sides that do not fit together are refused in words."""

import pytest

from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation.analysis import analyse


@pytest.mark.parametrize(
    ("sides", "settings", "message"),
    [
        (([], [], []), {}, "there are no sentences to analyse; give at least one"),
        (([Sentence(("Go",), heads=(0,))],) * 3, {"sample": -1}, "sample is -1; it must be 0 or more"),
        (([Sentence(("Go",))], [Sentence(("Go",))], [Sentence(("Stay",))]), {},
         "the second system: sentence 1, word 1 is 'Go' in the gold data"),
        (([Sentence(("Go",))] * 2, [Sentence(("Go",), heads=(0,)), Sentence(("Go",))], [Sentence(("Go",))] * 2), {},
         "the first system has no tree for sentence 2, and has one for others"),
        (([Sentence(("Go",), heads=(0,))],) * 3, {"against": "predicted"}, "a system has no graphs to judge by"),
        (([Sentence(("Go",))], [Sentence(("Go",), heads=(0,), graph=Graph())], [Sentence(("Go",), label=1)]), {},
         "the first system has trees and graphs, the second classes: there is nothing to compare"),
        (([Sentence(("Go",), heads=(-1,))],) * 3, {}, "sentence 1 has the head -1; it must be a number from 0 to 1"),
        (([Sentence(("Go",), heads=(2,))],) * 3, {}, "sentence 1 has the head 2; it must be a number from 0 to 1"),
        (([Sentence(("Go",), graph=Graph.of([Arc(1, 2, "x")]))],) * 3, {}, "sentence 1 has the argument 2; it must"),
    ],
)  # fmt: skip
def test_says_what_is_wrong(sides, settings, message):
    with pytest.raises(ValueError, match=message):
        analyse(*sides, samples=5, **settings)
