"""A training that is killed and resumed ends like one that was not."""

import contextlib
import itertools
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from spigot_nlp import cli, training
from spigot_nlp.config import load_config
from spigot_nlp.models import checkpoint
from spigot_nlp.training.state import State, saved_precision
from tests.spigot_nlp import processes
from tests.spigot_nlp.cli import stopping
from tests.spigot_nlp.training.trainings import begin, rest_of, steps_of

# Nine steps, three of each phase, each of which is saved: the ends of epochs and of phases are where states are most
# easily lost.
SIZES = {"data.synthetic.train": 10, "data.synthetic.dev": 3, "data.synthetic.test": 3}
TINY = {"system": "pipeline", "training.pretrain": 1, "training.epochs": 1, "training.save_seconds": 0, **SIZES}
STEPS = 9
KEPT = [
    "model.safetensors",
    "scores.json",
    "vocab.json",
    "config.toml",
    "predictions.ood.sdp",
    "predictions.ood.conllu",
    "steps.jsonl",
]


@pytest.fixture(scope="module")
def whole(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run without a stop."""
    run = tmp_path_factory.mktemp("whole") / "run"
    assert len(steps_of(load_config(tiny, TINY), run)) == STEPS
    return run


def test_killed(tiny, tmp_path, whole):
    broken = tmp_path / "broken"
    settings = [word for name, value in TINY.items() for word in (f"--{name}", str(value))]
    words = ["train", tiny, "--out", broken, *settings, "--threads", "1"]
    ended = processes.run(stopping.__file__, "kill", "3", "-", *words)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    about = checkpoint.read_tensors(broken / checkpoint.STATE)[1]
    assert (about["phase"], about["epoch"], about["step"]) == (0, 0, 1)  # the second step is lost
    assert not (broken / "scores.json").exists()
    assert cli.main(["train", "--resume", str(broken), "--threads", "1"]) == 0
    for name in KEPT:
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name
    assert {path.name for path in broken.iterdir()} == {path.name for path in whole.iterdir()}


@pytest.mark.parametrize("after", [3, 6, 7])
def test_stopped_after_any_step(after, tiny, tmp_path, whole):
    """No process is needed to stop there."""
    run = tmp_path / "run"
    begin(load_config(tiny, TINY), run, after)  # like a crash: nothing more is saved
    if after == 6:  # a crash between the two may leave the model of a later step than that of the state
        (run / "model.safetensors").write_bytes((whole / "model.safetensors").read_bytes())
    assert len(rest_of(run)) == STEPS - after
    for name in KEPT:
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name


def test_killed_before_the_first_step(tiny, tmp_path):
    run = tmp_path / "run"
    with processes.Python("-m", "spigot_nlp", "train", tiny, "--out", run) as process:
        process.kill()
    assert cli.main(["train", "--resume", str(run)]) == 1
    settings = [word for name, value in SIZES.items() for word in (f"--{name}", str(value))]
    assert cli.main(["train", str(tiny), "--out", str(run), "--training.epochs", "1", "--threads", "1", *settings]) == 0


@contextlib.contextmanager
def stopped_after(states: int) -> Iterator[None]:
    """Interrupt a training, as by Ctrl-C, when it has saved so many states and one more."""
    calls, save = itertools.count(), State.save

    def counted(*arguments):
        save(*arguments)
        if next(calls) == states:
            signal.raise_signal(signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(State, "save", counted)
        yield


def test_the_command_that_goes_on_keeps_what_it_must(tiny, tmp_path, capsys):
    """The device, which the state does not know; not the precision, which it does."""
    folder = tmp_path / "my run"
    settings = [word for name, value in TINY.items() for word in (f"--{name}", str(value))]
    words = ["train", str(tiny), "--out", str(folder), *settings, "--threads", "1"]
    with stopped_after(1):
        assert cli.main([*words, "--precision", "bfloat16", "--device", "auto"]) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    again = last.removeprefix("spigot: interrupted; go on with: spigot ")
    assert again == f"train --resume '{folder}' --device auto"
    assert cli.main([*shlex.split(again), "--threads", "1"]) == 0
    said = capsys.readouterr().err
    assert "bfloat16" not in said
    assert saved_precision(folder) == "bfloat16"


def test_another_precision_is_said_and_carried_until_it_is_saved(tiny, tmp_path, capsys, monkeypatch):
    settings = [word for name, value in TINY.items() for word in (f"--{name}", str(value))]
    words = ["train", str(tiny), "--out", str(tmp_path / "run"), *settings, "--threads", "1"]
    with stopped_after(1):
        assert cli.main([*words, "--precision", "bfloat16"]) == 130
    capsys.readouterr()

    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    again = ["train", "--resume", str(tmp_path / "run"), "--precision", "float32"]
    with monkeypatch.context() as patch:  # before a step, so that nothing is saved
        patch.setattr(training, "resume", interrupted)
        assert cli.main(again) == 130
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{tmp_path / 'run'} was trained in bfloat16 so far, and goes on in float32"
    assert lines[-1] == f"spigot: interrupted; go on with: spigot {' '.join(again)}"
    with stopped_after(0):
        assert cli.main([*again, "--threads", "1"]) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"spigot: interrupted; go on with: spigot {' '.join(again)}"
