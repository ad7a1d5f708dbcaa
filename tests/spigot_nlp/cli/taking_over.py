"""Studies whose trainings take no time: each takes over a run that is finished already."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from spigot_nlp.experiments.study import runner

# Leaves the test sets unread, as trainings of a study do; files beside the runs say which of them fail.
TRAINER = """
import json, pathlib, shutil, sys
words = dict(zip(sys.argv, sys.argv[1:]))
run = pathlib.Path(words.get("--resume") or words.get("--out") or words["evaluate"])
finished = pathlib.Path(FINISHED.get(run.name.partition(",")[0].rpartition("-")[0] or run.name, FINISHED[""]))
with (run.parent / "calls").open("a") as calls:
    calls.write(f"{run.name} {'tested' if 'evaluate' in words else 'trained'}\\n")
if (run.parent / f"fail-{run.name}").exists():
    sys.exit("spigot: The loss is nan.")
if "evaluate" in words and (run.parent / "untestable").exists():
    sys.exit("spigot: The test sets are gone.")
if "evaluate" in words:
    for path in finished.iterdir():
        if path.name != "config.toml":
            shutil.copy(path, run / path.name)
    sys.exit()
run.mkdir(exist_ok=True)
for path in finished.iterdir():
    if ".id." not in path.name and ".ood." not in path.name:
        shutil.copy(path, run / path.name)
scores = json.loads((finished / "scores.json").read_text())
kept = {name: found for name, found in scores.items() if name.split()[0] == "dev"}
(run / "scores.json").write_text(json.dumps(kept))
if "--out" in words:
    shutil.copy(words["train"], run / "config.toml")
"""


def take_over(folder: Path, monkeypatch: pytest.MonkeyPatch, finished: Mapping[str, Path]) -> None:
    """Have studies train by taking over runs.

    Args:
        folder: For the script.
        monkeypatch: Undoes it.
        finished: The run of each system; that of all others has no name.
    """
    path = folder / "trainer.py"
    given = {name: str(run) for name, run in finished.items()}
    path.write_text(f"FINISHED = {given!r}\n{TRAINER}", encoding="utf-8")
    children = partial(runner.Children, command=[sys.executable, "-I", "-S", str(path)])
    monkeypatch.setattr(runner, "Children", children)
    monkeypatch.setattr(runner, "run_study", partial(runner.run_study, pause=0.005))
