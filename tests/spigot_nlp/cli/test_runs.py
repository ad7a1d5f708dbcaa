"""`spigot evaluate`, `parse` and `compare`: what a trained run is good for."""

import io
import json
import re
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.data.text.treebank import treebank_text
from spigot_nlp.evaluation import score_graphs, score_raw, score_trees
from tests.spigot_nlp.parsing import load, text_sentences

GOLD = splits(train=300, dev=12).dev
FAST = ["--threads", "1", "--samples", "50"]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gold") / "gold.sdp"
    write((replace(sentence, heads=None, relations=None) for sentence in GOLD), path)
    return path


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gold") / "gold.conllu"
    write(GOLD, path)  # its enhanced column holds the graphs
    return path


def run(*words: str | Path) -> int:
    return cli.main([str(word) for word in words])


def failure(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """The message of a command that fails."""
    assert run(*words) == 1, words
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("spigot: ")
    assert printed.err.count("\n") == 1
    return printed.err


# evaluate


def test_evaluate_says_what_the_library_says(trained, graphs, trees, capsys):
    assert run("evaluate", trained, graphs, trees, "--json", *FAST) == 0
    printed = capsys.readouterr()
    assert "cannot find 1 of the roles in" in printed.err
    record = json.loads(printed.out)
    scores = record["scores"]
    predicted = list(load(trained).pipe(GOLD))
    labelled = score_graphs(GOLD, predicted)
    found = scores[str(graphs)]
    assert "trees" not in found
    assert found["graphs"]["labelled"]["f1"] == labelled.labelled.f1
    assert found["graphs"]["by_label"].keys() == labelled.by_label.keys()
    low, high = record["intervals"][str(graphs)]["graphs"]["labelled"]
    assert 0 <= low <= labelled.labelled.f1 <= high <= 1
    found = scores[str(trees)]
    assert "graphs" not in found  # an enhanced column is no semantics unless one says so
    assert found["trees"]["uas"] == score_trees(GOLD, predicted).uas


def test_evaluate_prints_tables(trained, graphs, trees, capsys):
    assert run("evaluate", trained, graphs, trees, "--labels", *FAST) == 0
    out = capsys.readouterr().out
    assert str(graphs) in out.splitlines()
    assert re.search(r"^ *labelled, no tops( +\d+){2}( +\d+\.\d\d){4} +\d+\.\d\d to \d+\.\d\d$", out, re.MULTILINE)
    assert re.search(r"^ *without punctuation +\d+( +\d+\.\d\d){2} +\d+\.\d\d to \d+\.\d\d$", out, re.MULTILINE)
    assert re.search(r"^ *ARG1 ", out, re.MULTILINE)


def test_evaluate_both_kinds_of_one_file(trained, trees, capsys):
    assert run("evaluate", trained, trees, "--graph", "--json", *FAST) == 0
    scores = json.loads(capsys.readouterr().out)["scores"][str(trees)]
    assert scores["trees"] is not None
    assert scores["graphs"] is not None


def test_evaluate_does_not_look_at_the_answers(trained, graphs, tmp_path, capsys):
    """Wrong gold data change the scores, not the predictions."""
    wrong = tmp_path / "wrong.sdp"
    write((replace(sentence, graph=Graph.of([Arc(1, 2, "ZZZ")], tops=[1])) for sentence in read(graphs)), wrong)
    assert run("evaluate", trained, graphs, wrong, "--json", *FAST) == 0
    record = json.loads(capsys.readouterr().out)
    right, other = (record["scores"][str(path)]["graphs"] for path in (graphs, wrong))
    assert right["labelled"]["predicted"] == other["labelled"]["predicted"] > 0
    assert other["labelled_without_tops"]["correct"] == 0


def test_evaluate_from_plain_text(trained, trees, graphs, capsys):
    """The words of the corpus are divided by spaces, so that nothing is lost; a sentence may end elsewhere."""
    assert run("evaluate", trained, trees, "--raw", "--json", *FAST) == 0
    scores = json.loads(capsys.readouterr().out)["scores"][str(trees)]["raw"]
    gold = list(read(trees))
    expected = score_raw(gold, list(text_sentences(load(trained), "".join(treebank_text(gold)))))
    assert scores["words"]["gold"] == sum(map(len, GOLD))
    assert scores["uas"] == asdict(expected)["uas"]
    assert run("evaluate", trained, trees, "--raw", *FAST) == 0
    assert re.search(r"^ *UAS( +\d+\.\d\d){4}$", capsys.readouterr().out, re.MULTILINE)
    assert "does not say what it is" in failure(capsys, "evaluate", trained, graphs, "--raw")
    assert "leave out --graph" in failure(capsys, "evaluate", trained, trees, "--raw", "--graph")
    assert run("evaluate", trees, trees, "--raw", "--json") == 0
    assert json.loads(capsys.readouterr().out)["scores"][str(trees)]["raw"]["uas"]["f1"] == 1


def test_evaluate_bad_sentences(trained, graphs, tmp_path, capsys):
    bad = tmp_path / "bad.sdp"
    text = graphs.read_text(encoding="utf-8")
    bad.write_text(f"{text}#77\n1\tonly\n\n", encoding="utf-8")
    assert f"{bad}:{text.count(chr(10)) + 2}: " in failure(capsys, "evaluate", trained, bad, *FAST)
    assert run("evaluate", trained, bad, "--skip-bad", "--json", *FAST) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["skipped"] == 1
    assert "Skipped 1 bad sentence; the first: " in printed.err


def test_evaluate_failures(trained, trained_without_syntax, trees, graphs, tmp_path, capsys):
    assert "there is nothing to evaluate on" in failure(capsys, "evaluate", trained)
    assert "gold.sdp: no such data file." in failure(capsys, "evaluate", trained, tmp_path / "gold.sdp")
    assert "is no run folder" in failure(capsys, "evaluate", tmp_path, graphs)
    message = failure(capsys, "evaluate", trained_without_syntax, trees, *FAST)
    assert "finds graphs, and" in message
    assert message.endswith("only; give a file with graphs, or --graph if they are in its enhanced column.\n")
    empty, bare = tmp_path / "empty.sdp", tmp_path / "bare.conllu"
    empty.write_text("")
    write([Sentence(("Rain", "fell"))], bare)
    assert "has no sentences" in failure(capsys, "evaluate", trained, empty)
    assert "has neither trees nor graphs" in failure(capsys, "evaluate", trained, bare)
    assert run("evaluate", trained_without_syntax, trees, "--graph", "--json", *FAST) == 0


# parse


def test_parse_keeps_the_format_and_the_order(trained, graphs, trees, tmp_path, capsys):
    predicted = list(load(trained, precision="int16").pipe(GOLD))
    out = tmp_path / "out.sdp"
    assert run("parse", trained, graphs, "-o", out, "--threads", "1") == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r"Parsed 12 sentences, \d+ tokens, in \d+\.\d s: [\d,]+ tokens/s\n", printed.err)
    for wanted, got in zip(predicted, read(out), strict=True):
        assert wanted.graph is not None
        assert got.graph is not None
        assert (got.forms, got.lemmas, got.tags, got.id) == (wanted.forms, wanted.lemmas, wanted.tags, wanted.id)
        assert (got.graph.arcs, got.graph.tops) == (wanted.graph.arcs, wanted.graph.tops)
    out = tmp_path / "out.conllu.gz"
    assert run("parse", trained, trees, "-o", out, "--threads", "1") == 0
    found = list(read(out))
    assert [sentence.heads for sentence in found] == [sentence.heads for sentence in predicted]
    # Neither relations nor an enhanced column are predicted, and the old ones do not belong to the new trees.
    assert all(sentence.relations is None and sentence.graph is None for sentence in found)


