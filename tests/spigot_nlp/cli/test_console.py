"""What the commands share."""

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from spigot_nlp.cli.console import Skipped, print_json, print_table, progress
from spigot_nlp.data.formats import FormatError


class Terminal(io.StringIO):
    """Standard error that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass
class Result:
    where: Path
    share: float


def test_progress_is_silent_without_a_terminal(capsys):
    assert list(progress(range(5), "counting", total=5)) == [0, 1, 2, 3, 4]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("total", [3, None])
def test_progress_is_drawn_on_a_terminal(total, monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    seen = list(progress("abc", "spelling", total=total, describe=lambda letter: f"now {letter}"))
    assert seen == ["a", "b", "c"]
    assert "now c" in screen.getvalue()
    assert capsys.readouterr().out == ""


def test_progress_hands_items_on_one_by_one():
    def endless():
        number = 0
        while True:
            yield number
            number += 1

    stream = progress(endless(), "counting")
    assert [next(stream), next(stream)] == [0, 1]


def test_json_of_dataclasses_and_paths(capsys):
    print_json([Result(Path("a/b"), 0.5)])
    assert json.loads(capsys.readouterr().out) == [{"where": "a/b", "share": 0.5}]
    with pytest.raises(TypeError, match="is a set, which JSON has no form for"):
        print_json({1, 2})


def test_no_number_is_cut_to_fit(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    title = "A title that is much longer than the screen is wide, and stays whole"
    print_table(title, ["name", *("number",) * 8], [["row", *("123456.78",) * 8]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == title
    assert any(line.split() == ["row", *["123456.78"] * 8] for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_skipped_sentences_are_counted(capsys):
    skipped = Skipped()
    skipped.report()
    assert capsys.readouterr().err == ""
    skipped(FormatError("a.conllu", 3, "no columns."))
    skipped.report()
    assert capsys.readouterr().err == "Skipped 1 bad sentence; the first: a.conllu:3: no columns.\n"
    skipped(FormatError("b.conllu", 9, "too many columns."))
    skipped.report()
    assert capsys.readouterr() == ("", "Skipped 2 bad sentences; the first: a.conllu:3: no columns.\n")
