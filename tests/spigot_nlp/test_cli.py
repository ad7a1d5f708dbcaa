"""The command line: what it prints where, and how it fails."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import spigot
from spigot_nlp import cli
from spigot_nlp.data import Sentence, write


def test_version_names_the_kernels(capsys):
    assert cli.main(["--version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"spigot {spigot.__version__}", spigot.kernels.status()]


def test_help_lists_the_commands(capsys):
    assert cli.main([]) == 0
    out = capsys.readouterr().out
    commands = ("train", "parse", "tag", "evaluate", "compare")
    commands += ("serve", "report", "draw")
    assert all(command in out for command in commands)
    assert cli.main(["train", "--help"]) == 0
    assert "--resume" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nothing"], 2, "nothing"),
        (["pars"], 2, 'Did you mean "parse"?'),
        (["parse", "RUN", "--thread", "1"], 2, "there is no option --thread; did you mean --threads? See spigot parse"),
        (["parse", "RUN", "--thread=1"], 2, "there is no option --thread; did you mean --threads? See spigot parse"),
        (["compare", "a.sdp", "--frobnicate"], 2, "there is no option --frobnicate. See spigot compare --help."),
        (["draw", "a.sdp", "--out"], 2, "--out has no value. See spigot draw --help."),
        (["draw", "no-such-file"], 1, "no-such-file: no such data file."),
        (["train", "synthetic", "--thread", "1"], 1, "there is no option or setting --thread; did you mean --threads?"),
        (["train", "synthetic", "--estimator.eta", "-1"], 1, "--estimator.eta -1: eta is -1.0; "),
        (
            ["train", "synthetic-sentiment", "--system", "attention"],
            1,
            "synthetic-sentiment.toml with --system attention: ",
        ),
    ],
)
def test_failures_are_one_message(words, code, message, capsys):
    assert cli.main(words) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("spigot: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(("encoding", "word"), [("ascii", "Naive"), ("latin-1", "Naïve"), ("ascii:replace", "Na?ve")])
def test_what_cannot_be_shown_is_drawn_with_what_can(encoding, word, tmp_path):
    file = tmp_path / "rain.conllu"
    write([Sentence(("Naïve", "rain"), heads=(2, 0), relations=("amod", "root"))], file)
    done = subprocess.run(
        [sys.executable, "-m", "spigot_nlp", "draw", str(file)],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    lines = done.stdout.decode(encoding.partition(":")[0]).splitlines()
    assert lines[0].split()[0] == word
    assert encoding == "ascii:replace" or any("+-amod-+" in line for line in lines)


def test_the_shell_is_taught_to_complete_commands_and_options(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cli.main(["--install-completion", "--shell", "bash"]) == 0
    (script,) = tmp_path.glob(".local/share/bash-completion/completions/spigot")
    assert str(script) in capsys.readouterr().out
    text = script.read_text(encoding="utf-8")
    assert all(word in text for word in ("evaluate", "--skip-bad", "--one-per-line"))


def test_debug_shows_the_traceback():
    with pytest.raises(ValueError, match="there is nothing to train"):
        cli.main(["train", "--debug"])


def test_module_runs_and_the_exit_code_reaches_the_shell():
    done = subprocess.run([sys.executable, "-m", "spigot_nlp", "train"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("spigot: there is nothing to train; give a TOML file")


def test_what_the_system_says_has_no_number():
    assert cli._message(OSError(28, "No space left on device")) == (
        "no space left on device; make room, and go on: what was written before is whole."
    )
    assert cli._message(FileNotFoundError(2, "No such file or directory", "a.sdp")) == (
        "a.sdp: no such file or directory."
    )


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM")
def test_termination_leaves_nothing_half_written(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spigot_nlp", "parse", "-", "-o", str(tmp_path / "out.jsonl")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while not list(tmp_path.iterdir()) and time.monotonic() < until:
            time.sleep(0.05)
        process.terminate()
        assert process.wait(30) == 143
        assert process.stderr is not None
        assert process.stderr.read().endswith("spigot: terminated.\n")
    assert list(tmp_path.iterdir()) == []
