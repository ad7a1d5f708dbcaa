"""A run folder belongs to one training at a time."""

import subprocess
import sys
from pathlib import Path

import pytest

from spigot.training.lock import LOCK, FolderTaken, alone

HOLDS = """
import pathlib, sys
from spigot.training.lock import alone
with alone(pathlib.Path(sys.argv[1])):
    print("in", flush=True)
    input()
"""


def test_another_process_is_kept_out_and_a_killed_one_leaves_nothing(tmp_path: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "in\n"
    with pytest.raises(FolderTaken, match="is being trained by another process"), alone(tmp_path):
        pass
    other.kill()
    other.communicate()
    assert (tmp_path / LOCK).exists()  # the file, not the lock
    with alone(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_the_folder_is_free_again(tmp_path: Path) -> None:
    for _ in range(2):
        with alone(tmp_path / "new"):
            assert (tmp_path / "new" / LOCK).exists()
    with pytest.raises(KeyError), alone(tmp_path / "new"):
        raise KeyError
    assert not list((tmp_path / "new").iterdir())
