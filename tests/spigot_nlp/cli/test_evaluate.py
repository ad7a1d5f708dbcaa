"""`spigot evaluate` of two files: numbers out."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.annotations import Classes
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation import score_graphs, score_trees
from spigot_nlp.scoring import Target, score

WORDS = ("Rain", "fell", "softly", ".")


def sentence(heads: tuple[int, ...] | None = None, arcs: list[Arc] | None = None) -> Sentence:
    graph = None if arcs is None else Graph.of(arcs, tops=[2], predicates=[2])
    return Sentence(WORDS, WORDS, ("NN", "VBD", "RB", "."), heads=heads, graph=graph)


GOLD_TREES = [sentence(heads=(2, 0, 2, 2))] * 2
BAD_TREES = [sentence(heads=(2, 0, 2, 2)), sentence(heads=(2, 0, 1, 3))]
GOLD_GRAPHS = [sentence(arcs=[Arc(2, 1, "ARG1"), Arc(2, 3, "MANNER")])] * 2
BAD_GRAPHS = [sentence(arcs=[Arc(2, 1, "ARG1"), Arc(2, 3, "ARG2")]), sentence(arcs=[Arc(2, 1, "ARG1")])]


def files(tmp_path: Path, suffix: str, *sides: list[Sentence]) -> list[str]:
    paths = [tmp_path / f"{number}{suffix}" for number in range(len(sides))]
    for path, side in zip(paths, sides, strict=True):
        write(side, path)
    return [str(path) for path in paths]


def test_trees(tmp_path, capsys):
    assert cli.main(["evaluate", *files(tmp_path, ".conllx", GOLD_TREES, BAD_TREES)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert re.search(r"all words +8 +50\.00 +75\.00", printed.out)
    assert re.search(r"without punctuation +6 +50\.00 +83\.33", printed.out)
    assert "Graphs" not in printed.out


def test_graphs(tmp_path, capsys):
    assert cli.main(["evaluate", *files(tmp_path, ".sdp", GOLD_GRAPHS, BAD_GRAPHS)]) == 0
    out = capsys.readouterr().out
    # 4 arcs and 2 tops wanted; 3 arcs and 2 tops given, 2 and 2 of them right.
    assert re.search(r"^ *labelled +6 +5 +0\.00 +80\.00 +66\.67 +72\.73 ", out, re.MULTILINE)
    assert re.search(r"^ *unlabelled, no tops +4 +3 +50\.00 +100\.00 +75\.00 +85\.71 ", out, re.MULTILINE)
    assert re.search(r"^ *tops +2 +2 +100\.00 +100\.00 +100\.00$", out, re.MULTILINE)
    assert "MANNER" not in out


def test_roles_by_frequency(tmp_path, capsys):
    assert cli.main(["evaluate", *files(tmp_path, ".sdp", GOLD_GRAPHS, BAD_GRAPHS), "--labels"]) == 0
    roles = re.findall(r"^ *([A-Z]+\d?) +(\d+) +(\d+) +\S+ +\S+ +(\S+)$", capsys.readouterr().out, re.MULTILINE)
    assert roles == [("ARG1", "2", "2", "100.00"), ("MANNER", "2", "0", "0.00"), ("ARG2", "0", "1", "0.00")]


def test_json_is_what_the_library_says(tmp_path, capsys):
    paths = files(tmp_path, ".sdp", GOLD_GRAPHS, BAD_GRAPHS)
    assert cli.main(["evaluate", *paths, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["scores"][paths[0]]["graphs"] == asdict(score_graphs(GOLD_GRAPHS, BAD_GRAPHS))
    assert "trees" not in record["scores"][paths[0]]
    assert record["skipped"] == 0
    paths = files(tmp_path, ".conllx", GOLD_TREES, BAD_TREES)
    assert cli.main(["evaluate", *paths, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"][paths[0]]["trees"] == asdict(
        score_trees(GOLD_TREES, BAD_TREES)
    )


def test_intervals_are_repeatable(tmp_path, capsys):
    paths = files(tmp_path, ".conllx", GOLD_TREES, BAD_TREES)
    words = ["evaluate", *paths, "--json"]
    assert cli.main(words) == 0
    first = capsys.readouterr().out
    low, high = json.loads(first)["intervals"][paths[0]]["trees"]["uas"]
    assert (low, high) == (0.5, 1.0)  # two sentences, one half right: a resample may hold either one only
    assert cli.main(words) == 0
    assert capsys.readouterr().out == first
    assert cli.main(words[:-1]) == 0
    assert "50.00 to 100.00" in capsys.readouterr().out


def test_classes_in_python():
    good, bad = Sentence(("Fine",), label=1), Sentence(("Fine",), label=0)
    scores = score([good, good], [good, bad], [Target("labels", Classes())])
    assert scores["labels"]["accuracy"] == 0.5


def test_classes(tmp_path, capsys):
    words = ["A", "B", "C", "D"]
    gold, predicted = ([Sentence((word,), label=int(k)) for word, k in zip(words, labels, strict=True)]
                       for labels in ("0112", "0122"))  # fmt: skip
    paths = files(tmp_path, ".tsv", gold, predicted)
    assert cli.main(["evaluate", *paths]) == 0
    out = capsys.readouterr().out
    assert "Classes: 4 sentences, per cent" in out
    assert re.search(r"^ *all sentences +75\.00 +\d+\.\d\d to 100\.00$", out, re.MULTILINE)
    assert "P" not in out.split()
    assert cli.main(["evaluate", *paths, "--labels"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ *1 +2 +1 +100\.00 +50\.00 +66\.67$", out, re.MULTILINE)
    assert re.search(r"^ *1 +0 +1 +1$", out, re.MULTILINE)  # one of the two was taken for a 2
    assert cli.main(["evaluate", *paths, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"][paths[0]]["labels"]["confusion"]["1"] == {"1": 1, "2": 1}


def test_the_format_is_that_of_the_gold_file(tmp_path, capsys):
    gold, predicted = tmp_path / "gold.txt", tmp_path / "predicted.jsonl"
    gold.write_text("(4 (2 What) (4 fun))\n(2 (2 It) (2 rains))\n(1 (2 Oh) (1 no))\n")
    write([Sentence(("What", "fun"), label=1), Sentence(("Oh", "no"), label=1)], predicted)
    assert cli.main(["evaluate", str(gold), str(predicted), "--format", "sst-binary"]) == 0
    assert re.search(r"all sentences +50\.00 ", capsys.readouterr().out, re.MULTILINE)


def test_what_only_one_file_has_is_named(tmp_path, capsys):
    (gold,) = files(tmp_path, ".sdp", GOLD_GRAPHS)
    both = tmp_path / "both.conllu"
    write([sentence(heads=(2, 0, 2, 2), arcs=[Arc(2, 1, "ARG1"), Arc(2, 3, "MANNER")])] * 2, both)
    assert cli.main(["evaluate", gold, str(both)]) == 0
    printed = capsys.readouterr()
    assert "Graphs: 2 sentences" in printed.out
    assert printed.err == "Only the predicted file has trees; they were not scored.\n"


@pytest.mark.parametrize("options", [[], ["--skip-bad"]])
def test_bad_sentences(options, tmp_path, capsys):
    gold, predicted = files(tmp_path, ".conllx", GOLD_TREES, BAD_TREES)
    for path in (gold, predicted):
        Path(path).write_text("1\tonly\ttwo\n\n" + Path(path).read_text(encoding="utf-8"), encoding="utf-8")
    code = cli.main(["evaluate", gold, predicted, *options])
    printed = capsys.readouterr()
    if options:
        assert code == 0
        assert re.search(r"all words +8", printed.out)
        assert printed.err.startswith(f"Skipped 2 bad sentences; the first: {gold}:1: ")
    else:
        assert code == 1
        assert printed.out == ""
        assert printed.err.startswith(f"spigot: {gold}:1: ")
    assert printed.err.count("\n") == 1


def test_failures(tmp_path, capsys):
    trees, graphs = files(tmp_path, ".conllx", GOLD_TREES)[0], files(tmp_path, ".sdp", GOLD_GRAPHS)[0]
    other = tmp_path / "other.conllx"
    write([Sentence(("Snow", "fell"), heads=(2, 0))], other)
    for words, message in (
        ([trees, graphs], "the files have trees and graphs: there is nothing to compare."),
        ([trees, str(other)], "sentence 1, word 1 is 'Rain' in the gold data and 'Snow' in the prediction"),
        ([trees, str(tmp_path / "none.conllx")], f"{tmp_path / 'none.conllx'}: no such data file."),
        ([trees, trees, "--format", "xml"], "format is 'xml'"),
    ):
        assert cli.main(["evaluate", *words]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("spigot: ")
        assert message in printed.err
        assert printed.err.count("\n") == 1
    assert cli.main(["evaluate", trees]) == 1
    assert "after the gold file give one file of predictions" in capsys.readouterr().err


def test_several_seeds_are_compared_by_their_means(tmp_path, capsys):
    (gold,) = files(tmp_path, ".conllx", GOLD_TREES)
    for number, side in enumerate((GOLD_TREES, BAD_TREES)):
        write(side, tmp_path / f"first-{number}.conllx")
        write(BAD_TREES, tmp_path / f"second-{number}.conllx")
    words = [str(tmp_path / "first-*.conllx"), str(tmp_path / "second-*.conllx"), gold, "--samples", "20"]
    assert cli.main(["compare", *words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["results"]["UAS"]
    assert (result["first"], result["second"], result["seeds"], result["paired"]) == (0.875, 0.75, [2, 2], True)
    assert cli.main(["compare", *words]) == 0
    assert "means of 2 and 2 runs, over seeds and sentences" in capsys.readouterr().out
    assert cli.main(["compare", str(tmp_path / "none-*"), gold, gold]) == 1
    assert "put the pattern in quotes" in capsys.readouterr().err


def test_files_in_the_wrong_order_are_noticed(tmp_path, capsys):
    bare = [sentence(arcs=[]).put("heads", None)] * 2
    for gold, predicted, said in (
        (GOLD_GRAPHS, bare, "has no arc in any graph"),
        ([replace(s, id="7") for s in GOLD_TREES], BAD_TREES, "has no names of sentences"),
    ):
        right, answer = files(tmp_path, ".jsonl", gold, predicted)
        assert cli.main(["evaluate", right, answer]) == 0
        assert capsys.readouterr().err == ""
        assert cli.main(["evaluate", answer, right]) == 0
        assert f"{answer} {said} and {right} does not: the gold file comes first" in capsys.readouterr().err


def test_classes_of_some_sentences_of_conllu_are_left_out(tmp_path, capsys):
    some = [GOLD_TREES[0].put("label", 1), BAD_TREES[1]]
    assert cli.main(["evaluate", *files(tmp_path, ".conllu", [s.put("label", 1) for s in GOLD_TREES], some)]) == 0
    printed = capsys.readouterr()
    assert "1 of 2 sentences have a class (# label), so classes are left out" in printed.err
    assert re.search(r"all words +8 +50\.00 +75\.00", printed.out)
    assert "accuracy" not in printed.out
