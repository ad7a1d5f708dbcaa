"""Files that appear together, and never in the place of others."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from research.corpora.build import Target
from spigot_nlp.data import Sentence

RAIN, SNOW = [Sentence(("Rain", "fell"))], [Sentence(("Snow", "fell"))]


def make(out: Path, *, replace: bool = False, **files: list[Sentence]) -> None:
    with Target(out, "weather", replace=replace, sources=[out]) as target:
        for name, sentences in files.items():
            target.write(f"{name}.txt", sentences)


def text(out: Path, name: str) -> str:
    return (out / "weather" / f"{name}.txt").read_text(encoding="utf-8")


def test_what_was_written_is_counted_and_has_a_checksum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # the same again is no matter
        make(tmp_path, train=RAIN)
        digest = hashlib.sha256(b"Rain fell\n").hexdigest()
        said = f"from {tmp_path}\n{digest}  {tmp_path}/weather/train.txt  1 sentences, 2 words\n"
        assert capsys.readouterr().out == said


def test_other_files_stay_unless_they_may_go(tmp_path: Path) -> None:
    make(tmp_path, train=RAIN)
    (tmp_path / "weather/notes.md").write_text("Mine.", encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"weather/train\.txt is there, .* or give --replace\."):
        make(tmp_path, dev=RAIN, train=SNOW)
    assert text(tmp_path, "train") == "Rain fell\n"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["notes.md", "train.txt", "weather"]
    make(tmp_path, replace=True, train=SNOW)
    assert text(tmp_path, "train") == "Snow fell\n"
    assert (tmp_path / "weather/notes.md").exists()


def test_a_corpus_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def failing():
        yield from RAIN
        raise ValueError("no more rain.")

    with (
        pytest.raises(ValueError, match="no more rain"),
        Target(tmp_path, "weather", replace=False) as target,
    ):
        target.write("train.txt", failing())
    assert list(tmp_path.iterdir()) == []


def test_a_script_says_in_a_line_what_is_missing(tmp_path: Path) -> None:
    words = ["-m", "research.corpora.sst", str(tmp_path / "none"), "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"research.corpora: there is no {tmp_path / 'none'}; get it: unzip https://")
    assert done.stderr.count("\n") == 1
