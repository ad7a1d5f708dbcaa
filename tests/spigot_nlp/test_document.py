"""Parsed texts: places, formats, other libraries, many texts at once."""

import copy
import itertools
import json
import multiprocessing
import pickle
import sys
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import spigot_nlp
from spigot_nlp.annotations import Graphs, Trees
from spigot_nlp.config import make_config
from spigot_nlp.data.formats.conll import parse_conllu, render_conllu
from spigot_nlp.data.formats.files import Block
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.data.text.spacing import Spacing
from spigot_nlp.document import Doc
from spigot_nlp.models import Parser
from spigot_nlp.training import train
from tests.spigot_nlp.parsing import classifier, parser

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
SMALL = parser()
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


def test_tables_and_columns_have_classes_by_name() -> None:
    found = [Sentence(("Great", "!"), heads=(0, 1), label=1), Sentence(("Dull",), heads=(0,), label=7)]
    doc = Doc.of(found, class_names={0: "negative", 1: "positive"})
    said = [line for line in doc.to_conllu().split("\n") if line.startswith("#")]
    assert said == [
        "# sent_id = 1",
        "# text = Great !",
        "# label = 1",
        "# class = positive",
        "# sent_id = 2",
        "# text = Dull",
        "# label = 7",
    ]
    row = "\t".join(("1", "Great", *"________"))
    again = parse_conllu(Block([*said[:4], row]))
    assert again.label == 1
    assert render_conllu(again)[0].split("\n") == [*said[:4], row]  # as it came
    assert render_conllu(replace(again, label=0))[0].split("\n") == [*said[:2], "# label = 0", row]
    assert render_conllu(again.without_annotation())[0].split("\n") == [*said[:2], row]
    other = ["# label = of a bottle", "# class = fiction", row]
    assert parse_conllu(Block(other)).label is None
    assert render_conllu(parse_conllu(Block(other)))[0].split("\n") == other
    assert render_conllu(replace(parse_conllu(Block(other)), label=2))[0].split("\n") == [
        *other[:2],
        "# label = 2",
        row,
    ]
    odd = Doc.of([Sentence(("Great",), label=1)], class_names={1: "very\ngood"})
    assert "# class = very good\n" in odd.to_conllu()
    pytest.importorskip("pandas")
    assert list(doc.to_pandas()["label"]) == ["positive", "positive", "7"]


def test_other_formats() -> None:
    assert DOC.to_sdp().count("ARGM-NEG") == 2
    found = json.loads(DOC.to_json())
    token = found["sentences"][1]["tokens"][1]
    assert found["text"][token["start"] : token["end"]] == token["text"] == "poet"
    assert (token["head"], token["relation"], found["sentences"][0]["label"]) == (5, "nsubj", "positive")
    assert found["sentences"][0]["graph"]["tops"] == [5]
    with pytest.raises(ValueError, match="no graphs"):
        Doc.of([Sentence(("Go",))]).to_sdp()


def test_one_of_several_graphs_is_written_by_its_name() -> None:
    (sentence,) = Doc.of([POET.put("psd", Graph.of([Arc(5, 2, "ACT-arg")]))])
    several = Doc("", (sentence,))
    assert list(sentence.graphs) == ["graph", "psd"]
    assert ("ACT-arg" in several.to_sdp("psd"), "ARG0" in several.to_sdp("psd")) == (True, False)
    assert "5:ACT-arg" in several.to_conllu(graph="psd")
    with pytest.raises(ValueError, match="no graphs called 'dm' to write as SDP; there are graph and psd"):
        several.to_sdp("dm")
    with pytest.raises(ValueError, match="no graphs called 'dm' to write in the enhanced column; there are graph and"):
        several.to_conllu(graph="dm")


