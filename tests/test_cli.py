"""The command line: what it prints where, and how it fails."""

import json
import re
import subprocess
import sys

import pytest
import torch

import spigot
from spigot import cli

SMALL = ["clusters", "--quick", "--seeds", "1", "--epochs", "1"]


def test_version_names_the_kernels(capsys):
    assert cli.main(["--version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"spigot {spigot.__version__}", spigot.native.status()]


def test_help_lists_the_commands(capsys):
    assert cli.main([]) == 0
    out = capsys.readouterr().out
    commands = ("demo", "train", "sweep", "clusters", "parse", "predict", "tag", "evaluate", "compare", "score")
    commands += ("serve", "report", "analyse", "diagnose", "draw")
    assert all(command in out for command in commands)
    assert cli.main(["demo", "--help"]) == 0
    assert "--quick" in capsys.readouterr().out


def test_clusters_print_a_table_and_write_a_page(tmp_path, capsys):
    out = tmp_path / "page.html"
    threads = torch.get_num_threads()
    assert cli.main([*SMALL, "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "K = 3 clusters" in printed.out
    assert re.search(r"StraightThrough +\d+\.\d ± \d+\.\d", printed.out)
    assert printed.err == f"The report is in {out.resolve()}\n"
    html = out.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg\")", html)  # the name of SVG, which nobody fetches
    assert torch.get_num_threads() == threads


def test_json_is_all_there_is_on_standard_output(tmp_path, capsys):
    assert cli.main([*SMALL, "--json", "--out", str(tmp_path / "a.html")]) == 0
    first = capsys.readouterr().out
    record = json.loads(first)
    assert record["settings"]["seeds"] == 1
    assert {row["contender"] for row in record["rows"]} >= {"StraightThrough", "Pipeline"}
    assert cli.main([*SMALL, "--json", "--out", str(tmp_path / "b.html")]) == 0
    assert capsys.readouterr().out == first
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nothing"], 2, "nothing"),
        (["clusters", "--sedes", "3"], 2, "--sedes"),
        (["clusters", "--seeds", "many"], 2, "many"),
        (["clusters", "--seeds", "0"], 1, "seeds is 0; it must be at least 1"),
        (["clusters", "--threads", "0"], 1, "threads is 0; it must be at least 1"),
        (["clusters", "--out", "no/such/folder/page.html"], 1, "the folder no/such/folder does not exist"),
    ],
)
def test_failures_are_one_message(words, code, message, capsys):
    assert cli.main(words) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("spigot: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_debug_shows_the_traceback():
    with pytest.raises(ValueError, match="seeds is 0"):
        cli.main(["clusters", "--seeds", "0", "--debug"])


def test_module_runs_and_the_exit_code_reaches_the_shell():
    done = subprocess.run(
        [sys.executable, "-m", "spigot", "clusters", "--seeds", "0"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "spigot: seeds is 0; it must be at least 1.\n"


def test_importing_the_library_stays_light():
    heavy = "{'matplotlib', 'jinja2', 'rich', 'cyclopts'}"
    code = f"import sys, torch; before = set(sys.modules); import spigot; print({heavy} & (set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_what_the_system_says_has_no_number():
    assert cli._message(OSError(28, "No space left on device")) == "no space left on device."
    assert cli._message(FileNotFoundError(2, "No such file or directory", "a.sdp")) == (
        "a.sdp: no such file or directory."
    )
