"""The sentiment treebank, from files of our own."""

from pathlib import Path

import pytest

from spigot_nlp.corpora.builders import sst
from spigot_nlp.data.formats import FormatError

TRAIN = ["(3 (2 The) (4 sun))", "(2 (2 It) (2 rained))", "(1 (2 No) (0 umbrella))"]
DEV = ["(0 (2 Wet) (0 socks))", "(2 Towels)"]
TEST = ["(4 (4 Warm) (2 tea))"]


def trees(
    folder: Path, train: list[str] = TRAIN, dev: list[str] = DEV, test: list[str] = TEST, end: str = "\n"
) -> Path:
    folder.mkdir(parents=True)
    for name, lines in {"train": train, "dev": dev, "test": test}.items():
        (folder / f"{name}.txt").write_text(end.join(lines), encoding="utf-8", newline="")
    return folder


@pytest.mark.parametrize("inner", [".", "trees"])
def test_trees_are_taken_over_line_by_line(tmp_path: Path, inner: str) -> None:
    trees(tmp_path / "source" / inner)
    built = sst(tmp_path / "source", tmp_path / "data")
    assert (built.folder / "train.txt").read_text(encoding="utf-8").splitlines() == TRAIN
    assert [part.sentences for part in built.parts.values()] == [3, 2, 1]
    assert built.counts["train, good or bad"] == 2
    assert built.counts["dev repeated in train"] == 0


def test_development_trees_at_the_end_of_the_training_file_are_cut_off(tmp_path: Path) -> None:
    built = sst(trees(tmp_path / "source", train=TRAIN + DEV), tmp_path / "data")
    assert (built.folder / "train.txt").read_text(encoding="utf-8").splitlines() == TRAIN
    assert built.counts["dev repeated in train"] == 2


def test_copies_with_other_line_ends_give_the_same_files(tmp_path: Path) -> None:
    sst(trees(tmp_path / "one"), tmp_path / "data")
    assert sst(trees(tmp_path / "two", end="\r\n\r\n"), tmp_path / "data").unchanged


def test_an_empty_file_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"train\.txt has no sentences; get it again: unzip "):
        sst(trees(tmp_path / "source", train=[]), tmp_path / "data")
    assert not (tmp_path / "data/sst").exists()


def test_what_is_no_tree_or_not_there_is_named(tmp_path: Path) -> None:
    folder = trees(tmp_path / "source", dev=["Wet socks"])
    with pytest.raises(FormatError, match=r"dev\.txt:1: 'Wet' where a tree begins"):
        sst(folder, tmp_path / "data")
    (folder / "dev.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no dev\.txt; .* \S+trainDevTestTrees_PTB\.zip"):
        sst(folder, tmp_path / "data")
    assert not (tmp_path / "data").exists()
