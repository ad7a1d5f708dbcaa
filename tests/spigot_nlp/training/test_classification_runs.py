"""Classifiers in folders, with parsers from other folders."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from spigot_nlp.config import Config
from spigot_nlp.corpora.corpus import Corpus, load_corpus
from spigot_nlp.data.formats import read, write
from spigot_nlp.data.sentence import Sentence
from spigot_nlp.evaluation.labels import score_labels
from spigot_nlp.models import checkpoint
from spigot_nlp.models.checkpoint import write_tensors
from spigot_nlp.models.parser import Parser
from spigot_nlp.training import resume, train
from spigot_nlp.training.plan import phases
from spigot_nlp.training.start import build, init_stages
from tests.spigot_nlp.parsing import classification, classifier, load, review_corpus, reviews, semantics, sentences
from tests.spigot_nlp.training.test_run import finished
from tests.spigot_nlp.training.trainings import Training, begin, rest_of, steps_of

LATENT: dict[str, Any] = {"classifier__latent": True}
TREES: dict[str, Any] = {"classifier__structure": "trees"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, size, seed in (("train", 8, 1), ("dev", 3, 2), ("test", 4, 3)):
        chosen = sentences(size, seed)
        write([replace(sentence, graph=None) for sentence in chosen], folder / f"{name}.conllu")
        write(chosen, folder / f"{name}.sdp")
        labelled = [replace(s, label=k % 2) for k, s in enumerate(sentences(size, seed + 10))]
        write(labelled, folder / f"{name}.jsonl")  # with trees and graphs, which no one should look at
    return folder


def config(data: Path, system: str = "spigot", **overrides: Any) -> Config:
    files = {
        f"data__{task}": {"train": [f"train.{end}"], "dev": f"dev.{end}", "tests": {"id": f"test.{end}"}}
        for task, end in (("trees", "conllu"), ("graphs", "sdp"), ("labels", "jsonl"))
    }
    return classification(system, data__root=str(data), **files, **overrides)


def saved(parser: Parser, folder: Path) -> Path:
    """A run folder as a training leaves it, as far as others need it."""
    checkpoint.save_start(folder, parser)
    write_tensors(folder / checkpoint.MODEL, parser.model.state_dict())
    return folder


@pytest.mark.parametrize(
    ("overrides", "scored", "written"),
    [
        ({}, {"labels", "graphs"}, {"jsonl", "sdp"}),
        (TREES, {"labels", "trees"}, {"jsonl", "conllu"}),
        (LATENT, {"labels"}, {"jsonl"}),
        ({**LATENT, **TREES}, {"labels", "trees"}, {"jsonl"}),
        ({"system": "bilstm"}, {"labels"}, {"jsonl"}),
        ({"classifier__structure": "gold", "system": "sparsemap"}, {"labels"}, {"jsonl"}),
    ],
    ids=["graphs", "trees", "latent graphs", "latent trees", "bilstm", "gold"],
)
def test_a_run_folder_says_how_good_it_is(
    data: Path, tmp_path: Path, overrides: dict[str, Any], scored: set[str], written: set[str]
) -> None:
    out = tmp_path / "run"
    train(config(data, **{"training__epochs": 2, **overrides}), out)
    scores = json.loads((out / "scores.json").read_text())
    assert list(scores) == ["dev", "id"]
    assert all(set(found) == scored for found in scores.values())
    names = {path.name for path in out.glob("predictions.*")}
    assert names == {f"predictions.{part}.{end}" for part in ("dev", "id") for end in written}
    gold, predicted = list(read(data / "test.jsonl")), list(read(out / "predictions.id.jsonl"))
    assert scores["id"]["labels"] == json.loads(json.dumps(asdict(score_labels(gold, predicted))))
    system = load(out)
    again = list(system.pipe(map(system.visible, gold)))
    assert [(s.label, s.heads) for s in again] == [(s.label, s.heads) for s in predicted]
    assert [s.graph and s.graph.arcs for s in again] == [s.graph and s.graph.arcs for s in predicted]
    for one, other in zip(again, predicted, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities)


def test_gold_graphs_of_the_labelled_sentences_are_left_behind(data: Path) -> None:
    """A system learns the same from labelled sentences with and without trees and graphs."""
    chosen = config(data, training__epochs=1, training__pretrain=0, semantics__pruning__learned=False)
    corpus = load_corpus(chosen.data)
    assert all(sentence.graph is not None for sentence in corpus["labels"].train)
    bare = [replace(s.without_annotation(), label=s.label) for s in corpus["labels"].train]
    plain = Corpus({**corpus.sets, "labels": replace(corpus["labels"], train=bare)})
    one, other = (Training(build(chosen, some), some) for some in (corpus, plain))
    assert one.steps() == other.steps()
    for name, value in one.parser.model.state_dict().items():
        assert torch.equal(value, other.parser.model.state_dict()[name])


@pytest.mark.parametrize("overrides", [{}, LATENT], ids=["graphs", "latent"])
def test_an_interrupted_run_ends_like_one_that_was_not(data: Path, tmp_path: Path, overrides: dict[str, Any]) -> None:
    """Every step of the trainer is interrupted in `test_classification.py`; this is about what a folder keeps."""
    chosen = config(data, training__save_seconds=0.0, **overrides)
    total = len(steps_of(chosen, tmp_path / "whole"))
    expected = finished(tmp_path / "whole")
    assert expected["about"]["structures"]
    for stop in (total // 2, total - 1):
        out = tmp_path / f"cut{stop}"
        begin(chosen, out, stop)
        assert len(rest_of(out)) == total - stop
        assert finished(out) == expected


@pytest.mark.parametrize(("overrides", "stage"), [({}, "semantics"), (TREES, "syntax")], ids=["graphs", "trees"])
def test_a_parser_is_taken_over_exactly(tmp_path: Path, overrides: dict[str, Any], stage: str) -> None:
    """Parameters, pruner and the tables of what was seen; the classifier stays as it was."""
    corpus = review_corpus()
    theirs = classifier("pipeline", corpus, seed=5, **overrides)
    Training(theirs, corpus).steps()  # which fills the tables
    for parameter in theirs.model.parameters():
        torch.nn.init.normal_(parameter)
    run = str(saved(theirs, tmp_path / "run"))
    source = {f"{stage}__start": run}
    mine = classifier("spigot", corpus, **source, **overrides)
    before = {name: value.clone() for name, value in mine.model.state_dict().items()}
    init_stages(mine)
    for name, value in mine.model.state_dict().items():
        taken = name.startswith(f"_stages.{stage}.")
        assert torch.equal(value, (theirs.model.state_dict() if taken else before)[name]), name
        assert not taken or not value.is_floating_point() or not torch.equal(value, before[name]) or "chance" in name
    assert sum("pruner" in name for name in before) > 0 or stage == "syntax"
    assert [phase.name for phase in phases(mine.config)] == ["joint"]


def test_a_pipeline_keeps_the_parser_it_took(data: Path, tmp_path: Path) -> None:
    chosen = config(data, training__epochs=1)
    corpus = load_corpus(chosen.data)
    source = build(replace_seed(chosen), corpus)
    Training(source, corpus).steps()
    saved(source, tmp_path / "first")
    taken = config(data, "pipeline", semantics__start=str(tmp_path / "first"), training__pretrain=0)
    assert {step.task for step in steps_of(taken, tmp_path / "second")} == {"classifier"}
    first, second = (semantics(load(tmp_path / run)).state_dict() for run in ("first", "second"))
    assert any("pruner" in name for name in first)
    for name, value in first.items():
        assert torch.equal(value, second[name])


def replace_seed(chosen: Config) -> Config:
    return chosen.model_copy(update={"seed": 9})


def test_a_parser_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    corpus = review_corpus()
    labels = corpus["labels"]

    def take(theirs: Parser, **overrides: Any) -> None:
        source = {"semantics__start": str(saved(theirs, tmp_path / "run"))}
        init_stages(classifier("spigot", corpus, **source, **overrides))

    def labelled(train: list[Sentence]) -> Corpus:
        return Corpus({**corpus.sets, "labels": replace(labels, train=train)})

    with pytest.raises(ValueError, match="trained with other words; its semantics cannot be taken over"):
        take(classifier("spigot", labelled([*labels.train, Sentence(("zebra",), label=1)])))
    tagged = [replace(labels.train[0], tags=("??",) * len(labels.train[0])), *labels.train[1:]]
    with pytest.raises(ValueError, match="trained with other tags"):
        take(classifier("spigot", labelled(tagged)))
    with pytest.raises(ValueError, match="trained with other roles"):
        take(classifier("spigot", corpus, semantics__pruning__rare_role=5))
    with pytest.raises(ValueError, match=r"another size of semantics; use its \[stages\.semantics\]"):
        take(classifier("spigot", corpus), semantics__mlp=9)
    with pytest.raises(ValueError, match="another size"):
        take(classifier("spigot", corpus), semantics__pruning__mlp=9)
    with pytest.raises(ValueError, match="another size"):
        take(classifier("spigot", corpus, semantics__pruning__learned=False))
    with pytest.raises(ValueError, match="has no stage semantics; it has classifier"):
        take(classifier("bilstm", corpus))
    with pytest.raises(ValueError, match="has no stage semantics; it has syntax, classifier"):
        take(classifier("spigot", corpus, **TREES))
    five = [replace(s, label=k % 5) for k, s in enumerate(labels.train)]
    take(classifier("spigot", labelled(five)))  # its classes do not matter


def test_a_run_goes_on_with_the_data_it_was_begun_with(data: Path, tmp_path: Path) -> None:
    begin(config(data, **LATENT), tmp_path / "run", 1)
    write(sentences(9, seed=7), data / "train.sdp")
    assert rest_of(tmp_path / "run")  # a latent parser does not read these
    begin(config(data, "bilstm"), tmp_path / "other", 1)
    write(reviews(9, 3), data / "train.jsonl")
    with pytest.raises(ValueError, match=r"The training data have \d+ words, and had \d+ when"):
        resume(tmp_path / "other")
