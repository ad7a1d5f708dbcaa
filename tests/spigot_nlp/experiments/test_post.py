"""A training on a machine of a cluster: it ends with its worker, saves before it does, and is trained once."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from spigot_nlp.experiments.post import MARK, Post, unfit
from spigot_nlp.experiments.processes import is_locked

pytestmark = pytest.mark.skipif(os.name == "nt", reason="locks and signals are those of POSIX")

PYTHON = [sys.executable, "-I", "-S", "-c"]
# Says that it is there, and saves when it is told to end, which takes as long as a file says.
TRAINER = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
def stop(number, frame):
    (folder / "told").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    (folder / "saved").touch()
    sys.exit(130)
signal.signal(signal.SIGTERM, stop)
(folder / "ready").write_text(str(os.getpid()))
time.sleep(600)
"""


def until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the lock alone keeps others out")
def test_a_training_ends_with_its_worker_and_keeps_others_out_until_it_has(tmp_path):
    """A worker is killed as the system kills: its training saves all the same, and until then the run is its own."""
    (tmp_path / MARK).write_text("ours")
    log = tmp_path / "one.log"
    about = f"Path({str(log)!r}), {PYTHON!r}, [{TRAINER!r}, {str(tmp_path)!r}], {{}}, Path({str(tmp_path)!r}), 'ours'"
    worker = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            textwrap.dedent(f"""
            import time
            from pathlib import Path
            from spigot_nlp.experiments.post import Post
            post = Post({about})
            post.start()
            time.sleep(600)
            """),
        ]
    )
    try:
        until((tmp_path / "ready").exists)
        assert not (tmp_path / "told").exists()
    finally:
        worker.kill()
        worker.wait()
    until((tmp_path / "told").exists)
    assert is_locked(log)
    again = Post(log, PYTHON, ["print('twice')"], {}, tmp_path, "ours")
    assert "still being trained" in again.start()[1]
    (tmp_path / "go").touch()
    until(lambda: not is_locked(log))
    assert (tmp_path / "saved").exists()
    host, number = again.start()
    assert (bool(host), int(number) > 1, again.wait(60)) == (True, True, 0)
    assert log.read_text() == "twice\n"


def test_a_machine_that_sees_another_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("spigot_nlp.experiments.post._PATIENCE", 0.0)
    (tmp_path / MARK).write_text("theirs")
    assert "does not see" in unfit(tmp_path, tmp_path, "ours")
    assert "does not see" in Post(tmp_path / "one.log", PYTHON, [""], {}, tmp_path, "ours").start()[1]
    assert not (tmp_path / "one.log").exists()
    assert unfit(tmp_path, tmp_path, "theirs") == ""


def test_a_machine_without_the_folder_or_the_version(tmp_path):
    (tmp_path / MARK).write_text("ours")
    assert f"has no {tmp_path / 'elsewhere'}" in unfit(tmp_path, tmp_path / "elsewhere", "ours")
    assert "the study is of 99" in unfit(tmp_path, tmp_path, "ours", "99")


def test_a_post_runs_where_and_with_what_it_is_told(tmp_path, monkeypatch):
    (tmp_path / MARK).write_text("ours")
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("OF_THE_MACHINE", "kept")
    said = "import os; print(os.getcwd(), os.environ['SPIGOT_DATA'], os.environ['OF_THE_MACHINE'])"
    post = Post(tmp_path / "one.log", PYTHON, [said], {"SPIGOT_DATA": "corpora"}, tmp_path / "here", "ours")
    assert post.wait(0) is None
    post.start()
    assert post.wait(60) == 0
    assert (tmp_path / "one.log").read_text() == f"{Path(tmp_path / 'here').resolve()} corpora kept\n"