def test_networkx_has_words_and_arcs(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    graph = DOC.to_networkx()
    assert len(graph) == 12
    assert graph.edges[(1, 5), (1, 2), "tree"]["label"] == "nsubj"
    assert graph.edges[(2, 5), (2, 4), "graph ARGM-NEG"]["label"] == "ARGM-NEG"
    bare = Doc.of([Sentence(("Go",))]).to_networkx()
    networkx.write_graphml(bare, tmp_path / "go.graphml")  # which has no word for what is not known
    assert list(networkx.read_graphml(tmp_path / "go.graphml").nodes.values()) == [{"text": "Go", "start": 0, "end": 2}]


def test_pandas_has_a_row_for_each_word() -> None:
    pytest.importorskip("pandas")
    table = DOC.to_pandas()
    assert list(table.text) == list(WORDS + WORDS)
    assert list(table["head"])[:6] == list(POET.heads or ())
    assert table.arguments[4] == [("ARG0", 2), ("ARGM-NEG", 4)]
    mixed = Doc.of([POET, Sentence(("Go",))]).to_pandas()
    assert (mixed["head"][0], bool(mixed["head"].isna()[6])) == (2, True)
    assert [str(mixed[name].dtype) for name in ("sentence", "word", "start", "end", "head")] == ["int64"] * 4 + [
        "Int64"
    ]
    assert len(Doc.of([]).to_pandas()) == 0


def test_spacy_has_the_same_words() -> None:
    spacy = pytest.importorskip("spacy")
    text = replace(POET, source=None)
    made = Doc.of([text, text], class_names=DOC[0].class_names).to_spacy(spacy.blank("en").vocab)
    assert [token.text for token in made] == list(WORDS + WORDS)
    assert [token.dep_ for token in made][:2] == ["det", "nsubj"]
    assert [sentence._.spigot_label for sentence in made.sents] == ["positive", "positive"]
    assert [token.head.i for token in made] == [1, 4, 4, 4, 4, 4, 7, 10, 10, 10, 10, 10]
    assert [(token.tag_, token.pos_, token.lemma_) for token in made][:2] == [
        ("DT", "DET", "the"),
        ("NN", "NOUN", "poet"),
    ]
    assert made._.spigot_graph["arcs"][2:] == [[10, 7, "ARG0"], [10, 9, "ARGM-NEG"]]
    assert made[10]._.spigot_arguments == [("ARG0", made[7]), ("ARGM-NEG", made[9])]
    again = type(made)(made.vocab).from_bytes(made.to_bytes())
    assert again._.spigot_graph == made._.spigot_graph


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "  Go  on.\n\nStop\u200b now.\r\n ",
            ["  ", "Go", " ", "on", ".", "\n\n", "Stop", "\u200b ", "now", ".", "\r\n "],
        ),
        ("Go on.", ["Go", "on", "."]),
        (" \n", [" \n"]),
        ("", []),
    ],
)
def test_spacy_has_the_same_text(text: str, words: list[str]) -> None:
    spacy = pytest.importorskip("spacy")
    doc = parser()(text)
    made = doc.to_spacy(spacy.blank("en").vocab)
    assert (made.text, [token.text for token in made]) == (text, words)
    assert len(list(made.sents)) == max(1, len(doc)) if text else not len(made)
    for sentence, own in zip(made.sents, doc, strict=False):
        assert sentence.text.strip() == own.text
    assert all(token.dep_ == "dep" for token in made if not token.text[0].isalnum() and token.text != "." and doc)


def test_spacy_takes_what_is_not_its_own() -> None:
    """Nothing found, no words, and tags that are not universal."""
    vocab = pytest.importorskip("spacy").blank("en").vocab
    bare = Doc.of([Sentence(("Go", "on")), Sentence(("Stop",))]).to_spacy(vocab)
    assert ([len(sentence) for sentence in bare.sents], bare.has_annotation("DEP")) == ([2, 1], False)
    assert bare._.spigot_graph is None
    assert len(Doc.of([]).to_spacy(vocab)) == 0
    assert Doc.of([Sentence(("Go",), upos=("V",))]).to_spacy(vocab)[0].pos_ == ""


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
    assert 'data-jp-theme-light="false"' in picture  # a dark notebook on a light screen
    assert picture.count("<style") == 1
    assert DOC[0]._repr_html_().count("<svg") == 1


