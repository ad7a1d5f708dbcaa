"""Parsed texts: places, formats, other libraries, many texts at once."""

import json
import sys
from pathlib import Path

import pytest

import spigot
from spigot.annotations import Graphs, Trees
from spigot.config import make_config
from spigot.data.formats.conll import parse_conllu
from spigot.data.formats.files import Block
from spigot.data.sentence import Arc, Graph, Sentence
from spigot.data.text.spacing import Spacing
from spigot.documents import Doc, TextParser, load
from spigot.training import train
from tests.parsing import classifier, parser

WORDS = ("The", "poet", "did", "n't", "sleep", ".")
POET = Sentence(
    WORDS,
    lemmas=("the", "poet", "do", "not", "sleep", "."),
    tags=("DT", "NN", "VBD", "RB", "VB", "."),
    upos=("DET", "NOUN", "AUX", "PART", "VERB", "PUNCT"),
    heads=(2, 5, 5, 5, 0, 5),
    relations=("det", "nsubj", "aux", "advmod", "root", "punct"),
    graph=Graph.of([Arc(5, 2, "ARG0"), Arc(5, 4, "ARGM-NEG")], tops=[5]),
    label=1,
    source=Spacing("  ", (" ", " ", "", " ", "", "\n")),
)
DOC = Doc.of([POET, POET], [Graphs(), Trees(relations=("det",))], {1: "positive"})


def test_tokens_know_their_places() -> None:
    assert DOC.text == "  The poet didn't sleep.\n  The poet didn't sleep.\n"
    assert [DOC.text[token.start : token.end] for token in DOC.tokens] == list(WORDS + WORDS)
    assert [sentence.text for sentence in DOC] == ["The poet didn't sleep."] * 2
    assert DOC[1].start == DOC.text.rindex("The")
    assert DOC[1].end == len(DOC.text) - 1


def test_tokens_know_their_neighbours() -> None:
    sleep = DOC[0][4]
    assert sleep.head is None
    assert [(child.text, child.relation) for child in sleep.children] == [
        ("poet", "nsubj"),
        ("did", "aux"),
        ("n't", "advmod"),
        (".", "punct"),
    ]
    assert [(role, token.text) for role, token in sleep.arguments] == [("ARG0", "poet"), ("ARGM-NEG", "n't")]
    assert DOC[0][0].head is DOC[0][1]
    assert (sleep.lemma, sleep.tag, sleep.upos) == ("sleep", "VB", "VERB")
    assert DOC[0].label == "positive"
    assert Doc.of([Sentence(("Go",))])[0][0].head is None


def test_conllu_has_every_column() -> None:
    first = DOC.to_conllu(graph=True).split("\n\n")[0].split("\n")
    again = parse_conllu(Block(first))
    for field in ("forms", "lemmas", "tags", "upos", "heads", "relations", "graph"):
        assert getattr(again, field) == getattr(POET, field)
    assert "# text = The poet didn't sleep." in first
    assert "0:root" not in DOC.to_conllu()


def test_other_formats() -> None:
    assert DOC.to_sdp().count("ARGM-NEG") == 2
    found = json.loads(DOC.to_json())
    token = found["sentences"][1]["tokens"][1]
    assert found["text"][token["start"] : token["end"]] == token["text"] == "poet"
    assert (token["head"], token["relation"], found["sentences"][0]["label"]) == (5, "nsubj", "positive")
    assert found["sentences"][0]["graph"]["tops"] == [5]
    with pytest.raises(ValueError, match="no graphs"):
        Doc.of([Sentence(("Go",))]).to_sdp()


def test_networkx_has_words_and_arcs() -> None:
    pytest.importorskip("networkx")
    graph = DOC.to_networkx()
    assert len(graph) == 12
    assert graph.edges[(1, 5), (1, 2), "tree"]["label"] == "nsubj"
    assert graph.edges[(2, 5), (2, 4), "graph ARGM-NEG"]["label"] == "ARGM-NEG"


def test_pandas_has_a_row_for_each_word() -> None:
    pytest.importorskip("pandas")
    table = DOC.to_pandas()
    assert list(table.text) == list(WORDS + WORDS)
    assert list(table["head"])[:6] == list(POET.heads or ())


def test_spacy_has_the_same_words() -> None:
    spacy = pytest.importorskip("spacy")
    made = DOC.to_spacy(spacy.blank("en").vocab)
    assert [token.text for token in made] == list(WORDS + WORDS)
    assert [token.dep_ for token in made][:2] == ["det", "nsubj"]
    assert len(list(made.sents)) == 2


@pytest.mark.parametrize(("module", "method"), [("networkx", "to_networkx"), ("pandas", "to_pandas")])
def test_what_is_not_installed_is_said(module: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"{method} needs {module}, which is not installed; pip install {module}"):
        getattr(DOC, method)()


def test_notebooks_get_a_picture_for_light_and_dark() -> None:
    picture = DOC._repr_html_()
    assert picture.count("<svg") == 2
    assert "prefers-color-scheme:dark" in picture
    assert 'data-label="nsubj"' in picture
    assert "positive" in picture


def test_a_system_reads_text_as_the_commands_do() -> None:
    whole = parser()
    nlp = TextParser(whole)
    text = "The cat didn't see it. “Often”, she said!"
    doc = nlp(text)
    assert doc.text == text
    assert [s.found for s in doc] == list(whole.parse_text(text))
    assert len(repr(nlp)) < 200
    assert nlp.foreign(doc).new > 0
    docs = list(nlp.pipe([text, "", "Cats.", text], batch=3))
    assert [doc.text for doc in docs] == [text, "", "Cats.", text]
    assert docs[3][1].tree == doc[1].tree
    with pytest.raises(TypeError, match="many texts"):
        nlp.pipe("one text")
    with pytest.raises(ValueError, match="comes from none"):
        nlp.pipe([text], processes=2)
    with pytest.raises(TypeError, match="use parse_text"):
        next(whole.parse("text"))  # pyright: ignore[reportArgumentType]


def test_classes_have_names() -> None:
    assert classifier().class_names == {0: "0", 1: "1"}
    assert classifier(data__source="synthetic").class_names == {0: "negative", 1: "positive"}
    assert parser().class_names == {}


@pytest.mark.slow
def test_processes_answer_in_order(tmp_path: Path) -> None:
    config = make_config(
        {
            "data": {"source": "synthetic", "synthetic": {"train": 6, "dev": 2, "test": 2}, "tags": "columns"},
            "stages": {"syntax": {"annotation": "trees", "labelled": True, "mlp": 4, "encoder": {"hidden": 4}}},
            "training": {"epochs": 1, "batch": 3},
        }
    )
    list(train(config, tmp_path / "run", tests=False))
    nlp = load(tmp_path / "run")
    assert spigot.load is load
    texts = [f"The judge saw {word} dogs." for word in ("two", "ten", "many", "no", "few")]
    alone = [doc.to_json() for doc in nlp.pipe(texts)]
    assert [doc.to_json() for doc in nlp.pipe(texts, processes=2, batch=1)] == alone
