"""What a training does about memory, and whose choice stands above it."""

import ctypes
import sys

import pytest

from spigot_nlp.cli import memory
from tests.spigot_nlp import processes

GNU = sys.platform.startswith("linux") and hasattr(ctypes.CDLL(None), "mallopt")


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the C library is told, which it is not here: it would hold for all tests that follow."""
    told: list[tuple[int, int]] = []

    class Library:
        def __init__(self, name: None) -> None:
            self.mallopt = lambda which, value: told.append((which, value)) or 1

    for name in memory._CHOICES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(memory.ctypes, "CDLL", Library)
    monkeypatch.setattr(memory.sys, "platform", "linux")
    return told


def test_both_thresholds_are_raised(chosen: list[tuple[int, int]]) -> None:
    assert memory.keep_freed_memory()
    assert dict(chosen) == {-1: 1 << 30, -3: 1 << 30}


@pytest.mark.parametrize("name", memory._CHOICES)
def test_a_choice_of_the_user_stands(name: str, chosen: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert not memory.keep_freed_memory()
    assert not chosen


def test_elsewhere_nothing_happens(chosen: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    assert not memory.keep_freed_memory()
    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())  # a C library without it
    assert not memory.keep_freed_memory()
    assert not chosen


@pytest.mark.skipif(not GNU, reason="the C library is another")
def test_the_real_one_takes_it() -> None:
    """In a process of its own."""
    code, usual = (
        "from spigot_nlp.cli import memory; print(memory.keep_freed_memory())",
        dict.fromkeys(memory._CHOICES, ""),
    )
    done = processes.run("-c", code, environment=usual)
    assert done.stdout.strip() == "True", done.stderr
