"""Systems that the paper does not have: three stages, two graphs, tags and classes under names of their own."""

import json
from typing import Any

import pytest

from spigot_nlp.serve import Api, Refused, Served
from tests.spigot_nlp.serve.conftest import LIMITS

WORDS = ["The", "cat", "sees", "the", "dog", "here"]


def answer(of_stages: dict[str, Served], *names: str, **body: Any) -> dict[str, Any]:
    with Api(list(of_stages.values()), LIMITS) as api:
        found = api.parse({"words": WORDS, "systems": list(names), **body})
    return json.loads(found.model_dump_json(exclude_unset=True))["sentences"][0]


def test_systems_say_what_they_give_and_how_they_are_wired(of_stages: dict[str, Served]) -> None:
    about = {name: each.info([]) for name, each in of_stages.items()}
    assert about["three"].gives == ["heads", "graph", "label"]
    assert [(wire.name, wire.noun, wire.estimator) for wire in about["three"].wires] == [
        ("syntax -> semantics", "tree", "spigot"),
        ("semantics -> mood", "graph", "ste"),
    ]
    assert about["three"].holds == {"below": "heads", "above": "graph"}
    assert about["two"].called == {"second": "second", "graph": "graph"}
    assert about["two"].constrains == []  # which of the two would be meant?
    assert about["named"].gives == ["chunks", "mood"]
    assert about["named"].wires == about["named"].classes == []


def test_what_passed_each_wire_is_drawn_by_itself(of_stages: dict[str, Served]) -> None:
    (found,) = answer(of_stages, "three", draw=True)["answers"]
    assert list(found["passed"]) == ["syntax -> semantics", "semantics -> mood"]
    for name, side, other in (("syntax -> semantics", "below", "above"), ("semantics -> mood", "above", "below")):
        assert f'data-side="{other}"' not in found["passed"][name]
        assert found["passed"][name].count(f'data-side="{side}"') == found["svg"].count(f'data-side="{side}"')
    assert found["passed"]["syntax -> semantics"].count('data-side="below"') == len(WORDS)
    assert found["annotations"] == {}
    assert set(found["probabilities"]) == {"0", "1"}
    assert "passed" not in answer(of_stages, "three", draw="file")["answers"][0]


def test_forcing_a_tree_arc_reaches_the_third_stage(of_stages: dict[str, Served]) -> None:
    free = answer(of_stages, "three")["answers"][0]
    head = next(k for k in (1, 3, 4) if k != free["heads"][1])
    forced = answer(of_stages, "three", constraints={"heads": [[2, head]]})["answers"][0]
    assert forced["heads"][1] == head
    assert forced["probabilities"] != free["probabilities"]


def test_other_annotations_stand_under_their_names(of_stages: dict[str, Served]) -> None:
    (two,) = answer(of_stages, "two", draw=True)["answers"]
    assert list(two["annotations"]) == ["second"]
    second = two["annotations"]["second"]
    assert second["value"] == second["arcs"]
    assert two["svg"].count('data-side="second"') == len(second["arcs"])
    (found,) = answer(of_stages, "named", draw=True)["answers"]
    assert found["label"] is found["probabilities"] is None
    chunks, mood = found["annotations"]["chunks"], found["annotations"]["mood"]
    assert chunks["value"] == chunks["marks"]
    assert set(chunks["marks"]) <= {"NP", "VP"}
    assert found["svg"].count('class="tag"') == len(WORDS)
    assert mood["note"] == f"mood {mood['value']}"
    assert sum(mood["probabilities"].values()) == pytest.approx(1, abs=1e-4)


def test_nothing_is_demanded_of_one_of_two_graphs(of_stages: dict[str, Served]) -> None:
    with pytest.raises(Refused, match="two has no graphs of which parts can be forced or forbidden; leave arcs out"):
        answer(of_stages, "two", constraints={"arcs": [[3, 2, "ARG1"]]})


def test_each_side_of_a_comparison_has_what_its_system_gives(of_stages: dict[str, Served]) -> None:
    drawn = answer(of_stages, "three", "two", draw=True)["compare"]
    assert 'data-side="second"' not in drawn["first"]
    assert drawn["first"].count('data-word="1"') == 1
    assert 'data-side="below"' not in drawn["second"]
    assert 'data-side="second"' in drawn["second"]
    assert {'data-side="second"' in drawn["both"], 'data-side="below"' in drawn["both"]} == {True}
    tags = answer(of_stages, "named", "three", draw=True)["compare"]
    assert ("NP" in tags["first"] or "VP" in tags["first"], "NP" in tags["second"] or "VP" in tags["second"]) == (
        True,
        False,
    )
