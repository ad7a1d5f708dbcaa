"""`spigot diagnose`: what it says about structures, and where it takes them from."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.cli.diagnose import changes_in
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation import describe
from spigot_nlp.models.inspection import head_entropy
from tests.spigot_nlp.parsing import load

GOLD = splits(train=300, dev=12).dev
DEV = splits(train=60, dev=8).dev  # that of the tiny experiment


def run(*words: str | Path) -> int:
    return cli.main([*(str(word) for word in words), "--threads", "1"])


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gold") / "gold.txt"
    write([Sentence(sentence.forms) for sentence in GOLD], path)
    return path


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gold") / "gold.conllu"
    write(GOLD, path)
    return path


def record(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict:
    assert run("diagnose", *words, "--json") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


def test_latent_trees(latent, capsys):
    """By default the development sentences of the run, with their gold trees."""
    found = record(capsys, latent)
    parser = load(latent)
    answer = list(parser.pipe(sentence.without_annotation() for sentence in DEV))
    wanted = describe(answer, DEV, field="heads")
    assert found["structures"]["answer"] == vars(wanted.answer)
    assert found["structures"]["others"]["gold"] == vars(wanted.others["gold"])
    assert found["file"] is None
    assert len(found["changed"]) == 2  # three epochs
    assert found["changed"] == changes_in(latent)
    assert found["certainty"]["entropy"] == pytest.approx(head_entropy(parser, DEV))
    assert 0 <= found["certainty"]["entropy"] <= found["certainty"]["most"]


def test_the_dev_scores_of_the_training_are_the_same(latent, capsys):
    found = record(capsys, latent)["structures"]["answer"]
    scores = json.loads((latent / "scores.json").read_text())
    assert found == scores["dev"]["structure"]["answer"]


def test_tables(latent, trained, trees, capsys):
    assert run("diagnose", latent, trees, "--parser", trained) == 0
    out = capsys.readouterr().out
    assert f"Trees of {trees}: 12 sentences, " in out
    names = ["this run", "left-branching", "right-branching", "flat", "random", "gold", "the other parser"]
    for name in names:
        assert re.search(rf"^ *{name}( +\d+\.\d\d){{6}}$", out, re.MULTILINE), name
        assert re.search(rf"^ *{name}( +\d+\.\d\d){{9}}$", out, re.MULTILINE), name
    assert re.search(r"^ *left-branching +100\.00 +0\.00 +100\.00 +0\.00 +0\.00 ", out, re.MULTILINE)
    assert re.search(r"^Changed from epoch to epoch in training, per cent: \S+, \S+$", out, re.MULTILINE)
    assert re.search(r"^Entropy of the head of a word .* in bits: \d\.\d\d; \d\.\d\d if every head", out, re.MULTILINE)


def test_another_parser(latent, trained, text, capsys):
    found = record(capsys, latent, text, "--parser", trained)["structures"]
    assert "gold" not in found["others"]  # text has none
    mine = list(load(latent).pipe(Sentence(sentence.forms) for sentence in GOLD))
    theirs = list(load(trained).pipe(Sentence(sentence.forms) for sentence in GOLD))
    heads = [
        (a, b) for s, t in zip(mine, theirs, strict=True) for a, b in zip(s.heads or (), t.heads or (), strict=True)
    ]
    assert found["answer"]["agreement"]["parser"] == pytest.approx(sum(a == b for a, b in heads) / len(heads))


def test_graphs(classifier, trained_without_syntax, text, capsys):
    found = record(capsys, classifier, text, "--parser", trained_without_syntax)
    assert found["structures"]["field"] == "graph"
    assert "parser" in found["structures"]["others"]
    assert found["certainty"] is None  # no marginals
    assert found["changed"] == []  # a single epoch has nothing before it
    found = record(capsys, classifier)["structures"]
    assert found["sentences"] == 8
    assert "gold" in found["others"]


def test_runs_of_parsers(trained, trained_without_syntax, capsys):
    """Trees of the first task's syntactic parser; graphs where there is no such parser."""
    found = record(capsys, trained)
    assert found["structures"]["field"] == "heads"
    assert len(found["changed"]) == 4  # of the trees that the semantic parser reads, in five epochs
    assert found["structures"]["answer"]["agreement"]["gold"] > 0
    assert record(capsys, trained_without_syntax)["structures"]["field"] == "graph"


def test_given_chains_are_found_out(chains, capsys):
    answer = record(capsys, chains)["structures"]["answer"]
    assert answer["left"] + answer["right"] == 1
    assert answer["predictable"] in (0, 1)  # 0 if no two sentences have the same length
    assert answer["distinct"] == 0


def test_gold_is_left_out_where_some_have_none(latent, trees, tmp_path, capsys):
    some = tmp_path / "some.jsonl"
    write([replace(GOLD[0], source=None), Sentence(("Oh",))], some)
    assert "gold" not in record(capsys, latent, some)["structures"]["others"]
    assert "gold" in record(capsys, latent, trees)["structures"]["others"]


def test_failures(latent, classifier, bilstm, gold_reader, text, tmp_path, capsys):
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    for words, message in (
        ([bilstm], "has no structures inside, its system is bilstm; give a run that has a parser."),
        ([gold_reader], "reads the right trees and has no structures of its own"),
        ([latent, text, "--parser", classifier], "finds no trees, and"),
        ([latent, text, "--parser", tmp_path], "is no run folder"),
        ([latent, empty], "has no sentences."),
        ([latent, text, "--format", "sst"], "gold.txt:1: "),
    ):
        assert run("diagnose", *words) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert message in printed.err
        assert printed.err.count("\n") == 1


def test_bad_sentences_are_counted(latent, trees, tmp_path, capsys):
    bad = tmp_path / "bad.conllu"
    bad.write_text(trees.read_text(encoding="utf-8") + "1\tonly\n\n", encoding="utf-8")
    assert run("diagnose", latent, bad, "--skip-bad") == 0
    assert capsys.readouterr().err.startswith("Skipped 1 bad sentence")


def test_changes_of_a_run_that_crashed(latent, tmp_path):
    assert changes_in(tmp_path) == []
    broken = tmp_path / "run"
    shutil.copytree(latent, broken)
    with (broken / "steps.jsonl").open("a") as log:
        log.write('{"phase": "lat')
    assert changes_in(broken) == changes_in(latent)
