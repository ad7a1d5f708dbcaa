"""Vocabularies and pretrained vectors."""

import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from spigot_nlp.data.formats.files import FormatError
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.vocab import SPECIAL, Vectors, Vocab, read_vectors
from tests.spigot_nlp.parsing import sentences


def test_words_are_counted_in_lower_case() -> None:
    text = sentences(20)
    vocab = Vocab.of(text)
    counts = Counter(form.lower() for sentence in text for form in sentence.forms)
    assert dict(zip(vocab.words[3:], vocab.counts[3:], strict=True)) == counts
    assert vocab.words[:3] == vocab.lemmas[:3] == vocab.tags[:3] == SPECIAL
    assert vocab.counts[:3] == (0, 0, 0)
    assert set(vocab.tags[3:]) == {tag for sentence in text for tag in sentence.tags or ()}
    assert [vocab.word_index[word] for word in vocab.words] == list(range(len(vocab.words)))
    assert [vocab.lemma_index[word] for word in vocab.lemmas] == list(range(len(vocab.lemmas)))
    assert [vocab.tag_index[word] for word in vocab.tags] == list(range(len(vocab.tags)))


def test_words_with_a_vector_follow_without_a_count() -> None:
    vocab = Vocab.of([Sentence(("Rain", "rain"))], also=["snow", "rain", "hail", "snow"])
    assert vocab.words[3:] == ("rain", "hail", "snow")
    assert vocab.counts[3:] == (2, 0, 0)


def test_sentences_without_lemmas_use_their_forms() -> None:
    assert Vocab.of([Sentence(("Rain", "fell"))]).lemmas[3:] == ("fell", "rain")


def test_annotation_is_none_of_its_business() -> None:
    text = sentences(5)
    assert Vocab.of(text) == Vocab.of([sentence.without_annotation() for sentence in text])


def test_plain_values_give_the_same_vocabulary() -> None:
    vocab = Vocab.of([*sentences(5), Sentence(("Zoë", "\u2028", '"'))], also=["snow"])
    assert Vocab.from_plain(json.loads(json.dumps(vocab.plain()))) == vocab
    with pytest.raises(TypeError):
        Vocab.from_plain({"words": []})


LINES = "rain 0.5 1 -2\nsnow -1e-1 2 3.25\n, 1 2 3\n"


def test_vectors_are_read_plain_and_compressed(tmp_path: Path) -> None:
    plain, packed = tmp_path / "v.txt", tmp_path / "v.txt.gz"
    plain.write_text(LINES)
    packed.write_bytes(gzip.compress(LINES.encode()))
    expected = np.array([[float(x) for x in line.split()[1:]] for line in LINES.splitlines()], dtype=np.float32)
    for path in (plain, packed):
        vectors = read_vectors(path)
        assert vectors.words == ("rain", "snow", ",")
        assert np.array_equal(vectors.values, expected)


def test_a_table_follows_the_words_asked_for() -> None:
    vectors = Vectors(("rain", "snow"), np.array([[1, 2], [3, 4]], dtype=np.float32))
    assert vectors.table(["snow", "hail", "rain", "snow"]).tolist() == [[3, 4], [0, 0], [1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("rain 1 2\nsnow 1\n", 2),
        ("rain 1 2\nsnow 1 x\n", 2),
        ("rain 1 2\nsnow 1 nan\n", 2),
        ("rain 1 2\n\nsnow 1 2\n", 2),
        ("rain\n", 1),
        ("rain one two\n", 1),
        ("rain 1 2\nnew york 1 2\n", 2),
        ("", 1),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(FormatError, match=rf"v\.txt:{line}: ") as caught:
        read_vectors(path)
    assert caught.value.line == line


@pytest.mark.parametrize("content", [gzip.compress(LINES.encode() * 50, mtime=0)[:40], b"no gzip at all"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v.txt.gz"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"v\.txt\.gz:\d+: the file is damaged"):
        read_vectors(path)
    plain = tmp_path / "v.txt"
    plain.write_bytes(b"rain 1 2\n\xff\xfe 1 2\n")
    with pytest.raises(FormatError, match=r"v\.txt:\d+: the file is damaged"):
        read_vectors(plain)
