"""A run folder belongs to one training at a time."""

import time
from pathlib import Path

import pytest

from spigot_nlp.training.lock import LOCK, FolderTaken, alone
from tests.spigot_nlp.processes import Python

HOLDS = """
import pathlib, sys, time
from spigot_nlp.training.lock import alone
with alone(pathlib.Path(sys.argv[1])):
    pathlib.Path(sys.argv[2]).touch()
    time.sleep(600)
"""


def test_another_process_is_kept_out_and_a_killed_one_leaves_nothing(tmp_path: Path) -> None:
    folder, inside = tmp_path / "run", tmp_path / "inside"
    with Python("-c", HOLDS, folder, inside) as other:
        while other.running and not inside.exists():
            time.sleep(0.01)
        assert inside.exists(), other.wait().stderr
        with pytest.raises(FolderTaken, match="is being trained by another process"), alone(folder):
            pass
    assert (folder / LOCK).exists()  # the file, not the lock
    with alone(folder):
        pass
    assert not list(folder.iterdir())


def test_the_folder_is_free_again(tmp_path: Path) -> None:
    for _ in range(2):
        with alone(tmp_path / "new"):
            assert (tmp_path / "new" / LOCK).exists()
    with pytest.raises(KeyError), alone(tmp_path / "new"):
        raise KeyError
    assert not list((tmp_path / "new").iterdir())
