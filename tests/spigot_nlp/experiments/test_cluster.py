"""Studies on a Ray cluster of one machine: as with processes, whatever becomes of a worker."""

import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from spigot_nlp.experiments import cluster
from spigot_nlp.experiments.children import Children
from spigot_nlp.experiments.cluster import ray_workers
from spigot_nlp.experiments.processes import LocalProcess, is_locked
from spigot_nlp.experiments.study.file import make_study
from spigot_nlp.experiments.study.plan import Planner
from spigot_nlp.experiments.study.runner import run_study
from spigot_nlp.locks import lock

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'torch-spigot[ray]'"
)
pytestmark = pytest.mark.xdist_group("ray")  # one cluster for all of them

# The words, files and signals of `spigot train`, without a network. Files beside the runs say what happens; two at a
# time on one run are an error.
TRAINER = """
import json, os, pathlib, shutil, signal, sys, time, tomllib
words = dict(zip(sys.argv, sys.argv[1:]))
run = pathlib.Path(words.get("--resume") or words["--out"])
run.mkdir(exist_ok=True)
with (run / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
(run / "alive").touch(exist_ok=False)
def end(code):
    (run / "alive").unlink()
    sys.exit(code)
if "--out" in words:
    shutil.copy(sys.argv[2], run / "config.toml")
config = tomllib.loads((run / "config.toml").read_text())
if (run.parent / f"{run.name}.fails").exists():
    (run.parent / f"{run.name}.fails").unlink()
    print("spigot: The loss is nan. Try a lower rate.", flush=True)
    end(1)
if (run.parent / f"{run.name}.waits").exists() and "--resume" not in words:
    def stop(number, frame):
        time.sleep(0.3)
        (run / "state").write_text("half")
        end(130)
    signal.signal(signal.SIGTERM, stop)
    (run / "ready").write_text(f"{os.getppid()} ")
    time.sleep(600)
step = {"phase": "joint", "epoch": 1, "step": 1, "of": 1, "task": "syntax", "loss": 1.5, "sentences": 2}
step |= {"dev": {"LF": 70.0 + config["seed"]}, "is_best": True}
(run / "steps.jsonl").write_text(json.dumps(step) + "\\n")
(run / "scores.json").write_text(json.dumps({"dev": {}, "threads": os.environ["OMP_NUM_THREADS"]}))
end(0)
"""


@pytest.fixture(scope="module")
def address():
    """A cluster of this machine alone, in processes that end with the tests."""
    folder = Path(tempfile.mkdtemp(prefix="ray"))  # sockets are in there, and their names must be short
    current, said = folder / "ray_current_cluster", folder / "said"
    options = ["--port=0", "--num-cpus=2", "--include-dashboard=false", "--object-store-memory=100000000"]
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *options]
    head = None
    try:
        with pytest.MonkeyPatch.context() as patch, said.open("wb") as file:
            # Whoever can reach a cluster can run code on it: this one is for these tests alone.
            patch.setenv("RAY_AUTH_MODE", "token")
            patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
            for _ in range(2):  # Ray gives itself half a minute, and a busy machine may take longer
                head = subprocess.Popen(
                    [*command, f"--temp-dir={folder}", "--disable-usage-stats"], stdout=file, stderr=subprocess.STDOUT
                )
                while head.poll() is None and not current.exists():
                    time.sleep(0.1)
                if head.poll() is None:
                    break
            else:
                pytest.skip(f"Ray does not start on this machine: {said.read_text().strip().splitlines()[-1]}")
            yield current.read_text(encoding="ascii").strip()
    finally:
        if head is not None:
            head.terminate()
            head.wait(120)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def team(address, tmp_path_factory):
    """What trains there."""
    script = tmp_path_factory.mktemp("trainer") / "trainer.py"
    script.write_text(TRAINER, encoding="utf-8")
    yield ray_workers(address, threads=1, command=[sys.executable, "-I", "-S", str(script)])
    __import__("ray").shutdown()


def planner(out, retries=1):
    given = {"config": "synthetic", "systems": {"ste": {}, "spigot": {}}, "seeds": [0, 1], "retries": retries}
    return Planner(make_study(given), out)


def outcome(known):
    return [(p.trial.name, p.status, p.score, p.attempts) for p in known]


def calls(run):
    return [line.split()[1] for line in (run / "calls").read_text().splitlines()]


@needs_ray
@pytest.mark.slow
def test_as_with_processes_and_what_fails_is_tried_again(team, tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    for out in (there, here):
        out.mkdir()
        (out / "ste-1.fails").touch()
    on_ray = outcome(list(run_study(planner(there), processes=2, team=team))[-1])
    looks = run_study(planner(here), processes=2, team=lambda out: Children(out, command=team.command))
    assert on_ray == outcome(list(looks)[-1])
    assert on_ray[2] == ("ste-1", "finished", 71.0, 2)
    assert "The loss is nan." in (there / "ste-1.log").read_text()
    assert not list(there.glob("*/alive"))
    assert not (there / ".cluster").exists()
    assert (there / "spigot-0.log").exists()
    assert json.loads((there / "spigot-0/scores.json").read_text())["threads"] == "1"
    assert calls(there / "ste-1") == [str(there / "ste-1.toml"), "--resume"]


@needs_ray
@pytest.mark.slow
def test_interrupted_it_saves_and_the_same_command_goes_on(team, tmp_path):
    (tmp_path / "spigot-0.waits").touch()
    study = planner(tmp_path)

    def interrupted():
        told = False
        for _ in run_study(study, processes=2, team=team):
            if not told and (tmp_path / "spigot-0/ready").exists():
                told = True
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match=r"of 4 trainings finished; run the same command again"):
        interrupted()
    assert (tmp_path / "spigot-0/state").read_text() == "half"
    assert not list(tmp_path.glob("*/alive"))
    (tmp_path / "spigot-0.waits").unlink()
    known = list(run_study(planner(tmp_path), processes=2, team=team))[-1]
    assert {p.status for p in known} == {"finished"}
    assert calls(tmp_path / "spigot-0") == [str(tmp_path / "spigot-0.toml"), "--resume"]


