"""Figure 1: the points are the library's own answers, and the file in the documents is what the code draws."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

import spigot

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def figure1() -> Any:
    specification = importlib.util.spec_from_file_location("figure1", DOCS / "figure1.py")
    assert specification is not None
    assert specification.loader is not None
    module = sys.modules["figure1"] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_file_is_what_the_code_draws(figure1):
    drawn = (DOCS / "figures" / "figure1.svg").read_text(encoding="utf-8")
    assert drawn == figure1.draw(), "draw it again: python docs/figure1.py"


def test_left_panel_leaves_the_polytope_and_returns_to_the_nearest_point(figure1):
    left, _ = figure1.panels()
    assert max(left.stepped) > 1
    assert left.projected == pytest.approx(tuple(min(max(c, 0), 1) for c in left.stepped))


def test_right_panel_stays_inside_and_is_left_alone(figure1):
    _, right = figure1.panels()
    assert all(0 < c < 1 for c in right.stepped)
    assert right.projected == right.stepped


def test_trees_are_three_of_the_four_corners(figure1):
    for panel in figure1.panels():
        assert set(panel.corners) - set(panel.trees) == {(0.0, 0.0)}
        assert panel.z in panel.trees


def test_the_file_is_whole_and_needs_nothing_else(figure1):
    svg = figure1.draw()
    ElementTree.fromstring(svg)
    assert "prefers-color-scheme:dark" in svg
    links = re.findall(r'https?://[^"\s]+', svg)
    assert links == ["http://www.w3.org/2000/svg"]
    names = set(re.findall(r' id="([^"]+)"', svg))
    assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= names


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: the scripts are not run")


def node(script: str, folder: Path) -> str:
    """What a script prints that may `require("./figure1.js")`."""
    shutil.copy(DOCS / "figure1" / "figure1.js", folder)
    return subprocess.run(
        ["node", "-e", script], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    ).stdout


@needs_node
def test_the_script_projects_like_the_library(tmp_path):
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(200, 3, generator=generator, dtype=torch.float64) * 2
    points[:4] = torch.tensor([[1, 0, 0], [0.5, 0.5, 0.5], [-3, -3, -3], [5, 5, -5]])
    wanted = spigot.OneOf().relaxation.project(points, torch.ones(200, 3, dtype=torch.bool))
    printed = node(
        f'const f = require("./figure1.js"); console.log(JSON.stringify({points.tolist()}.map(f.projectSimplex)))',
        tmp_path,
    )
    torch.testing.assert_close(torch.tensor(json.loads(printed), dtype=torch.float64), wanted, atol=1e-12, rtol=0)


@needs_node
def test_the_script_does_what_the_estimators_do(tmp_path):
    grad, eta = torch.tensor([-0.9, 0.2, 0.7], dtype=torch.float64), 1.4
    printed = node(
        f'const f = require("./figure1.js"); console.log(JSON.stringify(f.explain(2, {grad.tolist()}, {eta})))',
        tmp_path,
    )
    found = {name: torch.tensor(values, dtype=torch.float64) for name, values in json.loads(printed).items()}
    scores = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    step = spigot.Spigot(eta).explain(spigot.OneOf(), scores, grad)
    straight = spigot.StraightThrough(eta).explain(spigot.OneOf(), scores, grad)
    wanted = {
        "z": step.z, "stepped": step.stepped, "projected": step.projected, "spigot": step.gradient,
        "straight": straight.gradient,
    }  # fmt: skip
    torch.testing.assert_close(found, wanted)


@needs_node
def test_points_of_the_triangle_and_of_the_screen_are_the_same(tmp_path):
    printed = node(
        'const f = require("./figure1.js"); console.log(JSON.stringify(f.weights(f.pixels([0.2, 1.3, -0.5]))))',
        tmp_path,
    )
    assert json.loads(printed) == pytest.approx([0.2, 1.3, -0.5])


def test_the_figure_stands_still_without_its_script(figure1):
    still = figure1.figure1_interactive(script=False)
    assert "<script" not in still
    assert figure1.figure1_interactive().startswith(still)
    assert figure1.figure1_interactive().count(figure1.figure1_script()) == 1
    assert all(still.count(f">{head}<") >= 3 for head in figure1.HEADS)
    numbers = dict(re.findall(r'data-number="([\w-]+)">([^<]+)<', still))
    sent = [float(numbers[f"spigot-{k}"].replace("−", "-")) for k in range(3)]
    assert sent == pytest.approx([-0.52, 0.52, 0.0], abs=0.011)
    assert sum(float(numbers[f"projected-{k}"]) for k in range(3)) == pytest.approx(1, abs=0.011)
    assert not re.search(r"https?:|<link|<img|\bsrc=", still)
