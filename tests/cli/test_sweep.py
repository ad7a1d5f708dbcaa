"""`spigot sweep`: what it asks for, prints and returns."""

import functools
import io
import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from spigot import cli
from spigot.cli.sweep import parse_over, time_left
from spigot.config import Config
from spigot.experiments import sweep_trials
from spigot.experiments.sweep import Trial
from spigot.experiments.sweep_results import Result
from tests.cli import stopping
from tests.sweeping import stand_in


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No real training: the command behaves, but its trials take no time."""
    run = functools.partial(sweep_trials.run_trials, command=stand_in(tmp_path), pause=0.01)
    monkeypatch.setattr(sweep_trials, "run_trials", run)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["classifier.mlp=100,150, 200"], {"classifier.mlp": [100, 150, 200]}),
        (["classifier.mlp=[100, 150]"], {"classifier.mlp": [100, 150]}),
        (["estimator.eta=1e-1,1"], {"estimator.eta": [0.1, 1]}),
        (["semantics.pruning.rare-role=3"], {"semantics.pruning.rare_role": [3]}),
        (["system=ste,spigot"], {"system": ["ste", "spigot"]}),
        (["semantics.determinism=true,false"], {"semantics.determinism": [True, False]}),
        (["seed=0,1"], {"seed": [0, 1]}),
        (["data.vectors=1,2"], {"data.vectors": ["1", "2"]}),
        (['data.vectors="a,b",c,""'], {"data.vectors": ["a,b", "c", ""]}),
        (["data.trees.train=a,b"], {"data.trees.train": ["a", "b"]}),
        (["training.batch=1", "training.batch=2"], {"training.batch": [1, 2]}),
    ],
)
def test_values_to_try(words, expected):
    found = parse_over(words)
    assert found == expected
    assert [[type(v) for v in values] for values in found.values()] == [
        [type(v) for v in values] for values in expected.values()
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--over", "estimator.eat=1,2"],
            "with --over estimator.eat=1: estimator.eat: is not a known setting; the options of estimators are ",
        ),
        (["--over", "estimator.eta"], "--over estimator.eta has no values; write --over NAME=VALUE,VALUE"),
        (["--over", "estimator.eta="], "--over estimator.eta= has no values"),
        (["--over", "estimator.eta=1,,2"], "has an empty value"),
        (["--over", "estimator.eta=1,-2"], "--over estimator.eta=-2: eta is -2.0; a step size must be "),
        (["--over", "estimator.eta=much"], "--over estimator.eta=much: it should be a valid number"),
        (
            ["--over", "system=ste,best"],
            "with --over system=best: system = 'best' is none of task = 'parsing'; choose one of ",
        ),
        (
            ["--over", "estimator.eta=1", "--epochs", "2"],
            "--epochs 2: is not a known setting; did you mean --training.epochs",
        ),
        (["--seeds", "0,x"], "--seeds is '0,x'; write whole numbers with commas, such as --seeds 0,1,2."),
        (["--seeds", "0,1", "--threads", "0"], "threads is 0; it must be at least 1"),
        (["--seeds", "0,1", "--processes", "0"], "processes is 0"),
        ([], "has nothing to vary"),
    ],
)
def test_mistakes_are_found_before_anything_starts(words, message, tiny, tmp_path, capsys):
    assert cli.main(["sweep", str(tiny), "--out", str(tmp_path / "out"), *words]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("quick")
def test_table_and_lines(tiny, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["sweep", str(tiny), "--over", "estimator.eta=0.5,2", "--over", "semantics.mlp=4", "--seeds", "0,1"]
    words += ["--training.epochs", "7", "--out", str(out), "--processes", "1"]
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    lines = [line.rstrip() for line in printed.out.splitlines()]
    assert lines[0] == "2 combinations by LF on the development data, mean ± standard deviation of 2 seeds, per cent"
    assert lines[2].split() == ["eta", "mlp", "dev", "each", "seed", "epochs", "minutes"]
    assert re.fullmatch(r" +1 +2 +4 +72\.50 ± 0\.71 +72\.00 73\.00 +2 +0\.0", lines[4])
    assert re.fullmatch(r" +2 +0\.5 +4 +71\.00 ± 0\.71 +70\.50 71\.50 +2 +0\.0", lines[5])
    assert lines[-1] == "Chosen on the development data: --estimator.eta 2 --semantics.mlp 4"
    told = printed.err.splitlines()
    assert told[0] == f"2 combinations × 2 seeds = 4 trials, 1 at a time, in {out}"
    assert told[1] == "[0/4] eta=0.5,mlp=4,seed=0: starts"
    assert told[2].startswith("[1/4] eta=0.5,mlp=4,seed=0: LF 70.50 at epoch 2, 0 s")
    assert told[-1] == f"The runs and the table are in {out}"
    assert len(told) == 10
    # The same command: the same table at once. With --tests there is more of it, in the same order.
    assert cli.main(words) == 0
    again = capsys.readouterr()
    assert again.out == printed.out
    assert again.err.splitlines() == [f"{told[0]}; 4 are finished already", told[-1]]
    assert cli.main([*words, "--tests"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].endswith("id (test)")
    assert lines[4].endswith("80.00")
    assert lines[5].endswith("95.00")
    # Another configuration has no place in the same folder.
    words[words.index("7")] = "8"
    assert cli.main(words) == 1
    assert "was trained with training.epochs = 7, and this sweep has 8." in capsys.readouterr().err


@pytest.mark.usefixtures("quick")
def test_a_failure_is_in_the_table_and_in_the_exit_code(tiny, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["sweep", str(tiny), "--over", "estimator.eta=66,1", "--out", str(out)]
    assert cli.main(words) == 1
    printed = capsys.readouterr()
    rows = printed.out.splitlines()[4:6]
    assert rows[0].split()[:3] == ["1", "1", "71.00"]
    assert rows[1].endswith("seed 0: The joint loss is nan at step 3.")
    assert printed.err.splitlines()[-1] == (
        f"spigot: 1 of 2 trials failed; {out}/eta=66,seed=0.log says more, and the same command tries them again."
    )
    assert cli.main(["sweep", str(tiny), "--over", "estimator.eta=66", "--out", str(tmp_path / "no")]) == 1
    assert "None is chosen: no combination has a dev score" in capsys.readouterr().out


@pytest.mark.usefixtures("quick")
def test_json_and_the_default_folder(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", str(tiny), "--over", "estimator.eta=1,2,3", "--random", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["folder"] == "runs/tiny-sweep"
    assert found["chosen"] == {"estimator.eta": max(trial["settings"]["estimator.eta"] for trial in found["trials"])}
    assert [trial["status"] for trial in found["trials"]] == ["finished"] * 2
    record = json.loads((tmp_path / "runs/tiny-sweep/sweep.json").read_bytes())
    assert {"folder": found["folder"], **record} == found


class Terminal(io.StringIO):
    """Standard error that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("quick")
