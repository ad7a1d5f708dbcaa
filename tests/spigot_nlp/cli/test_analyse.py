"""`spigot analyse`: what the command line adds to the analysis."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Graph, Sentence
from spigot_nlp.evaluation.analysis import analyse
from spigot_nlp.models import checkpoint

GOLD = [replace(sentence, id=f"s{k}") for k, sentence in enumerate(splits(train=300, dev=8).dev)]
PARSED = [replace(sentence, label=None) for sentence in GOLD]
CHAINS = [replace(sentence, heads=(0, *range(1, len(sentence)))) for sentence in PARSED]
FAST = ["--threads", "1", "--samples", "20"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Gold data and answers in files."""
    folder = tmp_path_factory.mktemp("files")
    flipped = [replace(s, graph=_without_tops(s), label=int(not s.label)) for s in GOLD[:3]] + GOLD[3:]
    made: dict[str, Sequence[Sentence]] = {
        "gold.jsonl": PARSED,
        "graphs.sdp": [replace(sentence, heads=None, relations=None) for sentence in PARSED],
        "trees.conllu": [*reversed(PARSED[:6])],
        "chains.jsonl": CHAINS,
        "classes.jsonl": GOLD,
        "flipped.jsonl": flipped,
    }
    for name, sentences in made.items():
        write(sentences, folder / name)
    return {name.split(".")[0]: folder / name for name in made}


def _without_tops(sentence: Sentence) -> Graph:
    return replace(sentence.graph or Graph(), tops=())


def run(*words: str | Path) -> int:
    return cli.main(["analyse", *(str(word) for word in words), *FAST])


