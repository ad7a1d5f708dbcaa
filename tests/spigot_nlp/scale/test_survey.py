"""Large files are cut where nothing is lost, and what is cut says the same as what is whole."""

import bz2
import contextlib
import errno
import gzip
import io
import json
import lzma
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest

from spigot_nlp.data.formats import read
from spigot_nlp.data.text.conventions import Conventions
from spigot_nlp.scale.documents import Manner, Placed, documents
from spigot_nlp.scale.sources import Source, find_sources
from spigot_nlp.scale.survey import Span, survey, whole

BITS = [
    "Rain",
    "fell",
    ".",
    "No.",
    "5",
    "et al.",
    "Mr.",
    "I",
    "it",
    "“",
    "”",
    "!",
    "é",
    "中文。",
    "\u3000",
    "\u00a0",
    "\u200b",
    "\ufeff",
]
SPACES = [" ", " ", " ", "\n", "\n\n", "\n \n", "\r\n\r\n", "\n\n\n  ", "\t", "", "\f", "\u2029"]
text = st.lists(st.tuples(st.sampled_from(BITS), st.sampled_from(SPACES)), max_size=40).map(
    lambda pairs: "".join(bit + space for bit, space in pairs)
)


def source(file: Path) -> Source:
    return find_sources([str(file)])[0]


def placed(spans: list[Span], manner: Manner) -> list[Placed]:
    found = [document for span in spans for document in documents(span, manner)]
    return [one for document in found for one in document.placed(Conventions(), manner)]


@hypothesis.given(text, st.integers(1, 60), st.booleans())
def test_a_text_that_was_cut_has_the_same_sentences_in_the_same_places(text: str, size: int, lines: bool) -> None:
    file = Path(__file__).parent / "no-such.txt"
    manner = Manner(lines=lines)
    with pytest.MonkeyPatch.context() as patch:

        @contextlib.contextmanager
        def opened(name: str, packing: str = "", *, start: int = 0, folder: str = "") -> Iterator[io.BytesIO]:
            yield io.BytesIO(text.encode()[start:])

        patch.setattr("spigot_nlp.scale.survey.opened", opened)
        patch.setattr("spigot_nlp.scale.documents.opened", opened)
        given = Source(str(file), "text", "", len(text.encode()), 0)
        spans = survey(given, size, lines=lines)
        assert [span.stop for span in spans[:-1]] == [span.start for span in spans[1:]]
        cut, expected = placed(spans, manner), placed([whole(given)], manner)
    assert cut == expected
    for one in cut:
        assert one.start is not None
        assert text[one.start : one.start + len(one.sentence.forms[0])] == one.sentence.forms[0]


