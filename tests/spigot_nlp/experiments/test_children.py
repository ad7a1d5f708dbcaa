"""Trainings in processes of their own: that they end when they should, and never before."""

import os
import signal
import sys
import time

import pytest

from spigot_nlp.config import Config
from spigot_nlp.corpora.prepared import CACHE_VARIABLE
from spigot_nlp.experiments.children import CACHE, LOCK, Children, surroundings
from spigot_nlp.experiments.study.progress import Progress
from spigot_nlp.experiments.study.trials import Trial

# Saves when it is told to end, and takes as long for it as a file beside its run says.
TRAINER = """
import pathlib, signal, sys, time
out = pathlib.Path(sys.argv[4]).parent
def stop(number, frame):
    (out / "told").touch()
    while (out / "stubborn").exists():
        time.sleep(0.01)
    sys.exit(130)
signal.signal(signal.SIGTERM, stop)
(out / "ready").touch()
time.sleep(600)
"""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")


def until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def started(tmp_path):
    """Trainings of which one is under way, and what is known of it."""
    script = tmp_path / "trainer.py"
    script.write_text(TRAINER, encoding="utf-8")
    result = Progress(Trial("one", "", "", 0, Config()))
    children = Children(tmp_path, command=[sys.executable, "-I", "-S", str(script)])
    with children:
        children.start(result, ["train", "one.toml", "--out", str(tmp_path / "one")])
        until((tmp_path / "ready").exists)
        yield children, result
        (tmp_path / "stubborn").unlink(missing_ok=True)


def test_who_asks_twice_does_not_wait(started, tmp_path):
    children, result = started
    (tmp_path / "stubborn").touch()
    for _ in range(3):  # told once, it saves; looking again tells it nothing new
        children.stopped.extend([signal.SIGINT] * (not children.stopped))
        children.heed()
    until((tmp_path / "told").exists)
    assert not children.look()
    assert (len(children), result.status) == (1, "running")
    children.stopped.append(signal.SIGINT)
    children.heed()
    until(children.look)
    assert (len(children), result.status) == (0, "interrupted")


def test_who_gives_up_may_still_ask_again(started, tmp_path):
    """The end of the `with` waits for a training that saves, unless somebody is impatient."""
    children, result = started
    (tmp_path / "stubborn").touch()
    children.stopped.append(signal.SIGTERM)
    children.__exit__(None, None, None)  # the training would wait for ever
    assert (len(children), result.status) == (0, "interrupted")


def test_the_lock_names_the_processes(started, tmp_path):
    children, _ = started
    number = (tmp_path / LOCK).read_text()
    os.kill(int(number), 0)
    with pytest.raises(ValueError, match=rf"still running in .* \(process {number}\); wait for them, or stop them\."):
        Children(tmp_path).__enter__()
    children.stopped.append(signal.SIGINT)
    children.heed()
    until(children.look)
    assert (tmp_path / LOCK).read_text() == ""


def test_a_command_that_is_not_there(tmp_path):
    result = Progress(Trial("one", "", "", 0, Config()))
    with Children(tmp_path, command=["/no/such/command"]) as children:
        with pytest.raises(FileNotFoundError):
            children.start(result, ["train", "one.toml", "--out", str(tmp_path / "one")])
        assert (len(children), result.status) == (0, "waiting")


def test_what_surrounds_a_training(tmp_path, monkeypatch):
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    found = surroundings(tmp_path, 3)
    assert found["OMP_NUM_THREADS"] == found["MKL_NUM_THREADS"] == "3"
    assert found[CACHE_VARIABLE] == str(tmp_path / CACHE)
    monkeypatch.setenv(CACHE_VARIABLE, "mine")
    assert surroundings(tmp_path, 3)[CACHE_VARIABLE] == "mine"
