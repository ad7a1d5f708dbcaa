"""`spigot tag`: words in, tags and lemmas out."""

import json
import re
from pathlib import Path

import pytest

from spigot_nlp import cli
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Arc, Graph, Sentence

TRAINING = [
    Sentence(("The", "dog", "barked"), ("the", "dog", "bark"), ("DT", "NN", "VBD"), heads=(2, 3, 0)),
    Sentence(("A", "cat", "purred"), ("a", "cat", "purr"), ("DT", "NN", "VBD"), heads=(2, 3, 0)),
    Sentence(("The", "cat", "slept"), ("the", "cat", "sleep"), ("DT", "NN", "VBD"), heads=(2, 3, 0)),
    Sentence(("A", "dog", "slept"), ("a", "dog", "sleep"), ("DT", "NN", "VBD"), heads=(2, 3, 0)),
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "train.conllu"
    write(TRAINING, path)
    return path


def test_train_tag_save_and_tag_again(corpus, tmp_path, capsys):
    text, out, model = tmp_path / "text.conllu", tmp_path / "out.conllu", tmp_path / "tagger.safetensors"
    write([Sentence(("The", "cat", "barked"), heads=(2, 3, 0))], text)
    assert cli.main(["tag", str(text), "-o", str(out), "--train", str(corpus), "--save", str(model)]) == 0
    assert capsys.readouterr() == ("Tagged 1 sentences, 3 words.\n", "")
    (tagged,) = read(out)
    assert tagged.tags == ("DT", "NN", "VBD")
    assert tagged.lemmas == ("the", "cat", "bark")
    assert tagged.heads == (2, 3, 0)
    again = tmp_path / "again.conllu"
    assert cli.main(["tag", str(text), "--out", str(again), "--model", str(model)]) == 0
    assert again.read_bytes() == out.read_bytes()


def test_accuracy_where_the_file_had_tags(corpus, tmp_path, capsys):
    words = ["tag", str(corpus), "-o", str(tmp_path / "out.conllu"), "--train", str(corpus)]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("Tagged 4 sentences, 12 words; as in the file, per cent\n")
    assert re.search(r"^ *tags +100\.00$", out, re.MULTILINE)
    wrong = tmp_path / "wrong.conllu"
    write([Sentence(("The", "dog", "slept"), ("THE", "dog", "x"), ("DT", "JJ", "VBD"))], wrong)
    assert cli.main(["tag", str(wrong), *words[2:], "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report == {"sentences": 1, "words": 3, "tags": 2 / 3, "lemmas": 2 / 3, "skipped": 0}


def test_graphs_survive(corpus, tmp_path):
    text, out = tmp_path / "text.sdp", tmp_path / "out.sdp"
    graph = Graph.of([Arc(2, 1, "ARG1")], tops=[2])
    write([Sentence(("dog", "barked"), ("?", "?"), ("?", "?"), graph=graph)], text)
    assert cli.main(["tag", str(text), "-o", str(out), "--train", str(corpus)]) == 0
    (tagged,) = read(out)
    assert tagged.graph is not None
    assert (tagged.graph.arcs, tagged.graph.tops) == (graph.arcs, graph.tops)
    assert tagged.lemmas == ("dog", "bark")
    assert "?" not in (tagged.tags or "?")


def test_jackknife_never_tags_what_it_has_seen(tmp_path, capsys):
    """A word whose only occurrence is in its own fold cannot get a tag that occurs nowhere else."""
    text, out, model = tmp_path / "train.conllu", tmp_path / "out.conllu", tmp_path / "tagger.safetensors"
    write([*TRAINING, Sentence(("Ouch", "!"), ("ouch", "!"), ("UH", "."))], text)
    words = ["tag", str(text), "-o", str(out), "--jackknife", "--folds", "5", "--save", str(model), "--json"]
    assert cli.main(words) == 0
    assert json.loads(capsys.readouterr().out)["sentences"] == 5
    assert "UH" not in {tag for sentence in read(out) for tag in sentence.tags or ()}
    # The tagger that is kept has seen everything.
    assert cli.main(["tag", str(text), "-o", str(out), "--model", str(model)]) == 0
    assert [sentence.tags for sentence in read(out)][-1] == ("UH", ".")


def test_a_file_can_replace_itself(corpus):
    before = [sentence.heads for sentence in read(corpus)]
    assert cli.main(["tag", str(corpus), "-o", str(corpus), "--train", str(corpus)]) == 0
    assert [sentence.heads for sentence in read(corpus)] == before


def test_bad_sentences(corpus, tmp_path, capsys):
    out = tmp_path / "out.conllu"
    corpus.write_text("1\tonly\ttwo\n\n" + corpus.read_text(encoding="utf-8"), encoding="utf-8")
    words = ["tag", str(corpus), "-o", str(out), "--jackknife", "--folds", "2", "--json"]
    assert cli.main(words) == 1
    assert capsys.readouterr().err.startswith(f"spigot: {corpus}:1: ")
    assert not out.exists()
    assert cli.main([*words, "--skip-bad"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["skipped"] == 1
    assert printed.err.startswith(f"Skipped 1 bad sentence; the first: {corpus}:1: ")
    assert len(list(read(out))) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "there is no tagger; give one of --model"),
        (["--model", "m", "--jackknife"], "--model and --jackknife exclude each other"),
        (["--model", "m", "--save", "s"], "--save s has nothing to save"),
        (["--model", "no-such-model"], "no-such-model"),
        (["--jackknife", "--folds", "1"], "folds is 1"),
        (["--jackknife", "--save", "no/such/folder/m"], "the folder no/such/folder does not exist"),
        (["--train", "no-such.conllu"], "no-such.conllu: no such data file."),
    ],
)
def test_failures_leave_nothing_behind(options, message, corpus, tmp_path, capsys):
    out = tmp_path / "out.conllu"
    assert cli.main(["tag", str(corpus), "-o", str(out), *options]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("spigot: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not out.exists()


def test_out_is_needed(corpus, capsys):
    assert cli.main(["tag", str(corpus), "--jackknife"]) == 2
    assert "--out" in capsys.readouterr().err
