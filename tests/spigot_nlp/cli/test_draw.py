"""`spigot draw`: files in, a drawing out."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import cyclopts
import pytest

from spigot_nlp.cli import draw as command
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Arc, Graph, Sentence

RAIN = ("Rain", "fell", "softly", ".")
TAGS = ("NN", "VBD", "RB", ".")


def graph(*arcs: Arc, top: int = 2) -> Sentence:
    return Sentence(RAIN, RAIN, TAGS, graph=Graph.of(arcs, tops=[top]), id="22000001")


def tree(*heads: int) -> Sentence:
    return Sentence(RAIN, RAIN, TAGS, heads=heads, relations=("nsubj", "root", "advmod", "punct"))


OTHER = Sentence(("Go",), ("go",), ("VB",), heads=(0,), graph=Graph(tops=(1,)), id="22000002")
FOUND = graph(Arc(2, 1, "ARG1"), Arc(2, 3, "ARG2"))
RIGHT = graph(Arc(2, 1, "ARG1"), Arc(2, 3, "MANNER"), top=3)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    sides = {
        "found.sdp": [OTHER, FOUND],
        "right.sdp": [OTHER, RIGHT],
        "shorter.sdp": [RIGHT],
        "found.conllx": [OTHER, tree(2, 0, 2, 2)],
        "right.conllx": [OTHER, tree(2, 0, 2, 3)],
    }
    for name, sentences in sides.items():
        write(sentences, tmp_path / name)
    return {name: tmp_path / name for name in sides}


def run(*words: str | Path) -> None:
    app = cyclopts.App()
    app.command(command.draw)
    function, bound, _ = app.parse_args(["draw", *map(str, words)], exit_on_error=False, print_error=False)
    function(*bound.args, **bound.kwargs)


def test_text_is_printed(files, capsys):
    run(files["found.sdp"], "--trees", files["found.conllx"], "--sentence", "2")
    assert capsys.readouterr().out.splitlines() == [
        " ┌──ARG1─┐│┌──ARG2───┐",
        " ▼       │▼│         ▼",
        "Rain     fell      softly .",
        " NN      VBD         RB   .",
        " ▲       │▲││        ▲    ▲",
        " └─nsubj─┘││└─advmod─┘    │",
        "           └────punct─────┘",
    ]


def marks(capsys) -> dict[str, set[tuple[int, int, str, str]]]:
    found = json.loads(capsys.readouterr().out)
    return {
        side: {(arc["start"], arc["end"], arc["label"], arc["mark"]) for arc in found[side]}
        for side in ("above", "below")
    }


def test_gold_in_two_files_as_json(files, capsys):
    gold = ["--gold", files["right.sdp"], "--gold", files["right.conllx"]]
    run(files["found.sdp"], "--trees", files["found.conllx"], *gold, "--sentence", "2", "--json")
    found = marks(capsys)
    assert found["above"] == {
        (2, 1, "ARG1", "right"),
        (2, 3, "ARG2", "wrong"),
        (2, 3, "MANNER", "missed"),
        (0, 2, "TOP", "wrong"),
        (0, 3, "TOP", "missed"),
    }
    assert found["below"] == {
        (2, 1, "nsubj", "right"),
        (0, 2, "root", "right"),
        (2, 3, "advmod", "right"),
        (2, 4, "punct", "wrong"),
        (3, 4, "punct", "missed"),
    }


def test_before(files, capsys):
    run(files["found.conllx"], "--before", files["right.conllx"], "--sentence", "2", "--json")
    assert {one for one in marks(capsys)["below"] if one[3] != "plain"} == {
        (2, 4, "punct", "new"),
        (3, 4, "punct", "gone"),
    }


def test_a_sentence_by_its_name_and_its_words_at_another_place(files, capsys):
    run(files["found.sdp"], "--gold", files["shorter.sdp"], "--sentence", "22000001", "--json")
    assert (2, 3, "MANNER", "missed") in marks(capsys)["above"]


@pytest.mark.parametrize(("name", "start"), [("a.svg", "<svg"), ("a.tex", r"\documentclass"), ("a.txt", " ┌")])
def test_the_name_of_the_file_tells_the_kind(files, tmp_path, capsys, name, start):
    out = tmp_path / name
    run(files["found.sdp"], "-o", out, "--sentence", "2")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert str(out) in printed.err
    written = out.read_text(encoding="utf-8")
    assert written.startswith(start)
    assert written.endswith("\n")
    assert "softly" in written
    if name == "a.svg":
        assert ElementTree.fromstring(written).attrib["class"] == "arcs"


def test_to_is_stronger_than_the_name(files, tmp_path):
    run(files["found.sdp"], "-o", tmp_path / "a.dat", "--to", "svg")
    assert (tmp_path / "a.dat").read_text(encoding="utf-8").startswith("<svg")


def test_enhanced_column_only_if_asked_for(tmp_path, capsys):
    file = tmp_path / "a.conllu"
    write([tree(2, 0, 2, 2)], file)
    file.write_text(file.read_text(encoding="utf-8").replace("2\tnsubj\t_", "2\tnsubj\t2:ARG0"), encoding="utf-8")
    run(file, "--json")
    assert marks(capsys)["above"] == set()
    run(file, "--json", "--graph")
    assert marks(capsys)["above"] == {(2, 1, "ARG0", "plain")}


def test_only_words(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("Rain fell\n", encoding="utf-8")
    run(tmp_path / "a.txt")
    printed = capsys.readouterr()
    assert printed.out == "Rain fell\n"
    assert "neither a tree nor a graph" in printed.err


def test_text_for_a_terminal_is_as_wide_and_coloured(monkeypatch):
    from spigot_nlp.report.arcs import drawing

    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.delenv("NO_COLOR", raising=False)
    drawn = drawing(FOUND, gold=RIGHT)
    shown = command.render(drawn, "text", terminal=True)
    assert "\x1b[31m" in shown
    assert max(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in shown.splitlines()) <= 20
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in command.render(drawn, "text", terminal=True)
    assert command.render(drawn, "text").count("Rain") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["found.sdp", "--sentence", "3"], "has 2 sentences"),
        (["found.sdp", "--sentence", "nobody"], "no sentence of that name among 2"),
        (["found.sdp", "--sentence", "0"], "has 2 sentences"),
        (["found.sdp", "--gold", "shorter.sdp"], "no sentence with the words of sentence 1, 'Go'"),
        (["found.sdp", "--trees", "right.sdp"], "has no tree for sentence 1"),
        (["found.sdp", "-o", "a.pdf"], r"must end in \.svg"),
    ],
)
def test_errors(files, words, message):
    with pytest.raises(ValueError, match=message):
        run(*(files.get(word, word) for word in words))


def test_the_class_of_a_sentence_is_drawn_too(capsys):
    for kind in ("text", "svg", "tikz"):
        run("--text", "A wonderful film.", "--model", "en-sentiment", "--to", kind)
        shown = capsys.readouterr().out
        assert "positive (9" in shown
        assert "ADJ" in shown  # universal tags as well