def test_notebooks_get_neither_markup_of_strangers_nor_thousands_of_pictures() -> None:
    doc = Doc.of([replace(POET, label=0)] * 60, class_names={0: "<b>bold</b>"})
    picture = doc._repr_html_()
    assert picture.count("<svg") == 50
    assert "and 10 more sentences" in picture
    assert "<b>" not in picture
    assert "no sentences" in Doc.of([])._repr_html_()


def test_a_system_reads_text_as_the_commands_do() -> None:
    nlp = parser()
    text = "The cat didn't see it. “Often”, she said!"
    doc = nlp(text)
    assert doc.text == text
    assert [s.found for s in doc] == list(nlp.pipe(nlp.conventions.sentences(text), plain=True))
    assert len(repr(nlp)) < 200
    assert nlp.out_of_vocabulary(doc).new > 0
    docs = list(nlp.pipe([text, "", "Cats.", text], batch=3))
    assert [doc.text for doc in docs] == [text, "", "Cats.", text]
    assert docs[3][1].tree == doc[1].tree
    with pytest.raises(TypeError, match="many texts"):
        nlp.pipe("one text")


def test_classes_have_names() -> None:
    assert classifier().class_names == {0: "0", 1: "1"}
    assert classifier(data__source="synthetic").class_names == {0: "negative", 1: "positive"}
    assert parser().class_names == {}


