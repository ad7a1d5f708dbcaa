"""A stand-in for trainings, so that studies can be tested without any."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from spigot_nlp.experiments.children import Children
from spigot_nlp.experiments.study.file import make_study
from spigot_nlp.experiments.study.plan import Planner
from spigot_nlp.experiments.study.progress import Progress
from spigot_nlp.experiments.study.runner import Team, run_study, score_tests

# The words, files and signals of `spigot train` and `spigot evaluate`, without a network. Files beside the runs say
# what happens to a run: fail-NAME, kill-NAME, empty-NAME, hang-NAME, and dev-NAME, which holds its dev score.
TRAINER = """
import json, os, pathlib, shutil, signal, sys, time, tomllib
words = dict(zip(sys.argv, sys.argv[1:]))
run = pathlib.Path(words.get("--resume") or words.get("--out") or words["evaluate"])
out, name = run.parent, run.name
def note(word):
    with (out / "calls").open("a") as calls:
        calls.write(f"{name} {word}\\n")
if "evaluate" in words:
    assert "--tests" in sys.argv
    note("tested")
    if (out / f"fail-{name}").exists():
        sys.exit("spigot: There is no test set. Give one.")
    scores = json.loads((run / "scores.json").read_text())
    (run / "scores.json").write_text(json.dumps({**scores, "id": {}}))
    sys.exit()
run.mkdir(exist_ok=True)
if "--out" in words:
    shutil.copy(words["train"], run / "config.toml")
config = tomllib.loads((run / "config.toml").read_text())
note("resumed" if "--resume" in words else "started")
print("hello from", name, flush=True)
assert config["training"]["tests"] is False
def step(phase, epoch, dev):
    values = {"phase": phase, "epoch": epoch, "step": 1, "of": 1, "task": "syntax", "loss": 2.0, "sentences": 8}
    with (run / "steps.jsonl").open("a") as steps:
        steps.write(json.dumps({**values, "tokens": 9, "dev": dev, "is_best": dev is not None}) + "\\n")
if (out / f"fail-{name}").exists():
    sys.exit("spigot: The joint loss is nan at step 3. Try a lower learning rate.")
if (out / f"kill-{name}").exists():
    os.kill(os.getpid(), signal.SIGKILL)
if (out / f"empty-{name}").exists():
    sys.exit()
if (out / f"hang-{name}").exists() and "--resume" not in words:
    def stop(number, frame):
        note("saved")
        sys.exit(130)
    signal.signal(signal.SIGTERM, stop)
    note("hangs")
    time.sleep(60)
for stage in config["stages"].values():
    if (start := stage.get("start")) and not pathlib.Path(start, "scores.json").exists():
        sys.exit("spigot: What it starts from is not there.")
given = out / f"dev-{name}"
dev = json.loads(given.read_text()) if given.exists() else 70.0
phase = "joint" if len(config["stages"]) > 1 else next(iter(config["stages"]))
step(phase, 1, None)
if dev is not None:
    step(phase, 2, {"LF": dev, "UAS": 91.0})
(run / "scores.json").write_text(json.dumps({"dev": {}}))
note("finished")
"""


def stand_in(folder: Path) -> Team:
    """What trains in no time, to be given to `run_study` as its team."""
    path = folder / "trainer.py"
    path.write_text(TRAINER, encoding="utf-8")
    return partial(Children, command=[sys.executable, "-I", "-S", str(path)])


def planned(out: Path, /, *, overrides: Mapping[str, Any] | None = None, **study: Any) -> Planner:
    """A study on the built-in corpus."""
    return Planner(make_study({"name": "mine", "config": "synthetic", **study}), out, overrides or {})


def finish(planner: Planner, team: Team, processes: int = 2) -> dict[str, Progress]:
    """Train all of a study; what became of each training, by name."""
    *_, known = run_study(planner, processes=processes, team=team, pause=0.005)
    return {progress.trial.name: progress for progress in known}


def score(planner: Planner, known: Sequence[Progress], team: Team) -> list[tuple[int, int]]:
    """Score the test sets of a study."""
    return list(score_tests(planner, known, team=team, pause=0.005))


def calls(out: Path) -> list[str]:
    """What the trainings did, in order."""
    path = out / "calls"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def names(planner: Planner) -> list[str]:
    """The trainings that can be named before any is trained."""
    return [trial.name for trial in planner.trials({})]
