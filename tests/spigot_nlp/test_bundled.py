"""The models that come with spigot: they are there, small, and good enough to be worth it."""

import json
import subprocess
import sys
import warnings
import zlib
from dataclasses import replace
from inspect import signature
from pathlib import Path

import pytest

import spigot_nlp
from spigot_nlp import bundled, cli
from spigot_nlp.bundled import DEFAULT, Shadowed, bundled_models, card, is_model, run_folder
from spigot_nlp.cli.parse import parse
from spigot_nlp.corpora_ray import parse_corpus
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.data.tagging.lemmas import Lemmatiser
from spigot_nlp.encoders import READING
from spigot_nlp.models import Parser, checkpoint
from spigot_nlp.serve import Settings, open_systems
from spigot_nlp.spacy import SpacyComponent
from spigot_nlp.training.packing import pack

TEXT = "The old tailor gave the poet a letter yesterday. She didn't read it."


@pytest.fixture(scope="module")
def english() -> Parser:
    return spigot_nlp.load()


def test_all_models_together_fit_into_twelve_megabytes() -> None:
    assert {"en", "en-sentiment"} <= bundled_models().keys()
    files = [path for folder in bundled_models().values() for path in folder.iterdir()]
    assert sum(len(zlib.compress(path.read_bytes())) for path in files) < 12e6  # as in the wheel


def test_text_is_read_in_one_precision_by_all() -> None:
    """So that commands, shards, the page and Python have one answer."""
    asked = (spigot_nlp.load, parse, open_systems, parse_corpus)
    usual = {signature(function).parameters["precision"].default for function in asked}
    assert {*usual, Settings().precision} == {READING}


@pytest.mark.parametrize("name", bundled_models())
def test_a_card_says_what_one_must_know(name: str) -> None:
    known = card(name)
    assert known.about.endswith(".")
    assert known.licence.startswith("CC BY")
    assert known.data
    assert known.limits
    assert known.scores
    assert {"command", "commit"} <= known.training.keys()


def test_english_knows_its_own_language(english: Parser) -> None:
    first, second = english(TEXT)
    assert [token.relation for token in first][:3] == ["det", "amod", "nsubj"]
    assert first[3].text == "gave"
    assert first[3].head is None
    assert {(arc.predicate, arc.argument, arc.role) for arc in first.graph.arcs} >= {(4, 3, "ARG0"), (4, 9, "ARGM-TMP")}  # pyright: ignore
    assert [token.upos for token in second] == ["PRON", "AUX", "PART", "VERB", "PRON", "PUNCT"]
    assert [token.lemma for token in second][:4] == ["she", "do", "not", "read"]


def test_moods_have_names() -> None:
    nlp = spigot_nlp.load("en-sentiment")
    found = [nlp(text)[0].label for text in ("A warm, funny and wonderful film.", "A dull, stupid and boring mess.")]
    assert found == ["positive", "negative"]


def test_both_models_have_the_same_parser(english: Parser) -> None:
    more = spigot_nlp.load("en-sentiment")
    assert [[(t.head and t.head.text, t.relation) for t in s] for s in more(TEXT)] == [
        [(t.head and t.head.text, t.relation) for t in s] for s in english(TEXT)
    ]


