"""Real corpora, byte for byte. `SPIGOT_DATA` names the folder; without it these tests are skipped."""

import io
import os
from pathlib import Path

import pytest

from spigot.data.formats import guess, read, write
from spigot.data.merge import merge
from tests.data.test_conll import check_against_oracle

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