def test_parse_converts(trained, trained_without_syntax, trees, graphs, tmp_path):
    def predict(source: Path, out: str, *options: str, by: Path = trained) -> list[Sentence]:
        assert run("parse", by, source, "--out", tmp_path / out, "--threads", "1", *options) == 0
        return list(read(tmp_path / out))

    straight = predict(graphs, "a.sdp")
    assert [s.graph for s in predict(trees, "b.sdp")] == [s.graph for s in straight]
    both = predict(graphs, "c.conllu", "--graph")
    assert all(sentence.heads is not None for sentence in both)
    arcs = [sentence.graph.arcs for sentence in straight if sentence.graph is not None]
    assert any(arcs)
    # An empty column may stand for an empty graph.
    assert [() if sentence.graph is None else sentence.graph.arcs for sentence in both] == arcs
    lonely = predict(trees, "d.conllu", "--graph", by=trained_without_syntax)
    assert all(sentence.heads is None for sentence in lonely)
    assert any(sentence.graph is not None for sentence in lonely)
    assert [s.heads for s in predict(trees, "e.conllx")] == [s.heads for s in both]


def test_parse_sdp_2014(trained, graphs, tmp_path):
    """Both years share a suffix; what is written is what was read, and the frames of the gold data are gone."""
    old, out = tmp_path / "old.sdp", tmp_path / "out.sdp"
    write(read(graphs), old, "sdp2014")
    assert run("parse", trained, old, "-o", out, "--threads", "1") == 0
    assert not out.read_text(encoding="utf-8").startswith("#SDP 2015")
    assert len(list(read(out, "sdp2014"))) == 12
    framed = tmp_path / "framed.sdp"
    write((replace(s, graph=replace(s.graph or Graph(), frames=("x:y",) * len(s))) for s in read(graphs)), framed)
    assert run("parse", trained, framed, "-o", out, "--threads", "1") == 0
    assert "x:y" not in out.read_text(encoding="utf-8")