def test_a_terminal_gets_a_display(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    assert (
        cli.main(
            ["sweep", str(tiny), "--over", "estimator.eta=1,66", "--out", str(tmp_path / "out"), "--processes", "1"]
        )
        == 1
    )
    text = screen.getvalue()
    assert "1 running" in text
    assert "reading" in text
    assert "eta=66,seed=0: failed. The joint loss is nan at step 3." in text
    assert "Chosen on the development data: --estimator.eta 1\n" in capsys.readouterr().out


def test_time_left():
    trial = Trial("eta=1,seed=0", {}, 0, Config())
    known = [Result(trial, "running", seconds=50), Result(trial), Result(trial, "failed", seconds=3)]
    assert time_left(known, 2) is None
    assert time_left([*known, Result(trial, "finished", seconds=100)], 2) == 75
    assert time_left([Result(trial, "finished", seconds=10), Result(trial, "running", seconds=99)], 2) == 0


@pytest.mark.slow
def test_a_real_trial_is_interrupted_and_goes_on(tiny, tmp_path, capsys, request, monkeypatch):
    out, marker = tmp_path / "out", tmp_path / "marker"
    run = out / "epochs=2,seed=0"
    words = ["sweep", str(tiny), "--over", "training.epochs=2", "--training.save_seconds", "0", "--out", str(out)]
    words += ["--semantics.pruning.learned", "false", "--data.synthetic.train", "8", "--json"]
    command = [sys.executable, stopping.__file__, "hold", "2", str(marker), "train"]
    patient = functools.partial(sweep_trials.run_trials, command=command, pause=0.05)
    monkeypatch.setattr(sweep_trials, "run_trials", patient)
    # Whoever runs the tests in the background may have the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def interrupt() -> None:
        deadline = time.monotonic() + 200
        while not marker.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    code = cli.main(words)
    thread.join()
    printed = capsys.readouterr()
    assert (code, printed.out) == (130, "")
    assert printed.err.splitlines()[-1] == (
        "spigot: interrupted with 0 of 1 trials finished; run the same command again to go on."
    )
    assert "spigot: interrupted; go on with" in (out / f"{run.name}.log").read_text(encoding="utf-8")
    steps = (run / "steps.jsonl").read_text(encoding="utf-8")
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    assert f"{run.name}: goes on" in printed.err
    assert (run / "steps.jsonl").read_text(encoding="utf-8").startswith(steps)
    (trial,) = json.loads(printed.out)["trials"]
    assert (trial["status"], trial["measure"]) == ("finished", "LF")
    scores = json.loads((run / "scores.json").read_bytes())
    assert trial["score"] == pytest.approx(100 * scores["dev"]["labelled"]["f1"])
    assert cli.main(["train", f"{run}.toml", "--out", str(tmp_path / "whole"), "--threads", "1"]) == 0
    for name in ("model.safetensors", "steps.jsonl", "scores.json"):  # as if nobody had interrupted it
        assert (run / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
