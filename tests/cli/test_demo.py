"""`spigot demo`: what it shows, prints, writes and refuses."""

import io
import json
import re
import shlex
import sys
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from spigot import cli
from spigot.cli.demo import _program
from spigot.cli.demo_display import EVERY, Lines, shown, table
from spigot.experiments import comparison
from spigot.experiments.comparison_plan import plan_comparison
from spigot.experiments.comparison_progress import Progress
from spigot.report import page
from spigot.report import runs as report_runs

# Trains by taking over a run that is finished already.
TRAINER = """
import pathlib, shutil, sys, tomllib
words = dict(zip(sys.argv, sys.argv[1:]))
run = pathlib.Path(words.get("--resume") or words["--out"])
system = run.name.rpartition("-")[0]
with (run.parent / "calls").open("a") as calls:
    calls.write(run.name + "\\n")
if (run.parent / f"fail-{system}").exists():
    sys.exit("spigot: The loss is nan.")
shutil.copytree(FINISHED["neurboparser" if system == "neurboparser" else "other"], run, dirs_exist_ok=True)
shutil.copy(sys.argv[1], run / "config.toml")
"""
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
    finished = {"neurboparser": str(trained_without_syntax), "other": str(trained)}
    path = tmp_path / "trainer.py"
    path.write_text(f"FINISHED = {finished!r}\n{TRAINER}", encoding="utf-8")
    quickly = partial(comparison.run_comparison, command=[sys.executable, "-I", "-S", str(path)], pause=0.01)
    monkeypatch.setattr(comparison, "run_comparison", quickly)
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


def test_tables_report_and_what_to_try_next(out, capsys):
    assert cli.main(["demo", "--out", str(out), "--systems", "neurboparser,spigot", *SIZES]) == 0
    printed = capsys.readouterr()
    assert "Table 1. Test sentences: 8 in domain, 8 out of domain." in printed.out
    row = next(line.split() for line in printed.out.splitlines() if line.split()[:1] == ["spigot"])
    found = scores(out / "spigot-0")
    wanted = [found[part][kind]["f1"] for part in ("id", "ood") for kind in ("unlabelled", "labelled")]
    wanted += [found[f"{part} trees"]["uas"] for part in ("id", "ood")]
    assert row[1:] == [f"{100 * share:.2f}" for share in wanted]
    assert "Table 3. Development sentences" in printed.out
    assert "spigot against pipeline: LF +0.0 in domain (+0.0 to +0.0, may be chance)" in " ".join(printed.out.split())
    report = out / "report.html"
    assert f"The report is in {report.resolve()}" in printed.err
    commands = [shlex.split(line) for line in printed.err.splitlines() if line.startswith("  spigot ")]
    assert ["spigot", "serve", str(out / "spigot-0"), "--open"] in commands
    assert ["spigot", "analyse", str(out / "pipeline-0"), str(out / "spigot-0")] in commands
    assert max(map(len, printed.out.splitlines())) <= 80
    assert "\x1b" not in printed.err + printed.out
    html = report.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert "sentences of neurboparser-0 pipeline-0 spigot-0<" in html


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
    assert first["results"]["rows"][0]["system"] == "neurboparser"
    assert first["results"]["rows"][0]["scores"]["id"]["LF"]["mean"] == pytest.approx(
        scores(out / "neurboparser-0")["id"]["labelled"]["f1"]
    )
    assert first["results"]["analysis"] is None
    assert first["failed"] == {}
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["results"] == first["results"]
    assert "has 1 finished of 1 trainings already; remove it to start afresh" in printed.err
    assert (out / "calls").read_text().split() == ["neurboparser-0"]
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
    assert "Table 1." in printed.out
    assert printed.err.splitlines()[-1] == "spigot: there is no space left."
    assert cli.main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["report"] is None
    assert found["results"]["rows"][0]["system"] == "neurboparser"


def test_seeds_add_up(out, capsys):
    assert (
        cli.main(["demo", "--out", str(out), "--systems", "neurboparser", "--seed", "3", "--seeds", "2", *SIZES]) == 0
    )
    assert "mean ± standard deviation of 2 seeds" in " ".join(capsys.readouterr().out.split())
    assert sorted((out / "calls").read_text().split()) == ["neurboparser-3", "neurboparser-4"]


def test_a_system_that_fails_is_shown_and_the_others_go_on(out, capsys):
    (out / "fail-spigot").touch()
    assert cli.main(["demo", "--out", str(out), "--systems", "spigot,ste", *SIZES]) == 1
    printed = capsys.readouterr()
    assert "spigot-0: failed. The loss is nan." in printed.err
    assert f"1 of 3 trainings failed; {out / 'spigot-0'}.log says more" in printed.err
    assert any(line.split()[:1] == ["ste"] for line in printed.out.splitlines())
    assert "sentences of pipeline-0 ste-0<" in (out / "report.html").read_text(encoding="utf-8")


