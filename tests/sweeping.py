"""A stand-in for trainings, so that a search can be tested without any."""

import sys
from pathlib import Path

# The same words, files and signals as `spigot train`, without a network. What it does depends on eta.
TRAINER = """
import json, pathlib, shutil, signal, sys, time, tomllib
words = dict(zip(sys.argv, sys.argv[1:]))
run = pathlib.Path(words.get("--resume") or words["--out"])
run.mkdir(exist_ok=True)
if "--out" in words:
    shutil.copy(sys.argv[1], run / "config.toml")
config = tomllib.loads((run / "config.toml").read_text())
eta, seed = config["stages"]["semantics"]["reads"][0]["estimator"]["eta"], config["seed"]
with (run / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
print("hello from eta", eta, flush=True)
if eta == 66:
    sys.exit("spigot: The joint loss is nan at step 3. Try a lower learning rate.")
if eta == 67:
    import os
    os.kill(os.getpid(), signal.SIGKILL)
if eta == 68:
    sys.exit(0)
if eta == 99 and "--resume" not in words:
    def stop(number, frame):
        (run / "saved").touch()
        sys.exit(130)
    signal.signal(signal.SIGTERM, stop)
    (run / "ready").touch()
    time.sleep(60)
step = {"phase": "joint", "epoch": 2, "step": 1, "of": 1, "dev": {"LF": 70 + eta + seed}, "is_best": True}
(run / "steps.jsonl").write_text(json.dumps(step) + "\\n")
(run / "scores.json").write_text(json.dumps({"dev": {}, "id": {"labelled": {"f1": 1 - eta / 10}}}))
"""


def stand_in(folder: Path) -> list[str]:
    """What to give `run_trials` as its command; starts at once, as it needs no library."""
    path = folder / "trainer.py"
    path.write_text(TRAINER, encoding="utf-8")
    return [sys.executable, "-I", "-S", str(path)]
