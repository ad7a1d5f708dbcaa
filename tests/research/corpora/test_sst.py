"""The sentiment treebank, from files of our own."""

from pathlib import Path

import pytest

from research.corpora.sst import build

TRAIN = ["(3 (2 The) (4 sun))", "(2 (2 It) (2 rained))", "(1 (2 No) (0 umbrella))"]
DEV = ["(0 (2 Wet) (0 socks))", "(2 Towels)"]


def trees(folder: Path, train: list[str] = TRAIN, end: str = "\n") -> Path:
    folder.mkdir(parents=True)
    for name, lines in {"train": train, "dev": DEV, "test": ["(4 (4 Warm) (2 tea))"]}.items():
        (folder / f"{name}.txt").write_text(end.join(lines), encoding="utf-8", newline="")
    return folder


@pytest.mark.parametrize(("train", "end"), [(TRAIN, "\n"), (TRAIN, "\r\n\r\n"), (TRAIN + DEV, "\n")])
def test_trees_stand_on_lines_and_in_one_part(
    tmp_path: Path, train: list[str], end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    build(trees(tmp_path / "source", train, end), tmp_path)
    assert (tmp_path / "sst/train.txt").read_text(encoding="utf-8").splitlines() == TRAIN
    assert (tmp_path / "sst/dev.txt").read_text(encoding="utf-8").splitlines() == DEV
    said = capsys.readouterr().out
    assert "3 sentences, 6 words, 2 of them not neutral" in said
    assert ("2 sentences of dev.txt, which are left out" in said) == (train is not TRAIN)


def test_an_empty_file_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"train\.txt has no sentences; get it again: unzip "):
        build(trees(tmp_path / "source", []), tmp_path / "data")
    assert not (tmp_path / "data").exists()
