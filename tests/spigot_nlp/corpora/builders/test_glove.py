"""Vectors for the words of some corpora."""

import gzip
import zipfile
from pathlib import Path

import pytest

from spigot_nlp.corpora.builders import glove
from spigot_nlp.data.formats import FormatError, write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.vocab import read_vectors

VECTORS = "the 0.1 0.2\nrain -1 2\nThe 9 9\nsnow 3 4\ngood 5e-1 6\n. . . 7 8\nfell 0 1\nrain 4 4"
KEPT = "the 0.1 0.2\nrain -1 2\ngood 5e-1 6\nfell 0 1\n"


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for name in ("weather", "sst", "glove"):
        (folder / name).mkdir(parents=True)
    write([Sentence(("The", "RAIN"))], folder / "weather/train.conllu")
    write([Sentence(("fell", "."))], folder / "weather/train.sdp.gz")
    (folder / "sst/dev.txt").write_text("(3 (2 the) (4 Good))\n", encoding="utf-8")
    (folder / "LICENSE.txt").write_text("snow\n", encoding="utf-8")
    (folder / "weather/notes.md").write_text("snow\n", encoding="utf-8")
    (folder / "other.txt").write_text(f"snow{' 1' * 12}\n", encoding="utf-8")
    return folder


def lines(folder: Path, name: str) -> str:
    return gzip.decompress((folder / name).read_bytes()).decode()


def test_words_of_all_corpora_and_of_nothing_else(corpora: Path, tmp_path: Path) -> None:
    file = tmp_path / "glove.6B.2d.txt"
    file.write_text(VECTORS, encoding="utf-8")
    built = glove(file, corpora, corpora)
    assert lines(built.folder, "glove.6B.2d.subset.txt.gz") == KEPT
    assert built.counts == {
        "words in the corpora": 5,
        "of these with a vector": 4,
        "running words": 6,
        "running words with a vector": 5,
    }
    assert read_vectors(built.folder / "glove.6B.2d.subset.txt.gz").words == ("the", "rain", "good", "fell")
    assert glove(file, corpora, corpora).unchanged
    again = glove(built.folder / "glove.6B.2d.subset.txt.gz", corpora, corpora)
    assert again.unchanged


def test_zipped_gzipped_and_headed_files_are_the_same(corpora: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("glove.2d.txt", VECTORS)
        archive.writestr("glove.1d.txt", "the 1\n")
    built = glove(tmp_path / "all.zip", [corpora], tmp_path / "a", dimensions=2)
    assert lines(built.folder, "glove.2d.subset.txt.gz") == KEPT
    (tmp_path / "some.txt.gz").write_bytes(gzip.compress(f"8 2\n{VECTORS}".encode()))
    built = glove(tmp_path / "some.txt.gz", corpora, tmp_path / "b")
    assert lines(built.folder, "some.subset.txt.gz") == KEPT
    with pytest.raises(ValueError, match=r"glove\.2d\.txt, glove\.1d\.txt, and not one of 50 dimensions among them"):
        glove(tmp_path / "all.zip", corpora, tmp_path / "c", dimensions=50)


def test_a_file_that_is_named_is_read_whatever_its_name(corpora: Path, tmp_path: Path) -> None:
    file, more = tmp_path / "v.txt", tmp_path / "more.pos"
    file.write_text(VECTORS, encoding="utf-8")
    more.write_text("Snow .\n", encoding="utf-8")
    built = glove(file, [corpora, more], tmp_path / "out")
    assert "snow 3 4\n" in lines(built.folder, "v.subset.txt.gz")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("the 1 2\nrain 1\n", FormatError, r"v\.txt:2: 1 numbers where the first line has 2\."),
        ("the 1 2\nrain 1 wet\n", FormatError, r"v\.txt:2: .* is not a word and finite numbers\."),
        ("the 1 2\nrain nan 1\n", FormatError, r"v\.txt:2: .* is not a word and finite numbers\."),
        ("the 1 2\nrain 1 2 3\n", FormatError, r"v\.txt:2: 3 numbers where the first line has 2\."),
        ("hail 1 2\n", ValueError, r"a vector for none of the 5 words of the corpora; is it GloVe\?"),
    ],
)
def test_what_are_no_vectors_is_said(
    corpora: Path, tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    file = tmp_path / "v.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        glove(file, corpora, tmp_path / "out")
    assert not (tmp_path / "out/glove").exists()


def test_the_first_word_may_have_spaces_in_it(corpora: Path, tmp_path: Path) -> None:
    file = tmp_path / "v.txt"
    file.write_text(". . . 7 8\nrain -1 2\n", encoding="utf-8")
    assert lines(glove(file, corpora, tmp_path / "out").folder, "v.subset.txt.gz") == "rain -1 2\n"


def test_a_table_that_is_no_utf8_is_named(corpora: Path, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(VECTORS, encoding="utf-8")
    (corpora / "weather/train.conllu").write_bytes(b"# a\n1\tR\xe4in\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    with pytest.raises(FormatError, match=r"train\.conllu:2: byte 0xe4 is not UTF-8; convert the file to UTF-8\."):
        glove(tmp_path / "v.txt", corpora, tmp_path / "out")


def test_truncated_and_missing_files_are_named(corpora: Path, tmp_path: Path) -> None:
    file = tmp_path / "v.txt.gz"
    file.write_bytes(gzip.compress(VECTORS.encode())[:-9])
    with pytest.raises(FormatError, match="truncated"):
        glove(file, corpora, tmp_path / "out")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*v\.txt; .* download glove\.6B\.zip"):
        glove(tmp_path / "v.txt", corpora, tmp_path / "out")
    with pytest.raises(FileNotFoundError, match=r"there is no .*nowhere to take words of"):
        glove(file, tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty: no files of sentences here; build the other corpora first\."):
        glove(file, tmp_path / "empty", tmp_path / "out")
