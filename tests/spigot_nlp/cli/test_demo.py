"""`spigot demo`: what it shows, prints, writes and refuses."""

import json
import re
import shlex

import pytest

from spigot_nlp import cli
from spigot_nlp.cli.demo import _program
from spigot_nlp.report import page
from spigot_nlp.report import runs as report_runs
from tests.spigot_nlp.cli.taking_over import take_over

# The sizes of the runs that are taken over, see conftest.py.
_SIZES = {
    "data.tags": "columns",
    **{f"data.synthetic.{name}": size for name, size in (("train", 30), ("dev", 8), ("test", 8))},
    "data.graphs.limit": 0,
    "semantics.pruning.rare_role": 1,
    **{f"{part}.mlp": 8 for part in ("syntax", "semantics")},
    **{
        f"{part}.encoder.{name}": size
        for part in ("syntax", "semantics", "semantics.pruning")
        for name, size in (("word_dim", 8), ("lemma_dim", 4), ("tag_dim", 4), ("hidden", 8))
    },
}
SIZES = [word for name, size in _SIZES.items() for word in (f"--{name}", str(size))]


@pytest.fixture
def out(tmp_path, monkeypatch, trained, trained_without_syntax):
    """A folder for the runs, and a demo that trains them in no time."""
    take_over(tmp_path, monkeypatch, {"neurboparser": trained_without_syntax, "": trained})
    folder = tmp_path / "the demo"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _small_report(monkeypatch):
    """A page that names its runs: what is on a real one takes seconds to draw, and has tests of its own."""

    def report(runs, *, sentences, told):
        told("results")
        return page.Page("Demo", f"{sentences} sentences of {' '.join(run.name for run in runs)}", [])

    monkeypatch.setattr(report_runs, "report", report)


def scores(run):
    return json.loads((run / "scores.json").read_text(encoding="utf-8"))


def row_of(system, printed):
    return next(line.split() for line in printed.splitlines() if line.split()[:1] == [system])


def test_tables_report_and_what_to_try_next(out, capsys):
    assert cli.main(["demo", "--out", str(out), "--systems", "neurboparser,pipeline,spigot", *SIZES]) == 0
    printed = capsys.readouterr()
    found = scores(out / "spigot-0")
    wanted = [found[part][kind]["f1"] for part in ("dev", "id", "ood") for kind in ("unlabelled", "labelled")]
    assert row_of("spigot", printed.out)[1:7] == [f"{100 * share:.2f}" for share in wanted]
    assert "spigot − pipeline" in printed.out
    report = out / "report.html"
    assert f"The report is in {report.resolve()}" in printed.err
    commands = [shlex.split(line) for line in printed.err.splitlines() if line.startswith("  spigot ")]
    assert ["spigot", "serve", str(out / "spigot-0"), "--open"] in commands
    assert ["spigot", "analyse", str(out / "pipeline-0"), str(out / "spigot-0")] in commands
    assert "\x1b" not in printed.err + printed.out
    html = report.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert "sentences of neurboparser-0 pipeline-0 spigot-0<" in html
    # The parser that two of them start from was trained once, and none has looked at its tests before all had ended.
    said = (out / "calls").read_text().splitlines()
    assert said.count("parser-0 trained") == 1
    assert [call.endswith("tested") for call in said] == [False] * 4 + [True] * 3


def test_a_program_that_is_not_on_the_path_is_named_by_its_place(tmp_path, monkeypatch):
    program = tmp_path / ".venv" / "bin" / "spigot"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _program() == ".venv/bin/spigot"
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert _program() == "spigot"


def test_the_same_command_again_trains_nothing(out, capsys):
    words = ["demo", "--out", str(out), "--systems", "neurboparser", "--json", *SIZES]
    assert cli.main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert [(training["name"], training["status"]) for training in first["trainings"]] == [
        ("neurboparser-0", "finished")
    ]
    assert first["tests"]
    assert first["report"] == str(out / "report.html")
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    again = json.loads(printed.out)
    assert (again["results"], again["tests"]) == (first["results"], first["tests"])
    assert f"1 training, 2 at a time, in {out}; 1 finished already" in printed.err.replace(", 1 at", ", 2 at")
    assert (out / "calls").read_text().splitlines() == ["neurboparser-0 trained", "neurboparser-0 tested"]
    assert cli.main([*words, "--semantics.optimiser.anneal_every", "7"]) == 1
    message = capsys.readouterr().err
    assert re.search(r"was trained with semantics\.optimiser\.anneal_every = \d+, not 7;", message)


def test_a_report_that_fails_takes_no_result_with_it(out, capsys, monkeypatch):
    def report(runs, *, sentences, told):
        raise ValueError("there is no space left.")

    monkeypatch.setattr(report_runs, "report", report)
    words = ["demo", "--out", str(out), "--systems", "neurboparser", *SIZES]
    assert cli.main(words) == 1
    printed = capsys.readouterr()
    assert row_of("neurboparser", printed.out)
    assert printed.err.splitlines()[-1] == "spigot: there is no space left."
    assert cli.main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["report"] is None
    assert found["results"]


def test_seeds_add_up(out, capsys):
    words = ["demo", "--out", str(out), "--systems", "neurboparser", "--seed", "3", "--seeds", "2", *SIZES]
    assert cli.main(words) == 0
    assert row_of("neurboparser", capsys.readouterr().out)[-1] == "2"
    trained = [call.split()[0] for call in (out / "calls").read_text().splitlines() if "trained" in call]
    assert sorted(trained) == ["neurboparser-3", "neurboparser-4"]


def test_a_system_that_fails_is_shown_and_the_others_go_on(out, capsys):
    (out / "fail-spigot-0").touch()
    assert cli.main(["demo", "--out", str(out), "--systems", "spigot,ste", *SIZES]) == 1
    printed = capsys.readouterr()
    assert "spigot-0: failed. The loss is nan." in printed.err
    assert "The test sets are not scored: spigot-0 is not finished." in printed.err
    assert f"1 of 3 trainings failed; {out / 'spigot-0'}.log says more" in printed.err.splitlines()[-1]
    assert row_of("ste", printed.out)
    assert "sentences of ste-0<" in (out / "report.html").read_text(encoding="utf-8")


def test_json_tells_when_all_fail(out, capsys):
    (out / "fail-neurboparser-0").touch()
    assert cli.main(["demo", "--out", str(out), "--systems", "neurboparser", "--json", *SIZES]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["report"], found["results"], found["tests"]) == (None, None, "")
    assert [training["reason"] for training in found["trainings"]] == ["The loss is nan."]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seeds", "0"], "seeds is 0"),
        (["--seed", "-1"], "seed is -1"),
        (["--processes", "0"], "processes is 0"),
        (["--systems", "spigott"], "--systems names 'spigott'; the study has neurboparser, "),
        (["--systems", ","], "--systems names none; the study has neurboparser, "),
        (["--sedes", "3"], "there is no option or setting --sedes; did you mean --seeds?"),
        (["--system", "ste"], "system is for the demo to say"),
        (["--training.epochs", "0"], "--training.epochs 0: it should be greater than 0"),
        (["--training.tests", "true"], "no training of a study reads its test sets"),
        (["--data.source", "files"], "the demo is about the built-in corpus"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(words, message, tmp_path, capsys):
    assert cli.main(["demo", "--out", str(tmp_path / "x"), *words]) == 1
    printed = capsys.readouterr()
    assert message in printed.err.splitlines()[-1]
    assert printed.out == ""
    assert not (tmp_path / "x").exists()
