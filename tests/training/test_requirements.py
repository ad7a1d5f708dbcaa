"""What is missing or strange in the data is said before training."""

from pathlib import Path
from typing import Any

import pytest

from spigot.config import make_config
from spigot.data.corpus import Corpus, Split
from spigot.data.sentence import Sentence
from spigot.training import train
from spigot.training.run import build

GOOD = [Sentence(("a", "fine", "film"), label=1), Sentence(("a", "dull", "film"), label=0)]


def experiment(folder: Path, **labels: Any):
    return make_config(
        {
            "task": "classification",
            "system": "bilstm",
            "data": {"root": str(folder), "tags": "columns", "labels": {"train": ["train.tsv"], **labels}},
            "training": {"epochs": 1},
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.tsv").write_text("1\ta fine film\n0\ta dull film\n")
    (tmp_path / "strange.tsv").write_text("1\ta fine film\n7\tan odd film\n")
    (tmp_path / "words.txt").write_text("a fine film\n")
    return tmp_path


@pytest.mark.parametrize("place", [{"dev": "strange.tsv"}, {"tests": {"x": "strange.tsv"}}])
def test_a_class_that_training_has_not(folder: Path, place: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"strange\.tsv: the sentence 'an odd film' is of class 7; .* are 0, 1\."):
        next(train(experiment(folder, **place), folder / "run"))
    assert not (folder / "run").exists()


@pytest.mark.parametrize("place", [{"dev": "words.txt"}, {"tests": {"x": "words.txt"}}])
def test_a_file_without_classes(folder: Path, place: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"words\.txt: the sentence 'a fine film' has no class"):
        next(train(experiment(folder, **place), folder / "run"))


def test_a_run_without_development_data_reports_none(folder: Path) -> None:
    (folder / "test.tsv").write_text("0\ta dull film\n")
    assert [step.is_best for step in train(experiment(folder, tests={"x": "test.tsv"}), folder / "run")] == [True]
    assert not (folder / "run" / "predictions.dev.jsonl").exists()
    assert (folder / "run" / "predictions.x.jsonl").exists()


def test_tasks_without_sentences() -> None:
    labelled = Corpus(labels=Split(GOOD))
    with pytest.raises(ValueError, match=r"no graphs to train on; set data\.graphs\.train"):
        build(make_config({"task": "classification"}), labelled)
    with pytest.raises(ValueError, match=r"no labelled sentences to train on; set data\.labels\.train"):
        build(make_config({"task": "classification", "system": "bilstm"}), Corpus())
    latent = make_config({"task": "classification", "classifier": {"latent": True}})
    assert build(latent, labelled).vocab.roles[0] == "TOP"


def test_training_text_without_classes(folder: Path) -> None:
    config = experiment(folder).model_copy(update={"data": experiment(folder, train=["words.txt"]).data})
    with pytest.raises(ValueError, match=r"0 different labels; .* label<TAB>text"):
        next(train(config, folder / "run"))
