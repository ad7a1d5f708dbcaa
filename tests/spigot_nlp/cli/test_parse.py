"""`spigot parse`: plain text in, every format out."""

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.cli.streams import show_what_can_be_shown
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.text.raw import detokenise, sentences
from spigot_nlp.models.parser import Parser
from spigot_nlp.parse_files import Parsed
from spigot_nlp.serve import Api, Served
from tests.spigot_nlp.parsing import curly_parser, load, text_sentences

TEXT = 'The tailor didn\'t see Mr. Poe. "Why?"\n\nNobody  knows\nthat... Rivers move stones!\n'


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "story.txt"
    file.write_text(TEXT, encoding="utf-8")
    return file


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input with the text."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))


def _parse(*words: str | Path) -> int:
    return cli.main(["parse", *map(str, words), "--threads", "1"])


def _expected(run: Path) -> list[Sentence]:
    """The long way round: find the sentences, then let the system parse them."""
    parser = load(run, precision="int16")  # as the command does
    return list(parser.pipe(Sentence(sentence.forms) for sentence in sentences(TEXT)))


@pytest.mark.parametrize("out", ["out.jsonl", "out.conllu", "out.sdp"])
def test_any_number_of_processes_writes_the_same(
    trained: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.setattr("spigot_nlp.parse_files.SHARE", 1)
    assert _parse(trained, text, "-o", tmp_path / out, "--processes", "1") == 0
    expected = (tmp_path / out).read_text(encoding="utf-8")
    assert _parse(trained, text, "-o", tmp_path / out, "--processes", "3") == 0
    assert (tmp_path / out).read_text(encoding="utf-8") == expected


def test_a_bad_file_stops_all_processes_with_a_sentence(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, out = tmp_path / "bad.txt", tmp_path / "out.conllu"
    bad.write_bytes(b"Rain fell.\n\n\xff\n")
    assert _parse(trained, bad, "-o", out, "--processes", "2") != 0
    assert "bad.txt" in capsys.readouterr().err
    assert not out.exists()


def test_long_files_are_for_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    module = sys.modules["spigot_nlp.cli.parse"]
    monkeypatch.setattr(module, "cores", lambda: 2)
    monkeypatch.setattr(module, "can_fork", lambda: True)

    def parse_files(*_: object, processes: int, **__: object) -> Parsed:
        asked.append(processes)
        return Parsed()

    monkeypatch.setattr("spigot_nlp.parse_files.parse_files", parse_files)
    long, short = tmp_path / "long.txt", tmp_path / "short.txt"
    long.write_text("Rain fell. " * 20_000)
    short.write_text("Rain fell.")
    out = ["-o", str(tmp_path / "out.jsonl")]
    for words in ([long], [short], [long, "--threads", "2"]):
        assert cli.main(["parse", *map(str, words), *out]) == 0
    assert asked == [2, 1, 1]
    assert cli.main(["parse", str(long), *out, "--processes", "0"]) == 1


def test_every_format_says_the_same(trained: Path, text: Path, tmp_path: Path) -> None:
    expected = _expected(trained)
    assert [sentence.forms[-1] for sentence in expected] == [".", '"', "...", "!"]
    outs = {suffix: tmp_path / f"out.{suffix}" for suffix in ("jsonl", "conllu", "sdp")}
    for out in outs.values():
        assert _parse(trained, text, "-o", out) == 0
    found = {suffix: list(read(out)) for suffix, out in outs.items()}
    for kind in found.values():
        assert [sentence.forms for sentence in kind] == [sentence.forms for sentence in expected]
        assert [sentence.id for sentence in kind] == ["1", "2", "3", "4"]
    assert [sentence.heads for sentence in found["conllu"]] == [sentence.heads for sentence in expected]
    assert all(sentence.graph is None for sentence in found["conllu"])
    assert [sentence.graph and sentence.graph.arcs for sentence in found["sdp"]] == [
        sentence.graph and sentence.graph.arcs for sentence in expected
    ]
    assert [(sentence.heads, sentence.graph) for sentence in found["jsonl"]] == [
        (sentence.heads, sentence.graph) for sentence in expected
    ]


def test_conllu_has_the_text(trained: Path, text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _parse(trained, text, "--to", "conllu", "--graph") == 0
    written = capfd.readouterr().out
    assert "# sent_id = 1\n# text = The tailor didn't see Mr. Poe.\n1\tThe\t" in written
    assert "# text = Nobody knows that...\n" in written
    assert "\tSpacesAfter=\\s\\s\n" in written
    out = tmp_path / "again.conllu"
    out.write_text(written, encoding="utf-8")
    back = list(read(out))
    assert detokenise(back) == TEXT
    assert [sentence.graph and sentence.graph.arcs for sentence in back] == [
        sentence.graph and sentence.graph.arcs for sentence in _expected(trained)
    ]


@pytest.mark.usefixtures("typed")
def test_standard_streams(trained: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _parse(trained) == 0
    said = capfd.readouterr()
    lines = [json.loads(line) for line in said.out.splitlines()]
    assert [tuple(line["forms"]) for line in lines] == [sentence.forms for sentence in _expected(trained)]
    assert "has no tagger" in said.err
    assert "Parsed 4 sentences, 20 tokens" in said.err


def test_foreign_text_is_told(trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "some.txt"
    known = [word for word in load(trained).vocab.words[3:] if word.isalpha()][:9]
    for text, told in ((" ".join(known), False), ("Zorgs frobnicate quuxes over there .", True)):
        file.write_text(text, encoding="utf-8")
        assert _parse(trained, file, "--tokenised") == 0
        assert ("of these words are new to this model" in capfd.readouterr().err) == told


def test_drawn(trained: Path, text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _parse(trained, text, "--to", "text") == 0
    drawn = capfd.readouterr().out
    assert "did" in drawn
    assert drawn.count("\n\n") == 4
    assert "▲" in drawn
    assert "\x1b" not in drawn


def test_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trained: Path, text: Path) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(terminal, "buffer", out := io.BytesIO(), raising=False)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "24")
    assert _parse(trained, text) == 0
    lines = terminal.getvalue().splitlines()
    assert any("▲" in line for line in lines)
    monkeypatch.setenv("NO_COLOR", "1")
    out.truncate(0)
    assert _parse(trained, text) == 0
    assert all(len(line) <= 24 for line in out.getvalue().decode().strip("\0").splitlines())


def test_sentiment(classifier: Path, text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _parse(classifier, text) == 0
    said = capfd.readouterr()
    for line, sentence in zip(said.out.splitlines(), _expected(classifier), strict=True):
        record = json.loads(line)
        assert record["label"] == sentence.label
        assert record["probabilities"] == pytest.approx(sentence.probabilities)
        assert tuple(record["tags"]) == sentence.tags
        assert len(record["lemmas"]) == len(sentence)
    assert "Classified 4 sentences" in said.err
    assert _parse(classifier, text, "--to", "text") == 0
    drawn = capfd.readouterr().out
    assert drawn.count("\nnegative (") + drawn.count("\npositive (") == 4


@pytest.mark.usefixtures("typed")
def test_several_files_in_order(trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("One dog\nsees", encoding="utf-8")
    with gzip.open(tmp_path / "b.txt.gz", "wt", encoding="utf-8") as file:
        file.write("It hides. ")
    (tmp_path / "c.txt").write_bytes(b"")
    assert _parse(trained, tmp_path / "a.txt", "-", tmp_path / "b.txt.gz", tmp_path / "c.txt") == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["id"] for line in lines] == ["a-1", "stdin-1", "stdin-2", "stdin-3", "stdin-4", "b.txt-1"]
    assert lines[0]["forms"] == ["One", "dog", "sees"]


def test_small_batches_give_the_same(
    monkeypatch: pytest.MonkeyPatch, trained: Path, text: Path, tmp_path: Path
) -> None:
    assert _parse(trained, text, "-o", tmp_path / "one.jsonl") == 0
    monkeypatch.setattr("spigot_nlp.models.parser.CHUNK", 1)
    assert _parse(trained, text, "-o", tmp_path / "many.jsonl") == 0
    one, many = (list(read(tmp_path / f"{name}.jsonl")) for name in ("one", "many"))
    assert [(s.forms, s.heads, s.graph) for s in one] == [(s.forms, s.heads, s.graph) for s in many]


def test_lines_and_tokens(trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.txt"
    file.write_text("It rained . It poured .\nno-one can\n", encoding="utf-8")

    def forms(*options: str) -> list[str]:
        assert _parse(trained, file, *options) == 0
        return [" ".join(json.loads(line)["forms"]) for line in capfd.readouterr().out.splitlines()]

    assert forms("--one-per-line") == ["It rained . It poured .", "no - one can"]
    assert forms("--one-per-line", "--tokenised") == ["It rained . It poured .", "no-one can"]
    assert forms("--tokenised") == ["It rained .", "It poured .", "no-one can"]


@pytest.mark.parametrize("style", ["jsonl", "conllu", "sdp", "text"])
def test_nothing_in_nothing_out(trained: Path, tmp_path: Path, style: str) -> None:
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    out = tmp_path / f"out.{style}"
    assert _parse(trained, tmp_path / "empty.txt", "--to", style, "-o", out) == 0
    assert out.read_text(encoding="utf-8") == ("#SDP 2015\n" if style == "sdp" else "")


def test_undecodable(trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "latin.txt", tmp_path / "out.jsonl"
    file.write_bytes(b"Fine.\nA caf\xe9.\n")
    assert _parse(trained, file, "-o", out) == 1
    message = capfd.readouterr().err.splitlines()[-1]
    assert message.startswith(f"spigot: {file}:2: byte 0xe9, byte 12 of the input, is not UTF-8;")
    assert not out.exists()
    assert _parse(trained, file, "-o", out, "--errors", "replace") == 0
    assert [sentence.forms for sentence in read(out)] == [("Fine", "."), ("A", "caf", "\ufffd", ".")]
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"It rained. " * 9999)[:60])
    assert _parse(trained, tmp_path / "cut.gz") == 1
    assert "the gzip data end too early" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("story.txt", "-o", "out.xyz"), "out.xyz: the name does not tell which format to write; add --to conllu, sdp"),
        (("nowhere.txt",), "nowhere.txt: no such data file."),
        (("story.txt", "-o", "story.txt"), "story.txt is read, and would be written over; give --out another name."),
        (("-o", "--graph"), "--graph stands where --out has its file"),
        (("story.txt", "--graph"), "--graph is about the enhanced column of CoNLL-U, and jsonl has none"),
    ],
)
def test_mistakes(
    trained: Path,
    text: Path,
    words: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(text.parent)
    assert _parse(trained, *words) == 1
    assert message in capfd.readouterr().err


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ("stdin", "standard input is closed; give a FILE to read."),
        ("stdout", "standard output is closed; give a file to write, with --out."),
    ],
)
def test_closed_streams(
    trained: Path, stream: str, message: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, stream, None)
        assert _parse(trained) == 1
    assert capfd.readouterr().err == f"spigot: {message}\n"


def test_what_a_system_has_not(
    monkeypatch: pytest.MonkeyPatch, trained: Path, text: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Parser, "gives", ("graph",))
    assert _parse(trained, text, "--to", "conllu") == 1
    assert "finds no trees, so there are none to write; use --to jsonl, or add --graph." in (capfd.readouterr().err)
    monkeypatch.setattr(Parser, "reads_gold", True)
    assert _parse(trained, text) == 1
    assert "plain text has none" in capfd.readouterr().err


def test_drawings_are_in_the_encoding_of_the_output_and_data_in_utf_8(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trained: Path
) -> None:
    file = tmp_path / "story.txt"
    file.write_text("Näive rain fell .\n", encoding="utf-8")
    found = {}
    for style in ("text", "jsonl"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        show_what_can_be_shown(stream)
        monkeypatch.setattr(sys, "stdout", stream)
        assert _parse(trained, file, "--to", style, "--tokenised") == 0
        stream.flush()
        found[style] = stream.buffer.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert found["text"].isascii()
    assert b"Naive" in found["text"]
    assert "Näive" in found["jsonl"].decode("utf-8")


def test_the_command_the_page_and_python_give_the_same_answers(
    monkeypatch: pytest.MonkeyPatch, trained: Path, text: Path, tmp_path: Path
) -> None:
    """Also about data in another manner than that of the text."""
    parser = curly_parser()
    parser.model.double()
    assert {form for s in parser.read(sentences(TEXT), plain=True) for form in s.forms} >= {"“", "n’t"}
    expected = list(text_sentences(parser, TEXT))
    assert [s.forms for s in expected] == [s.forms for s in sentences(TEXT)]
    monkeypatch.setattr(Parser, "load", lambda run, **how: parser)
    assert _parse(trained, text, "-o", tmp_path / "out.jsonl") == 0
    command = [(s.forms, s.heads, s.graph) for s in read(tmp_path / "out.jsonl")]
    assert command == [(s.forms, s.heads, s.graph) for s in expected]
    with Api([Served("curly", parser)]) as api:
        page = [one.answers[0] for one in api.parse({"text": TEXT}).sentences]
    assert [(one.forms, one.heads) for one in page] == [(list(s.forms), list(s.heads or ())) for s in expected]
