"""Figure 1: the points are the library's own answers, and the file in the documents is what the code draws."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from spigot.report.figure1 import draw, panels

FILE = Path(__file__).parents[2] / "docs" / "figures" / "figure1.svg"


def test_the_file_is_what_the_code_draws():
    assert FILE.read_text(encoding="utf-8") == draw(), "draw it again: python -m spigot.report.figure1"


def test_left_panel_leaves_the_polytope_and_returns_to_the_nearest_point():
    left, _ = panels()
    assert max(left.stepped) > 1
    assert left.projected == pytest.approx(tuple(min(max(c, 0), 1) for c in left.stepped))


def test_right_panel_stays_inside_and_is_left_alone():
    _, right = panels()
    assert all(0 < c < 1 for c in right.stepped)
    assert right.projected == right.stepped


def test_trees_are_three_of_the_four_corners():
    for panel in panels():
        assert set(panel.corners) - set(panel.trees) == {(0.0, 0.0)}
        assert panel.z in panel.trees


def test_the_file_is_whole_and_needs_nothing_else():
    svg = draw()
    ElementTree.fromstring(svg)
    assert "prefers-color-scheme:dark" in svg
    links = re.findall(r'https?://[^"\s]+', svg)
    assert links == ["http://www.w3.org/2000/svg"]
    names = set(re.findall(r' id="([^"]+)"', svg))
    assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= names
