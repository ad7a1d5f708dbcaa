"""Five tiny trainings on the built-in corpus, on one thread: their losses step by step, and their scores."""

import json
import math
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden.api import COMMAND, run_command

_SIZES = {
    "data.synthetic.train": 32,
    "data.synthetic.dev": 16,
    "data.synthetic.test": 8,
    "training.batch": 8,
    "training.save_seconds": 0,
}
_QUICK = {"syntax.optimiser.learning_rate": 0.005, "semantics.optimiser.learning_rate": 0.005}
_PARSING = {**_QUICK, "semantics.pruning.epochs": 1}

TRAININGS: dict[str, tuple[str, dict[str, Any]]] = {
    "joint": (
        "synthetic",
        {**_PARSING, "training.pretrain": 3, "training.epochs": 4, "training.warm_up": 1, "training.patience": 0},
    ),
    "pipeline": (
        "synthetic",
        {**_PARSING, "system": "pipeline", "training.pretrain": 3, "training.epochs": 6, "training.patience": 0},
    ),
    "three stages": (
        "synthetic-three-stages",
        {
            **{f"stages.{name}": value for name, value in _PARSING.items()},
            "training.pretrain": 4,
            "training.epochs": 2,
            "training.warm_up": 1,
        },
    ),
    "multitask": ("synthetic-multitask", {"stages.semantics.pruning.epochs": 1, "training.epochs": 6}),
    "sentiment": (
        "synthetic-sentiment",
        {
            "semantics.optimiser.learning_rate": 0.005,
            "semantics.pruning.epochs": 1,
            "training.pretrain": 6,
            "training.epochs": 3,
            "training.warm_up": 1,
        },
    ),
}
"""The configuration that each is made from, and the settings that make it small."""

_SCORES = ("accuracy", "f1", "uas", "las")


def train(name: str, folder: Path) -> dict[str, Any]:
    """Train, and give what is kept of it."""
    run_command(*_words(name, folder))
    return kept(folder)


def train_with_a_kill(name: str, folder: Path, after: int) -> dict[str, Any]:
    """The same, by a process that is killed when it has logged so many steps, and another that goes on."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, _words(name, folder))], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while process.poll() is None and len(_lines(folder)) < after:
            time.sleep(0.005)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL, "it had ended before it was killed"
    run_command("train", "--resume", folder, "--threads", 1)
    return kept(folder)


def kept(folder: Path) -> dict[str, Any]:
    """The steps and the scores of a run."""
    steps = [json.loads(line) for line in _lines(folder)]
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    names = ("phase", "epoch", "step", "task", "sentences", "tokens", "loss", "dev")
    return {"steps": [[step[name] for name in names] for step in steps], "scores": dict(_leaves(scores))}


def differences(found: dict[str, Any], golden: dict[str, Any]) -> list[str]:
    """In words, where a training went another way.

    Losses must agree to five digits for ten steps, and then to three: rounding grows from step to step. Scores are of
    few words, of which some decisions may be close.
    """
    said = []
    if len(found["steps"]) != len(golden["steps"]):
        said.append(f"there are {len(found['steps'])} steps, and were {len(golden['steps'])}")
    for k, (step, before) in enumerate(zip(found["steps"], golden["steps"], strict=False)):
        *what, loss, dev = step
        *same, expected, scores = before
        if what != same:
            said.append(f"step {k} is {what}, and was {same}")
        if not math.isclose(loss, expected, rel_tol=1e-5 if k < 10 else 1e-3):
            said.append(f"the loss of step {k} is {loss}, and was {expected}")
        said += _apart(f"step {k}", dev or {}, scores or {}, 2.0)
    return said + _apart("the scores", found["scores"], golden["scores"], 0.02)


def _words(name: str, folder: Path) -> list[str | Path | int]:
    config, settings = TRAININGS[name]
    words = [word for key, value in {**_SIZES, **settings}.items() for word in (f"--{key}", value)]
    return ["train", config, *words, "--out", folder, "--threads", 1]


def _lines(folder: Path) -> list[str]:
    """The whole lines of the log."""
    path = folder / "steps.jsonl"
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []


def _leaves(scores: dict[str, Any], start: str = "") -> Iterator[tuple[str, float]]:
    """The headlines among nested scores."""
    for name, value in scores.items():
        if name in _SCORES:
            yield f"{start}{name}", value
        elif isinstance(value, dict) and not name.startswith("by_"):
            yield from _leaves(value, f"{start}{name} ")


def _apart(where: str, found: dict[str, float], golden: dict[str, float], most: float) -> list[str]:
    names = sorted(found.keys() | golden.keys())
    missing = [name for name in names if name not in found or name not in golden]
    both = [name for name in names if name not in missing]
    return [f"{where}: {name} is in one of them only" for name in missing] + [
        f"{where}: {name} is {found[name]}, and was {golden[name]}"
        for name in both
        if abs(found[name] - golden[name]) > most
    ]
