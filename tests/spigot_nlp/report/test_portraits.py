"""What notebooks show of structures and estimators."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import spigot
from spigot import estimators, structures
from spigot_nlp.report import portraits
from spigot_nlp.report.mathml import mathml
from spigot_nlp.report.portraits import formula, small_member
from tests.spigot.cases import STRUCTURES, StructureCase


@pytest.mark.parametrize("case", STRUCTURES, ids=str)
def test_every_structure_shows_its_formula(case: StructureCase) -> None:
    html = case.structure._repr_html_()
    assert html.count("<math") == 1
    assert 'data-jp-theme-light="false"' in html
    z = small_member(case.structure)
    assert z is None or bool(case.structure.contains(z))


@pytest.mark.parametrize("name", [name for name in estimators.__all__ if name[0].isupper()])
def test_every_estimator_shows_its_formula_and_a_step(name: str) -> None:
    html = getattr(spigot, name)()._repr_html_()
    assert (html.count("<math"), html.count("<svg")) == (1, 1)
    assert "back to s" in html


def test_formulas_of_all_public_classes_are_understood() -> None:
    """Those of a docstring come as they are written; none is left out since it could not be read."""
    names = [name for name in (*structures.__all__, *estimators.__all__) if name[0].isupper()]
    found = {name: formula(getattr(spigot, name)) for name in names if name != "FactorSolution"}
    assert [name for name, latex in found.items() if latex is None] == []
    for latex in found.values():
        assert mathml(latex or "").startswith("<math")


@pytest.mark.parametrize(
    ("strict", "loose"),
    [
        (spigot.ProjectiveTrees(), spigot.ProjectiveTrees(single_root=False)),
        (spigot.NonProjectiveTrees(), spigot.NonProjectiveTrees(single_root=False)),
        (spigot.Matchings(), spigot.Matchings(complete=False)),
    ],
)
def test_what_settings_ask_for_is_in_the_formula(strict: spigot.AbstractStructure, loose: Any) -> None:
    shown, other = (thing._repr_html_().split("<math")[1].split("</math>")[0] for thing in (strict, loose))
    assert len(shown) > len(other)
    assert strict.condition() != loose.condition() == ""


@pytest.mark.parametrize(
    ("structure", "seen"),
    [
        (spigot.ProjectiveTrees(), 'class="arc plain"'),
        (spigot.LabelledTrees(spigot.NonProjectiveTrees(), 2), "label 1"),
        (spigot.SemanticGraphs(2), "role 0"),
        (spigot.JointGraphs((spigot.SemanticGraphs(1),) * 2, arcs=((0, 1),)), "1: role 0"),
        (spigot.ConstituencyTrees(2), "spans of words"),
        (spigot.Chains(3), "states from left to right"),
        (spigot.Subsets(7, 9), 'class="spigot-cells"'),
    ],
    ids=repr,
)
def test_members_are_drawn_as_what_they_are(structure: spigot.AbstractStructure, seen: str) -> None:
    assert seen in structure._repr_html_()


def test_what_fails_or_is_large_has_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(scores: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no")

    assert "<svg" not in spigot.Oracle(wrong)._repr_html_()
    assert "<svg" not in spigot.ZeroOneProgram(torch.ones(1, 500), torch.ones(1))._repr_html_()

    def missing(latex: str, *, block: bool = False) -> str:
        raise ImportError("latex2mathml")

    monkeypatch.setattr(portraits, "mathml", missing)
    assert r"$$\nabla_s L = \eta \nabla_z L$$" in spigot.StraightThrough()._repr_html_()


def test_an_estimator_of_ones_own_shows_its_own_formula() -> None:
    @dataclass(frozen=True)
    class Twice(spigot.AbstractSurrogate):
        r"""Twice the gradient: $\nabla_s L = 2 \nabla_z L$."""

        max_norm: float | None = None

        def pullback(self, structure, scores, z, saved, grad, mask):
            return 2 * grad

    html = Twice()._repr_html_()
    assert "<mn>2</mn>" in html
    assert repr(Twice()).endswith("Twice(max_norm=None)")
    assert "&lt;locals&gt;" in html


@pytest.mark.parametrize("thing", [5, None, "Spigot", spigot.Spigot])
def test_of_nothing_else(thing: Any) -> None:
    with pytest.raises(TypeError, match="a portrait is of a structure or an estimator"):
        portraits.portrait(thing)
