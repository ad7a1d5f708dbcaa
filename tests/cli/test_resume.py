"""A training that is killed and resumed ends like one that was not."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spigot import cli
from spigot.training import checkpoint

# The state is saved after every step, so that there is much to interrupt.
SETTINGS = [
    "--system",
    "pipeline",
    "--training.pretrain",
    "2",
    "--training.epochs",
    "3",
    "--training.save_seconds",
    "0",
]
KEPT = [
    "model.safetensors",
    "scores.json",
    "vocab.json",
    "config.toml",
    "predictions.ood.sdp",
    "predictions.ood.conllu",
]


def start(*words: str | Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "spigot", "train", *map(str, words), "--threads", "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def place(run: Path) -> tuple[int, int, int] | None:
    """How far the saved state has come."""
    if not (run / checkpoint.STATE).exists():
        return None
    about = checkpoint.read_tensors(run / checkpoint.STATE)[1]
    return about["phase"], about["epoch"], about["step"]


def wait_for_steps(process: "subprocess.Popen[str]", run: Path, more: int) -> None:
    """Until the state was saved about so many times more, or the process has ended."""

    def saved() -> int:
        try:
            return (run / checkpoint.STATE).stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    seen, deadline = {saved()}, time.monotonic() + 120
    while len(seen) <= more and process.poll() is None:
        assert time.monotonic() < deadline, "the training does not get on"
        time.sleep(0.005)
        seen.add(saved())


def test_killed_again_and_again(tiny, tmp_path, capsys):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert cli.main(["train", str(tiny), "--out", str(whole), *SETTINGS, "--threads", "1"]) == 0
    moments = random.Random(0)
    places = []
    for number, how in enumerate((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)):
        words = ["--resume", broken] if number else [tiny, "--out", broken, *SETTINGS]
        with start(*words) as process:
            wait_for_steps(process, broken, moments.randrange(2, 10))
            time.sleep(moments.random() * 0.02)
            process.send_signal(how)
            _, err = process.communicate(timeout=120)
        if how == signal.SIGKILL:
            assert process.returncode == -signal.SIGKILL
        else:
            assert process.returncode == 130
            assert err.endswith(f"spigot: interrupted; go on with: spigot train --resume {broken}\n")
        places.append(place(broken))
        assert not (broken / "scores.json").exists()
    assert places == sorted(places)
    assert len(set(places)) == 3
    capsys.readouterr()
    assert cli.main(["train", "--resume", str(broken), "--threads", "1"]) == 0
    for name in KEPT:
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name
    assert (broken / "steps.jsonl").read_bytes() == (whole / "steps.jsonl").read_bytes()
    assert {path.name for path in broken.iterdir()} == {path.name for path in whole.iterdir()}


@pytest.mark.parametrize("after", [8, 24, 25])
def test_stopped_after_any_step(after, tiny, tmp_path, whole_by_steps):
    """Ends of epochs and of phases are where states are most easily lost. No process is needed to stop there."""
    from spigot.config import load_config
    from spigot.training.run import resume, train

    run = tmp_path / "run"
    config = load_config(tiny, {"system": "pipeline", "training.pretrain": 2, "training.save_seconds": 0})
    steps = train(config, run)
    for _ in range(after):
        next(steps)
    steps.close()  # like a crash: nothing more is saved
    for _ in resume(run):
        pass
    for name in (*KEPT, "steps.jsonl"):
        assert (run / name).read_bytes() == (whole_by_steps / name).read_bytes(), name


@pytest.fixture(scope="module")
def whole_by_steps(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of `test_stopped_after_any_step` without a stop."""
    from spigot.config import load_config
    from spigot.training.run import train

    run = tmp_path_factory.mktemp("whole") / "run"
    config = load_config(tiny, {"system": "pipeline", "training.pretrain": 2, "training.save_seconds": 0})
    assert len(list(train(config, run))) == 40
    return run


def test_a_model_file_newer_than_the_state_does_no_harm(tiny, tmp_path, whole_by_steps):
    """A crash between the two leaves the model of a later step."""
    from spigot.config import load_config
    from spigot.training.run import resume, train

    run = tmp_path / "run"
    config = load_config(tiny, {"system": "pipeline", "training.pretrain": 2, "training.save_seconds": 0})
    steps = train(config, run)
    for _ in range(24):  # the end of the syntactic parser's training
        next(steps)
    steps.close()
    (run / "model.safetensors").write_bytes((whole_by_steps / "model.safetensors").read_bytes())
    for _ in resume(run):
        pass
    assert (run / "model.safetensors").read_bytes() == (whole_by_steps / "model.safetensors").read_bytes()


def test_killed_before_the_first_step(tiny, tmp_path):
    run = tmp_path / "run"
    with start(tiny, "--out", run) as process:
        process.kill()
    assert cli.main(["train", "--resume", str(run)]) == 1
    assert cli.main(["train", str(tiny), "--out", str(run), "--training.epochs", "1", "--threads", "1"]) == 0
