"""Files and streams, whatever the format: names, gzip, line ends, damage, writing all or nothing."""

import gzip
import io
import os
import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spigot_nlp.data.combine import merge
from spigot_nlp.data.formats import FORMATS, Format, FormatError, guess, read, write
from spigot_nlp.data.formats.files import LINE, Block, Layout, Malformed
from spigot_nlp.data.sentence import Arc, Graph, Sentence

TREE = (
    "# sent_id = a1\n"
    "1\tMira\tMira\tPROPN\tNNP\t_\t2\tnsubj\t2:nsubj\t_\n"
    "2\tnaps\tnap\tVERB\tVBZ\t_\t0\troot\t0:root\tSpaceAfter=No\n"
    "\n"
    "# sent_id = a2\n"
    "1\tGo\tgo\tVERB\tVB\t_\t0\troot\t0:root\t_\n"
    "\n"
)
BAD = TREE.replace("\t0\troot\t0:root\tSpaceAfter=No", "\t9\troot\t0:root\tSpaceAfter=No")


def round_trip(data: bytes, format: str) -> bytes:
    out = io.BytesIO()
    write(read(io.BytesIO(data), format), out, format)
    return out.getvalue()


def reason(data: bytes | str, format: str = "conllu") -> str:
    stream = io.BytesIO(data) if isinstance(data, bytes) else io.StringIO(data)
    with pytest.raises(FormatError) as caught:
        list(read(stream, format))
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.conllu", "conllu"),
        ("A.CONLLU.GZ", "conllu"),
        ("b/c.conll", "conllx"),
        ("c.conllx", "conllx"),
        ("x.dt.sdp.gz", "sdp"),
        ("x.sdp2014", "sdp2014"),
        ("x.tsv", "labelled"),
        ("x.txt.gz", "text"),
        ("x.jsonl", "jsonl"),
    ],
)
def test_format_is_guessed_from_the_name(name: str, format: str) -> None:
    assert guess(name) == format
    assert guess(Path(name)) == format


def test_unknown_names_and_formats_say_which_exist() -> None:
    with pytest.raises(ValueError, match=r"notes\.docx.*\.conllu \(conllu\).*\.sdp \(sdp\)"):
        guess("notes.docx")
    with pytest.raises(ValueError, match=r"format is 'penn'; it must be one of conllx, conllu, .*sst-binary, .*jsonl"):
        read(io.StringIO(), "penn")
    with pytest.raises(ValueError, match="a stream has no name"):
        write([], io.StringIO())


def test_missing_file_is_named_before_the_first_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such data file.*gone\.sdp"):
        read(tmp_path / "gone.sdp")
    (tmp_path / "d.sdp").mkdir()
    with pytest.raises(IsADirectoryError, match=r"d\.sdp"):
        read(tmp_path / "d.sdp")
    with pytest.raises(FileNotFoundError, match="no such folder to write to"):
        write([], tmp_path / "none" / "a.sdp")


def test_path_text_stream_and_byte_stream_give_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(TREE)
    sentences = list(read(path))
    assert [sentence.id for sentence in sentences] == ["a1", "a2"]
    assert list(read(str(path))) == sentences
    assert list(read(io.StringIO(TREE), "conllu")) == sentences
    assert list(read(io.BytesIO(TREE.encode()), "conllu")) == sentences
    assert list(read(io.BytesIO(gzip.compress(TREE.encode())), "conllu")) == sentences
    text, binary = io.StringIO(), io.BytesIO()
    assert write(sentences, text, "conllu") == write(sentences, binary, "conllu") == 2
    assert text.getvalue() == binary.getvalue().decode() == TREE
    with path.open("rb") as stream:
        assert list(read(stream, "conllu")) == sentences
        assert not stream.closed


