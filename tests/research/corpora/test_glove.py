"""Vectors for the words of some corpora."""

import gzip
import zipfile
from pathlib import Path

import pytest

from research.corpora.glove import build
from spigot_nlp.data import FormatError, Sentence, write
from spigot_nlp.data.vocab import read_vectors

VECTORS = "the 0.1 0.2\nrain -1 2\nThe 9 9\nsnow 3 4\ngood 5e-1 6\n. . . 7 8\nfell 0 1\nrain 4 4"
KEPT = "the 0.1 0.2\nrain -1 2\ngood 5e-1 6\nfell 0 1\n"


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for name in ("weather", "sst"):
        (folder / name).mkdir(parents=True)
    write([Sentence(("The", "RAIN"))], folder / "weather/train.conllu")
    write([Sentence(("fell", "."))], folder / "weather/train.sdp.gz")
    (folder / "sst/dev.txt").write_text("(3 (2 the) (4 Good))\n", encoding="utf-8")
    (folder / "LICENSE.txt").write_text("snow\n", encoding="utf-8")
    (folder / "weather/notes.md").write_text("snow\n", encoding="utf-8")
    return folder


def cut(folder: Path, name: str) -> str:
    return gzip.decompress((folder / "glove" / name).read_bytes()).decode()


def test_words_of_all_corpora_and_of_nothing_else(corpora: Path) -> None:
    file, small = corpora / "glove.6B.2d.txt", "glove.6B.2d.subset.txt.gz"
    file.write_text(VECTORS, encoding="utf-8")
    counts = build(file, [corpora], corpora)
    assert counts == {
        "words in the corpora": 5,
        "of these with a vector": 4,
        "running words": 6,
        "running words with a vector": 5,
    }
    assert read_vectors(corpora / "glove" / small).words == ("the", "rain", "good", "fell")
    assert build(corpora / "glove" / small, [corpora / "weather", corpora / "sst"], corpora) == counts  # cut again


def test_zipped_gzipped_and_headed_files_are_the_same(corpora: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("glove.2d.txt", VECTORS)
        archive.writestr("glove.1d.txt", "the 1\n")
    build(tmp_path / "all.zip", [corpora], tmp_path, dimensions=2)
    assert cut(tmp_path, "glove.2d.subset.txt.gz") == KEPT
    (tmp_path / "some.txt.gz").write_bytes(gzip.compress(f"8 2\n{VECTORS}".encode()))
    build(tmp_path / "some.txt.gz", [corpora], tmp_path)
    assert cut(tmp_path, "some.subset.txt.gz") == KEPT
    with pytest.raises(ValueError, match=r"all\.zip has not one file of 50 dimensions; give --dimensions"):
        build(tmp_path / "all.zip", [corpora], tmp_path, dimensions=50)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("the 1 2\nrain 1\n", FormatError, r"v\.txt:2: 1 numbers where the first line has 2\."),
        ("hail 1 2\n", ValueError, r"a vector for none of the words of the corpora; is it GloVe\?"),
    ],
)
def test_what_are_no_vectors_is_said(
    corpora: Path, tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    (tmp_path / "v.txt").write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        build(tmp_path / "v.txt", [corpora], tmp_path / "out")
    assert not (tmp_path / "out/glove").exists()


def test_a_folder_without_sentences_is_named(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(VECTORS, encoding="utf-8")
    with pytest.raises(ValueError, match="no files of sentences here; build the other corpora first"):
        build(tmp_path / "v.txt", [tmp_path], tmp_path / "out")