def test_json_tells_when_all_fail(out, capsys):
    (out / "fail-neurboparser").touch()
    assert cli.main(["demo", "--out", str(out), "--systems", "neurboparser", "--json", *SIZES]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["runs"], found["report"], found["failed"]) == ([], None, {"neurboparser-0": "The loss is nan."})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seeds", "0"], "seeds is 0"),
        (["--seed", "-1"], "seed is -1"),
        (["--processes", "0"], "processes is 0"),
        (["--systems", "spigott"], "there is no system 'spigott'"),
        (["--systems", ","], "there is no system to train"),
        (["--sedes", "3"], "there is no option or setting --sedes; did you mean --seeds?"),
        (["--system", "ste"], "system is for the comparison to say"),
        (["--training.epochs", "0"], "training.epochs"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(words, message, tmp_path, capsys):
    assert cli.main(["demo", "--out", str(tmp_path / "x"), *words]) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "x").exists()


# ---------------------------------------------------------------------------------------------------------- the display


def some_progress():
    """Five trainings in all states there are."""
    plan = plan_comparison("x")
    known = {trial.settings["system"]: Progress(trial) for trial in plan.trials}
    for name, share, seconds in (("pipeline", 1, 60), ("neurboparser", 1, 30), ("attention", 0.4, 14), ("ste", 0, 3)):
        known[name].done, known[name].seconds = known[name].work * share, seconds
    known["pipeline"].status = known["neurboparser"].status = "finished"
    known["pipeline"].dev = {"LF": 81.25, "UF": 88.0, "UAS": 95.0}
    running = known["attention"]
    running.status, running.phase, running.epoch, running.epochs = "running", "joint", 7, 18
    running.losses, running.dev = {"semantics": 8.23, "syntax": 0.51}, {"LF": 76.0, "UAS": 94.5}
    known["ste"].status, known["ste"].reason = "failed", "The [bold]loss[/bold] is nan."
    return plan, list(known.values())


def drawn(known, plan, width=80, height=None):
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    order = [run.name for runs in plan.runs(Path("x")).values() for run in runs]
    console.print(table(known, plan.sources, 2, spent=70, order=order, width=width, height=height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_display_has_a_row_for_each_system():
    plan, known = some_progress()
    lines = drawn(known, plan)
    assert max(map(len, lines)) <= 80
    assert [line.split()[1] for line in lines[1:6]] == list(plan.systems)
    assert lines[2].split()[:3] == ["✓", "pipeline", "finished"]
    assert "LF 81.2 UAS 95.0" in lines[2]
    assert lines[3].startswith("▸ attention")
    assert "joint 7/18" in lines[3]
    assert "8.2 0.5" in lines[3]
    assert "2 of 5 trained" in lines[6]
    assert "left" in lines[6]
    assert lines[6].endswith("1:10")
    assert lines[7] == "✗ ste-0: The [bold]loss[/bold] is nan."
    assert any("semantics 8.2 syntax 0.5" in line for line in drawn(known, plan, 110))


@pytest.mark.parametrize("width", [40, 58, 79, 80])
def test_a_narrow_screen_has_what_matters(width):
    plan, known = some_progress()
    lines = drawn(known, plan, width)
    assert max(map(len, lines)) <= width
    assert "joint 7/18" in lines[3]
    assert lines[3].endswith("0:14")
    assert lines[6].split()[:4] == ["2", "of", "5", "trained"]
    assert re.search(r"about \d+:\d\d left +1:10$", lines[6])
    assert ("LF 76.0" in lines[3], "8.2 0.5" in lines[3]) == (width >= 58, width >= 80)


def test_a_low_screen_has_what_runs():
    plan, known = some_progress()
    head, running, last, failed = drawn(known, plan, height=8)
    assert head.split()[0] == "system"
    assert running.startswith("▸ attention")
    assert "2 of 5 trained" in last
    assert failed.startswith("✗ ste-0")


def test_several_seeds_are_told_apart():
    plan = plan_comparison("x", systems=["neurboparser"], seeds=[1, 2])
    assert [line.split()[1] for line in drawn([Progress(trial) for trial in plan.trials], plan)[1:3]] == [
        "neurboparser-1",
        "neurboparser-2",
    ]


class Terminal(io.StringIO):
    """Standard error that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_the_display(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    plan, known = some_progress()
    assert shown([known, known], plan.sources, 2) is known
    assert "\x1b" in screen.getvalue()
    assert "joint 7/18" in screen.getvalue()
    assert capsys.readouterr().out == ""


def test_lines_come_now_and_then():
    plan, known = some_progress()
    now = [0.0]
    lines = Lines(plan.sources, 2, clock=lambda: now[0])
    assert lines.news(known) == ["attention-0: starts", "ste-0: failed. The [bold]loss[/bold] is nan."]
    assert lines.news(known) == []
    now[0] += EVERY
    place, left = lines.news(known)
    assert place == "attention-0: joint 7/18, LF 76.0, UAS 94.5"
    assert left.startswith("about ")
    assert lines.news(known) == []
    running = next(progress for progress in known if progress.status == "running")
    running.is_stopping = True
    assert running.place == "saving"
    assert lines.news(known) == ["attention-0: saves its state, unless it is interrupted again"]
    assert lines.news(known) == []
    running.status = "finished"
    assert lines.news(known) == ["attention-0: finished, LF 76.0, UAS 94.5, after 14 s"]