@needs_ray
@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing_and_trains_nothing_twice(team, tmp_path):
    (tmp_path / "ste-0.waits").touch()
    known, killed, reasons = [], [], set()
    for known in run_study(planner(tmp_path), processes=1, team=team):
        ready = tmp_path / "ste-0/ready"
        if not killed and ready.exists() and ready.read_text().endswith(" "):
            killed.append(int(ready.read_text()))
            os.kill(killed[0], signal.SIGKILL)
        reasons |= {p.reason for p in known}
    assert any(reason.startswith("The Ray worker that trained it on ") for reason in reasons), reasons
    assert outcome(known)[0] == ("ste-0", "finished", 70.0, 2)
    assert {p.status for p in known} == {"finished"}
    assert (tmp_path / "ste-0/state").read_text() == "half"
    for progress in known:
        first = [str(tmp_path / f"{progress.trial.name}.toml")]
        assert calls(tmp_path / progress.trial.name) == first + ["--resume"] * (progress.trial.name == "ste-0")
    assert not any(is_locked(log) for log in tmp_path.glob("*.log"))


@needs_ray
@pytest.mark.slow
def test_a_machine_that_does_not_see_the_folder(team, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "write_text", lambda path, text: Path(path).write_text("another"))
    with pytest.raises(ValueError, match=r"does not see .*; the folder of a study must be the same one"):
        list(run_study(planner(tmp_path), team=team))
    assert not list(tmp_path.glob("*/calls"))


@needs_ray
@pytest.mark.slow
def test_more_threads_than_any_machine_has(team):
    with pytest.raises(ValueError, match=r"threads is 100000, and no machine of the cluster has more than \d+ cores"):
        ray_workers("ray", threads=100_000)
    assert team.places >= 1


@pytest.mark.parametrize("lacking", ["ray", "grpc"])
def test_without_ray_it_says_what_to_install(monkeypatch, lacking):
    if lacking == "grpc" and importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray: pip install 'torch-spigot[ray]'")
    monkeypatch.setitem(sys.modules, lacking, None)
    with pytest.raises(
        ModuleNotFoundError, match=r"--on needs Ray; install it with: pip install 'torch-spigot\[ray\]'"
    ):
        ray_workers("ray://nowhere:10001", threads=1)


class FakeRay:
    """Ray, as far as it is needed to lose a worker."""

    class exceptions:  # as Ray calls it
        RayError = RayActorError = RuntimeError

    def __init__(self, said):
        self.said, self.killed = said, []

    def wait(self, refs, timeout):
        return refs, []

    def get(self, ref):
        raise RuntimeError(f"The actor died unexpectedly.\n{self.said}")

    def kill(self, actor):
        self.killed.append(actor)


class FakeActor:
    """An actor whose answers never come."""

    def __getattr__(self, name):
        return type("Method", (), {"remote": staticmethod(lambda *words: name)})


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("The actor is dead because its node has died.", "The machine it was trained on has left the cluster."),
        ("Task was killed due to the node running low on memory.", "Ray ended it, where memory ran out."),
        ("No module named 'spigot'", "Ray could not train it: No module named 'spigot'."),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="locks are those of POSIX")
def test_until_an_orphan_has_saved_its_training_counts_as_under_way(monkeypatch, tmp_path, said, why):
    """The second training of a run must not be begun before the first is gone."""
    monkeypatch.setattr(cluster, "_ray", lambda: FakeRay(said))
    log = tmp_path / "one.log"
    process = cluster.RayProcess(FakeActor(), log)
    orphan = LocalProcess(log, [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"], {})
    assert [process.poll() for _ in range(3)] == [None] * 3
    orphan.tell(signal.SIGKILL)
    orphan.wait(60)
    assert process.poll() == why


@pytest.mark.skipif(os.name == "nt", reason="locks are those of POSIX")
def test_an_orphan_that_does_not_end_is_not_waited_for_for_ever(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster, "_ray", lambda: FakeRay("The actor is dead because its node has died."))
    monkeypatch.setattr(cluster, "_PATIENCE", 0.0)
    with (tmp_path / "one.log").open("ab") as held:
        assert lock(held)
        said = cluster.RayProcess(FakeActor(), tmp_path / "one.log").poll()
    assert said == "The machine it was trained on has left the cluster, and its process is still there."


def test_what_waits_for_a_machine_is_given_up_at_once(monkeypatch, tmp_path):
    ray, actor = FakeRay(""), FakeActor()
    monkeypatch.setattr(cluster, "_ray", lambda: ray)
    process = cluster.RayProcess(actor, tmp_path / "one.log")
    process.tell(signal.SIGTERM)
    assert (ray.killed, process.poll(), process.seconds, process.place) == ([actor], "It was given up.", 0.0, "")
