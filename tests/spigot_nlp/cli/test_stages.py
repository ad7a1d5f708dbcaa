"""Experiments with stages of their own: one, three, two of a kind; and where they are computed."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spigot_nlp import cli
from spigot_nlp.cli.console import torch_device
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation import score_graphs
from spigot_nlp.models import checkpoint

SPLITS = splits(train=24, dev=6, test=2, ood=2)
ENCODER = "{ word_dim = 8, lemma_dim = 0, tag_dim = 0, hidden = 8, layers = 1 }"
FAST = ["--threads", "1", "--samples", "20"]


def spigot(*words: str | Path) -> int:
    return cli.main([str(word) for word in words])


def tiny(name: str, *stages: str) -> list[str]:
    """Words that make an experiment that comes with spigot small."""
    words = [name, "--data.synthetic.train", "10", "--data.synthetic.dev", "4", "--data.synthetic.test", "2"]
    words += ["--data.tags", "columns", "--training.epochs", "1", "--training.batch", "5", "--threads", "1"]
    for stage in stages:
        words += [f"--{stage}.mlp", "8"]
    return words


# One stage


@pytest.fixture(scope="module")
def only_trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parser without anything that reads its trees, from CoNLL-U files."""
    folder = tmp_path_factory.mktemp("trees")
    for part, sentences in (("train", SPLITS.train), ("dev", SPLITS.dev)):
        write((replace(sentence, graph=None, label=None) for sentence in sentences), folder / f"{part}.conllu")
    config = folder / "only.toml"
    config.write_text(
        f"[data]\nroot = '{folder}'\ntags = 'columns'\n[data.trees]\ntrain = 'train.conllu'\ndev = 'dev.conllu'\n"
        f"[stages.parser]\nannotation = 'trees'\nmlp = 8\nencoder = {ENCODER}\n[training]\nbatch = 8\nepochs = 2\n",
        encoding="utf-8",
    )
    assert spigot("train", config, "--out", folder / "run", "--threads", "1") == 0
    return folder


