"""Studies: what follows from a file, what is trained, what an interruption and a failure leave, and what is said."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from research.study.plan import Plan, load_study, make_study
from research.study.running import Here, Run, Stopped
from research.study.tables import Results, tuning_rows
from spigot_nlp.models.checkpoint import write_config

TINY = """
[data]
source = "synthetic"
tags = "columns"
synthetic = { train = 24, dev = 6, test = 6 }
[syntax]
mlp = 8
encoder = { word_dim = 8, lemma_dim = 4, tag_dim = 4, hidden = 8 }
[semantics]
mlp = 8
encoder = { word_dim = 8, lemma_dim = 4, tag_dim = 4, hidden = 8 }
[semantics.pruning]
epochs = 1
rare_role = 1
encoder = { word_dim = 8, lemma_dim = 4, tag_dim = 4, hidden = 8 }
[training]
batch = 4
epochs = 1
"""
STUDY = """
config = "tiny.toml"
seeds = [0, 1]
against = ["pipeline"]
[shared.parser]
settings.only = "syntax"
[systems.pipeline]
settings = { syntax.start = "{parser}", syntax.freeze = false }
[systems.ste]
settings.syntax.start = "{parser}"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


class Pretending(Here):
    """Trains nothing: runs have a configuration and scores, unless they are to fail."""

    def __init__(self, failing: Sequence[str] = (), ending_after: int = 10**6) -> None:
        super().__init__(1)
        self.calls, self.failing, self.left = list[str](), failing, ending_after

    async def run(self, words: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
        run = Path(log).with_suffix("")
        self.calls.append(f"{words[0]} {run.name}")
        self.left -= 1
        if self.left < 0:
            raise Stopped
        if run.name in self.failing:
            log.write_text("spigot: The loss is nan.\n")
            return 1
        run.mkdir(exist_ok=True)
        parts = ["dev", "id"] if words[0] == "evaluate" else ["dev"]
        (run / "scores.json").write_text(
            json.dumps({part: {"graphs": {"labelled": {"f1": 0.5}}, "trees": {"uas": 0.5}} for part in parts})
        )
        return 0


def test_trainings_start_from_those_of_their_seed(file, tmp_path):
    plan = Plan(load_study(file), tmp_path / "out")
    needs = {training.name: [source.name for source in training.needs] for training in plan.named()}
    assert needs == {
        **{f"parser-{k}": [] for k in (0, 1)},
        **{f"{name}-{k}": [f"parser-{k}"] for name in ("pipeline", "ste") for k in (0, 1)},
    }
    (ste,) = (training for training in plan.named() if training.name == "ste-1")
    assert ste.config.stages["syntax"].start == str(tmp_path / "out" / "parser-1")
    assert not ste.config.training.tests


def test_points_tuning_and_their_names(file, tmp_path):
    study = load_study(file).model_dump()
    study |= {"vary": {"training.epochs": [1, 2]}, "seeds": [0], "tune": {"seeds": [7, 8], "point": "epochs=1"}}
    study["systems"]["ste"]["tune"] = {"estimator.eta": [0.5, 1.0]}
    plan = Plan(make_study(study), tmp_path, only_systems=["ste"])
    names = [training.name for training in plan.named() if training.system == "ste"]
    tuning = [f"ste,epochs=1,eta={eta}-{seed}" for eta in ("0.5", "1") for seed in (7, 8)]
    assert names == [*tuning, "ste,epochs=1-0", "ste,epochs=2-0"]
    assert plan.budget == {"ste": 4}


def test_a_study_that_extends_another_says_what_is_different(file, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(
        'extends = "study.toml"\n[systems.ste]\nsettings.estimator.eta = 0.5\n[systems.pipeline.settings]\n'
    )
    study = load_study(other)
    assert study.name == "other"
    assert study.systems["ste"].settings == {"syntax.start": "{parser}", "estimator.eta": 0.5}
    assert study.systems["pipeline"].settings == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"seed": 3}}, "seed is for the study to say"),
        ({"against": ["nobody"]}, "against names 'nobody'"),
        ({"colour": 1}, "colour"),
        ({"settings": {"semantics.mlpp": 3}}, "mlpp"),
        ({"systems": {"sponge": {}}}, "sponge has no settings"),
        ({"systems": {"ste": {"settings": {"estimator.rho": 1.0}}}}, "estimator.rho would change nothing"),
        ({"systems": {"ste": {"settings": {"syntax.start": "{nobody}"}}}}, "it can start from parser"),
        ({"systems": {"ste": {"tune": {"estimator.eta": {"low": 0.1, "high": 1.0}}}}}, "a grid needs values"),
        ({"tune": {"search": "tpe"}}, "trials"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_trained(changes, message, file, tmp_path):
    given = {**load_study(file).model_dump(), "against": [], **changes}
    with pytest.raises(ValueError, match=message):
        Plan(make_study(given), tmp_path)


def test_a_training_that_fails_stops_only_those_that_start_from_it(file, tmp_path):
    machine = Pretending(failing=["parser-1"])
    run = Run(Plan(load_study(file), tmp_path / "out"), machine)
    run.train()
    assert machine.calls.count("train parser-1") == 2  # it is tried again
    assert "The loss is nan" in run.failed["parser-1"]
    assert "it starts from parser-1" in run.failed["ste-1"]
    assert sorted(training.name for training in run.finals()) == ["pipeline-0", "ste-0"]
    with pytest.raises(ValueError, match="not scored"):
        run.score_tests()


@pytest.mark.parametrize("search", ["random", "tpe"])
def test_a_search_has_its_budget_and_goes_on_where_it_was(search, file, tmp_path):
    pytest.importorskip("optuna")
    study = load_study(file).model_dump()
    study["systems"]["ste"]["tune"] = {"estimator.eta": {"low": 0.1, "high": 1.0}}
    study |= {"seeds": [0], "tune": {"search": search, "trials": 5}}

    def trained(machine: Pretending) -> Run:
        run = Run(Plan(make_study(study), tmp_path / "out", only_systems=["ste"]), machine)
        run.train()
        return run

    first, second = Pretending(ending_after=4), Pretending()
    trained(first)
    run = trained(second)
    tuned = [row["values"]["estimator.eta"] for row in tuning_rows(run.plan, run.tried)]
    assert len(set(tuned)) == 5
    assert run.chosen["ste", ""] in [{"estimator.eta": eta} for eta in tuned]
    begun = set(first.calls[:4])
    assert not begun & set(second.calls), "what was trained is not trained again"


def test_a_run_with_other_settings_is_refused(file, tmp_path):
    plan = Plan(load_study(file), tmp_path / "out")
    (tmp_path / "out" / "ste-1").mkdir(parents=True)
    write_config(tmp_path / "out" / "ste-1" / "config.toml", plan.named()[-1].config)
    with pytest.raises(ValueError, match="mlp = 8, and now it is 4"):
        Run(Plan(load_study(file), tmp_path / "out", {"syntax.mlp": 4}), Pretending()).train()


@pytest.mark.slow
def test_a_killed_study_goes_on(file, tmp_path):
    root, out = Path(__file__).parents[2], tmp_path / "out"
    command = [sys.executable, "-m", "research.study", str(file), "--seeds", "0", "--out", str(out)]
    with (tmp_path / "said").open("wb") as said:
        study = subprocess.Popen(command, stdout=said, stderr=said, cwd=root)
        while b"parser-0: " not in (tmp_path / "said").read_bytes():
            assert study.poll() is None, (tmp_path / "said").read_text()
            time.sleep(0.05)
        os.kill(study.pid, signal.SIGKILL)
        study.wait()
    done = subprocess.run([*command, "--tests", "--json"], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {(s["system"], s["seed"]) for s in found["scores"]} == {("pipeline", 0), ("ste", 0)}
    assert {s["part"] for s in found["scores"]} == {"dev", "id", "ood"}
    assert {d["over"] for d in found["differences"]} == {"sentences"}
    assert (out / "scores.csv").read_text().count("\n") == len(found["scores"]) + 1
    plan = Plan(load_study(file).model_copy(update={"seeds": (0,)}), out)
    finals = [training for training in plan.named() if training.role == "final"]
    titles = [table.title for table in Results(plan, finals).tables()]  # no test set, unless it is asked for
    assert titles == ["Graphs", "The trees inside", "Differences in LF on the development data", "Cost"]


@pytest.mark.parametrize(
    "text", ["systems = " + "[" * 2000, f'extends = "{"a" * 3000}"', 'extends = "a\\nb"', f'config = "{"a" * 3000}"']
)
def test_a_damaged_study_is_refused_in_a_sentence(text, tmp_path):
    damaged = tmp_path / "damaged.toml"
    damaged.write_text(text + "\n[systems.ste]\n")
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        load_study(damaged)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000
