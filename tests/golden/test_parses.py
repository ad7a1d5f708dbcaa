"""The models that come with the systems find in some texts what they did."""

import json
from functools import cache

import pytest

from tests.golden import parses, stored


@cache
def golden() -> dict[str, dict[str, str]]:
    return json.loads(stored.read_text(stored.FOLDER / "parses.json.xz"))


def check(found: dict[str, str], golden: dict[str, str]) -> None:
    """Texts must be equal to the letter, but for probabilities."""
    assert found.keys() == golden.keys()
    for name, text in found.items():
        lines, numbers = parses.divided(text)
        expected, before = parses.divided(golden[parses.golden_name(name)])
        assert lines == expected, name
        assert numbers == pytest.approx(before, abs=1e-5), name


def test_what_the_command_writes() -> None:
    check(parses.written(), golden()["written"])


def test_documents_of_python() -> None:
    check(parses.documents(), golden()["documents"])
