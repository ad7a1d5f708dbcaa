"""A process of a training: its log is its own for as long as it lives, and no longer."""

import os
import signal
import sys

import pytest

from spigot_nlp import locks
from spigot_nlp.experiments.processes import LocalProcess, is_locked
from spigot_nlp.locks import lock

pytestmark = pytest.mark.skipif(os.name == "nt", reason="locks and signals are those of POSIX")

PYTHON = [sys.executable, "-I", "-S", "-c"]


def test_a_log_is_for_one_process(tmp_path):
    log = tmp_path / "one.log"
    process = LocalProcess(log, [*PYTHON, "import time; time.sleep(600)"], {})
    with pytest.raises(ValueError, match="one is still being trained by another process"):
        LocalProcess(log, [*PYTHON, "print('twice')"], {})
    process.tell(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert LocalProcess(log, [*PYTHON, "print('then')"], {}).wait(60) == 0
    assert log.read_text() == "then\n"


def test_what_cannot_be_started_locks_nothing(tmp_path):
    with pytest.raises(FileNotFoundError):
        LocalProcess(tmp_path / "one.log", ["/no/such/command"], {})
    assert not is_locked(tmp_path / "one.log")


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(38, "Function not implemented")

    assert locks.fcntl is not None
    monkeypatch.setattr(locks.fcntl, "flock", flock)
    with (tmp_path / "one.log").open("ab") as file, pytest.raises(ValueError, match=r"one\.log cannot be locked"):
        lock(file)
