"""The sentences of an experiment: files, limits, and tags that are as bad as they will be."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spigot_nlp.corpora import Data, Files, Synthetic
from spigot_nlp.corpora.corpus import Split, load_corpus, load_tests
from spigot_nlp.data.formats import write
from spigot_nlp.data.sentence import Arc, Graph, Sentence
from spigot_nlp.data.tagging.lemmas import Lemmatiser
from spigot_nlp.data.tagging.tagger import Tagger, jackknife
from tests.spigot_nlp.parsing import sentences

TREES, GRAPHS, DEV = sentences(30, seed=1), sentences(20, seed=2), sentences(5, seed=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, chosen in (("trees", TREES), ("dev", DEV)):
        write([replace(sentence, graph=None) for sentence in chosen], tmp_path / f"{name}.conllu")
    for name, chosen in (("graphs", GRAPHS), ("dev", DEV)):
        write(chosen, tmp_path / f"{name}.sdp")
    return tmp_path


def settings(folder: Path, *, graphs: int = 0, trees: int = 0, **values: object) -> Data:
    given: dict[str, object] = {
        "root": str(folder),
        "trees": Files(train=("trees.conllu",), dev="dev.conllu", tests={"id": "dev.conllu"}, limit=trees),
        "graphs": Files(train=("graphs.sdp",), dev="dev.sdp", tests={"id": "dev.sdp"}, limit=graphs),
        "tags": "columns",
    }
    return Data.model_validate(given | values)


def test_files_are_read_by_task(folder: Path) -> None:
    corpus = load_corpus(settings(folder))
    assert [s.heads for s in corpus["trees"].train] == [s.heads for s in TREES]
    assert [s.graph and s.graph.arcs for s in corpus["graphs"].train] == [s.graph and s.graph.arcs for s in GRAPHS]
    assert [s.tags for s in corpus["graphs"].train] == [s.tags for s in GRAPHS]
    assert len(corpus["trees"].dev) == len(corpus["graphs"].dev) == len(DEV)
    assert all(s.graph is None for s in (*corpus["trees"].train, *corpus["trees"].dev))
    assert corpus.tagger is None
    judged = load_tests(settings(folder), None)
    assert judged["graphs"] == replace(corpus["graphs"], train=[])
    assert judged["trees"] == replace(corpus["trees"], train=[])
    assert judged["graphs"].dev == corpus["graphs"].dev
    assert [s.graph and s.graph.arcs for s in judged["graphs"].tests["id"]] == [s.graph and s.graph.arcs for s in DEV]


def test_what_a_system_is_judged_by_is_tagged_by_its_own_tagger(folder: Path) -> None:
    corpus = load_corpus(settings(folder, tags="predicted", folds=3))
    judged = load_tests(settings(folder, tags="predicted", folds=3), corpus.tagger)
    assert judged["trees"].dev == corpus["trees"].dev
    assert judged["graphs"].dev == corpus["graphs"].dev == judged["graphs"].tests["id"]
    assert corpus["graphs"].tests == judged["graphs"].tests


def test_several_training_files_follow_each_other(folder: Path) -> None:
    both = settings(folder, graphs=0, trees=0).model_copy(update={"graphs": Files(train=("graphs.sdp", "dev.sdp"))})
    corpus = load_corpus(both)
    assert [s.forms for s in corpus["graphs"].train] == [s.forms for s in (*GRAPHS, *DEV)]
    assert corpus["graphs"].dev == []


def test_larger_limits_contain_smaller_ones(folder: Path) -> None:
    before: list[str] = []
    for limit in (3, 8, 15, 20, 0):
        chosen = [s.id for s in load_corpus(settings(folder, graphs=limit))["graphs"].train]
        assert len(chosen) == (limit or 20)
        assert set(before) <= set(chosen)
        assert chosen == [s.id for s in GRAPHS if s.id in set(chosen)]  # in the order of the file
        before = chosen
    assert len(load_corpus(settings(folder, trees=4))["trees"].train) == 4
    first = [s.id for s in load_corpus(settings(folder, graphs=3))["graphs"].train]
    assert first != [s.id for s in GRAPHS[:3]]  # not simply the beginning, which may be one document


def test_predicted_tags_of_training_text_come_from_taggers_that_did_not_see_it(folder: Path) -> None:
    gold = [replace(sentence, graph=None) for sentence in TREES]
    corpus = load_corpus(settings(folder, tags="predicted", folds=3))
    expected = []
    for fold in range(3):
        others = [s for k, s in enumerate(gold) if k // 10 != fold]
        expected += list(Lemmatiser().lemmatise(Tagger.train(others).tag(gold[10 * fold : 10 * fold + 10])))
    twins = {s.forms for s in gold[10:]} & {s.forms for s in gold[:10]}
    for found, wanted in zip(corpus["trees"].train, expected, strict=True):
        if found.forms not in twins:
            assert (found.tags, found.lemmas) == (wanted.tags, wanted.lemmas)


def test_a_tag_that_only_one_fold_knows_is_not_given_there(tmp_path: Path, folder: Path) -> None:
    odd = Sentence(("zorp", "zorp"), tags=("XX", "XX"), heads=(0, 1))
    write([odd, *(replace(s, graph=None) for s in TREES[1:])], tmp_path / "trees.conllu")
    write([replace(odd, heads=(0, 1))], tmp_path / "dev.conllu")
    corpus = load_corpus(settings(folder, tags="predicted", folds=3))
    assert "XX" not in (corpus["trees"].train[0].tags or ())
    assert corpus["trees"].dev[0].tags == ("XX", "XX")  # new text is tagged by the tagger that saw everything


def test_text_annotated_twice_is_tagged_once(folder: Path) -> None:
    write([replace(s, heads=None) for s in TREES], folder / "graphs.sdp")
    corpus = load_corpus(settings(folder, tags="predicted", folds=3))
    assert [(s.tags, s.lemmas) for s in corpus["graphs"].train] == [(s.tags, s.lemmas) for s in corpus["trees"].train]
    assert corpus["graphs"].train[0].graph is not None


def test_a_limit_does_not_change_the_tags(folder: Path) -> None:
    whole = {s.id: s for s in load_corpus(settings(folder, tags="predicted", folds=3))["graphs"].train}
    for sentence in load_corpus(settings(folder, tags="predicted", folds=3, graphs=6))["graphs"].train:
        assert sentence == whole[sentence.id]


def test_without_trees_the_tagger_learns_from_the_graphs(folder: Path) -> None:
    corpus = load_corpus(settings(folder, tags="predicted", folds=2, trees=0).model_copy(update={"trees": Files()}))
    assert corpus["trees"].train == []
    assert corpus.tagger is not None
    known = jackknife([replace(s, heads=None) for s in GRAPHS], folds=2)
    assert [s.tags for s in corpus["graphs"].train][:10] == [s.tags for s in known][:10]


def test_a_missing_file_says_what_to_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.sdp is missing; data\.root is .*Ask the librarian"):
        load_corpus(
            settings(folder, graphs=0, obtain="Ask the librarian.").model_copy(
                update={"graphs": Files(train=("none.sdp",))}
            )
        )
    monkeypatch.delenv("SPIGOT_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"none\.sdp is missing; .*SPIGOT_DATA is not set.*: export SPIGOT_"):
        load_corpus(Data.model_validate({"graphs": Files(train=("none.sdp",))}))
    monkeypatch.setenv("SPIGOT_DATA", str(folder))
    with pytest.raises(FileNotFoundError, match=f"the environment variable SPIGOT_DATA is {re.escape(str(folder))}"):
        load_corpus(Data.model_validate({"graphs": Files(train=("none.sdp",))}))
    with pytest.raises(FileNotFoundError, match=r"none\.sdp is missing; correct its path"):
        load_corpus(Data.model_validate({"graphs": Files(train=(str(folder / "none.sdp"),))}))
    late = settings(folder).model_copy(update={"vectors": "none.txt"})
    with pytest.raises(FileNotFoundError, match=r"none\.txt is missing"):
        load_corpus(late)


def test_a_tagger_needs_sentences_to_learn_from() -> None:
    with pytest.raises(ValueError, match=r"data\.tags = 'predicted' needs tagged sentences.*data\.tags = 'columns'"):
        load_corpus(Data())


def test_the_synthetic_corpus_has_its_sizes_and_no_overlap() -> None:
    sizes = Synthetic(train=30, dev=6, test=7)
    data = Data(source="synthetic", synthetic=sizes, tags="columns")
    corpus, judged = load_corpus(data), load_tests(data, None)
    assert len(corpus["trees"].train) == len(corpus["graphs"].train) == 30
    assert len(corpus["graphs"].dev) == len(corpus["trees"].dev) == 6
    assert {name: len(chosen) for name, chosen in judged["graphs"].tests.items()} == {"id": 7, "ood": 7}
    assert not {s.forms for s in corpus["trees"].train} & {s.forms for s in corpus["graphs"].train}
    assert not {s.forms for s in corpus["graphs"].train} & {s.forms for s in corpus["graphs"].dev}
    assert corpus == load_corpus(data)
    assert judged["labels"].dev == corpus["labels"].dev
    assert judged["labels"].tests == corpus["labels"].tests
    assert all(s.label in (0, 1) for s in corpus["labels"].train)
    assert all(s.heads is None and s.relations is None for s in corpus["graphs"].train)


def test_the_synthetic_corpus_ends_somewhere() -> None:
    data = Data(source="synthetic", synthetic=Synthetic(train=4000), tags="columns")
    with pytest.raises(
        ValueError, match="has 7,000 sentences in domain, and 8,800 are asked for; take fewer, or write"
    ):
        load_corpus(data)


def test_the_synthetic_corpus_has_its_trees_as_a_second_graph() -> None:
    corpus = load_corpus(Data(source="synthetic", synthetic=Synthetic(train=5, dev=2, test=2), tags="columns"))
    for sentence in (*corpus["trees"].train, *corpus["graphs"].dev, *corpus["labels"].tests["ood"]):
        assert sentence.heads is not None
        assert sentence.relations is not None
        words = zip(sentence.heads, range(1, len(sentence) + 1), sentence.relations, strict=True)
        arcs = [Arc(*triple) for triple in words]
        expected = Graph.of([arc for arc in arcs if arc.predicate], [arc.argument for arc in arcs if not arc.predicate])
        assert sentence.get("dependencies") == expected != sentence.graph
    assert all(s.get("dependencies") is not None and s.heads is None for s in corpus["graphs"].train)


def test_a_data_set_may_have_any_name_and_call_its_annotations_otherwise(folder: Path) -> None:
    files = Files(train=("graphs.sdp",), dev="dev.sdp", tests={"id": "dev.sdp"}, names={"graph": "enhanced"}, limit=7)
    given = {"root": str(folder), "tags": "columns", "enhanced": files, "graphs": Files(train=("graphs.sdp",))}
    corpus = load_corpus(Data.model_validate(given))
    assert list(corpus.sets) == list(corpus.train) == ["enhanced", "graphs"]
    assert len(corpus["enhanced"].train) == 7
    renamed = (*corpus["enhanced"].train, *corpus["enhanced"].dev, *corpus["enhanced"].tests["id"])
    assert all(s.graph is None and isinstance(s.get("enhanced"), Graph) for s in renamed)
    assert all(s.graph is not None and s.get("enhanced") is None for s in corpus["graphs"].train)  # the same file
    assert corpus["nothing"] == Split()


def test_the_tagger_learns_from_the_first_data_set_that_has_tags(folder: Path) -> None:
    write([Sentence(("Rain",), label=0)], folder / "labels.jsonl")
    sets = {"labels": Files(train=("labels.jsonl",)), "more": Files(train=("trees.conllu",))}
    corpus = load_corpus(Data.model_validate({"root": str(folder), "folds": 2, **sets}))
    assert corpus.tagger is not None
    bare = [Sentence(s.forms) for s in DEV]
    assert [s.tags for s in corpus.tagger.tag(bare)] == [s.tags for s in Tagger.train(TREES).tag(bare)]
    assert corpus["labels"].train[0].tags is not None


def test_a_misspelt_setting_of_the_data_is_no_data_set() -> None:
    with pytest.raises(ValueError, match="sauce"):
        Data.model_validate({"sauce": "synthetic"})


@pytest.mark.slow
def test_real_corpora_have_graphs_that_models_can_give() -> None:
    root = os.environ.get("SPIGOT_DATA", "")
    if not root or not (Path(root) / "propbank-ewt").is_dir():
        pytest.skip("SPIGOT_DATA does not name a folder with propbank-ewt")
    files = Files(train=("propbank-ewt/dev.sdp",), dev="propbank-ewt/dev.sdp")
    corpus = load_corpus(Data.model_validate({"root": root, "graphs": files, "tags": "columns"}))
    for sentence in corpus["graphs"].train:
        assert sentence.graph is not None
        assert all(arc.predicate != arc.argument for arc in sentence.graph.arcs)
        assert len({arc[:2] for arc in sentence.graph.arcs}) == len(sentence.graph.arcs)


def test_parts_share_no_text_in_any_data_set(tmp_path: Path) -> None:
    chosen = [Sentence((f"word{k}", "fell"), tags=("NN", "VBD"), heads=(2, 0)) for k in range(200)]
    write([*chosen, chosen[0]], tmp_path / "one.conllu")
    write(reversed(chosen), tmp_path / "other.conllu")

    def texts(**tables: dict[str, Any]) -> dict[str, list[tuple[str, ...]]]:
        corpus = load_corpus(Data.model_validate({"root": str(tmp_path), "tags": "columns", **tables}))
        return {name: [sentence.forms for sentence in split.train] for name, split in corpus.sets.items()}

    def third(k: int, **more: Any) -> dict[str, Any]:
        return {"train": "one.conllu", "part": f"{k}/3", **more}

    found = texts(a=third(1), b=third(2), c=third(3), twin={"train": "other.conllu", "part": "1/3"})
    assert sorted(found["a"] + found["b"] + found["c"]) == sorted([*(s.forms for s in chosen), chosen[0].forms])
    assert not set(found["a"]) & set(found["b"])
    assert set(found["twin"]) == set(found["a"])
    assert all(40 < len(found[name]) < 95 for name in "abc")
    limited = texts(a=third(1, limit=10))["a"]
    assert len(limited) == 10
    assert set(limited) <= set(found["a"])
    for wrong in ("0/2", "3/2", "half", "1/", "1/2/3", "-1/2"):
        with pytest.raises(ValueError, match="is no part of a whole; write '1/2' for the first half"):
            texts(a=third(1) | {"part": wrong})