def failure(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert run(*words) == 1, words
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def plain(record: object) -> object:
    return json.loads(json.dumps(record))


def test_says_what_the_library_says(trained, files, capsys):
    assert run(trained, files["chains"], files["gold"], "--json", "--sample", "2", "--against", "predicted") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    record = json.loads(printed.out)
    parser = checkpoint.load(trained)
    predicted = list(parser.parse(map(parser.visible, PARSED)))
    wanted = analyse(PARSED, predicted, CHAINS, samples=20, sample=2, against="predicted")
    assert record["results"] == {str(files["chains"]): plain(asdict(wanted))}
    assert (record["first"], record["file"], record["skipped"]) == (str(trained), str(files["gold"]), 0)


def test_gold_sentences_are_found_in_the_runs(trained, files, tmp_path, capsys):
    twin = tmp_path / "twin"
    shutil.copytree(trained, twin)
    assert run(trained, twin, "--part", "id", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["file"] == str(trained / "gold.id.jsonl")
    groups = record["results"][str(twin)]["groups"]
    assert [group["sentences"] for group in groups] == [8, 8, 0]
    scores = json.loads((trained / "scores.json").read_text())
    assert groups[0]["scores"]["LF"]["b"] == pytest.approx(scores["id"]["labelled"]["f1"])
    assert groups[0]["scores"]["UAS"]["b"] == pytest.approx(scores["id trees"]["uas"])

    assert "has dev, id, ood, train; choose one with --part" in failure(capsys, trained, twin, "--part", "brown")
    assert "both the file" in failure(capsys, trained, twin, files["gold"], "--part", "id")
    assert "--format sst is about a gold FILE" in failure(capsys, trained, twin, "--format", "sst")
    write([replace(sentence, graph=Graph()) for sentence in read(twin / "gold.id.jsonl")], twin / "gold.id.jsonl")
    assert "have different graphs; name the gold FILE" in failure(capsys, trained, twin, "--part", "id")
    renamed = [s.put("relations", ("x",) * len(s)) for s in read(trained / "gold.id.jsonl")]
    write(renamed, twin / "gold.id.jsonl")
    assert "have different trees; name the gold FILE" in failure(capsys, trained, twin, "--part", "id")
    (twin / "gold.id.jsonl").write_text((twin / "gold.ood.jsonl").read_text())
    assert "have different sentences; name the gold FILE" in failure(capsys, trained, twin, "--part", "id")
    for run_folder in (first := tmp_path / "first", second := tmp_path / "second"):
        run_folder.mkdir()
    assert "keeps no gold sentences of the part dev: name a gold FILE" in failure(capsys, first, second)


def test_tables_of_parsers(files, tmp_path, capsys):
    lost = tmp_path / "lost.jsonl"
    write([replace(s, graph=_without_tops(s)) for s in CHAINS], lost)
    assert run(files["gold"], files["chains"], lost, files["graphs"], "--trees", files["trees"]) == 0
    out, err = capsys.readouterr()
    assert err == f"Found trees for 6 of 8 sentences in {files['trees']}.\n"
    assert re.search(r"^ +UAS +\S*gold.jsonl +100.00$", out, re.MULTILINE)
    assert re.search(r"^ +\S+lost.jsonl( +\d+\.\d\d) +-\d+\.\d\d +-\d+\.\d\d to -\d+\.\d\d$", out, re.MULTILINE)
    assert re.search(r"^ +different · A +8 +100.00", out, re.MULTILINE)
    assert "same · A" not in out  # no sentence has the same trees
    assert re.search(r"^ +\(a\), \(b\) or \(c\) +\d+( +\d+\.\d){3}$", out, re.MULTILINE)
    assert re.search(r"^ +tops +\d+ +0$", out, re.MULTILINE)
    for title in ("UAS by distance", "LF by distance", "LF by role", "UAS by sentence length", "Largest losses of B"):
        assert f"{title}" in out
    assert out.count("Largest losses") == 1  # only one of the two lost arcs
    assert "Largest gains" not in out
    assert f"    {' '.join(GOLD[0].forms)}" in out.splitlines()


def test_tables_of_classifiers(files, capsys):
    assert run(files["classes"], files["flipped"], files["classes"].parent / "classes.jsonl") == 0
    out = capsys.readouterr().out
    assert re.search(r"^ +same +same +5 +100.0 +100.0$", out, re.MULTILINE)
    assert re.search(r"^ +changed +flipped +3 +100.0 +0.0$", out, re.MULTILINE)
    assert "3 of 8 sentences flipped their class: 0 put right, 3 made wrong, 0 from one wrong class to another." in out
    assert "Flipped classes" in out
    assert "Most changed structures" in out


def test_relations_alone_may_differ(files, tmp_path, capsys):
    other = [s.put("relations", tuple("x" if name == "det" else name for name in s.relations or ())) for s in PARSED]
    for name, sentences in (("a", PARSED), ("b", other)):
        write([sentence.put("graph", None) for sentence in sentences], tmp_path / f"{name}.conllu")
    sides = (tmp_path / "a.conllu", tmp_path / "b.conllu", files["gold"])
    assert run(*sides, "--json") == 0
    (result,) = json.loads(capsys.readouterr().out)["results"].values()
    (det,) = result["relations"]["by_pair"]
    sentences = sum("det" in (sentence.relations or ()) for sentence in PARSED)
    assert (det["before"], det["after"], det["right_b"]) == ("det", "x", 0)
    assert det["words"] == det["same_head"] == det["right_a"] > sentences
    assert {one["name"]: one["sentences"] for one in result["groups"]} == {
        "all": 8,
        "same": 8 - sentences,
        "relabelled": sentences,
        "different": 0,
    }
    assert run(*sides) == 0
    out = capsys.readouterr().out
    assert f"Trees: {sentences} of 8 sentences differ, {sentences} of them in relations alone" in out
    assert re.search(rf"^ +det → x +{det['words']} +{det['words']} +{det['words']} +0$", out, re.MULTILINE)
    assert re.search(r"^ +det +\d+ +100.0 +0.0 +−100.0$", out, re.MULTILINE)


def test_text_from_outside_cannot_touch_the_screen(tmp_path, capsys):
    words, strange = ("nice", "\x1b[31mtry"), "[red]ARG1"
    gold = {"forms": words, "id": "\x07", "graph": {"arcs": [[1, 2, strange]]}}
    other = {"forms": words, "id": "\x07", "graph": {"arcs": []}}
    for name, record in (("gold", gold), ("other", other)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(record) + "\n")
    (sentence,) = read(tmp_path / "gold.jsonl")
    assert (sentence.graph or Graph()).arcs[0].role == strange
    assert run(tmp_path / "gold.jsonl", tmp_path / "other.jsonl", tmp_path / "gold.jsonl") == 0
    out = capsys.readouterr().out
    assert not {"\x1b", "\x07"} & set(out)
    assert strange in out


def test_says_what_is_missing(trained, files, tmp_path, capsys):
    assert "there is only one system; give two runs or more" in failure(capsys, trained, files["gold"])
    assert "there is only a file" in failure(capsys, files["gold"])
    assert "the same system is given twice" in failure(capsys, trained, trained)
    assert "no-such-run is neither a run folder nor a file" in failure(capsys, trained, "no-such-run", files["gold"])
    other = tmp_path / "other.conllu"
    write([Sentence(("Quite", "another"), heads=(0, 1))], other)
    message = failure(capsys, files["gold"], files["chains"], files["graphs"], "--trees", other)
    assert "has a tree for none of the sentences of" in message