@pytest.mark.slow
def test_processes_answer_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config(
        {
            "data": {"source": "synthetic", "synthetic": {"train": 6, "dev": 2, "test": 2}, "tags": "columns"},
            "stages": {"syntax": {"annotation": "trees", "labelled": True, "mlp": 4, "encoder": {"hidden": 4}}},
            "training": {"epochs": 1, "batch": 3, "tests": False},
        }
    )
    train(config, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    nlp = spigot_nlp.load("run")
    monkeypatch.chdir("/")  # where the run is found all the same
    texts = [f"The judge saw {word} dogs." for word in ("two", "ten", "many", "no", "few")]
    alone = [doc.to_json() for doc in nlp.pipe(texts)]
    shared = nlp.pipe(cast(list[str], [*texts, 5]), processes=2, batch=2)
    assert [next(shared).to_json() for _ in texts] == alone
    with pytest.raises(TypeError, match="number 6 is 'int'"):
        next(shared)
    assert multiprocessing.active_children() == []
    assert [doc.to_json() for doc in pickle.loads(pickle.dumps(nlp)).pipe(texts)] == alone
    assert Parser.load(tmp_path / "run", device="auto").model.device.type in ("cpu", "cuda", "mps")
    with pytest.raises(ValueError, match=r"^device is abacus; it must be cpu, cuda, cuda:1, mps or auto\.$"):
        Parser.load(tmp_path / "run", device="abacus")


@pytest.mark.parametrize("processes", [1, 2])
def test_texts_are_taken_as_they_are_needed(processes: int) -> None:
    taken = []

    def endless() -> Iterator[str]:
        for k in itertools.count():
            taken.append(k)
            yield f"Cat {k}."

    stream = cast(Generator[Doc], SMALL.pipe(endless(), processes=processes, batch=3))
    assert taken == []
    assert [next(stream).text for _ in range(7)] == [f"Cat {k}." for k in range(7)]
    assert len(taken) <= 3 * (3 + 5 * processes)
    stream.close()
    with pytest.raises(StopIteration):
        next(stream)
    for count in (0, 1, 3, 4, 6):
        texts = [f"Cat {k}." for k in range(count)]
        assert [doc.text for doc in SMALL.pipe(iter(texts), processes=processes, batch=3)] == texts


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("count", [2, 3, 8])
def test_what_comes_before_an_error_comes_first(processes: int, count: int) -> None:
    def broken() -> Iterator[str]:
        yield from ["Cats."] * count
        raise OSError("the file is gone")

    given = ["Cats."] * count
    for texts, error in ((broken(), OSError), ([*given, None, "Dogs."], TypeError), ([*given, "\ud800"], ValueError)):
        docs = SMALL.pipe(cast(Iterable[str], texts), processes=processes, batch=3)
        assert [next(docs).text for _ in range(count)] == ["Cats."] * count
        with pytest.raises(
            error, match=f"gone|number {count + 1} is 'NoneType'|number {count + 1} has half a character"
        ):
            next(docs)


def test_there_is_no_graph_to_write_where_none_was_found() -> None:
    trees = Doc.of([Sentence(("Rain", "fell"), heads=(2, 0))])
    with pytest.raises(ValueError, match=r"no graphs called .graph. to write in the enhanced column; leave it out"):
        trees.to_conllu(graph=True)


@pytest.mark.parametrize("settings", [{"processes": "2"}, {"batch": "3"}, {"batch": 0.5}])
def test_numbers_of_a_stream_are_whole_numbers(settings: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="both must be whole numbers"):
        parser().pipe(["Rain."], **settings)


def test_numbers_of_a_stream_are_at_least_one() -> None:
    nlp = parser()
    with pytest.raises(ValueError, match="processes is 0 and batch is None; both must be at least 1"):
        nlp.pipe(["Rain."], processes=0)
    assert [doc.text for doc in nlp.pipe(["Rain."], batch=cast(int, np.int64(2)))]  # as good


@pytest.mark.parametrize(("wrong", "says"), [({"run": 5}, "run is 5; it"), ({"device": None}, "device is None")])
def test_what_cannot_be_loaded(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        spigot_nlp.load(**wrong)


def test_documents_are_equal_by_what_was_found() -> None:
    nlp = parser()
    doc = nlp("The cat sees it. The dog hides.")
    assert doc == nlp("The cat sees it. The dog hides.") == pickle.loads(pickle.dumps(doc))
    assert hash(doc) == hash(nlp(doc.text))
    assert doc != nlp("The cat sees it. The dog  hides.")
    assert doc != replace(doc, sentences=doc.sentences[:1])
    assert doc != doc.text


def test_sentences_have_ids_in_files_whatever_those_of_others_are() -> None:
    graph = Graph.of([Arc(2, 1, "ARG1")])
    doc = Doc.of([Sentence(("Rain", "fell"), graph=graph), Sentence(("It", "stopped"), graph=graph, id="1")])
    assert [line for line in doc.to_conllu().split("\n") if "sent_id" in line] == ["# sent_id = 2", "# sent_id = 1"]
    assert [line for line in doc.to_sdp().split("\n") if line.startswith("#")] == ["#SDP 2015", "#2", "#1"]


def test_what_conllu_says_of_white_space_stays() -> None:
    rows = ["# text = Rain.", "1\tRain\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No", "2\t.\t_\t_\t_\t_\t_\t_\t_\t_"]
    doc = Doc.of([parse_conllu(Block(rows))] * 2)
    assert doc.text.split() == ["Rain.", "Rain."]
    assert doc.to_conllu().count("# text = Rain.\n") == 2


def test_a_deep_copy_has_the_parameters_of_now() -> None:
    nlp = parser()
    for parameter in nlp.model.parameters():
        parameter.data.zero_()
    copied = copy.deepcopy(nlp)
    assert not any(parameter.any() for parameter in copied.model.parameters())
    assert copied("The cat sees it.") == nlp("The cat sees it.")
    next(iter(copied.model.parameters())).data.fill_(1)
    assert not any(parameter.any() for parameter in nlp.model.parameters())