def test_gzip_by_suffix_or_by_content(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu.gz"
    path.write_bytes(gzip.compress(TREE[:50].encode()) + gzip.compress(TREE[50:].encode()))
    write(read(path), path)
    assert gzip.decompress(path.read_bytes()) == TREE.encode()
    first = path.read_bytes()
    write(read(path), path)
    assert path.read_bytes() == first
    renamed = path.rename(tmp_path / "a.conllu")
    assert len(list(read(renamed))) == 2


def test_damaged_gzip_is_never_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu.gz"
    whole = gzip.compress(TREE.encode())
    broken = whole[:20] + bytes([whole[20] ^ 0xFF]) + whole[21:]
    cases = ((whole[:-12], "end too early"), (broken, "damaged"), (b"", "not gzip"), (TREE.encode(), "not gzip"))
    for data, what in cases:
        path.write_bytes(data)
        with pytest.raises(FormatError, match=what) as caught:
            list(read(path, skip_bad=lambda error: None))
        assert str(caught.value).startswith(f"{path}:")


@pytest.mark.parametrize(
    "text",
    [
        "",
        TREE,
        TREE[:-1],
        TREE[:-2],
        TREE + "\n\n",
        "\n\n" + TREE,
        TREE.replace("\n\n", "\n\n\n\n"),
        "# alone\n\n" + TREE,
        TREE + "# last words\n",
        TREE + "# last words\n\n# and more",
        "\ufeff" + TREE,
        TREE.replace("Mira", "Mi\u2028ra").replace("Go", "G\u0085o\x0b\x0c"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_layout_is_kept(text: str, newline: str) -> None:
    data = text.replace("\n", newline).encode()
    assert round_trip(data, "conllu") == data


def test_layout_gives_way_when_sentences_move() -> None:
    ends_early = list(read(io.StringIO("\ufeff" + TREE[:-2]), "conllu"))
    out = io.StringIO()
    write(reversed(ends_early), out, "conllu")
    assert [sentence.id for sentence in read(io.StringIO(out.getvalue()), "conllu")] == ["a2", "a1"]
    assert "\ufeff" not in out.getvalue()
    dangling = list(read(io.StringIO(TREE + "# last words\n"), "conllu"))
    out = io.StringIO()
    write(reversed(dangling), out, "conllu")
    assert out.getvalue() == TREE[TREE.index("# sent_id = a2") :] + TREE[: TREE.index("# sent_id = a2")]


def test_errors_have_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.conllu"
    path.write_text("# hello\n\n" + BAD)
    with pytest.raises(FormatError) as caught:
        list(read(path))
    error = caught.value
    expected = "the head of word 2 is '9'; it must be a number from 0 to 2, or `_` for every word."
    assert str(error) == f"{path}:5: {expected}"
    assert (error.path, error.line, error.reason) == (str(path), 5, expected)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (TREE.replace("Go", "Gö").encode("latin-1"), "<stream>:6: byte 0xf6 is not UTF-8; convert the file to UTF-8."),
        (TREE.replace("Go", "G\0").encode(), "<stream>:6: a NUL character; the file is damaged or not text."),
        (TREE.replace("naps", "na\rps").encode(), "<stream>:3: a carriage return inside the line"),
        (TREE.replace("2:nsubj\t_\n", "2:nsubj\t_\r\n").encode(), "<stream>:2: a carriage return inside the line"),
        (b"\xff\xfe" + TREE.encode("utf-16-le"), "<stream>:1: byte 0xff is not UTF-8"),
        (b"\x00" * 1000, "<stream>:1: a NUL character"),
        ("\ufeff# only\n\n".encode(), "<stream>:1: comments without a sentence"),
    ],
)
def test_what_is_not_clean_text(data: bytes, what: str) -> None:
    assert reason(data).startswith(what)


def test_text_stream_that_cannot_decode(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_bytes(TREE.replace("Go", "Gö").encode("latin-1"))
    with path.open(encoding="utf-8") as stream, pytest.raises(FormatError, match="not UTF-8"):
        list(read(stream, "conllu"))
    with (
        path.open(encoding="utf-8", errors="surrogateescape") as stream,
        pytest.raises(FormatError, match=":6: byte 0xf6"),
    ):
        list(read(stream, "conllu"))


def test_file_without_blank_lines_does_not_fill_the_memory() -> None:
    assert "no blank line in 100,000 lines" in reason("word\n" * 100_001)


def test_skip_bad_tells_of_each_and_goes_on() -> None:
    seen: list[FormatError] = []
    text = BAD + TREE + "x\n\n" + BAD
    sentences = list(read(io.StringIO(text), "conllu", skip_bad=seen.append))
    assert [sentence.id for sentence in sentences] == ["a2", "a1", "a2", "a2"]
    assert [error.line for error in seen] == [3, 15, 19]


def test_reading_is_lazy_and_flat() -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(1_500):
            yield from TREE.encode().splitlines(keepends=True)

    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            self.lines = endless()

        def __iter__(self) -> Iterator[bytes]:  # pyright: ignore[reportIncompatibleMethodOverride]
            return self.lines

        def seekable(self) -> bool:
            return False

    sentences = read(Endless(), "conllu")  # pyright: ignore[reportArgumentType]
    next(sentences)
    tracemalloc.start()
    assert sum(1 for _ in sentences) == 2_999
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000


def test_write_is_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text("before")
    path.chmod(0o640)

    def failing() -> Iterator[Sentence]:
        yield Sentence(("Go",))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(failing(), path)
    with pytest.raises(ValueError, match="word 2: 'a\\\\tb' cannot be written"):
        write([Sentence(("Go",)), Sentence(("no", "a\tb"))], path)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["a.conllu"]
    assert write([Sentence(("Go",))], path) == 1
    assert path.read_text() == "1\tGo" + "\t_" * 8 + "\n\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["a.conllu"]


def test_write_over_the_file_being_read_and_through_a_link(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(TREE)
    link = tmp_path / "link.conllu"
    link.symlink_to(path)
    write((replace(sentence, heads=None, relations=None) for sentence in read(link)), link)
    assert link.is_symlink()
    assert [sentence.heads for sentence in read(path)] == [None, None]


def test_write_to_something_that_is_no_file() -> None:
    assert write([Sentence(("Go",))], os.devnull, "conllx") == 1
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("format", [name for name, format in FORMATS.items() if not format.by_line])
@pytest.mark.parametrize(
    ("sentence", "what"),
    [
        (Sentence((), id="s9"), "sentence 's9' has no words"),
        (Sentence(("",)), "word 1: '' cannot be written"),
        (Sentence(("a\nb",)), "word 1: 'a\\\\nb' cannot be written"),
        (Sentence(("a",), tags=("x\0",)), "cannot be written"),
        (Sentence(("a",), id="two\nlines"), "an id stands on one line"),
    ],
)
def test_what_no_table_can_hold(format: str, sentence: Sentence, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        write([sentence], io.StringIO(), format)


def test_one_format_into_another() -> None:
    sentences = list(read(io.StringIO(TREE), "conllu"))
    out = io.StringIO()
    write(sentences, out, "sdp")
    assert out.getvalue() == (
        "#SDP 2015\n#a1\n1\tMira\tMira\tNNP\t-\t-\t_\tnsubj\n2\tnaps\tnap\tVBZ\t+\t+\t_\t_\n\n"
        "#a2\n1\tGo\tgo\tVB\t+\t-\t_\n\n"
    )
    back = io.StringIO()
    write(read(io.StringIO(out.getvalue()), "sdp"), back, "conllu")
    assert back.getvalue() == (
        "# sent_id = a1\n1\tMira\tMira\t_\tNNP\t_\t_\t_\t2:nsubj\t_\n2\tnaps\tnap\t_\tVBZ\t_\t_\t_\t0:root\t_\n\n"
        "# sent_id = a2\n1\tGo\tgo\t_\tVB\t_\t_\t_\t0:root\t_\n\n"
    )


def test_a_format_with_a_sentence_on_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(block: Block) -> Sentence:
        return Sentence(tuple(block.lines[0].split(" ")), source=block.layout)

    def render(sentence: Sentence, opens: bool) -> tuple[str, Layout]:
        layout = sentence.source if isinstance(sentence.source, Layout) else Layout(tail="\n")
        return " ".join(sentence.forms), layout

    monkeypatch.setitem(FORMATS, "words", Format(parse, render, (".words",), by_line=True))
    for text in ("a b\n# c\n\nd", "\n\na\n", "a\r\nb c\r\n\r\n", ""):
        assert round_trip(text.encode(), "words") == text.encode()
    out = io.StringIO()
    write(reversed(list(read(io.StringIO("a b\nc"), "words"))), out, "words")
    assert out.getvalue() == "c\na b\n"


def test_a_format_with_any_number_of_sentences_on_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(block: Block) -> list[Sentence]:
        if "!" in block.lines[0]:
            raise Malformed(0, "no shouting.")
        return [Sentence((word,), id=str(block.first)) for word in block.lines[0].split() if word != "-"]

    monkeypatch.setitem(FORMATS, "bag", Format(parse, lambda sentence, opens: ("", LINE), by_line=True))
    seen: list[FormatError] = []
    found = list(read(io.StringIO("a b\n-\nc ! d\n\ne\n"), "bag", skip_bad=seen.append))
    assert [(sentence.id, *sentence.forms) for sentence in found] == [("1", "a"), ("1", "b"), ("5", "e")]
    assert [str(error) for error in seen] == ["<stream>:3: no shouting."]


def test_lines_of_white_space_are_kept_between_lines() -> None:
    text = "a\n \t\nb\n"
    assert round_trip(text.encode(), "text") == text.encode()
    out = io.StringIO()
    write(reversed(list(read(io.StringIO(text), "text"))), out, "text")
    assert out.getvalue() == "b\na\n \t\n"


@pytest.mark.parametrize("name", [name for name, format in FORMATS.items() if format.by_line])
def test_empty_files_of_lines(name: str) -> None:
    assert list(read(io.BytesIO(b"\r\n \n"), name)) == []
    assert round_trip(b"", name) == b""


def test_merge_takes_trees_from_one_and_graphs_from_the_other() -> None:
    trees = list(read(io.StringIO(TREE), "conllu"))
    graph = Graph.of([Arc(2, 1, "ARG0")], tops=[2])
    graphs = [Sentence(("Mira", "naps"), graph=graph, id="other", label=1), Sentence(("Go",))]
    first, second = merge(iter(trees), iter(graphs))
    assert (first.heads, first.relations, first.graph) == ((2, 0), ("nsubj", "root"), graph)
    assert (first.id, first.tags, first.label) == ("a1", ("NNP", "VBZ"), 1)
    assert first.source is trees[0].source
    assert second.graph == trees[1].graph
    swapped = next(merge(iter(graphs), iter(trees)))
    assert (swapped.heads, swapped.tags, swapped.graph) == ((2, 0), ("NNP", "VBZ"), trees[0].graph)


def test_merge_names_the_sentence_and_the_word_that_differ() -> None:
    trees = list(read(io.StringIO(TREE), "conllu"))
    with pytest.raises(
        ValueError, match=r"sentence 2 \(a2 and b2\): word 1 is 'Go' in the trees and 'Stop' in the graphs"
    ):
        list(merge(trees, [trees[0], Sentence(("Stop",), id="b2")]))
    with pytest.raises(ValueError, match=r"sentence 1 \(a1\): 2 words in the trees and 3 in the graphs"):
        list(merge(trees, [Sentence(("Mira", "naps", "."))]))
    with pytest.raises(ValueError, match="the graphs end after 1 sentences but the trees go on"):
        list(merge(trees, trees[:1]))
    with pytest.raises(ValueError, match="the trees end after 0 sentences but the graphs go on"):
        list(merge([], trees))
