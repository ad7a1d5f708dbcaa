"""A run folder belongs to one training at a time."""

import time
from pathlib import Path

import pytest

from spigot_nlp.training.lock import LOCK, RunLocked, lock_run
from tests.spigot_nlp.processes import Python

HOLDS = """
import pathlib, sys, time
from spigot_nlp.training.lock import lock_run
with lock_run(pathlib.Path(sys.argv[1])):
    pathlib.Path(sys.argv[2]).touch()
    time.sleep(600)
"""


def test_another_process_is_kept_out_and_a_killed_one_leaves_nothing(tmp_path: Path) -> None:
    folder, inside = tmp_path / "run", tmp_path / "inside"
    with Python("-c", HOLDS, folder, inside) as other:
        while other.running and not inside.exists():
            time.sleep(0.01)
        assert inside.exists(), other.wait().stderr
        with pytest.raises(RunLocked, match="is being trained by another process"), lock_run(folder):
            pass
    assert (folder / LOCK).exists()  # the file, not the lock
    with lock_run(folder):
        pass
    assert list(folder.iterdir()) == []


def test_the_folder_is_free_again(tmp_path: Path) -> None:
    for _ in range(2):
        with lock_run(tmp_path / "new"):
            assert (tmp_path / "new" / LOCK).exists()
    with pytest.raises(KeyError), lock_run(tmp_path / "new"):
        raise KeyError
    assert not (tmp_path / "new").exists()  # nothing was written
