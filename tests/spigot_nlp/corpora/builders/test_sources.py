"""Which state of a repository is there."""

import shutil
import subprocess
from pathlib import Path

import pytest

from spigot_nlp.corpora.builders import Material

RAIN = Material.repository("https://example.org/weather/rain", "public domain")


def git(folder: Path, *words: str) -> str:
    author = ("-c", "user.name=Rain", "-c", "user.email=rain@example.org")
    return subprocess.run(
        ["git", "-C", str(folder), *author, *words], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    folder = tmp_path / "rain"
    (folder / "inner").mkdir(parents=True)
    (folder / "drops.txt").write_text("one\n", encoding="utf-8")
    (folder / "inner/puddle.txt").write_text("two\n", encoding="utf-8")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Rain")
    return folder


def test_the_commit_of_a_clone(clone: Path) -> None:
    origin = RAIN.origin(clone, "drops.txt")
    assert (origin.name, origin.commit, origin.changed) == ("rain", git(clone, "rev-parse", "HEAD"), False)


def test_what_was_changed_is_told_if_it_was_read(clone: Path) -> None:
    (clone / "drops.txt").write_text("three\n", encoding="utf-8")
    assert RAIN.origin(clone, "drops.txt").changed
    assert not RAIN.origin(clone, "inner").changed


def test_a_folder_inside_another_repository_is_no_clone(clone: Path) -> None:
    assert RAIN.origin(clone / "inner", "puddle.txt").commit == ""


def test_a_plain_folder_has_no_commit(tmp_path: Path) -> None:
    origin = RAIN.origin(tmp_path)
    assert (origin.commit, origin.changed) == ("", False)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "rain").write_text("", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="rain is a file, not a folder; it should hold rain: git clone"):
        RAIN.require(tmp_path / "rain")