def test_commands_use_it_where_no_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "story.txt"
    text.write_text(TEXT, encoding="utf-8")
    assert cli.main(["parse", str(text), "-o", str(tmp_path / "story.conllu"), "--threads", "1"]) == 0
    named = ["parse", DEFAULT, str(text), "-o", str(tmp_path / "named.conllu"), "--threads", "1"]
    assert cli.main(named) == 0
    assert (tmp_path / "story.conllu").read_bytes() == (tmp_path / "named.conllu").read_bytes()
    sentence = next(read(tmp_path / "story.conllu"))
    assert sentence.relations is not None
    assert sentence.upos is not None
    assert sentence.tags is not None
    assert cli.main(["draw", "--text", TEXT, "--sentence", "2", "--to", "svg"]) == 0
    assert "nsubj" in capsys.readouterr().out


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models"]) == 0
    assert "en-sentiment" in capsys.readouterr().out
    assert cli.main(["models", "en", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["licence"] == card("en").licence
    assert cli.main(["models", "en"]) == 0
    assert "must not" in capsys.readouterr().out
    assert cli.main(["models", "latin"]) == 1
    assert "no model called latin comes with spigot; there are en, en-sentiment." in capsys.readouterr().err


def test_a_folder_of_the_same_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_folder("en") == bundled_models()["en"]
    (tmp_path / "en").mkdir()
    assert is_model("en")  # an empty folder is no run
    checkpoint.write_config(tmp_path / "en" / "config.toml", checkpoint.read_config(bundled_models()["en"]))
    with pytest.warns(Shadowed, match="the folder is used"):
        assert run_folder("en") == Path("en")
    assert run_folder("./en") == Path("en")


def test_a_folder_of_the_same_name_is_not_used_where_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en").mkdir()
    checkpoint.write_config(tmp_path / "en" / "config.toml", checkpoint.read_config(bundled_models()["en"]))
    assert spigot_nlp.load().folder == spigot_nlp.load("en-sentiment").folder.parent / "en"  # pyright: ignore
    assert SpacyComponent(DEFAULT).parser.folder == bundled_models()["en"]
    (tmp_path / "note.txt").write_text(TEXT, encoding="utf-8")
    assert cli.main(["parse", "note.txt", "-o", "note.conllu"]) == 0
    assert cli.main(["draw", "--text", "It rained."]) == 0
    assert Settings().runs == (bundled_models()["en"],)
    capsys.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("always", Shadowed)
        assert cli.main(["parse", "en", "note.txt"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(
        "spigot: en is a run folder here and the name of a model that comes with spigot; the folder"
    )
    assert "vocab.json" in said[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["parse", "nowhere", "text.txt"], "nowhere is no run folder, no model that comes with spigot (en"),
        (["parse", "."], "is no run folder: it has no config.toml"),
        (["draw", "--text", "It rained.", "--sentence", "2"], "the text has 1 sentence; give a number from 1"),
        (["draw"], "give either a file or --text"),
        (["draw", "--text", "It rained.", "--gold", "a.sdp"], "--trees, --gold and --before go with a file"),
        (
            ["evaluate", "en", "--tests"],
            "en is a packed model, without test sets of its own; name files to evaluate it on.",
        ),
        (["train", "--resume", "en"], "there is no run to resume"),
    ],
)
def test_what_is_said(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == 1
    assert said in capsys.readouterr().err


def test_evaluation_scores_relations_and_tags_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = tmp_path / "gold.conllu"
    text = tmp_path / "story.txt"
    text.write_text(TEXT, encoding="utf-8")
    assert cli.main(["parse", str(text), "-o", str(gold), "--threads", "1"]) == 0  # its own answers are all right
    gold.write_text(gold.read_text(encoding="utf-8").replace("nsubj", "csubj", 1), encoding="utf-8")  # but for one
    assert cli.main(["evaluate", "en", str(gold), "--json", "--samples", "10", "--threads", "1"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"][str(gold)]
    assert scores["trees"]["uas"] == 1
    assert scores["trees"]["las"] == pytest.approx(15 / 16)
    assert scores["upos"]["accuracy"] == 1


def test_a_copy_of_sentiment_needs_no_other_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = pack("en-sentiment", tmp_path / "copy")
    monkeypatch.setattr(bundled, "bundled_models", dict)
    (found,) = spigot_nlp.load(copy)("A warm and wonderful film.")
    assert found.label == "positive"
    assert [token.lemma for token in found][:2] == ["a", "warm"]


def test_lemmas_go_by_the_tag_and_what_is_read_stays(english: Parser) -> None:
    (doc,) = english("She was thinking of playing, and saw him voting.")
    assert [token.lemma for token in doc] == ["she", "be", "think", "of", "play", ",", "and", "see", "he", "vote", "."]
    (read,) = english.read([Sentence(tuple(token.text for token in doc))])
    (plain,) = Lemmatiser().lemmatise([replace(read, lemmas=None)])
    assert read.lemmas == plain.lemmas  # by which its vectors were learned
    assert "playe" in (read.lemmas or ())


def test_the_dictionary_is_not_loaded_for_words_that_are_known() -> None:
    code = (
        "import sys, spigot_nlp; spigot_nlp.load()('The geese were thinking.'); assert 'simplemma' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_json_lines_have_the_names_of_classes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A warm, funny and wonderful film.\n", encoding="utf-8")
    assert cli.main(["parse", "en-sentiment", str(tmp_path / "a.txt"), "-o", str(tmp_path / "a.jsonl")]) == 0
    line = json.loads((tmp_path / "a.jsonl").read_text(encoding="utf-8"))
    assert (line["label"], line["class"]) == (1, "positive")
    again = ["parse", "en-sentiment", str(tmp_path / "a.jsonl"), "-o", str(tmp_path / "b.jsonl")]
    assert cli.main(again) == 0
    assert json.loads((tmp_path / "b.jsonl").read_text(encoding="utf-8"))["class"] == "positive"


def test_all_sentences_of_a_text_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["draw", "--text", TEXT]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert "tailor" in first
    assert "read" in second
    assert cli.main(["draw", "--text", TEXT, "-o", str(tmp_path / "both.tex")]) == 0
    assert (tmp_path / "both.tex").read_text(encoding="utf-8").count("begin{tikzpicture}") == 2
    capsys.readouterr()
    assert cli.main(["draw", "--text", TEXT, "-o", str(tmp_path / "one.svg")]) == 0
    assert "Drew the first of 2 sentences; --sentence 2 draws the second" in capsys.readouterr().err
    assert "tailor" in (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert cli.main(["draw", "--text", "  "]) == 1
    assert "the text has no words" in capsys.readouterr().err
