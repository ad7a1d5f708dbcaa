"""Files that appear together, and never in the place of others."""

from pathlib import Path

import pytest

from spigot_nlp.corpora.builders import MANIFEST, Target
from spigot_nlp.data.sentence import Sentence

RAIN = [Sentence(("Rain", "fell"))]
SNOW = [Sentence(("Snow", "fell"))]


def make(out: Path, *, replace: bool = False, **files: list[Sentence]):
    with Target(out, "weather", replace=replace) as target:
        for name, sentences in files.items():
            target.write(f"{name}.txt", sentences)
        return target.finish((), "public domain")


def text(out: Path, name: str) -> str:
    return (out / "weather" / f"{name}.txt").read_text(encoding="utf-8")


def test_the_same_again_is_no_matter(tmp_path: Path) -> None:
    assert not make(tmp_path, train=RAIN).unchanged
    before = (tmp_path / "weather/train.txt").stat().st_mtime_ns
    assert make(tmp_path, train=RAIN).unchanged
    assert (tmp_path / "weather/train.txt").stat().st_mtime_ns == before


def test_other_files_stay_and_nothing_changes(tmp_path: Path) -> None:
    make(tmp_path, train=RAIN)
    manifest = (tmp_path / "weather" / MANIFEST).read_text(encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"weather/train\.txt is there already, .* or give --replace\."):
        make(tmp_path, dev=RAIN, train=SNOW)
    assert text(tmp_path, "train") == "Rain fell\n"
    assert not (tmp_path / "weather/dev.txt").exists()
    assert (tmp_path / "weather" / MANIFEST).read_text(encoding="utf-8") == manifest
    assert [path.name for path in tmp_path.iterdir()] == ["weather"]


def test_other_files_go_if_they_may(tmp_path: Path) -> None:
    make(tmp_path, train=RAIN)
    (tmp_path / "weather/notes.md").write_text("Mine.", encoding="utf-8")
    make(tmp_path, replace=True, train=SNOW)
    assert text(tmp_path, "train") == "Snow fell\n"
    assert (tmp_path / "weather/notes.md").exists()


def test_a_corpus_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def failing():
        yield from RAIN
        raise ValueError("no more rain.")

    with pytest.raises(ValueError, match="no more rain"), Target(tmp_path, "weather") as target:
        target.write("train.txt", failing())
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "weather").write_text("", encoding="utf-8")
    with pytest.raises(NotADirectoryError, match="weather is a file"):
        make(tmp_path, train=RAIN)
