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

from spigot_nlp import cli
from spigot_nlp.cli.sweep import as_study, parse_over
from spigot_nlp.experiments.study import runner
from spigot_nlp.experiments.study.plan import Planner
from tests.spigot_nlp.cli import stopping
from tests.spigot_nlp.studying import names, stand_in


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No real training: the command behaves, but its trainings take no time."""
    monkeypatch.setattr(runner, "Children", stand_in(tmp_path))
    monkeypatch.setattr(runner, "run_study", functools.partial(runner.run_study, pause=0.005))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with what trainings are to score."""
    folder = tmp_path / "out"
    folder.mkdir()
    for eta, seed, dev in [("0.5", 0, 70.5), ("0.5", 1, 71.5), ("2", 0, 72.0), ("2", 1, 73.0)]:
        for name in (f"eta={eta},mlp=4-{seed}", f"eta={eta}-{seed}"):
            (folder / f"dev-{name}").write_text(str(dev))
    return folder


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
            ": estimator.eat: is not a known setting; the options of estimators are ",
        ),
        (["--over", "estimator.eta"], "--over estimator.eta has no values; write --over NAME=VALUE,VALUE"),
        (["--over", "estimator.eta="], "--over estimator.eta= has no values"),
        (["--over", "estimator.eta=1,,2"], "has an empty value"),
        (["--over", "estimator.eta=1,-2"], "estimator.eta = -2: eta is -2.0; a step size must be "),
        (["--over", "estimator.eta=much"], "estimator.eta = much: it should be a valid number"),
        (
            ["--over", "system=ste,best"],
            "system = 'best' is none of task = 'parsing'; choose one of ",
        ),
        (
            ["--over", "estimator.eta=1", "--epochs", "2"],
            "--epochs 2: is not a known setting; did you mean --training.epochs",
        ),
        (["--seeds", "0,x"], "--seeds is '0,x'; write whole numbers with commas, such as --seeds 0,1,2."),
        (["--seeds", "0,1", "--threads", "0"], "threads is 0; it must be at least 1"),
        (["--seeds", "0,1", "--processes", "0"], "processes is 0"),
        (["--seeds", "1,1"], "--seeds is '1,1'; seeds are whole numbers from 0, each once"),
        (["--seeds=-1,2"], "seeds are whole numbers from 0"),
        (["--seeds", ""], "--seeds is ''; write whole numbers"),
        (["--over", "estimator.eta=1,1.0"], "estimator.eta has the value 1.0 twice"),
        (["--over", "name=a,b"], "a sweep over 'name' changes no result"),
        (["--over", "estimator.eta=1", "--estimator.eta", "2"], "estimator.eta is to vary and to be fixed"),
        (["--over", "estimator.eta=1,2", "--random", "0"], "--random is 0; it must be at least 1"),
        (["--over", "estimator.eta=1,2", "--bayes", "-1"], "--bayes is -1; it must be at least 1"),
        (["--over", "estimator.eta=1,2", "--bayes", "1", "--random", "1"], "two ways to search; give one of them"),
        (["--over", "semantics=1,2"], "semantics"),
        ([], "has nothing to vary"),
    ],
)
def test_mistakes_are_found_before_anything_starts(words, message, tiny, tmp_path, capsys):
    assert cli.main(["sweep", str(tiny), "--out", str(tmp_path / "out"), *words]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text("""
        preset = "release"
        [sweep]
        "semantics.mlp" = [50, 100]
        "estimator.eta" = [0.1, 1.0, 2.0]
    """)
    return path


def test_a_file_says_what_to_try(file):
    planner = Planner(as_study(file, seeds=[4, 2]), Path("x"))
    assert planner.size == 12
    trials = planner.trials({})
    assert [trial.seed for trial in trials] == [4] * 6 + [2] * 6
    assert trials[0].name == "mlp=50,eta=0.1-4"
    # An ordinary experiment: named after the file, with the preset below it, and nothing left to sweep over.
    config = trials[0].config
    assert (config.name, config.sweep, config.value("estimator.max_norm")) == ("mine", {}, 1.0)
    found = {(t.config.value("semantics.mlp"), t.config.value("estimator.eta"), t.config.seed) for t in trials}
    assert found == {(mlp, eta, seed) for mlp in (50, 100) for eta in (0.1, 1.0, 2.0) for seed in (4, 2)}


def test_the_command_line_adds_replaces_and_fixes(file):
    over = {"estimator.eta": [5], "system": ["ste", "spigot"]}
    study = as_study(file, over=over, overrides={"semantics.mlp": 7, "seed": 3})
    planner = Planner(study, Path("x"), {"semantics.mlp": 7})
    assert names(planner) == ["eta=5,system=ste-3", "eta=5,system=spigot-3"]
    configs = [trial.config for trial in planner.trials({})]
    # What a preset says about a system holds in the trainings of that system.
    assert [(c.value("semantics.mlp"), c.value("estimator.max_norm")) for c in configs] == [(7, None), (7, 1.0)]


def test_seeds_of_the_file(tmp_path):
    path = tmp_path / "seeds.toml"
    path.write_text("[sweep]\nseed = [1, 2]", encoding="utf-8")
    assert names(Planner(as_study(path), Path("x"))) == ["seed-1", "seed-2"]
    assert names(Planner(as_study(path, seeds=[5, 6, 7]), Path("x"))) == ["seed-5", "seed-6", "seed-7"]


@pytest.mark.usefixtures("quick")
def test_table_and_lines(tiny, out, capsys):
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
    assert told[0] == f"4 trainings, 1 at a time, in {out}"
    assert told[1] == "eta=0.5,mlp=4-0: starts"
    assert re.fullmatch(r"eta=0\.5,mlp=4-0: finished, LF 70\.5, UAS 91\.0, after \d+ s", told[2])
    assert told[-1] == f"The runs and the table are in {out}"
    assert (out / "tuning.csv").read_text().splitlines()[1].startswith(",,2,4,72.5,")
    # The same command: the same table at once.
    assert cli.main(words) == 0
    again = capsys.readouterr()
    assert again.out == printed.out
    assert again.err.splitlines() == [f"{told[0]}; 4 finished already", told[-1]]
    # Another configuration has no place in the same folder.
    words[words.index("7")] = "8"
    assert cli.main(words) == 1
    assert "was trained with training.epochs = 7, not 8; " in capsys.readouterr().err


@pytest.mark.usefixtures("quick")
def test_a_failure_is_in_the_table_and_in_the_exit_code(tiny, out, capsys):
    (out / "fail-eta=66-0").touch()
    words = ["sweep", str(tiny), "--over", "estimator.eta=66,2", "--out", str(out)]
    assert cli.main(words) == 1
    printed = capsys.readouterr()
    rows = printed.out.splitlines()[4:6]
    assert rows[0].split()[:3] == ["1", "2", "72.00"]
    assert rows[1].endswith("seed 0: The joint loss is nan at step 3.")
    assert "eta=66-0: failed, and is tried again. The joint loss is nan at step 3." in printed.err
    assert printed.err.splitlines()[-1] == (
        f"spigot: 1 of 2 trainings failed; {out}/eta=66-0.log says more, and the same command tries them again."
    )
    assert cli.main(["sweep", str(tiny), "--over", "estimator.eta=66", "--out", str(out)]) == 1
    assert "None is chosen: no combination has a dev score" in capsys.readouterr().out


@pytest.mark.usefixtures("quick")
def test_json_and_the_default_folder(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", str(tiny), "--over", "estimator.eta=1,2,3", "--random", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["folder"] == "runs/tiny-sweep"
    assert found["chosen"] == found["trainings"][0]["values"]  # of equals the first
    assert [training["status"] for training in found["trainings"]] == ["finished"] * 2
    record = json.loads((tmp_path / "runs/tiny-sweep/study.json").read_bytes())
    assert record["trainings"] == found["trainings"]


class Terminal(io.StringIO):
    """Standard error that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("quick")
def test_a_terminal_gets_a_display(tiny, out, monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    (out / "fail-eta=66-0").touch()
    words = ["sweep", str(tiny), "--over", "estimator.eta=2,66", "--out", str(out), "--processes", "1"]
    assert cli.main(words) == 1
    text = screen.getvalue()
    assert "1 of 2 trained" in text
    assert "reading" in text
    assert "eta=66-0: The joint loss is nan at step 3." in text
    assert "Chosen on the development data: --estimator.eta 2\n" in capsys.readouterr().out


@pytest.mark.slow
def test_a_real_trial_is_interrupted_and_goes_on(tiny, tmp_path, capsys, request, monkeypatch):
    out, marker = tmp_path / "out", tmp_path / "marker"
    run = out / "epochs=2-0"
    words = ["sweep", str(tiny), "--over", "training.epochs=2", "--training.save_seconds", "0", "--out", str(out)]
    words += ["--semantics.pruning.learned", "false", "--data.synthetic.train", "8", "--json"]
    command = [sys.executable, stopping.__file__, "hold", "2", str(marker)]
    monkeypatch.setattr(runner, "Children", functools.partial(runner.Children, command=command))
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
        "spigot: interrupted with 0 of 1 trainings finished; run the same command again to go on."
    )
    assert "spigot: interrupted; go on with" in (out / f"{run.name}.log").read_text(encoding="utf-8")
    steps = (run / "steps.jsonl").read_text(encoding="utf-8")
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    assert f"{run.name}: goes on" in printed.err
    assert (run / "steps.jsonl").read_text(encoding="utf-8").startswith(steps)
    (training,) = json.loads(printed.out)["trainings"]
    assert (training["status"], training["measure"]) == ("finished", "LF")
    scores = json.loads((run / "scores.json").read_bytes())
    assert training["dev"] == pytest.approx(100 * scores["dev"]["labelled"]["f1"])
    assert cli.main(["train", f"{run}.toml", "--out", str(tmp_path / "whole"), "--threads", "1"]) == 0
    for name in ("model.safetensors", "steps.jsonl", "scores.json"):  # as if nobody had interrupted it
        assert (run / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_system_can_be_fixed():
    study = as_study("synthetic", over={"estimator.eta": [0.1, 1.0]}, overrides={"system": "ste"})
    planner = Planner(study, Path("runs/x"), {"system": "ste"})
    planner.check()
    assert {trial.config.system for trial in planner.trials({})} == {"ste"}
