"""Several graphs of a sentence: a file for each, one of them where there is a place for one, drawings with names."""

from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.config import make_config
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.formats import read, write
from spigot_nlp.models import checkpoint
from spigot_nlp.models.build import fresh

NAMES = ["valency", "graph", "dependencies"]
SENTENCES = splits(train=3).train


def spigot(*words: str | Path) -> int:
    return cli.main([str(word) for word in words])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A system that has learned nothing, and so finds something everywhere."""
    folder = tmp_path_factory.mktemp("several") / "run"
    encoder = {"word_dim": 8, "lemma_dim": 0, "tag_dim": 4, "hidden": 6, "layers": 1}
    stage = {"annotation": "formalisms", "graphs": NAMES, "order": 1, "mlp": 8, "encoder": encoder}
    settings = {"data": {"tags": "columns"}, "stages": {"semantics": {**stage, "pruning": {"learned": False}}}}
    parser = fresh(make_config(settings), {"graphs": SENTENCES})
    checkpoint.save_start(folder, parser)
    checkpoint.write_tensors(folder / checkpoint.MODEL, parser.model.state_dict())
    return folder


def test_each_graph_has_a_file(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [run, tmp_path / "gold.jsonl", "--threads", "1", "-o"]
    write(SENTENCES, tmp_path / "gold.jsonl")
    assert spigot("parse", *words, tmp_path / "all.jsonl") == 0
    found = list(read(tmp_path / "all.jsonl"))
    assert any(sentence.get("valency") != sentence.get("graph") for sentence in found)
    assert spigot("parse", *words, tmp_path / "out.sdp") == 0
    for name, file in zip(NAMES, ("out.sdp", "out.graph.sdp", "out.dependencies.sdp"), strict=True):
        written = [sentence.graph for sentence in read(tmp_path / file)]
        assert [graph and graph.arcs for graph in written] == [sentence.get(name).arcs for sentence in found]
    capsys.readouterr()
    assert spigot("parse", *words, "-", "--to", "sdp", "--field", "dependencies") == 0
    assert capsys.readouterr().out == (tmp_path / "out.dependencies.sdp").read_text(encoding="utf-8")


def test_plain_text_gets_them_too(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "some.txt").write_text("Rain fell.", encoding="utf-8")
    words = ["parse", run, tmp_path / "some.txt", "--threads", "1"]
    assert spigot(*words, "-o", tmp_path / "out.sdp") == 0
    assert sorted(path.name for path in tmp_path.glob("*.sdp")) == ["out.dependencies.sdp", "out.graph.sdp", "out.sdp"]
    capsys.readouterr()
    assert spigot(*words, "--to", "text") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith(":")] == ["graph:", "valency:", "dependencies:"]
    assert sum("Rain" in line for line in lines) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "sdp"], "finds valency, graph and dependencies, and here is a place for one graph; name it with"),
        (["--to", "conllu", "--graph"], "and here is a place for one graph; name it with --field."),
        (["--to", "sdp", "--field", "dm"], "--field is dm; "),
        (["--to", "jsonl", "--field", "graph"], "--field is graph, but jsonl has no place for one graph; leave it out"),
    ],
)
def test_which_graph_is_meant_must_be_said(words: list[str], message: str, run: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "some.txt").write_text("Rain fell.", encoding="utf-8")
    assert spigot("parse", run, tmp_path / "some.txt", *words) == 1
    assert message in capsys.readouterr().err
