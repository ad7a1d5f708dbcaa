"""Pretrained vectors: one file for all encoders, and another one for some."""

from pathlib import Path
from typing import Any

import pytest
import torch

from spigot_nlp.config import Config
from spigot_nlp.encoders import BiLSTMEncoder, encoder_settings
from spigot_nlp.models.build import fresh
from spigot_nlp.models.parser import Parser
from tests.spigot_nlp.parsing import classification, review_corpus
from tests.spigot_nlp.training.trainings import Training

CLASSIFIER = {"classifier__encoder__word_dim": 3, "classifier__encoder__fixed_vectors": True}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """Vectors of 8 numbers for all, and of 3 for the classifier."""
    (tmp_path / "usual.txt").write_text("cat 1 2 3 4 5 6 7 8\nzebra 8 7 6 5 4 3 2 1\n")
    (tmp_path / "other.txt").write_text("cat -1 -2 -3\nyak 4 5 6\n")
    return {"data__root": str(tmp_path), "data__vectors": "usual.txt", "classifier__encoder__vectors": "other.txt"}


def built(config: Config) -> Parser:
    return fresh(config, review_corpus().train)


def rows(parser: Parser, stage: str, word: str) -> list[float]:
    encoder = parser.model.stages[stage].encoder
    assert isinstance(encoder, BiLSTMEncoder)
    table = encoder.embedding.tables[0]
    assert isinstance(table, torch.nn.Embedding)
    return table.weight[parser.vocab.word_index[word]].tolist()


def test_each_encoder_begins_with_its_own(files: dict[str, Any]) -> None:
    parser = built(classification("spigot", **files, **CLASSIFIER))
    assert rows(parser, "semantics", "cat") == [1, 2, 3, 4, 5, 6, 7, 8]
    assert rows(parser, "classifier", "cat") == [-1, -2, -3]
    assert rows(parser, "classifier", "yak") == [4, 5, 6]
    assert rows(parser, "semantics", "yak") != [4, 5, 6], "a word that only the other file has"
    assert {"zebra", "yak"} <= set(parser.vocab.words)


def test_what_is_fixed_stays_fixed_and_the_rest_learns(files: dict[str, Any]) -> None:
    config = classification("spigot", **files, **CLASSIFIER)
    trainer = Training(built(config), review_corpus())
    trainer.steps()
    assert rows(trainer.parser, "classifier", "cat") == [-1, -2, -3]
    assert rows(trainer.parser, "semantics", "cat") != [1, 2, 3, 4, 5, 6, 7, 8]


def test_one_file_is_for_all_that_name_none(files: dict[str, Any]) -> None:
    del files["classifier__encoder__vectors"]
    parser = built(classification("spigot", **files))
    assert rows(parser, "classifier", "cat") == rows(parser, "semantics", "cat") == [1, 2, 3, 4, 5, 6, 7, 8]


def test_no_vectors_for_all_and_some_for_one(files: dict[str, Any]) -> None:
    parser = built(classification("spigot", **{**files, "data__vectors": ""}, **CLASSIFIER))
    assert rows(parser, "classifier", "cat") == [-1, -2, -3]
    assert "zebra" not in parser.vocab.words


def test_of_another_length_they_are_refused(files: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match=r"have 3 dimensions and encoder\.word_dim is 8; .* leave encoder\.vectors empty"
    ):
        built(classification("spigot", **files))


def test_a_missing_file_is_said_before_anything_is_trained(files: dict[str, Any]) -> None:
    named = {**files, "classifier__encoder__vectors": "none.txt"}
    with pytest.raises(FileNotFoundError, match=r"none\.txt is missing; data\.root is"):
        built(classification("spigot", **named, **CLASSIFIER))


def test_encoders_that_read_no_words_by_number_have_no_such_option() -> None:
    with pytest.raises(ValueError, match="vectors"):
        encoder_settings({"kind": "branch", "of": "words", "vectors": "x.txt"})
