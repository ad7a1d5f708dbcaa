"""What the project says about itself agrees: version, citation, commands of the Makefile."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_citation_is_of_this_version(citation: dict[str, Any], project: dict[str, Any]) -> None:
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in project["authors"]]
    assert citation["message"]
    assert citation["title"]


def test_the_citation_is_of_the_paper_in_the_readme(citation: dict[str, Any]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    entry = {key: re.sub(r"[{}]", "", value) for key, value in re.findall(r"^  (\w+) += \{(.*)\},$", readme, re.M)}
    paper = citation["preferred-citation"]
    assert paper["title"] == entry["title"]
    assert paper["doi"] == entry["doi"]
    assert str(paper["year"]) == entry["year"]
    assert f"{paper['start']}--{paper['end']}" == entry["pages"]
    names = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    assert " and ".join(names) == entry["author"]


def test_make_alone_says_what_there_is() -> None:
    """And does nothing: a first `make` must not install gigabytes unasked."""
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    said = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (targets,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.findall(r"^make (\w+)", said, re.MULTILINE) == targets.split()
