"""Real corpora, byte for byte. `SPIGOT_DATA` names the folder; without it these tests are skipped."""

import io
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from spigot_nlp.data.combine import merge
from spigot_nlp.data.formats import guess, read, write
from tests.spigot_nlp.data.test_conll import check_against_oracle

FOLDER = os.environ.get("SPIGOT_DATA", "")
pytestmark = pytest.mark.skipif(
    not os.path.isdir(FOLDER), reason="needs corpora: set SPIGOT_DATA to their folder (it is unset or no folder)"
)
FILES = sorted(path for suffix in ("conllu", "sdp") for path in Path(FOLDER or os.devnull).rglob(f"*.{suffix}"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_corpus_is_written_back_byte_for_byte(path: Path) -> None:
    out = io.BytesIO()
    assert write(read(path), out, guess(path)) > 0
    assert out.getvalue() == path.read_bytes()


def test_the_conllu_package_reads_the_same_corpus() -> None:
    path = Path(FOLDER) / "ud-pud" / "test.conllu"
    if not path.exists():
        pytest.skip(f"needs {path}")
    check_against_oracle(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("trees", "graphs"),
    [
        ("propbank-ewt/dev.conllu", "propbank-ewt/dev.sdp"),
        ("redwoods-dm/wiki.dev.dt.conllu", "redwoods-dm/wiki.dev.sdp"),
    ],
)
def test_trees_and_graphs_of_one_text_merge(trees: str, graphs: str) -> None:
    folder = Path(FOLDER)
    if not (folder / trees).exists():
        pytest.skip(f"needs {folder / trees}")
    count = 0
    for sentence in merge(read(folder / trees), read(folder / graphs)):
        assert sentence.heads is not None
        assert sentence.graph is not None
        assert len(sentence.graph.frames) == len(sentence)
        count += 1
    assert count > 1000


def trees(part: str) -> Path:
    path = Path(FOLDER) / "sst" / f"{part}.txt"
    if not path.exists():
        pytest.skip(f"needs {path}")
    return path


def labels(path: Path, format: str) -> dict[int | None, int]:
    return dict(sorted(Counter(sentence.label for sentence in read(path, format)).items()))


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_sentiment_trees_are_written_back_byte_for_byte(part: str) -> None:
    out = io.BytesIO()
    write(read(trees(part), "sst"), out, "sst")
    assert out.getvalue() == trees(part).read_bytes()


@pytest.mark.parametrize(
    ("part", "five", "two", "phrases"),
    [
        ("train", (1_092, 2_218, 1_624, 2_322, 1_288), (3_310, 3_610), 318_582),
        ("dev", (139, 289, 229, 279, 165), (428, 444), 41_447),
        ("test", (279, 633, 389, 510, 399), (912, 909), 82_600),
    ],
)
def test_sentiment_classes(part: str, five: tuple[int, ...], two: tuple[int, ...], phrases: int) -> None:
    path = trees(part)
    assert labels(path, "sst") == dict(enumerate(five))
    assert labels(path, "sst-binary") == dict(enumerate(two))
    several = labels(path, "sst-phrases")
    assert sum(several.values()) == phrases
    assert labels(path, "sst-binary-phrases") == {0: several[0] + several[1], 1: several[3] + several[4]}


@pytest.mark.parametrize("format", ["labelled", "text", "jsonl"])
def test_sentiment_sentences_in_other_formats(format: str) -> None:
    sentences = [replace(sentence, source=None, id="") for sentence in read(trees("test"), "sst-binary")]
    assert not any("\\" in form or form in ("-LRB-", "-RRB-") for sentence in sentences for form in sentence.forms)
    out = io.BytesIO()
    write(sentences, out, format)
    expected = [replace(sentence, label=None) for sentence in sentences] if format == "text" else sentences
    assert list(read(io.BytesIO(out.getvalue()), format)) == expected
