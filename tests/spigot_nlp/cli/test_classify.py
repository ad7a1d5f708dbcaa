"""The commands on runs of classifiers: classes, and the structures they were found with."""

import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.cli.scores import print_summary
from spigot_nlp.corpora.synthetic import splits
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.evaluation import score_graphs, score_trees
from spigot_nlp.evaluation.labels import score_labels
from spigot_nlp.models import checkpoint
from tests.spigot_nlp.parsing import load

GOLD = splits(train=300, dev=12).dev
PLAIN = [Sentence(sentence.forms) for sentence in GOLD]
LINES = ["--one-per-line", "--tokenised"]
"""As the sentences are in a file of text."""
FAST = ["--threads", "1", "--samples", "50"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same sentences in several formats."""
    folder = tmp_path_factory.mktemp("gold")
    write([Sentence(sentence.forms, label=sentence.label) for sentence in GOLD], folder / "gold.tsv")
    write(PLAIN, folder / "gold.txt")
    write([replace(sentence, heads=None, relations=None, label=None) for sentence in GOLD], folder / "gold.sdp")
    write([replace(sentence, graph=None, label=None) for sentence in GOLD], folder / "gold.conllu")
    write([replace(sentence, source=None) for sentence in GOLD], folder / "gold.jsonl")
    trees = (f"({4 * (s.label or 0)} {' '.join(f'(2 {form})' for form in s.forms)})\n" for s in GOLD)
    (folder / "sst.txt").write_text("".join(trees), encoding="utf-8")
    return folder


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


def predicted(by: Path, source: Path, out: Path, *options: str) -> list[Sentence]:
    lines = LINES if source.name == "gold.txt" else []
    assert run("parse", by, source, "-o", out, *lines, "--precision", "float32", "--threads", "1", *options) == 0
    return list(read(out))


# parse


def test_parse_text(classifier, folder, tmp_path, capsys):
    """Text in; class, probability and graph out."""
    wanted = list(load(classifier).pipe(PLAIN))
    found = predicted(classifier, folder / "gold.txt", tmp_path / "out.jsonl")
    assert [replace(sentence, source=None, id="") for sentence in found] == wanted
    assert all(sentence.label is not None and sentence.probabilities is not None for sentence in found)
    assert all(sentence.tags is not None for sentence in found)
    assert any(sentence.graph is not None and sentence.graph.arcs for sentence in found)
    assert re.search(r"Classified 12 sentences, \d+ tokens, in \d+\.\d s: [\d,]+ tokens/s\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("name", "options"), [("gold.tsv", ()), ("sst.txt", ("--format", "sst-binary")), ("gold.jsonl", ())]
)
def test_parse_looks_at_words_only(name, options, classifier, folder, tmp_path):
    straight = predicted(classifier, folder / "gold.txt", tmp_path / "a.jsonl")
    found = predicted(classifier, folder / name, tmp_path / "b.jsonl", *options)
    for field in ("forms", "label", "probabilities", "graph", "heads"):
        assert [getattr(s, field) for s in found] == [getattr(s, field) for s in straight], field


def test_parse_keeps_nothing_that_it_did_not_find(bilstm, folder, tmp_path):
    found = predicted(bilstm, folder / "gold.jsonl", tmp_path / "out.jsonl")
    assert all(sentence.heads is None and sentence.graph is None for sentence in found)
    assert all(sentence.probabilities is not None for sentence in found)


def test_parse_by_the_name_of_the_file(classifier, latent, folder, tmp_path):
    everything = predicted(classifier, folder / "gold.txt", tmp_path / "out.jsonl")
    labelled = predicted(classifier, folder / "gold.txt", tmp_path / "out.tsv.gz")
    assert [(s.forms, s.label) for s in labelled] == [(s.forms, s.label) for s in everything]
    graphs = predicted(classifier, folder / "gold.txt", tmp_path / "out.sdp")
    assert [s.graph and s.graph.arcs for s in graphs] == [s.graph and s.graph.arcs for s in everything]
    # A name that says nothing, and a suffix that asks for the format of the input.
    assert run("parse", classifier, folder / "gold.conllu", "-o", tmp_path / "out", "--threads", "1") == 0
    assert [s.label is not None for s in read(tmp_path / "out", "jsonl")] == [True] * 12
    trees = predicted(latent, folder / "gold.conllu", tmp_path / "out.conllu")
    wanted = load(latent).pipe(GOLD)
    assert [s.heads for s in trees] == [s.heads for s in wanted]
    assert all(s.relations is None for s in trees)


class Standard:
    """A standard stream whose bytes can be set and seen."""

    def __init__(self, data: bytes = b"", keyboard: bool = False) -> None:
        self.buffer, self.keyboard = io.BytesIO(data), keyboard

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return self.keyboard


@pytest.mark.parametrize("keyboard", [False, True])
def test_parse_a_piped_sentence(keyboard, classifier, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", Standard(b"a fine film.\n", keyboard))
    monkeypatch.setattr(sys, "stdout", stdout := Standard())
    assert run("parse", classifier, "--threads", "1") == 0
    monkeypatch.undo()
    err = capsys.readouterr().err
    assert re.search(r"^Classified 1 sentence, 4 tokens, in ", err, re.MULTILINE)
    assert ("end with Ctrl-D" in err) == keyboard
    (line,) = stdout.buffer.getvalue().decode().splitlines()
    record = json.loads(line)
    assert record["forms"] == ["a", "fine", "film", "."]
    assert record["label"] in (0, 1)
    assert sum(record["probabilities"]) == pytest.approx(1)
    assert max(record["probabilities"]) == record["probabilities"][record["label"]]
    assert "arcs" in record["graph"]


def test_parse_failures(classifier, latent, bilstm, folder, tmp_path, capsys):
    text = folder / "gold.txt"
    for words, message in (
        ([classifier, text, "-o", tmp_path / "o.conllu"], "finds no trees, so there are none to write"),
        ([bilstm, text, "-o", tmp_path / "o.sdp"], "finds no graphs, so there are none to write"),
        ([latent, text, "-o", tmp_path / "o.sdp"], "finds no graphs, so there are none to write"),
        ([bilstm, text, "-o", tmp_path / "o", "--to", "sst"], "the format sst has no place for what"),
        ([bilstm, text, "-o", tmp_path / "o", "--format", "latin"], "--format is latin; it must be"),
        ([bilstm, text, folder / "gold.sdp", "-o", tmp_path / "o"], "parse one kind at a time"),
    ):
        assert message in failure(capsys, "parse", *words)
    assert not list(tmp_path.iterdir())


def test_parsers_take_text(trained, folder, tmp_path, capsys):
    found = predicted(trained, folder / "gold.txt", tmp_path / "out.jsonl")
    assert all(s.heads is not None and s.graph is not None and s.label is None for s in found)
    assert "has no tagger" in capsys.readouterr().err
    assert [s.graph for s in predicted(trained, folder / "gold.txt", tmp_path / "out.conllu", "--graph")] != []


def test_parse_with_given_trees(chains, gold_reader, folder, tmp_path, capsys):
    """A classifier that reads chains shows them; one that reads gold trees needs some, and has not found them."""
    found = predicted(chains, folder / "gold.txt", tmp_path / "chains.jsonl")
    for sentence in found:
        n = len(sentence)
        assert sentence.heads in ((*range(2, n + 1), 0), tuple(range(n)))  # chains
    gold = predicted(gold_reader, folder / "gold.conllu", tmp_path / "gold.jsonl")
    assert all(sentence.heads is None and sentence.probabilities is not None for sentence in gold)
    capsys.readouterr()
    words = ["parse", gold_reader, folder / "gold.conllu", "-o", tmp_path / "gold.conllu", "--threads", "1"]
    assert "finds no trees, so there are none to write" in failure(capsys, *words)
    out = tmp_path / "none.jsonl"
    assert "plain text has none" in failure(capsys, "parse", gold_reader, folder / "gold.txt", "-o", out)
    assert run("parse", gold_reader, folder / "gold.tsv", "-o", out, "--threads", "1") == 1
    assert "needs trees" in capsys.readouterr().err


# evaluate


def test_evaluate_classes(classifier, folder, capsys):
    files = [folder / "gold.tsv", folder / "gold.sdp"]
    assert run("evaluate", classifier, *files, "--json", *FAST) == 0
    record = json.loads(capsys.readouterr().out)
    answers = list(load(classifier).pipe(PLAIN))
    labels = score_labels(GOLD, answers)
    found = record["scores"][str(files[0])]
    assert found["labels"]["accuracy"] == labels.accuracy
    assert found["labels"]["confusion"] == labels.confusion
    assert not {"trees", "graphs"} & found.keys()
    low, high = record["intervals"][str(files[0])]["labels"]["accuracy"]
    assert 0 <= low <= labels.accuracy <= high <= 1
    # Its parser is scored where a file has graphs.
    found = record["scores"][str(files[1])]
    assert found["graphs"]["labelled"] == pytest.approx(vars(score_graphs(GOLD, answers).labelled))
    assert "labels" not in found


def test_evaluate_prints_classes(classifier, folder, capsys):
    assert run("evaluate", classifier, folder / "sst.txt", "--format", "sst-binary", "--labels", *FAST) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ *all sentences +\d+\.\d\d +\d+\.\d\d to \d+\.\d\d$", out, re.MULTILINE)
    assert re.search(r"^ *[01]( +\d+){2}( +\d+\.\d\d){3}$", out, re.MULTILINE)
    assert "taken for" in out


def test_evaluate_everything_at_once(latent, folder, capsys):
    assert run("evaluate", latent, folder / "gold.jsonl", "--json", *FAST) == 0
    found = json.loads(capsys.readouterr().out)["scores"][str(folder / "gold.jsonl")]
    answers = list(load(latent).pipe(GOLD))
    assert found["trees"]["uas"] == score_trees(GOLD, answers).uas
    assert found["labels"]["accuracy"] == score_labels(GOLD, answers).accuracy
    assert "graphs" not in found  # the gold ones are not its own


def test_given_trees_are_not_scored(chains, gold_reader, folder, capsys):
    for reader in (chains, gold_reader):
        assert run("evaluate", reader, folder / "gold.jsonl", "--json", *FAST) == 0
        found = json.loads(capsys.readouterr().out)["scores"][str(folder / "gold.jsonl")]
        assert not {"trees", "graphs"} & found.keys()
        assert found["labels"]["sentences"] == 12


def test_evaluate_failures(classifier, bilstm, trained, folder, tmp_path, capsys):
    five = tmp_path / "five.tsv"
    five.write_text("3\tWell well .\n1\tOh .\n")
    sst = tmp_path / "five.txt"
    sst.write_text("(3 (2 Well) (3 well))\n")
    for words, message in (
        ([classifier, folder / "sst.txt"], "give the format 'sst-binary' or 'sst', on the command line --format"),
        ([classifier, folder / "gold.txt"], "has neither trees nor graphs nor classes"),
        ([classifier, folder / "gold.conllu"], "finds graphs or classes, and"),
        ([bilstm, folder / "gold.sdp"], "gold.sdp has graphs only; give a file with classes."),
        ([trained, folder / "gold.tsv"], "gold.tsv has classes only; give a file with trees or graphs."),
        ([classifier, five], "has sentences of class 3, and"),
        ([classifier, five], "knows only 0 and 1; give a file with the same classes."),
        ([classifier, sst, "--format", "sst"], "read it with --format sst-binary."),
    ):
        assert message in failure(capsys, "evaluate", *words, *FAST)


# compare


def test_compare_classifiers(classifier, bilstm, folder, tmp_path, capsys):
    assert run("compare", classifier, bilstm, folder / "gold.tsv", "--json", *FAST) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert set(results) == {"accuracy"}
    sides = [score_labels(GOLD, list(load(side).pipe(PLAIN))).accuracy for side in (classifier, bilstm)]
    assert [results["accuracy"]["first"], results["accuracy"]["second"]] == sides
    # A run and its own predictions, with a format that is not theirs.
    out = tmp_path / "out.jsonl"
    predicted(classifier, folder / "gold.txt", out)
    assert run("compare", classifier, out, folder / "sst.txt", "--format", "sst-binary", *FAST) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^ *accuracy( +\d+\.\d\d){2} +\+0\.00 +\+0\.00 to \+0\.00 +1\.0000$", shown, re.MULTILINE)
    assert "LF" not in shown


def test_compare_what_both_find(classifier, latent, bilstm, folder, tmp_path, capsys):
    assert run("compare", classifier, classifier, folder / "gold.jsonl", "--json", *FAST) == 0
    assert set(json.loads(capsys.readouterr().out)["results"]) == {"accuracy", "LF", "UF"}
    assert run("compare", classifier, latent, folder / "gold.jsonl", "--json", *FAST) == 0
    assert set(json.loads(capsys.readouterr().out)["results"]) == {"accuracy"}
    message = failure(capsys, "compare", classifier, bilstm, folder / "gold.sdp", *FAST)
    assert "the gold file has graphs, the first system graphs and classes, the second classes" in message
    other = tmp_path / "other.tsv"
    other.write_text("7\tOh .\n")
    assert "has sentences of class 7" in failure(capsys, "compare", classifier, bilstm, other, *FAST)


# train


def test_a_finished_run_of_a_classifier(classifier, capsys):
    scores = json.loads((classifier / "scores.json").read_text())
    print_summary(scores, checkpoint.read_config(classifier))
    out = capsys.readouterr().out
    assert out.index("Classes, per cent") < out.index("Graphs, per cent")
    row = rf"^ *ood +8 +{100 * scores['ood']['labels']['accuracy']:.2f}$"
    assert re.search(row, out, re.MULTILINE)


# tag


def test_tag_text(folder, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    words = ["tag", folder / "sst.txt", "--train", folder / "gold.conllu", "--format", "sst-binary"]
    assert run(*words, "-o", out) == 0
    tagged = list(read(out))
    assert all(sentence.tags is not None and sentence.label is not None for sentence in tagged)
    capsys.readouterr()
    assert "labelled has no place for tags" in failure(capsys, *words, "-o", tmp_path / "out.tsv")
    assert "text has no place for tags" in failure(
        capsys, "tag", folder / "gold.txt", "--train", folder / "gold.conllu", "-o", tmp_path / "out.txt"
    )


def test_a_graph_beside_a_class_survives(tmp_path):
    """What parse writes is what score reads."""
    sentence = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]), label=1)
    write([sentence], tmp_path / "a.jsonl")
    assert run("evaluate", tmp_path / "a.jsonl", tmp_path / "a.jsonl") == 0


def test_conllu_from_other_formats_has_names_texts_and_classes_that_can_be_scored(tmp_path, capsys):
    gold = [Sentence(("A", "fine", "film", "."), label=1), Sentence(("How", "dull"), label=0)] * 300
    write(gold, tmp_path / "gold.tsv")
    found = predicted(Path("en-sentiment"), tmp_path / "gold.tsv", tmp_path / "found.conllu")
    assert [sentence.id for sentence in found] == [str(k) for k in range(1, 601)]  # across batches
    comments = (tmp_path / "found.conllu").read_text(encoding="utf-8").split("\n")[1:4]
    assert comments == ["# text = A fine film .", "# label = 1", "# class = positive"]
    assert run("evaluate", tmp_path / "gold.tsv", tmp_path / "found.conllu", "--json") == 0
    right = sum(a.label == b.label for a, b in zip(gold, found, strict=True)) / 600
    scored = json.loads(capsys.readouterr().out)["scores"][str(tmp_path / "gold.tsv")]["labels"]["accuracy"]
    assert scored == pytest.approx(right)
