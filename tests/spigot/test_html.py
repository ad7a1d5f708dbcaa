"""What notebooks show of structures and estimators."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import spigot
from spigot._runtime.html import formula
from tests.spigot.cases import STRUCTURES, StructureCase


@pytest.mark.parametrize("case", STRUCTURES, ids=str)
def test_every_structure_shows_itself_and_its_formula(case: StructureCase) -> None:
    html = case.structure._repr_html_()
    assert html.startswith("<div><code>")
    assert html.count("$$") == 2


def test_every_public_class_has_a_formula() -> None:
    shown = (spigot.AbstractStructure, spigot.AbstractEstimator)
    kinds = {name: getattr(spigot, name) for name in spigot.__all__ if not name.startswith("Abstract")}
    found = {name: formula(kind) for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, shown)}
    assert len(found) > 30
    assert [name for name, latex in found.items() if latex is None] == []


@pytest.mark.parametrize(
    ("strict", "loose"),
    [
        (spigot.ProjectiveTrees(), spigot.ProjectiveTrees(single_root=False)),
        (spigot.NonProjectiveTrees(), spigot.NonProjectiveTrees(single_root=False)),
        (spigot.Matchings(), spigot.Matchings(complete=False)),
    ],
)
def test_what_settings_ask_for_is_in_the_formula(strict: spigot.AbstractStructure, loose: Any) -> None:
    shown, other = (thing._repr_html_().split("$$")[1] for thing in (strict, loose))
    assert len(shown) > len(other)
    assert strict.latex_constraints() != loose.latex_constraints() == ""


@pytest.mark.parametrize(
    ("structure", "seen"),
    [
        (spigot.OneOf(), "<table><tr><td>1</td><td>0</td>"),
        (spigot.ProjectiveTrees(), "0 → "),
        (spigot.LabelledTrees(spigot.NonProjectiveTrees(), 2), "(label 1)"),
        (spigot.SemanticGraphs(2), "(role 0)"),
        (spigot.JointGraphs((spigot.SemanticGraphs(1),) * 2, arcs=((0, 1),)), "(1: role 0)"),
        (spigot.ConstituencyTrees(2), "0 to 3"),
        (spigot.Chains(3), "states from left to right<table>"),
        (spigot.Subsets(minimum=7, maximum=9), "<td>1</td>"),
    ],
    ids=repr,
)
def test_a_small_member_is_seen_as_what_it_is(structure: spigot.AbstractStructure, seen: str) -> None:
    assert seen in structure._repr_html_()


def test_what_fails_or_is_large_shows_no_member() -> None:
    def wrong(scores: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no")

    assert "<table" not in spigot.Oracle(wrong)._repr_html_()
    assert "<table" not in spigot.ZeroOneProgram(torch.ones(1, 500), torch.ones(1))._repr_html_()


def test_an_estimator_of_ones_own_shows_its_own_formula() -> None:
    @dataclass(frozen=True)
    class Twice(spigot.AbstractSurrogate):
        r"""Twice the gradient: $\nabla_s L = 2 \nabla_z L$."""

        def pullback(self, structure, scores, z, saved, grad, mask):
            return 2 * grad

    html = Twice()._repr_html_()
    assert r"<div>$$\nabla_s L = 2 \nabla_z L$$</div>" in html
    assert "&lt;locals&gt;" in html
