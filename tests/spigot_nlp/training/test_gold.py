"""The gold sentences that a run keeps."""

from dataclasses import replace
from pathlib import Path

from spigot_nlp.config import make_config
from spigot_nlp.corpora.corpus import Corpus, Split
from spigot_nlp.data.formats import read
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.training.results import EXAMPLES, save_gold

WORDS = ("Rain", "fell")
GRAPH = Graph.of([Arc(2, 1, "ARG1")], tops=[2])
TREE = Sentence(WORDS, tags=("NN", "VBD"), heads=(2, 0), relations=("nsubj", "root"))


def test_annotations_of_the_same_words_meet(tmp_path: Path) -> None:
    other = Sentence(("Snow", "fell"), graph=GRAPH)
    graphs = Split(dev=[replace(TREE, heads=None, relations=None, graph=GRAPH), other], tests={"ood": [other]})
    save_gold(tmp_path, make_config({}), Corpus({"trees": Split(dev=[TREE]), "graphs": graphs}))
    both, alone = read(tmp_path / "gold.dev.jsonl")
    assert (both.heads, both.relations, both.graph, both.tags) == (TREE.heads, TREE.relations, GRAPH, TREE.tags)
    assert (alone.heads, alone.graph) == (None, GRAPH)
    assert [sentence.forms for sentence in read(tmp_path / "gold.ood.jsonl")] == [other.forms]
    assert not (tmp_path / "gold.train.jsonl").exists()


def test_the_same_part_is_preferred(tmp_path: Path) -> None:
    misread = replace(TREE, heads=(0, 1))
    trees = Split(train=[misread], dev=[TREE], tests={"id": [misread]})
    graphs = Split(dev=[Sentence(WORDS, graph=GRAPH)])
    save_gold(tmp_path, make_config({}), Corpus({"trees": trees, "graphs": graphs}))
    (kept,) = read(tmp_path / "gold.dev.jsonl")
    assert kept.heads == TREE.heads


def test_sentences_with_the_same_words_keep_their_own_annotation(tmp_path: Path) -> None:
    misread, far = replace(TREE, heads=(0, 1)), replace(TREE, heads=(0, 0))
    trees = Split(train=[far], dev=[TREE, misread])
    graphs = Split(dev=[Sentence(WORDS, graph=GRAPH)] * 3)
    save_gold(tmp_path, make_config({}), Corpus({"trees": trees, "graphs": graphs}))
    kept = [sentence.heads for sentence in read(tmp_path / "gold.dev.jsonl")]
    assert kept == [TREE.heads, misread.heads, misread.heads]  # and none of another part where the own one has some


def test_classes_come_with_graphs_and_few_training_sentences_are_kept(tmp_path: Path) -> None:
    labelled = [Sentence((f"w{k}",), label=k % 2) for k in range(EXAMPLES + 5)]
    graphs = Split(train=[Sentence(("w1",), graph=Graph.of([], tops=[1]))])
    corpus = Corpus({"graphs": graphs, "labels": Split(train=labelled)})
    save_gold(tmp_path, make_config({"task": "classification"}), corpus)
    kept = list(read(tmp_path / "gold.train.jsonl"))
    assert [sentence.label for sentence in kept] == [k % 2 for k in range(EXAMPLES)]
    assert [sentence.graph for sentence in kept[:3]] == [None, Graph.of([], tops=[1]), None]


def test_whatever_is_known_about_the_same_words_is_joined(tmp_path: Path) -> None:
    """Annotations of any name, from any data set; what a sentence says itself stays."""
    stages = {"mood": {"annotation": "label", "data": "reviews"}}
    own = Sentence(WORDS, label=1).put("enhanced", GRAPH)
    sets = {
        "web": Split(dev=[TREE.put("enhanced", Graph())]),
        "news": Split(tests={"id": [replace(TREE, heads=(0, 1), relations=None, graph=GRAPH)]}),
        "reviews": Split(dev=[own]),
    }
    save_gold(tmp_path, make_config({"stages": stages}), Corpus(sets))
    (kept,) = read(tmp_path / "gold.dev.jsonl")
    assert (kept.label, kept.get("enhanced"), kept.graph) == (1, GRAPH, GRAPH)
    assert (kept.heads, kept.relations) == (TREE.heads, TREE.relations)


def test_relations_come_from_where_the_heads_do(tmp_path: Path) -> None:
    graphs = Split(dev=[Sentence(WORDS, heads=(0, 1), graph=GRAPH)])
    save_gold(tmp_path, make_config({}), Corpus({"trees": Split(dev=[TREE]), "graphs": graphs}))
    (kept,) = read(tmp_path / "gold.dev.jsonl")
    assert (kept.heads, kept.relations) == ((0, 1), None)