def test_a_parser_of_trees_alone(only_trees: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, gold = only_trees / "run", only_trees / "dev.conllu"
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    assert set(scores) == {"dev"}
    assert checkpoint.read_config(run).system == "trees"  # what reports call it
    assert spigot("evaluate", run, gold, *FAST, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["scores"] == {str(gold): scores["dev"]}
    assert list(record["intervals"][str(gold)]["trees"]) == ["uas", "uas_without_punctuation"]
    assert spigot("parse", run, gold, "-o", tmp_path / "out.conllu", "--threads", "1") == 0
    found = list(read(run / "predictions.dev.conllu"))
    assert [sentence.heads for sentence in read(tmp_path / "out.conllu")] == [sentence.heads for sentence in found]
    capsys.readouterr()
    assert spigot("parse", run, gold, "-o", tmp_path / "out.sdp", "--threads", "1") == 1
    assert "finds no graphs, so there are none to write" in capsys.readouterr().err


def test_the_run_of_one_stage_is_named_after_it(only_trees: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["train", only_trees / "only.toml", "--training.epochs", "1", "--parser.mlp", "4", "--threads", "1"]
    assert spigot(*words) == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0] == "The run goes to runs/only-trees-0"
    assert [line.split(":")[0] for line in printed.err.splitlines()[1:-1]] == ["parser 1/1"]
    assert printed.out.startswith("Trees, per cent\n")
    assert checkpoint.read_config(Path("runs/only-trees-0")).value("parser.mlp") == 4


def test_a_classifier_of_a_labelled_file_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part, count in (("train", 8), ("dev", 4)):
        lines = [f"{k % 2}\t{('a bad film', 'a fine film')[k % 2]} .\n" for k in range(count)]
        (tmp_path / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")
    config = tmp_path / "mood.toml"
    config.write_text(
        "[data]\ntags = 'columns'\nlabels = { train = 'train.tsv', dev = 'dev.tsv' }\n"
        f"[stages.mood]\nannotation = 'label'\nmlp = 8\nencoder = {ENCODER}\noptimiser = {{ learning_rate = 0.05 }}\n"
        "[training]\nbatch = 4\nepochs = 8\n",
        encoding="utf-8",
    )
    run = tmp_path / "run"
    assert spigot("train", config, "--data.root", tmp_path, "--out", run, "--threads", "1") == 0
    assert re.search(r"^ *dev +4 +100\.00$", capsys.readouterr().out, re.MULTILINE)
    assert spigot("evaluate", run, tmp_path / "dev.tsv", *FAST) == 0
    assert "Classes: 4 sentences, per cent" in capsys.readouterr().out
    text = tmp_path / "text.txt"
    text.write_text("A bad film.\n", encoding="utf-8")
    assert spigot("parse", run, text, "--to", "text", "--threads", "1") == 0
    assert re.search(r"^class 0 \(\d+%\)$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[stages.parser]\nannotation = 'trees'\n", "parser has no trees to train on; set data.trees.train, or "),
        (
            "[stages.parser]\nannotation = 'tree'\n",
            "parser: there is no kind of annotation 'tree'; did you mean trees?",
        ),
        ("[stages.parser]\nmlp = 3\n", "parser: a stage is a table with its annotation, e.g. annotation = 'trees'."),
        (
            "[stages.a]\nannotation = 'trees'\n[stages.b]\nannotation = 'graphs'\nreads = { stage = 'c', as = 'heads'}",
            "stages.b reads 'c', which is no stage before it; those are a.",
        ),
    ],
)
def test_what_cannot_be_trained(toml: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "mine.toml"
    config.write_text(f"[data]\ntags = 'columns'\n{toml}", encoding="utf-8")
    assert spigot("train", config, "--out", tmp_path / "run") == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


# Three stages


def test_three_stages_with_another_estimator_on_every_wire(tmp_path: Path, capsys) -> None:
    run = tmp_path / "run"
    words = tiny("synthetic-three-stages", "syntax", "semantics", "sentiment")
    words += ["--training.pretrain", "0", "--training.warm-up", "0", "--semantics.pruning.learned", "false"]
    assert spigot("train", *words, "--system", "ste", "--estimator.eta", "0.5", "--out", run) == 0
    config = checkpoint.read_config(run)
    assert [(name, wire.estimator.name) for name, wire in config.wires] == [("semantics", "ste"), ("sentiment", "ste")]
    assert {value for name, value in config.by_name().items() if name.endswith(".estimator.eta")} == {0.5}
    out = capsys.readouterr().out
    assert out.index("Classes, per cent") < min(out.index("Graphs, per cent"), out.index("Trees, per cent"))
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    assert {"graphs", "trees", "labels"} <= set(scores["dev"])
    gold = tmp_path / "gold.jsonl"
    write(SPLITS.dev, gold)
    assert spigot("evaluate", run, gold, *FAST, "--json") == 0
    assert set(json.loads(capsys.readouterr().out)["scores"][str(gold)]) == {"trees", "graphs", "labels"}


# Two graphs


@pytest.fixture(scope="module")
def two_graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("two") / "run"
    words = tiny("synthetic-two-graphs", "dependencies", "semantics")
    words += ["--dependencies.pruning.learned", "false", "--semantics.pruning.learned", "false"]
    assert spigot("train", *words, "--out", run) == 0
    return run


def second(sentence: Sentence) -> Sentence:
    """A sentence with its tree as a second graph, as the experiment has it."""
    heads = enumerate(sentence.heads or (), 1)
    arcs = [Arc(head, word, "dep") for word, head in heads if head]
    bare = Sentence(sentence.forms, sentence.lemmas, sentence.tags, graph=sentence.graph)
    return bare.put("dependencies", Graph.of(arcs, tops=[1]))


def test_a_second_graph_is_scored_under_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = [second(sentence) for sentence in SPLITS.dev]
    half = [gold[0], *(sentence.put("dependencies", Graph()) for sentence in gold[1:])]
    for name, sentences in (("gold", gold), ("half", half)):
        write(sentences, tmp_path / f"{name}.jsonl")
    sides = [tmp_path / "gold.jsonl", tmp_path / "half.jsonl"]
    assert spigot("evaluate", *sides, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    scores, intervals = (record[name][str(sides[0])] for name in ("scores", "intervals"))
    assert set(scores) == {"graphs", "dependencies"}
    wanted = score_graphs(gold, half, "dependencies").labelled
    assert wanted.recall < 1
    assert scores["dependencies"]["labelled"]["recall"] == wanted.recall
    assert scores["graphs"]["labelled"]["f1"] == 1
    assert intervals["graphs"]["labelled"] == [1, 1]
    low, high = intervals["dependencies"]["labelled"]
    assert low <= wanted.f1 <= high
    assert spigot("evaluate", *sides) == 0
    out = capsys.readouterr().out
    assert "\ndependencies: Graphs: 6 sentences, per cent\n" in f"\n{out}"
    assert "\nGraphs: 6 sentences, per cent\n" in f"\n{out}"
    assert spigot("compare", *sides, sides[0], "--samples", "20", "--json") == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert set(results) == {"LF", "UF", "dependencies LF", "dependencies UF"}
    assert results["LF"]["difference"] == 0
    assert results["dependencies LF"]["difference"] == pytest.approx(1 - wanted.f1)
    # One that a file lacks is named, and one that a run finds is asked for.
    write([sentence.put("dependencies", None) for sentence in gold], tmp_path / "one.jsonl")
    assert spigot("evaluate", sides[0], tmp_path / "one.jsonl") == 0
    assert "Only the gold file has dependencies graphs; they were not scored." in capsys.readouterr().err


def test_a_second_graph_is_evaluated_drawn_and_parsed(two_graphs: Path, tmp_path: Path, capsys) -> None:
    gold, out = tmp_path / "gold.jsonl", tmp_path / "out.jsonl"
    write(map(second, SPLITS.dev), gold)
    assert spigot("evaluate", two_graphs, gold, *FAST, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert set(record["scores"][str(gold)]) == set(record["intervals"][str(gold)]) == {"graphs", "dependencies"}
    assert spigot("parse", two_graphs, gold, "-o", out, "--threads", "1") == 0
    assert all(s.graph is not None and s.get("dependencies") is not None for s in read(out))
    assert spigot("compare", two_graphs, out, gold, *FAST, "--json") == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert set(results) == {"LF", "UF", "dependencies LF", "dependencies UF"}
    assert all(result["difference"] == 0 for result in results.values())
    assert spigot("draw", gold, "--gold", out, "--json") == 0
    drawn = json.loads(capsys.readouterr().out)
    assert len(drawn["above"]) >= 1
    assert sum(arc["label"] == "dep" for arc in drawn["below"]) >= len(SPLITS.dev[0]) - 1


# Where to compute


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("abacus", "--device is abacus; it must be cpu, cuda, cuda:1, mps or auto."),
        ("cuda:x", "--device is cuda:x; it must be cpu, cuda, cuda:1, mps or auto."),
        ("meta", "--device is meta; it must be cpu, cuda, cuda:1, mps or auto."),
        ("cuda", "--device is cuda, and torch finds none here; use cpu."),
    ],
)
def test_devices_that_are_not_there(device: str, message: str, two_graphs: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    gold, run = tmp_path / "gold.jsonl", tmp_path / "run"
    write(SPLITS.dev, gold)
    for words in (
        ["train", "synthetic", "--out", run],
        ["evaluate", two_graphs, gold],
        ["parse", two_graphs, gold, "-o", tmp_path / "out.jsonl"],
        ["parse", two_graphs, gold, "-o", tmp_path / "out.jsonl"],
    ):
        assert spigot(*words, "--device", device) == 1
        assert capsys.readouterr().err == f"spigot: {message}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["gold.jsonl"]


@pytest.mark.parametrize(("device", "there"), [("cuda:1", 1), ("cuda:2", 2)])
def test_devices_of_which_there_are_not_so_many(device: str, there: int, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: there)
    message = f"--device is {device}, and torch finds {there} here, counted from 0; use cuda."
    with pytest.raises(ValueError, match=re.escape(message)):
        torch_device(device)
    assert torch_device(f"cuda:{there - 1}") == torch.device("cuda", there - 1)
    assert torch_device("auto") == torch.device("cuda")
    with pytest.raises(ValueError, match=r"^--device is cpu:1, and torch finds 1 here"):
        torch_device("cpu:1")


def test_the_fastest_device_may_be_chosen_by_itself(two_graphs: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    gold = tmp_path / "gold.jsonl"
    write(map(second, SPLITS.dev), gold)
    printed = []
    for device in ("auto", "cpu"):
        assert spigot("evaluate", two_graphs, gold, *FAST, "--device", device, "--json") == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