class Standard:
    """A standard stream whose bytes can be set and seen."""

    def __init__(self, data: bytes = b"") -> None:
        self.buffer = io.BytesIO(data)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def test_parse_streams(trained, trees, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out.conllu"
    assert run("parse", trained, trees, "-o", out, "--threads", "1") == 0
    monkeypatch.setattr(sys, "stdin", Standard(trees.read_bytes()))
    monkeypatch.setattr(sys, "stdout", stdout := Standard())
    assert run("parse", trained, "-", "-o", "-", "--format", "conllu", "--threads", "1") == 0
    assert stdout.buffer.getvalue() == out.read_bytes()


def test_parse_writes_all_or_nothing(trained, trees, tmp_path, capsys):
    bad, out = tmp_path / "bad.conllu", tmp_path / "out.conllu"
    bad.write_text(trees.read_text(encoding="utf-8") + "1\tonly\n\n", encoding="utf-8")
    out.write_text("precious")
    assert f"{bad}:" in failure(capsys, "parse", trained, bad, "-o", out, "--threads", "1")
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.conllu", "out.conllu"]
    assert run("parse", trained, bad, "-o", out, "--skip-bad", "--threads", "1") == 0
    assert "Skipped 1 bad sentence" in capsys.readouterr().err
    assert len(list(read(out))) == 12


def test_parse_nothing(trained, tmp_path, capsys):
    empty, out = tmp_path / "empty.sdp", tmp_path / "out.sdp"
    empty.write_text("#SDP 2015\n")
    assert run("parse", trained, empty, "-o", out) == 0
    assert out.read_text() == "#SDP 2015\n"
    assert capsys.readouterr().err.startswith("Parsed 0 sentences, 0 tokens")


def test_parse_failures(trained, trained_without_syntax, trees, graphs, tmp_path, capsys):
    out = tmp_path / "out.sdp"
    for words, message in (
        ([tmp_path, trees, "-o", out], "is no run folder: it has no config.toml"),
        ([trained, tmp_path / "no.sdp", "-o", out], "no.sdp: no such data file."),
        ([trained, trees, "-o", tmp_path / "no" / "out.sdp"], "no does not exist"),
        ([trained, trees, "-o", out, "--graph"], "--graph is about the enhanced column of CoNLL-U, and sdp has none"),
        ([trained, trees, "-o", out, "--to", "xml"], "the format xml has no place"),
        ([trained, trees, "-o", out, "--format", "xml"], "--format is xml; it must be"),
        ([trained, trees, "-o", tmp_path / "out.tsv"], "finds no classes, so there are none to write"),
        ([trained, trees, "-o", "--skip-bad"], "--skip-bad stands where --out has its file"),
        ([trained, tmp_path], "is a folder; to parse all files in it, give a folder that exists as --out"),
        ([trained, trees, "-o", out, "--tokenised"], "--tokenised is about plain text, and these are sentences in"),
        (
            [trained_without_syntax, trees, "-o", tmp_path / "o.conllu"],
            "finds no trees, so there are none to write",
        ),
    ):
        assert message in failure(capsys, "parse", *words)
    assert not list(tmp_path.iterdir())


# compare


def test_compare_two_runs(trained, trained_without_syntax, graphs, capsys):
    words = ["compare", trained, trained_without_syntax, graphs, *FAST]
    assert run(*words, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert set(record["results"]) == {"LF", "UF"}
    result = record["results"]["LF"]
    assert result["difference"] == pytest.approx(result["first"] - result["second"])
    assert result["low"] <= result["difference"] <= result["high"]
    assert 0 < result["p"] <= 1
    assert result["samples"] == 50
    assert run(*words) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ *LF( +\d+\.\d\d){2} +[+-]\d+\.\d\d +[+-]\S+ to [+-]\S+ +[01]\.\d{4}$", out, re.MULTILINE)


def test_compare_a_run_with_its_own_file(trained, trees, tmp_path, capsys):
    out = tmp_path / "predicted.conllu"
    assert run("parse", trained, trees, "-o", out, "--graph", "--threads", "1") == 0
    assert run("compare", trained, out, trees, "--graph", "--json", *FAST) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert set(results) == {"LF", "UF", "UAS", "UAS without punctuation"}
    assert all(result["difference"] == 0 and result["p"] == 1 for result in results.values())
    # Gold against the system: a lead that no resample loses.
    assert run("compare", trees, out, trees, "--json", "--samples", "100") == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert results["UAS"]["first"] == 1
    assert results["UAS"]["p"] == pytest.approx(2 / 101)


def test_compare_failures(trained, trained_without_syntax, trees, graphs, tmp_path, capsys):
    message = failure(capsys, "compare", trained, tmp_path / "none", graphs, *FAST)
    assert "none is neither a run folder nor a file of predictions" in message
    message = failure(capsys, "compare", trained, trained_without_syntax, trees, *FAST)
    assert "there is no annotation that the gold file and both systems have" in message
    other = tmp_path / "other.sdp"
    write([Sentence(("Snow", "fell"), graph=Graph())], other)
    assert "score the same text" in failure(capsys, "compare", graphs, other, graphs, *FAST)


# damaged runs


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("model.safetensors", lambda data: data[: len(data) // 2], "model.safetensors is not a whole checkpoint"),
        ("model.safetensors", lambda data: b"", "model.safetensors is not a whole checkpoint"),
        ("model.safetensors", None, "model.safetensors; the training has not got that far"),
        ("vocab.json", lambda data: data[: len(data) // 2], "vocab.json is damaged"),
        ("vocab.json", lambda data: b"{}", "vocab.json is damaged"),
        ("vocab.json", None, "has no vocab.json"),
        ("config.toml", lambda data: data[:20] + b"[[", "config.toml is damaged"),
        ("config.toml", lambda data: data.replace(b"hidden = 8", b"hidden = 9"), "does not fit config.toml"),
        ("config.toml", lambda data: data.replace(b"hidden", b"hiding"), "is not a known setting"),
        ("config.toml", None, "is no run folder: it has no config.toml"),
    ],
)
def test_damaged_runs(name, damage, message, trained, graphs, tmp_path, capsys):
    broken = tmp_path / "run"
    shutil.copytree(trained, broken)
    if damage is None:
        (broken / name).unlink()
    else:
        (broken / name).write_bytes(damage((broken / name).read_bytes()))
    assert message in failure(capsys, "evaluate", broken, graphs, *FAST)


@pytest.mark.parametrize("size", [0, 7, 1000])
def test_a_damaged_state_is_not_resumed(size, trained, tmp_path, capsys):
    broken = tmp_path / "run"
    shutil.copytree(trained, broken)
    state = broken / "checkpoint.safetensors"
    state.write_bytes(state.read_bytes()[:size])
    before = {path.name: path.read_bytes() for path in broken.iterdir()}
    assert "checkpoint.safetensors is not a whole checkpoint" in failure(capsys, "train", "--resume", broken)
    assert {path.name: path.read_bytes() for path in broken.iterdir()} == before