@pytest.mark.parametrize(
    ("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_json_lines_are_cut_after_lines(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:
    file = tmp_path / f"docs.jsonl{ending}"
    file.write_bytes(pack("".join(json.dumps({"text": f"Rain {k}."}) + "\r\n" for k in range(200)).encode()))
    spans = survey(source(file), 500)
    assert len(spans) > 2
    found = [document for span in spans for document in documents(span, Manner())]
    assert [list(document.pieces) for document in found] == [[f"Rain {k}."] for k in range(200)]
    assert [document.id for document in found] == [f"{file}:{k}" for k in range(1, 201)]


def test_conllu_is_cut_after_blank_lines_and_keeps_the_names_of_documents(tmp_path: Path) -> None:
    file = tmp_path / "trees.conllu"
    blocks = []
    for k in range(60):
        name = f"# newdoc id = doc {k // 10}\n" if k % 10 == 0 else ""
        blocks.append(f"{name}# text = Go {k}\n1\tGo\t_\t_\t_\t_\t_\t_\t_\t_\n2\t{k}\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    file.write_text("".join(blocks), encoding="utf-8")
    spans = survey(source(file), 300)
    assert len(spans) > 5
    found = placed(spans, Manner())
    assert [one.sentence.forms for one in found] == [sentence.forms for sentence in read(file)]
    assert [one.document for one in found] == [f"doc {k // 10}" for k in range(60)]
    lines = file.read_text(encoding="utf-8").splitlines()
    numbers = [int(one.sentence.id.rpartition(":")[2]) for one in found]
    assert all(lines[number - 1].startswith("#") for number in numbers)
    assert len(set(numbers)) == 60


def test_a_text_that_is_no_text_is_bad_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "story.txt"
    file.write_bytes(b"It rained.\n\n" * 100 + b"caf\xe9\n\nIt rained.\n\n" * 2)
    (span,) = survey(source(file), 100)
    assert "byte 0xe9, byte 1,204 of the input, is not UTF-8" in span.reason
    assert len(survey(source(file), 100, errors="replace")) > 5
    damaged = tmp_path / "story.txt.gz"
    damaged.write_bytes(gzip.compress(b"It rained.\n\n" * 1000)[:-20])
    (span,) = survey(source(damaged), 100)
    assert span.reason == "the gzip data end too early; the file is truncated."


def test_a_file_without_a_place_to_cut_stays_whole(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("rain and " * 400_000, encoding="utf-8")
    (span,) = survey(source(file), 1000)
    assert (span.start, span.stop, span.weight) == (0, None, file.stat().st_size)


def test_rows_of_parquet(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "docs.parquet"
    table = pa.table(
        {"text": [f"Rain {k}." for k in range(500)], "id": [f"d{k}" if k % 2 else None for k in range(500)]}
    )
    pq.write_table(table, file, row_group_size=200)
    spans = survey(source(file), 1000, columns=("text",))
    assert len(spans) > 3
    found = [document for span in spans for document in documents(span, Manner())]
    assert [list(document.pieces) for document in found] == [[f"Rain {k}."] for k in range(500)]
    assert [document.id for document in found[:3]] == [f"{file}:1", "d1", f"{file}:3"]
    with pytest.raises(ValueError, match=r"has no column 'body'; it has text, id\. Name the one with the text"):
        survey(source(file), 1000, columns=("body",))


def test_a_folder_of_files_and_names_that_tell_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("b.txt", "a.conllu.bz2", "in/c.ndjson", "in/_SUCCESS", ".hidden/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("It rained.", encoding="utf-8")
    found = find_sources([str(tmp_path)])
    assert [(Path(one.name).name, one.kind, one.packing) for one in found] == [
        ("a.conllu.bz2", "conllu", "bz2"),
        ("b.txt", "text", ""),
        ("c.ndjson", "jsonl", ""),
    ]
    (tmp_path / "notes").write_text("It rained.", encoding="utf-8")
    with pytest.raises(ValueError, match=r"notes: the name does not tell what it holds"):
        find_sources([str(tmp_path)])
    assert find_sources([str(tmp_path / "notes")], "text")[0].kind == "text"
    with pytest.raises(ValueError, match="is given twice"):
        find_sources([str(tmp_path / "b.txt")] * 2)
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        find_sources([str(tmp_path / "none.txt")])


def test_a_folder_that_cannot_be_looked_into_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in it would be missed without a word. (An administrator may look into all, so it is only played.)"""
    (tmp_path / "closed").mkdir()
    for name in ("a.txt", "closed/b.txt"):
        (tmp_path / name).write_text("Rain fell.")
    assert len(find_sources([str(tmp_path)])) == 2
    look = os.scandir

    def closed(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return look(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(PermissionError, match="closed"):
        find_sources([str(tmp_path)])


def test_urls_are_read_as_ray_reads_them(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "docs").mkdir()
    for name in ("b.txt", "a.txt"):
        (tmp_path / "docs" / name).write_text("It rained.\n\nIt poured.", encoding="utf-8")
    url = (tmp_path / "docs").as_uri()
    found = find_sources([url])
    assert [one.name for one in found] == [f"{url}/a.txt", f"{url}/b.txt"]
    spans = survey(found[0], 5)
    assert len(spans) == 2
    assert [one.start for one in placed(spans, Manner())] == [0, 12]
    with pytest.raises(FileNotFoundError):
        find_sources([f"{url}/c.txt"])
    with pytest.raises(ValueError, match="cannot be read"):
        find_sources(["nowhere://c.txt"])


def test_zstd(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    file = tmp_path / "story.txt.zst"
    with pa.CompressedOutputStream(str(file), "zstd") as stream:
        stream.write(b"It rained.\n\n" * 1000)
    spans = survey(source(file), 100)
    assert len(placed(spans, Manner())) == 1000
    file.write_bytes(file.read_bytes()[:-8] + b"damaged!")
    (span,) = survey(source(file), 10)
    assert "zstd data" in span.reason
